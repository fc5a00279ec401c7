//! Threads that carry out slow jobs, so that the worker goes on meanwhile.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::job::Report;

/// Time after which the worker looks again for the report of a thread.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Threads that carry out jobs, and their reports.
pub struct SlowJobs {
    reports: (Sender<Report>, Receiver<Report>),
    /// Owned here, and by each thread that has not sent its report.
    running: Arc<()>,
    /// Owned here, and by the thread that looks into the trust stores.
    looking: Arc<()>,
    /// True if another look was requested meanwhile, because the stores may have changed since it has begun.
    looks_again: bool,
}

impl Default for SlowJobs {
    fn default() -> SlowJobs {
        SlowJobs {
            reports: channel(),
            running: Arc::default(),
            looking: Arc::default(),
            looks_again: false,
        }
    }
}

impl SlowJobs {
    /// Carries out a job in a thread.
    pub fn begin(&self, job: impl FnOnce() -> Report + Send + 'static) {
        let (sender, running) = (self.reports.0.clone(), Arc::clone(&self.running));
        thread::spawn(move || {
            // The receiver is gone if another server is used, or if the program ends.
            let _ = sender.send(job());
            drop(running);
        });
    }

    /// Looks into the trust stores in a thread. If a look has not ended yet, it is repeated after its end.
    pub fn begin_look(&mut self, look: impl FnOnce() -> Report + Send + 'static) {
        if Arc::strong_count(&self.looking) > 1 {
            self.looks_again = true;
            return;
        }
        let looking = Arc::clone(&self.looking);
        self.begin(move || {
            let report = look();
            drop(looking);
            report
        });
    }

    /// Returns true while a thread may send a report.
    pub fn is_running(&self) -> bool {
        Arc::strong_count(&self.running) > 1
    }

    /// Returns true once if the trust stores have to be looked into again.
    pub fn take_repetition(&mut self) -> bool {
        std::mem::take(&mut self.looks_again)
    }

    /// Returns the next report.
    pub fn next_report(&self) -> Option<Report> {
        self.reports.1.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum wait for a thread.
    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn a_report_about_the_last_server_is_dropped() {
        let mut jobs = SlowJobs::default();
        let (release, released) = channel::<()>();
        let (sent, done) = channel::<()>();
        jobs.begin(move || {
            let _ = released.recv();
            drop(sent);
            Report::Trusted
        });
        jobs = SlowJobs::default();
        drop(release);
        assert!(done.recv_timeout(TIMEOUT).is_err());
        assert!(!jobs.is_running() && jobs.next_report().is_none());
    }
}
