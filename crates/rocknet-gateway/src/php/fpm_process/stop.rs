//! Stops a php-fpm process: gracefully, at a deadline, or at once.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{FpmProcess, FpmState};
use crate::accounts::Process;
use crate::php::installed::Sapi;

/// Time after which a signalled php-cgi is killed with its worker processes.
const CGI_STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of earlier php-fpm processes whose worker processes may still complete their requests. Beyond this
/// number, the worker processes are killed at once, so that they do not accumulate if php-fpm often ends.
const MAX_ORPHANS: usize = 16;

impl FpmProcess {
    /// Signals the processes of an ended, replaced or stopped php-fpm to complete their requests and to accept no
    /// others. Kills them if the signal fails or there are [`MAX_ORPHANS`] already. The processes of php-cgi are always
    /// killed.
    pub(super) fn drain(&mut self, process: Process) {
        let is_signalled = self.is_fpm() && process.signal_group(Signal::QUIT).is_ok();
        if is_signalled && self.orphans.len() < MAX_ORPHANS {
            self.orphans.push((process, Instant::now() + self.pool.drain_timeout));
        } else {
            let _ = process.signal_group(Signal::KILL);
        }
    }

    /// Closes the listener and removes its socket file. Connections in the backlog are reset.
    pub(super) fn close(&mut self) {
        if self.listener.take().is_some() {
            let _ = std::fs::remove_file(&self.socket);
        }
    }

    /// Returns true for php-fpm, which ends its own worker processes. php-cgi has no graceful stop, and may lose track
    /// of a worker process.
    fn is_fpm(&self) -> bool {
        self.sapi == Sapi::Fpm
    }

    /// Signals the process to end: once its requests are complete if `gracefully`, otherwise immediately. The process
    /// is killed after `within`. php-cgi always ends immediately, and is killed after [`CGI_STOP_TIMEOUT`] at the
    /// latest.
    pub fn end(&mut self, within: Duration, gracefully: bool) {
        self.sockets.set_failure(&self.socket, None);
        let is_fpm = self.is_fpm();
        let at = Instant::now() + if is_fpm { within } else { within.min(CGI_STOP_TIMEOUT) };
        for (_, until) in &mut self.orphans {
            *until = at.min(*until);
        }
        self.state = match std::mem::replace(&mut self.state, FpmState::Gone) {
            FpmState::Running { process, .. } => {
                let _ = match (is_fpm, gracefully) {
                    (true, true) => process.signal(Signal::QUIT),
                    (true, false) => process.signal(Signal::TERM),
                    (false, _) => process.signal_group(Signal::TERM),
                };
                FpmState::Ending { process, at }
            }
            FpmState::Ending { process, at: before } => FpmState::Ending {
                process,
                at: before.min(at),
            },
            FpmState::Waiting(_) | FpmState::Stopped | FpmState::Gone => FpmState::Gone,
        };
        if self.is_gone() {
            self.clean_up();
        }
    }

    /// Removes the socket and its state, and kills the remaining processes of earlier runs.
    pub(super) fn clean_up(&mut self) {
        self.state = FpmState::Gone;
        self.retires_at = None;
        self.close();
        self.sockets.forget(&self.socket);
        for (process, _) in self.orphans.drain(..) {
            let _ = process.signal_group(Signal::KILL);
        }
    }
}

impl Drop for FpmProcess {
    fn drop(&mut self) {
        if let FpmState::Running { process, .. } | FpmState::Ending { process, .. } = &mut self.state {
            process.kill();
        }
        self.clean_up();
    }
}
