//! State of the worker that concerns services.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::folder_jobs::FolderJobs;
use super::machine::Machine;
use super::services::UsesQuery;
use crate::job::{Query, Report, SiteUse};

/// Interval between two repetitions of a query.
const INTERVAL: Duration = Duration::from_secs(2);

/// State of the worker that concerns services.
pub struct ServiceState {
    pub machine: Machine,
    pub folder_jobs: FolderJobs,
    /// Query that is repeated, and the time of its next repetition.
    watched: Option<(Query, Instant)>,
    /// Query of the websites that use PHP and other servers, while it is carried out.
    pub uses: Option<UsesQuery>,
    /// Last result of `uses`, with the process id and the number of reloads of the server at that time.
    pub known_uses: Option<((u32, u64), Vec<SiteUse>)>,
    /// Reports of threads that wait for a program, such as `systemctl` while the user types a password, or for a
    /// folder.
    ended: (Sender<Report>, Receiver<Report>),
}

impl Default for ServiceState {
    fn default() -> ServiceState {
        ServiceState {
            machine: Machine::default(),
            folder_jobs: FolderJobs::default(),
            watched: None,
            uses: None,
            known_uses: None,
            ended: channel(),
        }
    }
}

impl ServiceState {
    /// Repeats a query from now on, in place of the last one; `None`: no query.
    pub fn watch(&mut self, query: Option<Query>, now: Instant) {
        self.watched = query.map(|query| (query, now + INTERVAL));
    }

    /// Discards the replies of the previous server.
    pub fn forget_server(&mut self) {
        self.uses = None;
        self.known_uses = None;
    }

    /// Returns the query that is due.
    pub fn due(&mut self, now: Instant) -> Option<Query> {
        let (query, due) = self.watched.as_mut()?;
        if now < *due {
            return None;
        }
        *due = now + INTERVAL;
        Some(*query)
    }

    /// Returns the sender for the report of a thread.
    pub fn ended(&self) -> Sender<Report> {
        self.ended.0.clone()
    }

    /// Returns the next report of a thread.
    pub fn next_ended(&self) -> Option<Report> {
        self.ended.1.try_recv().ok()
    }
}
