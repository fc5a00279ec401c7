//! The worker thread: it owns the connection to the server, and does everything that could make the window wait.
//!
//! Jobs arrive by a channel, reports leave by a callback. Once a second the thread queries the state of the server. The
//! lines of the logs are received by a separate thread, because their stream has no end.

mod connection;
mod control;
mod desktop;
mod editor;
mod ending;
mod file_config;
mod files;
mod folder_jobs;
mod folder_list;
mod folders;
mod launch;
mod link;
mod log_stream;
mod machine;
mod options;
mod output;
mod place_file;
mod place_jobs;
mod ports;
mod programs;
mod server_state;
mod service_jobs;
mod service_state;
mod services;
mod slow_jobs;
mod threads;
mod trust;
mod units;
mod upgrade;
mod visits;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rocknet_control::api::{ApiError, Done, LogLevel, LogLevelChange, Request};
use rocknet_control::config::ConfigFileName;
use rocknet_control::route::SiteName;
use rocknet_control::site_form::{ServerForm, SiteForm};

use crate::job::{Absence, Job, Purpose, Query, Report};
use crate::ways::{Starter, Ways};
use crate::words::Language;
use connection::{Places, ServerLink};
use desktop::SchemeQuery;
use file_config::FileReader;
use launch::Launcher;
use log_stream::{LogStream, StreamEnd};
use service_state::ServiceState;
use threads::SlowJobs;
use units::Systemd;

pub use options::Options;

/// Interval between two queries of the state.
const INTERVAL: Duration = Duration::from_secs(1);

/// Minimum time between two queries of the state.
const PAUSE: Duration = Duration::from_millis(500);

/// Starts the worker thread. It ends when the returned sender is dropped.
pub fn start(options: Options, report: impl Fn(Report) + Send + 'static) -> Sender<Job> {
    let (sender, jobs) = channel();
    thread::spawn(move || {
        // The command line takes precedence over the saved place.
        let reads_place = options.socket.is_none() && options.config.is_none();
        let mut worker = Worker::new(options, report);
        if reads_place {
            worker.read_place();
        }
        worker.run(&jobs);
    });
    sender
}

struct Worker {
    places: Places,
    launcher: Launcher,
    /// Language of the start pages that the worker writes.
    language: Language,
    report: Box<dyn Fn(Report) + Send>,
    /// Moment from which the times of reports are measured.
    began: Instant,
    server: Option<ServerLink>,
    /// Process id of the last server; 0 if no server was found yet.
    last_pid: u32,
    /// Time at which the last server has started; `None` if no server was found yet.
    last_start: Option<SystemTime>,
    /// Last reported reason why there is no server; `None` if none was reported.
    absence: Option<Absence>,
    watches_traffic: bool,
    logs: LogStream,
    systemd: Systemd,
    desktop: SchemeQuery,
    /// Ways to start and stop a server, as they were reported.
    ways: Ways,
    /// Process id of the server at the last search for ways; 0 without a server. `None`: the ways are searched for at
    /// the next poll.
    looked_for: Option<u32>,
    /// True after the first search for ways. `looked_for` is also `None` before a repeated search.
    has_looked: bool,
    services: ServiceState,
    slow: SlowJobs,
    /// Way in which a server was last started, or should have been.
    last_starter: Starter,
    file_reader: FileReader,
}

impl Worker {
    fn new(options: Options, report: impl Fn(Report) + Send + 'static) -> Worker {
        Worker {
            places: Places::new(&options),
            launcher: Launcher::new(&options),
            language: options.language,
            report: Box::new(report),
            began: Instant::now(),
            server: None,
            last_pid: 0,
            last_start: None,
            absence: None,
            watches_traffic: true,
            logs: LogStream::default(),
            systemd: Systemd::new(options.search_path.clone()),
            desktop: SchemeQuery::new(options.search_path),
            ways: Ways::default(),
            looked_for: None,
            has_looked: false,
            services: ServiceState::default(),
            slow: SlowJobs::default(),
            last_starter: Starter::Program,
            file_reader: FileReader::default(),
        }
    }

