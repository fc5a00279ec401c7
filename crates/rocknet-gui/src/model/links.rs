//! State of the connection to the server that the window shows.

use std::path::PathBuf;

use crate::job::{Absence, StartFailure};

/// Connection to the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Link {
    /// The program has just started, or connects again or to another server.
    #[default]
    Connecting,
    /// The server at this socket replies.
    Online(PathBuf),
    Absent(Absence),
    Starting,
    Stopping,
    StartFailed(StartFailure),
}

impl Link {
    /// Returns true if the server replies.
    pub fn is_online(&self) -> bool {
        matches!(self, Link::Online(_))
    }

    /// Takes the report that there is no server. A failed start stays visible until something else happens.
    pub fn lose(&mut self, absence: Absence) {
        if matches!(self, Link::StartFailed(_)) && matches!(absence, Absence::Stopped(_)) {
            return;
        }
        *self = Link::Absent(absence);
    }
}
