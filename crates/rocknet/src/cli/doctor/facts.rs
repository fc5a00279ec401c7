//! Facts that the checks use.

use rocknet_config::model::Config;

use super::served::Running;
use super::server_account::OtherAccount;

/// The facts that checks use. Checks read the machine, but change nothing.
pub struct DoctorFacts<'a> {
    pub config: &'a Config,
    /// The running server of the configuration.
    pub running: &'a Running,
    /// Account of the server, if this process neither has its rights nor can take them.
    pub other_account: Option<OtherAccount>,
}
