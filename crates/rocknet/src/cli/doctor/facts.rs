//! Facts that the checks use.

use rocknet_config::model::Config;

use super::served::Running;

/// The facts that checks use. Checks read the machine, but change nothing.
pub struct DoctorFacts<'a> {
    pub config: &'a Config,
    /// The running server of the configuration.
    pub running: &'a Running,
}
