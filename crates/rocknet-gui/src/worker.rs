//! The worker thread: it owns the connection to the server, and does everything that could make the window wait.
//!
//! Jobs arrive by a channel, reports leave by a callback. Once a second the thread queries the state of the server. The
//! lines of the logs are received by a separate thread, because their stream has no end.

mod connection;
mod desktop;
mod editor;
mod folders;
mod launch;
mod log_stream;
mod machine;
mod options;
mod place_file;
mod place_jobs;
mod programs;
mod service_jobs;
mod service_state;
mod services;
mod trust;
mod units;
mod visits;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_control::api::{ApiError, Done, LogLevel, LogLevelChange, Request};
use rocknet_control::config::ConfigFileName;
use rocknet_control::route::SiteName;
use rocknet_control::{Client, ClientError, SiteSummary, Status};
use serde::de::DeserializeOwned;

use crate::job::{Absence, Job, Poll, Purpose, Query, Report, StartFailure};
use crate::ways::{NoRestart, Starter, Ways};
use connection::Places;
use desktop::SchemeQuery;
use launch::Launcher;
use log_stream::{LogStream, StreamEnd};
use service_state::ServiceState;
use units::{Systemd, UnitFailure, UnitVerb};

pub use options::Options;

/// Interval between two queries of the state.
const INTERVAL: Duration = Duration::from_secs(1);

/// Interval between two queries of the websites, if no reload has changed them: errors appear without a reload.
const SITES_INTERVAL: Duration = Duration::from_secs(5);

/// Starts the worker thread. It ends when the returned sender is dropped.
pub fn start(options: Options, report: impl Fn(Report) + Send + 'static) -> Sender<Job> {
    let (sender, jobs) = channel();
    thread::spawn(move || {
        let mut worker = Worker {
            places: Places::new(&options),
            launcher: Launcher::new(&options),
            report: Box::new(report),
            began: Instant::now(),
            server: None,
            absence: None,
            watches_traffic: true,
            logs: LogStream::default(),
            systemd: Systemd::new(options.search_path.clone()),
            desktop: SchemeQuery::new(options.search_path),
            ways: Ways::default(),
            looked_for: None,
            services: ServiceState::default(),
        };
        if options.socket.is_none() && options.config.is_none() {
            worker.read_place();
        }
        worker.run(&jobs);
    });
    sender
}

/// Connection to a server, with its last known state.
struct ServerLink {
    client: Client,
    status: Status,
    sites: Vec<SiteSummary>,
    /// Time of the last query of the websites, and the number of reloads then.
    queried: Option<(Instant, u64)>,
}

struct Worker {
    places: Places,
    launcher: Launcher,
    report: Box<dyn Fn(Report) + Send>,
    /// Moment from which the times of reports are measured.
    began: Instant,
    server: Option<ServerLink>,
    /// Last reported reason why there is no server; `None` if none was reported.
    absence: Option<Absence>,
    watches_traffic: bool,
    logs: LogStream,
    systemd: Systemd,
    desktop: SchemeQuery,
    /// Ways to start and stop a server, as they were reported.
    ways: Ways,
    /// Process id of the server at the last search for ways; 0 without a server, `None` before the first search.
    looked_for: Option<u32>,
    services: ServiceState,
}

