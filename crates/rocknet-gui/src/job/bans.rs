//! Bans of the server, and the clients with the most offences.

use rocknet_control::ban::{BanSummary, OffenderSummary};

/// Maximum number of bans that are shown. A long list would be sent and drawn again every two seconds.
pub const MAX_BANS: usize = 500;

/// Bans, and the clients with the most offences, at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BanReport {
    /// Number of bans, without those of files.
    pub total: u64,
    /// Latest bans, at most [`MAX_BANS`].
    pub bans: Vec<BanSummary>,
    /// Clients that are not banned and have the most offences, the worst first.
    pub offenders: Vec<OffenderSummary>,
}
