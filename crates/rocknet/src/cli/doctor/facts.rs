//! Facts that the checks use.

use rocknet_config::model::Config;
use rocknet_control::Status;

use super::served::ServedAddresses;

/// The facts that checks use. Checks read the machine, but change nothing.
pub struct Facts<'a> {
    pub config: &'a Config,
    /// Addresses that the running server of the configuration listens at.
    pub served: &'a ServedAddresses,
    /// State of that server; `None` if none runs, or if this user has no access to it.
    pub status: Option<&'a Status>,
}