impl Worker {
    fn run(&mut self, jobs: &Receiver<Job>) {
        self.query_desktop();
        let mut due = Instant::now();
        loop {
            let now = Instant::now();
            if now >= due {
                self.launcher.reap();
                self.poll(false);
                due = now + INTERVAL;
                self.repeat_query(now);
                self.report_ended();
            }
            if let Some(batch) = self.logs.take(now) {
                match batch {
                    Ok(lines) => (self.report)(Report::Log(lines)),
                    Err(StreamEnd::Denied) => (self.report)(Report::LogsRefused(None)),
                    Err(StreamEnd::Refused(error)) => (self.report)(Report::LogsRefused(Some(error))),
                    Err(StreamEnd::Cut) => self.resume_logs(),
                }
            }
            if let Some(wish) = self.desktop.take() {
                (self.report)(Report::Desktop(wish));
            }
            // Jobs of the user come before the rest of a long query.
            let earliest = if self.continue_uses() { now } else { due };
            let next = [self.logs.due(), self.desktop.due()]
                .into_iter()
                .flatten()
                .fold(earliest, Instant::min);
            match jobs.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(job) => self.carry_out(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Follows the logs again after their stream was cut, such as by an upgrade of the server. Without a connection,
    /// the window requests the logs again once it is connected.
    fn resume_logs(&mut self) {
        if self.server.is_some()
            && let Some(server) = self.places.connected()
        {
            self.logs.follow(server);
            (self.report)(Report::LogsResumed);
        }
    }

    fn carry_out(&mut self, job: Job) {
        if self.places.is_elsewhere() && job.is_of_this_computer() {
            return;
        }
        match job {
            Job::Connect => self.connect_again(),
            Job::UseServer(place) => self.use_server(&place),
            Job::Start(starter) => self.start(starter),
            Job::Stop => self.stop(),
            Job::Restart => self.restart(),
            Job::Reload => self.instruct(&Request::Reload),
            Job::Edit(purpose, edits) => self.edit(purpose, &Request::EditConfig(edits)),
            Job::TakeBack(undo) => self.edit(Purpose::Undo, &Request::UndoConfig(undo)),
            Job::Check(number, edits) => {
                let result = self.call(&Request::CheckEdits(edits));
                (self.report)(Report::Checked(number, result));
            }
            Job::SiteForm(name) => {
                let result = self.call(&Request::SiteForm(SiteName { name: name.clone() }));
                (self.report)(Report::SiteForm(name, result.map(Box::new)));
            }
            Job::ReadText(file) => {
                let result = self.call(&Request::Config(ConfigFileName { file }));
                (self.report)(Report::ConfigText(result.map(Box::new).map_err(|error| error.error)));
            }
            Job::CheckText(number, candidate) => {
                let result = self.call(&Request::CheckConfig(candidate));
                (self.report)(Report::Checked(number, result));
            }
            Job::Replace(purpose, replacement) => self.edit(purpose, &Request::ReplaceConfig(replacement)),
            Job::Query(query) => self.query(query),
            Job::Watch(query) => self.services.watch(query, Instant::now()),
            Job::Service(job) => self.serve(job),
            Job::SetLevel(level) => match self.call::<LogLevel>(&Request::SetLogLevel(LogLevelChange::new(level))) {
                Ok(now) => (self.report)(Report::LevelChanged(now.level)),
                Err(error) if error.status == 403 => (self.report)(Report::NotPermitted),
                Err(error) => (self.report)(Report::Failed(error.error)),
            },
            Job::WatchTraffic(watches) => {
                self.watches_traffic = watches;
            }
            Job::FollowLogs => {
                if let Some(server) = self.places.connected() {
                    self.logs.follow(server);
                }
            }
            Job::FindWays => self.refresh_ways(),
            Job::QueryDesktop => self.query_desktop(),
            Job::Inspect(folder) => {
                let inspection = folders::inspect(&folder);
                (self.report)(Report::Inspected(folder, inspection));
            }
            Job::FindServers => {
                let own = self.server.as_ref().map_or(&[][..], |server| &server.status.listeners);
                (self.report)(Report::FoundServers(folders::development_servers(own)));
            }
            Job::Visit(name) => {
                let sites = self.server.as_ref().map_or(&[][..], |server| &server.sites);
                let visit = visits::visit(sites.iter().find(|site| site.name == name), &name);
                (self.report)(Report::Visited(visit));
            }
            Job::CreateStartPage(folder) => match folders::create_start_page(&folder) {
                Ok(()) => {
                    let inspection = folders::inspect(&folder);
                    (self.report)(Report::Inspected(folder, inspection));
                }
                Err(error) => (self.report)(Report::Failed(error)),
            },
            Job::Trust => {
                let config = self.present_config();
                (self.report)(match programs::trust(self.launcher.program(), config.as_deref()) {
                    Ok(()) => Report::Trusted,
                    Err(error) => Report::Failed(error),
                });
            }
            Job::Open(target) => {
                if let Err(error) = programs::open(&target) {
                    (self.report)(Report::Failed(error));
                }
            }
            Job::OpenEditor(folder) => {
                if let Err(error) = editor::open(&folder) {
                    (self.report)(Report::Failed(error));
                }
            }
            Job::SaveSettings(text) => {
                if let Err(error) = programs::save_settings(&text) {
                    (self.report)(Report::Failed(error));
                }
            }
        }
    }

    fn query_desktop(&mut self) {
        if !self.desktop.begin() {
            (self.report)(Report::Desktop(None));
        }
    }

    /// Queries the state, and connects first if there is no connection. `with_sites`: queries the websites as well,
    /// even if nothing suggests that they have changed.
    fn poll(&mut self, with_sites: bool) {
        if self.server.is_none() && !self.connect() {
            self.find_ways();
            return;
        }
        match self.state(with_sites) {
            Ok(poll) => (self.report)(Report::Polled(Box::new(poll))),
            Err(error) => self.lose(&error),
        }
        self.find_ways();
    }

    /// Looks for the ways to start and stop a server, if it has started or ended since the last look.
    fn find_ways(&mut self) {
        let status = self.server.as_ref().map(|server| &server.status);
        let pid = status.map_or(0, |status| status.pid);
        if self.looked_for.replace(pid) == Some(pid) {
            return;
        }
        let found = self.systemd.units();
        // The process of another computer may have the same number as one of this computer.
        let is_here = pid != 0 && !self.places.is_elsewhere();
        let running = found.iter().find(|(_, main)| is_here && *main == pid);
        let running_unit = running.map(|(unit, _)| unit.kind);
        let own = self.places.config().and_then(|file| file.canonicalize().ok());
        let served = status.and_then(|status| status.config_file.as_ref()?.canonicalize().ok());
        let ways = Ways {
            // A server at a named socket may be elsewhere, and then no unit of this machine runs it.
            units: found
                .into_iter()
                .map(|(unit, _)| unit)
                .filter(|unit| !self.places.is_named() || running_unit == Some(unit.kind))
                .collect(),
            running_unit,
            has_own_config: own.is_some(),
            serves_own_config: own.is_some() && own == served,
        };
        if ways != self.ways {
            self.ways = ways.clone();
            (self.report)(Report::Ways(ways));
        }
    }

    /// Reports why there is no server, once.
    fn report_absence(&mut self, absence: Absence) {
        if self.absence.as_ref() != Some(&absence) {
            self.absence = Some(absence.clone());
            (self.report)(Report::Absent(absence));
        }
    }

    fn connect(&mut self) -> bool {
        if matches!(self.absence, Some(Absence::WrongToken(_))) {
            return false;
        }
        match self.places.connect() {
            Ok((socket, mut client)) => {
                if let Some(absence) = self.refusal(&mut client) {
                    self.report_absence(absence);
                    return false;
                }
                self.server = Some(ServerLink {
                    client,
                    status: Status::default(),
                    sites: Vec::new(),
                    queried: None,
                });
                self.absence = None;
                self.services.forget_server();
                (self.report)(Report::Connected(socket));
                true
            }
            Err(absence) => {
                self.report_absence(absence);
                false
            }
        }
    }

    fn state(&mut self, with_sites: bool) -> Result<Poll, ClientError> {
        let watches_traffic = self.watches_traffic;
        let Some(server) = &mut self.server else {
            return Ok(Poll::default());
        };
        let status: Status = server.client.call(&Request::Status)?;
        // Times of the window and of the charts begin with the worker.
        let at = self.began.elapsed();
        let is_due = server
            .queried
            .is_none_or(|(queried, reloads)| queried.elapsed() >= SITES_INTERVAL || reloads != status.reloads);
        let sites = if is_due || with_sites {
            server.sites = server.client.call(&Request::Sites)?;
            server.queried = Some((Instant::now(), status.reloads));
            Some(server.sites.clone())
        } else {
            None
        };
        let traffic = match watches_traffic {
            true => Some(server.client.call(&Request::Routes)?),
            false => None,
        };
        server.status = status.clone();
        Ok(Poll {
            at,
            status,
            sites,
            traffic,
        })
    }

    /// Returns the configuration of the present server, or of the server that this program would start.
    fn present_config(&self) -> Option<PathBuf> {
        let status = self.server.as_ref().map(|server| &server.status);
        status
            .and_then(|status| status.config_file.clone())
            .or_else(|| self.places.config())
    }

    /// Sends a request. Without a server, or after the loss of the connection, the error says so.
    fn call<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ApiError> {
        let Some(server) = &mut self.server else {
            return Err(ApiError::new(503, "the server is stopped"));
        };
        match server.client.call(request) {
            Ok(reply) => Ok(reply),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Returns the error of the server. After another error, the connection is dropped.
    fn error(&mut self, error: ClientError) -> ApiError {
        match error {
            ClientError::Api(error) => error,
            error => {
                let shown = ApiError::new(503, error.to_string());
                self.lose(&error);
                shown
            }
        }
    }

    /// Drops a connection that cannot be used any more. A server that has ended is found to be stopped at once.
    fn lose(&mut self, error: &ClientError) {
        self.server = None;
        match self.places.connect() {
            Err(absence) => {
                self.absence = Some(absence.clone());
                (self.report)(Report::Absent(absence));
            }
            Ok(_) => {
                let absence = Absence::Failed(error.to_string());
                self.absence = Some(absence.clone());
                (self.report)(Report::Absent(absence));
            }
        }
    }

    fn instruct(&mut self, request: &Request) {
        match self.call::<Done>(request) {
            Ok(done) => {
                self.poll(true);
                (self.report)(Report::Done(done.message));
            }
            Err(error) if error.status == 403 => (self.report)(Report::NotPermitted),
            Err(error) => {
                let text = match &error.details {
                    Some(details) => format!("{}\n{details}", error.error),
                    None => error.error,
                };
                self.poll(false);
                (self.report)(Report::Failed(text));
            }
        }
    }

    fn edit(&mut self, purpose: Purpose, request: &Request) {
        let result = self.call(request);
        if result.is_ok() {
            // The list shows the change before the notice about it.
            self.poll(true);
        }
        (self.report)(Report::Edited(purpose, result));
    }

    fn query(&mut self, query: Query) {
        let words = |error: ApiError| error.error;
        let report = match query {
            Query::Certificates => Report::Certificates(self.call(&Request::Certificates).map_err(words)),
            Query::Doctor => Report::Doctor(self.call(&Request::Doctor).map_err(words)),
            Query::History => match self.call(&Request::ConfigHistory) {
                Err(error) if error.status == 403 => Report::Denied(query),
                result => Report::History(result.map_err(words)),
            },
            Query::Upstreams | Query::Php | Query::PhpPools | Query::Uses | Query::Trust | Query::Databases => {
                return self.query_service(query, true);
            }
            Query::Level => match self.call::<LogLevel>(&Request::LogLevel) {
                Ok(level) => Report::Level(level.level),
                Err(error) => Report::Failed(error.error),
            },
        };
        (self.report)(report);
    }

    fn start(&mut self, starter: Starter) {
        if self.server.is_some() {
            return;
        }
        (self.report)(Report::Starting);
        let started = match starter {
            Starter::Unit(kind) => self.systemd.instruct(kind, UnitVerb::Start).and_then(|()| {
                let replied = self.launcher.wait_for_reply(&self.places);
                replied.map(|()| None).map_err(UnitFailure::Failed)
            }),
            Starter::Program => self.launcher.start(&self.places).map_err(UnitFailure::Failed),
        };
        match started {
            Ok(moved) => {
                self.poll(true);
                (self.report)(Report::Started(moved));
            }
            Err(failure) => {
                // The next poll may find that the server is stopped, which is known already.
                self.absence = self.places.connect().err();
                (self.report)(match failure {
                    UnitFailure::Refused(command) => Report::Refused(command),
                    UnitFailure::Failed(failure) => Report::StartFailed(failure),
                });
            }
        }
    }

    fn stop(&mut self) {
        self.refresh_ways();
        // Without polkit, systemd does not permit to stop the unit, but the control API does.
        let unit = self.ways.running_unit.filter(|_| self.ways.no_restart().is_none());
        if let Some(kind) = unit {
            if let Err(failure) = self.systemd.instruct(kind, UnitVerb::Stop) {
                self.stay(failure);
                return;
            }
        } else if let Err(error) = self.call::<Done>(&Request::Stop) {
            (self.report)(Report::Failed(error.error));
        }
        self.server = None;
        if self.places.is_elsewhere() {
            // SSH accepts connections even after the end of the server, so the next poll finds out.
            self.absence = None;
            return;
        }
        self.launcher.wait_for_end(&self.places);
        self.absence = None;
        self.connect();
        self.find_ways();
    }

    fn restart(&mut self) {
        self.refresh_ways();
        match (self.ways.no_restart(), self.ways.running_unit) {
            (None, Some(kind)) => {
                let restarted = self.systemd.instruct(kind, UnitVerb::Restart).and_then(|()| {
                    self.server = None;
                    let replied = self.launcher.wait_for_reply(&self.places);
                    replied.map_err(UnitFailure::Failed)
                });
                match restarted {
                    Ok(()) => {
                        self.poll(true);
                        (self.report)(Report::Started(None));
                    }
                    Err(failure) => self.stay(failure),
                }
            }
            (None, None) => {
                self.stop();
                self.start(Starter::Program);
            }
            (Some(NoRestart::NoPolkit), _) => {
                self.stay(UnitFailure::Refused("sudo systemctl restart rocknet".to_owned()));
            }
            (Some(NoRestart::OtherConfig), _) => {
                let error = "the server was started elsewhere, with another configuration".to_owned();
                self.stay(UnitFailure::Failed(StartFailure {
                    reason: error,
                    lines: Vec::new(),
                }));
            }
        }
    }

    /// Reports that the server was not stopped or restarted, after a query of its state.
    fn stay(&mut self, failure: UnitFailure) {
        self.server = None;
        self.absence = None;
        self.poll(true);
        (self.report)(match failure {
            UnitFailure::Refused(command) => Report::Refused(command),
            UnitFailure::Failed(failure) => Report::Failed(failure.reason),
        });
    }

    /// Looks for the ways again: an upgrade of the server or of the system may have changed them.
    fn refresh_ways(&mut self) {
        self.looked_for = None;
        self.find_ways();
    }
}

#[cfg(test)]
mod fake_programs;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unit_tests;
