//! Connection to the server: its state is queried each second, and other queries use it as well.

use std::time::{Duration, Instant, SystemTime};

use rocknet_control::api::{ApiError, Request};
use rocknet_control::{ClientError, SiteSummary, Status};
use serde::de::DeserializeOwned;

use super::Worker;
use super::connection::SYSTEM_CONFIG;
use super::connection::{STOPPED, ServerLink};
use crate::job::{Absence, Poll, Report};

/// Interval between two queries of the websites without a reload, because a website can also fail between reloads.
const SITES_INTERVAL: Duration = Duration::from_secs(5);

impl Worker {
    /// Queries the state, and connects first if there is no connection. `with_sites`: queries the websites as well,
    /// even if nothing suggests that they have changed.
    pub(super) fn poll(&mut self, with_sites: bool) {
        if self.server.is_none() && !self.connect() {
            self.find_ways();
            self.report_file_config();
            return;
        }
        match self.state(with_sites) {
            Ok(poll) => (self.report)(Report::Polled(Box::new(poll))),
            Err(error) => self.lose(&error),
        }
        self.find_ways();
    }

    /// Reports the configuration of a server that is stopped, if it has changed.
    pub(super) fn report_file_config(&mut self) {
        if !matches!(self.absence, Some(Absence::Stopped(true))) || self.places.is_elsewhere() {
            return;
        }
        let own = self.places.config().filter(|file| file.exists());
        let file = own.unwrap_or_else(|| SYSTEM_CONFIG.into());
        if let Some(config) = self.file_reader.read(&file, Instant::now()) {
            (self.report)(Report::FileConfig(Box::new(config)));
        }
    }

    /// Reports why there is no server, once.
    pub(super) fn report_absence(&mut self, absence: Absence) {
        if self.absence.as_ref() == Some(&absence) {
            return;
        }
        let was_there = matches!(self.absence, Some(Absence::NoReply(_) | Absence::Failed(_)));
        self.become_absent(absence, was_there);
    }

    /// Reports why there is no server. `was_there`: true if there was one a moment ago, so that its end is explained.
    fn become_absent(&mut self, absence: Absence, was_there: bool) {
        self.end_logs();
        if was_there
            && matches!(absence, Absence::Stopped(_))
            && let Some(ending) = self.ending()
        {
            (self.report)(Report::Ended(ending));
        }
        self.absence = Some(absence.clone());
        (self.report)(Report::Absent(absence));
    }

    /// Connects, and reports the connection once the server has replied with its state.
    pub(super) fn connect(&mut self) -> bool {
        // A wrong token is sent again only if the user connects again, because the server counts wrong tokens.
        if matches!(self.absence, Some(Absence::WrongToken(_))) {
            return false;
        }
        let (socket, client) = match self.places.connect() {
            Ok(found) => found,
            Err(absence) => {
                self.report_absence(absence);
                return false;
            }
        };
        let mut server = ServerLink::new(client);
        match server.query_status() {
            Ok(status) => server.status = status,
            Err(error) => {
                // The unit whose server hangs is found by this process ID, so that it can be restarted.
                if error.is_timeout() && self.last_pid == 0 {
                    self.last_pid = server.client.peer().map_or(0, |peer| peer.pid);
                }
                let absence = self.refusal(&error);
                self.report_absence(absence);
                return false;
            }
        }
        if self.last_pid != server.status.pid {
            self.launcher.forget_exit();
        }
        self.last_pid = server.status.pid;
        self.last_start = start_of(&server.status);
        self.server = Some(server);
        self.absence = None;
        self.services.forget_server();
        self.end_logs();
        (self.report)(Report::Connected(socket));
        true
    }

    pub(super) fn state(&mut self, with_sites: bool) -> Result<Poll, ClientError> {
        let watches_traffic = self.watches_traffic;
        let Some(server) = &mut self.server else {
            return Ok(Poll::default());
        };
        let status = server.query_status()?;
        // The permission is queried only once for each connection.
        if server.queried.is_none()
            && let Some(permission) = server.permission()?
        {
            (self.report)(Report::Permission(permission));
        }
        // The window and its charts measure time from the start of the worker.
        let at = self.began.elapsed();
        let is_due = server
            .queried
            .is_none_or(|(queried, reloads)| queried.elapsed() >= SITES_INTERVAL || reloads != status.reloads);
        let sites = if is_due || with_sites {
            server.queried = Some((Instant::now(), status.reloads));
            let sites = partial(server.client.call::<Vec<SiteSummary>>(&Request::Sites))?;
            server.sites_error = sites.as_ref().err().cloned();
            sites.ok().inspect(|sites| server.sites.clone_from(sites))
        } else {
            None
        };
        let config = server.config_state()?;
        let traffic = match watches_traffic {
            true => Some(partial(server.client.call(&Request::Routes))?),
            false => None,
        };
        let (traffic, traffic_error) = match traffic {
            Some(Ok(traffic)) => (Some(traffic), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        server.status = status.clone();
        if self.last_pid != status.pid {
            // An upgrade has ended the child process in good order.
            self.launcher.forget_exit();
        }
        self.last_pid = status.pid;
        self.last_start = start_of(&status);
        Ok(Poll {
            at,
            status,
            sites,
            sites_error: server.sites_error.clone(),
            traffic,
            traffic_error,
            config,
        })
    }

    /// Sends a request. Without a server, or after the loss of the connection, the error says so.
    pub(super) fn call<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ApiError> {
        let Some(server) = &mut self.server else {
            return Err(ApiError::new(503, STOPPED));
        };
        // A server that hangs is found at once, not only after the long timeout of the request.
        match server.query_status().and_then(|_| server.client.call(request)) {
            Ok(reply) => Ok(reply),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Returns the error of the server. After another error, the connection is dropped.
    pub(super) fn error(&mut self, error: ClientError) -> ApiError {
        match error {
            ClientError::Api(error) => error,
            error => {
                let shown = ApiError::new(503, error.to_string());
                self.lose(&error);
                shown
            }
        }
    }

    /// Ends following the logs of the last server. Its last lines are reported first, because they may have the reason
    /// of its end. The window follows the logs of the next server once they are shown.
    fn end_logs(&mut self) {
        let lines = self.logs.end();
        if !lines.is_empty() {
            (self.report)(Report::Log(lines));
        }
    }

    /// Drops a connection that cannot be used any more. A server that has ended is found to be stopped at once.
    pub(super) fn lose(&mut self, error: &ClientError) {
        self.server = None;
        let absence = match self.places.connect() {
            Err(absence) => absence,
            Ok((server, _)) if error.is_timeout() => Absence::NoReply(server),
            Ok(_) => Absence::Failed(error.to_string()),
        };
        self.become_absent(absence, true);
    }
}

/// Returns the reply, or the message of a server that has refused the query. It is still connected.
///
/// # Errors
///
/// Returns the error of the connection.
fn partial<T>(result: Result<T, ClientError>) -> Result<Result<T, String>, ClientError> {
    match result {
        Ok(reply) => Ok(Ok(reply)),
        Err(ClientError::Api(error)) => Ok(Err(error.error)),
        Err(error) => Err(error),
    }
}

/// Returns the time at which a server has started.
fn start_of(status: &Status) -> Option<SystemTime> {
    SystemTime::now().checked_sub(Duration::from_secs(status.uptime_s))
}

#[cfg(test)]
mod tests;