    fn run(&mut self, jobs: &Receiver<Job>) {
        self.query_desktop();
        let mut due = Instant::now();
        loop {
            let now = Instant::now();
            if now >= due {
                self.launcher.reap();
                if let Some(config) = self.places.config() {
                    self.launcher.bound_output(&config);
                }
                self.poll(false);
                // After a server that does not reply, the jobs that have waited come first.
                due = (now + INTERVAL).max(Instant::now() + PAUSE);
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
            let awaits = self.slow.is_running();
            self.report_slow_jobs();
            // Jobs of the user come before the rest of a long query.
            let earliest = match self.continue_uses() {
                true => now,
                false if awaits => due.min(now + threads::PAUSE),
                false => due,
            };
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
            self.logs.resume(server);
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
            Job::StartAt(from, to) => self.start_at(from, to),
            // A server that goes on was reported already.
            Job::Stop => drop(self.stop()),
            Job::Restart => self.restart(),
            Job::Upgrade => self.upgrade(),
            Job::Reload => self.instruct(&Request::Reload),
            Job::Edit(purpose, edits) => self.edit(purpose, &Request::EditConfig(edits)),
            Job::TakeBack(undo) => self.edit(Purpose::Undo, &Request::UndoConfig(undo)),
            Job::Check(number, edits) => {
                let result = self.call(&Request::CheckEdits(edits));
                (self.report)(Report::Checked(number, result));
            }
            Job::SiteForm(name) => {
                let result = match name.is_empty() {
                    true => self.call::<ServerForm>(&Request::ServerForm).map(of_server),
                    false => self.call(&Request::SiteForm(SiteName { name: name.clone() })),
                };
                (self.report)(Report::SiteForm(name, result.map(Box::new)));
            }
            Job::ReadText(file) => {
                let result = self.call(&Request::Config(ConfigFileName { file: file.clone() }));
                (self.report)(Report::ConfigText(file, result.map(Box::new)));
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
                Err(error) => (self.report)(Report::Failed(error.error.into())),
            },
            Job::WatchTraffic(watches) => {
                self.watches_traffic = watches;
            }
            Job::UnfollowLogs => self.logs = LogStream::default(),
            Job::FollowLogs => {
                if let Some(server) = self.places.connected() {
                    self.logs.follow(server);
                }
            }
            Job::FindWays => self.refresh_ways(),
            Job::QueryDesktop => self.query_desktop(),
            Job::Inspect(_)
            | Job::ListFolder(_)
            | Job::CreateFolder(_)
            | Job::CreateStartPage(_)
            | Job::OpenEditor(_) => self.begin_with_folder(&job),
            Job::FindServers => {
                let own = self.server.as_ref().map_or(&[][..], |server| &server.status.listeners);
                (self.report)(Report::FoundServers(folders::development_servers(
                    own,
                    &self.services.machine.local_servers(),
                )));
            }
            Job::Visit(name) => self.begin_visit(name),
            Job::Trust => self.begin_trust(),
            Job::Open(target) => {
                if let Err(error) = programs::open(&target, self.services.ended()) {
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

    /// Begins a job about a folder, which may not reply.
    fn begin_with_folder(&self, job: &Job) {
        let (late, language) = (self.services.ended(), self.language);
        let of_programs = late.clone();
        let run = move |job: &Job| folder_jobs::run(job, language, of_programs);
        if let Some(report) = self.services.folder_jobs.begin(job, late, run) {
            (self.report)(report);
        }
    }

    fn query_desktop(&mut self) {
        if !self.desktop.begin() {
            (self.report)(Report::Desktop(None));
        }
    }

    /// Returns the configuration of the present server, or of the server that this program would start.
    fn present_config(&self) -> Option<PathBuf> {
        let status = self.server.as_ref().map(|server| &server.status);
        status
            .and_then(|status| status.config_file.clone())
            .or_else(|| self.places.config())
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
                (self.report)(Report::Failed(text.into()));
            }
        }
    }

    fn edit(&mut self, purpose: Purpose, request: &Request) {
        let result = self.call(request);
        if result.is_ok() {
            // The list shows the change before the notice about it.
            self.poll(true);
        }
        if let (Purpose::Add(name), Err(error)) = (&purpose, &result)
            && !self.places.is_elsewhere()
            && let Some(port) = ports::taken(&error.error)
            && let Some(free) = ports::next_free(port, &[])
        {
            (self.report)(Report::PortTaken(name.clone(), port, free));
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
            Query::Upstreams
            | Query::Bans
            | Query::Php
            | Query::PhpPools
            | Query::Uses
            | Query::Trust
            | Query::Databases => {
                return self.query_service(query, true);
            }
            Query::Level => match self.call::<LogLevel>(&Request::LogLevel) {
                Ok(level) => Report::Level(level.level),
                Err(error) => Report::Failed(error.error.into()),
            },
        };
        (self.report)(report);
    }
}

/// Returns the form of the server as a form without a name, which the page of the form shows as well.
fn of_server(form: ServerForm) -> SiteForm {
    SiteForm {
        name: String::new(),
        file: form.file,
        line: 1,
        revision: form.revision,
        fields: form.fields,
    }
}

#[cfg(test)]
mod fake_programs;
#[cfg(test)]
mod fake_server;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unit_tests;
