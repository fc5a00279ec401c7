//! Upgrade of a running server to another program.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Time in seconds until the new process has to be ready, unless the order names another.
pub const DEFAULT_TIMEOUT: u64 = 30;

/// Permitted timeouts of an order in seconds. The client waits for the reply meanwhile, so the maximum is shorter
/// than the client's timeout for a reply.
pub const TIMEOUTS: RangeInclusive<u64> = 1..=50;

/// Order to start a new process that takes over the sockets of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct UpgradeOrder {
    /// Absolute path of the program; `None`: the path from which the server was started.
    pub binary: Option<String>,
    /// Time in seconds until the new process has to be ready, one of [`TIMEOUTS`]; `None`: [`DEFAULT_TIMEOUT`].
    pub timeout: Option<u64>,
}

impl UpgradeOrder {
    /// Checks the timeout.
    ///
    /// # Errors
    ///
    /// Returns a message if it is not one of [`TIMEOUTS`].
    pub fn check(&self) -> Result<(), String> {
        match self.timeout {
            Some(timeout) if !TIMEOUTS.contains(&timeout) => Err(format!(
                "`timeout` is {timeout}: it must be {} to {} seconds",
                TIMEOUTS.start(),
                TIMEOUTS.end()
            )),
            _ => Ok(()),
        }
    }
}
