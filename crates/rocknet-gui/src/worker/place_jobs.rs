//! Use of a server elsewhere, which the settings name.

use rocknet_control::ClientError;

use super::log_stream::LogStream;
use super::threads::SlowJobs;
use super::{Worker, place_file};
use crate::elsewhere::Elsewhere;
use crate::job::{Absence, Report, Trouble};

impl Worker {
    /// Reads the place of the server from its file, and reports it.
    pub(super) fn read_place(&mut self) {
        let Some(file) = self.places.place().filter(|_| !self.places.is_named()) else {
            return;
        };
        let place = place_file::read(file);
        // A place that an edit by hand has broken is not used; the settings show it.
        if let Ok(Some(server)) = place.server() {
            self.places.use_server(Some(server));
        }
        (self.report)(Report::Place(place));
    }

    /// Uses another server from now on, and writes its place to the file.
    pub(super) fn use_server(&mut self, place: &Elsewhere) {
        // The window sends only a valid place.
        let Ok(server) = place.server() else {
            return;
        };
        let saved = match self.places.place() {
            Some(file) => place_file::write(file, place),
            None => Err(Trouble::NoHome),
        };
        if let Err(error) = saved {
            (self.report)(Report::Failed(error));
        }
        self.server = None;
        self.logs = LogStream::default();
        // A result about the last server is no longer of interest.
        self.slow = SlowJobs::default();
        self.last_pid = 0;
        self.places.use_server(server);
        self.connect_again();
    }

    /// Connects at once, whatever has failed before.
    pub(super) fn connect_again(&mut self) {
        self.absence = None;
        self.looked_for = None;
        self.poll(true);
    }

    /// Returns the reason why a server cannot be used that accepts connections, but has not replied with its state.
    /// SSH accepts connections even if no server runs on the other computer, and a token may be wrong.
    pub(super) fn refusal(&self, error: &ClientError) -> Absence {
        let server = self.places.connected().map(|server| server.shown());
        let server = server.unwrap_or_default();
        let shown = || server.to_string_lossy().into_owned();
        match error {
            error if error.is_timeout() => Absence::NoReply(server),
            ClientError::Api(error) if error.status == 401 && self.places.is_elsewhere() => {
                Absence::WrongToken(shown())
            }
            ClientError::Io(_) if self.places.is_elsewhere() => Absence::Unreachable(shown()),
            error => Absence::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
