//! Upgrade of the server: a new process of the installed program takes over from the running one.

use std::thread;
use std::time::{Duration, Instant};

use rocknet_control::Status;
use rocknet_control::api::{ApiError, Done, Request};
use rocknet_control::upgrade::UpgradeOrder;

use super::Worker;
use crate::job::{Report, Trouble};

/// Maximum time until the new process replies, after the old one has reported that it serves.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between two queries of the new process.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Worker {
    /// Lets a new process take over, and reports its version once it replies. If the new process fails, the old one
    /// goes on, and the reason is reported.
    pub(super) fn upgrade(&mut self) {
        let before = self.process();
        match self.call::<Done>(&Request::Upgrade(UpgradeOrder::default())) {
            Ok(_) => {
                let deadline = Instant::now() + TAKE_OVER_TIMEOUT;
                // The old process closes its connections.
                self.server = None;
                self.absence = None;
                self.poll(true);
                while [0, before].contains(&self.process()) && Instant::now() < deadline {
                    thread::sleep(POLL_INTERVAL);
                    self.poll(true);
                }
                self.refresh_ways();
                let status = self.server.as_ref().map(|server| &server.status);
                (self.report)(Report::Upgraded(new_version(status, before)));
            }
            Err(ApiError { status: 403, .. }) => (self.report)(Report::NotPermitted),
            Err(error) => {
                let reason = match &error.details {
                    Some(details) => format!("{}\n{details}", error.error),
                    None => error.error,
                };
                (self.report)(Report::Upgraded(Err(reason.into())));
            }
        }
    }

    /// Returns the process ID of the server; 0 without a server.
    fn process(&self) -> u32 {
        self.server.as_ref().map_or(0, |server| server.status.pid)
    }
}

/// Returns the version of the new process. `before`: ID of the old process.
///
/// # Errors
///
/// Returns an error if no process replies, or still the old one.
fn new_version(status: Option<&Status>, before: u32) -> Result<String, Trouble> {
    let new = status.filter(|status| ![0, before].contains(&status.pid));
    new.map(|status| status.version.clone()).ok_or(Trouble::NoReply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_process_has_taken_over() {
        let status = |pid| Status {
            pid,
            version: "0.2.0".to_owned(),
            ..Status::default()
        };
        assert_eq!(new_version(Some(&status(8)), 7), Ok("0.2.0".to_owned()));
        assert_eq!(new_version(Some(&status(7)), 7), Err(Trouble::NoReply));
        assert_eq!(new_version(Some(&status(0)), 7), Err(Trouble::NoReply));
        assert_eq!(new_version(None, 7), Err(Trouble::NoReply));
    }
}
