//! The main loop of a server in the foreground: handles signals, typed commands and requests of the control API until
//! the server has stopped.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::thread;

use rocknet::inventory;
use rocknet::log::ErrorLog;
use rocknet::metrics::SAMPLE_INTERVAL;
use rocknet::server::Server;
use rocknet_control::api::{ApiError, Done, LogLevelChange, OPEN_API, Reply, Request};
use rocknet_control::config::Saved;
use rocknet_control::upgrade::UpgradeOrder;
use rocknet_control::{Command, Status};
use rocknet_io::child;
use rocknet_io::terminal::{StandardStream, is_terminal};
use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time;

use super::config_api::{ConfigApi, LoadedRevisions};
use super::control::{ControlServers, RETRY_INTERVAL};
use super::event::Event;
use super::handover::{Handover, HandoverContext};
use super::inspection;
use super::launch::ConfigSource;
use super::log_level;
use super::notifier::Notifier;
use super::reload::{self, ReloadError, Reloaded, StartSettings};
use super::{ExitStatus, Failure, print, print_error, print_warning};
use crate::console::{self, ConsoleLine};

/// State of the main loop.
pub struct MainLoop {
    /// Sends the event that the server has stopped. [`MainLoop::run`] receives it from its queue.
    pub sender: Sender<Event>,
    /// Origin of the configuration, which a reload reads again.
    pub source: ConfigSource,
    /// State folder of the server, which contains the history of the configuration.
    pub state: PathBuf,
    /// Revisions of the configuration files that the server has loaded.
    pub loaded: LoadedRevisions,
    /// Settings at start. A reload reports which changed settings need a restart.
    pub start_settings: StartSettings,
    /// Error log, whose level the control API reads and sets.
    pub error_log: Option<ErrorLog>,
    /// Servers of the control API. The caller of [`MainLoop::run`] stops them.
    pub control: Rc<RefCell<ControlServers>>,
    /// Notifications to the service manager.
    pub notifier: Notifier,
    /// True if commands can be typed.
    pub has_console: bool,
}

impl MainLoop {
    /// Handles events until the server has stopped.
    ///
    /// # Errors
    ///
    /// Fails if the server is stopped immediately: by a second signal or command, or because the thread for an orderly
    /// stop cannot be started.
    pub async fn run(self, server: Server, mut events: EventQueues) -> Result<(), Failure> {
        self.notifier.ready(&self.status_line(&server));
        let mut server = Some(server);
        let mut handover = Handover::default();
        let context = HandoverContext {
            source: &self.source,
            state: &self.state,
            sender: &self.sender,
            sandbox: &self.start_settings.sandbox,
            notifier: &self.notifier,
        };
        while let Some(event) = events.next().await {
            match (event, &server) {
                (Event::Stopped(clean), _) => {
                    if !clean {
                        print_warning("some connections did not finish in time and were cut");
                    }
                    return Ok(());
                }
                (Event::Stop | Event::Line(ConsoleLine::Command(Command::Quit)), Some(_)) => {
                    if let Some(server) = server.take() {
                        self.stop(server)?;
                    }
                }
                (Event::Stop | Event::Line(ConsoleLine::Command(Command::Quit)), None) => {
                    print_error("stopped immediately: responses in progress were cut");
                    return Err(Failure::Reported(ExitStatus::Failed));
                }
                (Event::Reload, Some(_)) if self.terminal_is_closed() => {
                    // A closed terminal window sends SIGHUP too. The server then stops instead of reloading.
                    if let Some(server) = server.take() {
                        self.stop(server)?;
                    }
                }
                (Event::Upgrade, Some(server)) => {
                    let control = self.control.borrow();
                    handover.begin(&UpgradeOrder::default(), None, (server, &*control), &context);
                }
                (Event::Prepared(Err(error)), Some(_)) => handover.fail(&error),
                (Event::Prepared(Ok(successor)), Some(server)) => {
                    self.leave_sockets(server, true);
                    server.receive_quic(false, successor.unused_udp());
                    let sessions = server.certificates().sessions.close();
                    if let Err(error) = Handover::permit(successor, sessions, &self.sender) {
                        self.take_back(server);
                        handover.fail(&error);
                    }
                }
                (Event::Upgraded(Ok(successor)), Some(_)) => {
                    handover.succeed(*successor, &self.notifier);
                    if let Some(server) = server.take() {
                        self.hand_over(server)?;
                    }
                }
                (Event::Upgraded(Err(error)), Some(server)) => {
                    self.take_back(server);
                    handover.fail(&error);
                }
                // This process is stopping, so its successor stops too.
                (Event::Upgraded(Ok(successor)), None) => drop(child::signal_group(successor.id(), Signal::TERM)),
                (Event::Reload, Some(_)) if handover.is_in_progress() => {
                    tracing::warn!("not reloaded: an upgrade is in progress, which reads the configuration");
                }
                (Event::Reload, Some(server)) => {
                    // `reload` reports errors itself. The message about success is for typed commands only.
                    let _ = self.reload(server);
                }
                (Event::CheckWorkers, Some(server)) => self.notifier.check_workers(server),
                (Event::SampleLoad, Some(server)) => server.metrics().sample_load(),
                // The new process gets the sockets that were bound when the upgrade began.
                (Event::RetryControl, Some(_)) if handover.is_in_progress() => {}
                (Event::RetryControl, Some(server)) => self.retry_control(server),
                (Event::Reopen, Some(server)) => {
                    server.logger().reopen();
                    tracing::info!("log files were reopened");
                }
                (Event::Line(ConsoleLine::Command(Command::Reload)), Some(server)) => {
                    if let Ok(reloaded) = self.reload(server) {
                        print(format_args!("{}\n", reloaded.message));
                    }
                }
                (Event::Line(ConsoleLine::Command(command)), Some(server)) => print(console::render(command, server)),
                (Event::Line(ConsoleLine::Unknown(unknown)), _) => print(format_args!("{unknown}\n")),
                (Event::Control(request), Some(_)) if matches!(request.request, Request::Stop) => {
                    request.reply(Ok(done("stopping after the responses in progress")));
                    if let Some(server) = server.take() {
                        self.stop(server)?;
                    }
                }
                (Event::Control(request), Some(server)) if matches!(request.request, Request::Upgrade(_)) => {
                    if let Request::Upgrade(order) = request.request.clone() {
                        let control = self.control.borrow();
                        handover.begin(&order, Some(request), (server, &*control), &context);
                    }
                }
                (Event::Control(request), Some(_)) if handover.is_in_progress() && changes(&request.request) => {
                    request.reply(Err(ApiError::new(409, "an upgrade is in progress")));
                }
                (Event::Control(request), Some(server)) if inspection::is_inspection(&request.request) => {
                    inspection::start(request, server, &self.source);
                }
                (Event::Control(request), Some(server)) => {
                    let reply = self.reply(&request.request, server);
                    request.reply(reply);
                }
                (Event::Control(request), None) => request.reply(Err(ApiError::new(503, "the server is stopping"))),
                // The server is stopping already.
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Carries out a request of the control API.
    fn reply(&self, request: &Request, server: &Server) -> Result<Reply, ApiError> {
        match request {
            Request::Status => Ok(Reply::Status(Box::new(Status {
                config_file: match &self.source {
                    ConfigSource::File(file) => Some(file.clone()),
                    ConfigSource::ServedFolder | ConfigSource::WelcomePage => None,
                },
                sandbox: self.start_settings.sandbox.to_string(),
                ..server.status()
            }))),
            Request::Sites => Ok(Reply::Sites(server.sites())),
            Request::Routes => Ok(Reply::Routes(inventory::routes(server))),
            Request::Reload => self
                .reload(server)
                .map(|reloaded| Reply::Done(reloaded.into()))
                .map_err(|error| ApiError {
                    details: error.findings,
                    ..ApiError::new(422, error.message)
                }),
            // The API serves these requests without the main loop.
            Request::Logs(_) | Request::DashboardLink => Err(ApiError::new(500, "the API has to serve this request")),
            Request::OpenApi => Ok(Reply::OpenApi(OPEN_API)),
            // `run` starts a thread for these requests.
            Request::Doctor | Request::Explain(_) | Request::Site(_) => {
                Err(ApiError::new(500, "the request was not started"))
            }
            // `run` handles these requests, because they end the server.
            Request::Stop | Request::Upgrade(_) => Err(ApiError::new(503, "the server is stopping")),
            Request::Metrics => Ok(Reply::Metrics(inventory::metrics(server))),
            Request::LogLevel => self.log_level(None),
            Request::SetLogLevel(level) => self.log_level(Some(level)),
            Request::Config(name) => {
                let text = self.config(server)?.text(name.file.as_deref())?;
                Ok(Reply::Config(Box::new(text)))
            }
            Request::SiteForm(site) => {
                let form = self.config(server)?.site_form(&site.name)?;
                Ok(Reply::SiteForm(Box::new(form)))
            }
            Request::CheckConfig(candidate) => self.config(server)?.check(candidate).map(Reply::Checked),
            Request::CheckEdits(edits) => self.config(server)?.check_edits(edits).map(Reply::Checked),
            Request::ReplaceConfig(replacement) => self.save(server, |config| config.replace(replacement)),
            Request::EditConfig(edits) => self.save(server, |config| config.edit(edits)),
            Request::ConfigHistory => self.config(server)?.changes().map(Reply::ConfigHistory),
            Request::UndoConfig(undo) => self.save(server, |config| config.undo(undo)),
            Request::Certificates => Ok(Reply::Certificates(inventory::certificates(server))),
            Request::Upstreams => Ok(Reply::Upstreams(inventory::upstreams(server))),
            Request::DrainUpstream(upstream) => set_drained(server, &upstream.address, true),
            Request::EnableUpstream(upstream) => set_drained(server, &upstream.address, false),
            Request::PhpPools => Ok(Reply::PhpPools(inventory::php_pools(server))),
            Request::RestartPhpPool(pool) => match server.php().restart(&pool.name) {
                0 => Err(ApiError::new(404, "there is no pool of PHP with this name")),
                _ => Ok(done("PHP is restarting; the old processes complete their requests")),
            },
            Request::PurgeFileCache => {
                if !server.purge_file_cache() {
                    return Err(ApiError::new(503, "the file cache is busy; it will be emptied later"));
                }
                Ok(done("the file cache is empty"))
            }
        }
    }

    fn config<'s>(&'s self, server: &'s Server) -> Result<ConfigApi<'s>, ApiError> {
        ConfigApi::new(server, &self.source, &self.start_settings, &self.loaded, &self.state)
    }

    /// Changes the configuration.
    fn save(
        &self,
        server: &Server,
        change: impl FnOnce(&ConfigApi<'_>) -> Result<Saved, ApiError>,
    ) -> Result<Reply, ApiError> {
        let config = self.config(server)?;
        self.as_reload(server, || change(&config)).map(Reply::Saved)
    }

    fn reload(&self, server: &Server) -> Result<Reloaded, ReloadError> {
        let reload = || reload::reload(server, &self.source, &self.start_settings, &self.loaded);
        self.as_reload(server, reload)
    }

    /// Announces `reload` to the service manager, and its end even if it fails: the server then serves the old
    /// configuration.
    fn as_reload<T>(&self, server: &Server, reload: impl FnOnce() -> T) -> T {
        self.notifier.reloading();
        let result = reload();
        self.notifier.ready(&self.status_line(server));
        result
    }

    /// Returns the state of a server for the service manager.
    fn status_line(&self, server: &Server) -> String {
        let mut line = format!("sites: {}", server.snapshot().sites.len());
        if !self.control.borrow().is_complete() {
            line.push_str("; the control API is not available");
        }
        if let Some(error) = server.status().last_reload_error {
            let first = error.lines().next().unwrap_or_default();
            line = format!("{line}; the last reload failed: {first}");
        }
        line
    }

    /// Tries again to serve the control API.
    fn retry_control(&self, server: &Server) {
        let mut control = self.control.borrow_mut();
        if control.is_complete() {
            return;
        }
        control.retry();
        let is_complete = control.is_complete();
        drop(control);
        if is_complete {
            self.notifier.ready(&self.status_line(server));
        }
    }

    /// Changes the level of the error log if a change is given, and returns the current levels.
    fn log_level(&self, change: Option<&LogLevelChange>) -> Result<Reply, ApiError> {
        let log = self
            .error_log
            .as_ref()
            .ok_or_else(|| ApiError::new(500, "the server has no error log"))?;
        if let Some(change) = change {
            log_level::change(log, change)?;
        }
        Ok(Reply::LogLevel(log_level::levels(log)))
    }

    /// Stops on a separate thread, so that a second signal takes effect immediately.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started. The server was then dropped, and its threads end with the process.
    fn stop(&self, server: Server) -> Result<(), Failure> {
        tracing::info!("stopping");
        self.notifier.stopping();
        if self.has_console {
            print("Stopping after the responses in progress; Ctrl+C stops immediately.\n");
        }
        let sender = self.sender.clone();
        let stop = move || {
            let clean = server.stop();
            // The main loop ends when it receives this event.
            let _ = sender.blocking_send(Event::Stopped(clean));
        };
        match thread::Builder::new().name("rn-stop".to_owned()).spawn(stop) {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::Failed(format!(
                "stopped immediately and cut the responses in progress: cannot start the thread for an orderly stop: \
                 {error}"
            ))),
        }
    }

    /// Ends on a separate thread after another process has taken over.
    ///
    /// # Errors
    ///
    /// As [`MainLoop::stop`].
    fn hand_over(&self, server: Server) -> Result<(), Failure> {
        let control = self.control.borrow_mut().take();
        let sender = self.sender.clone();
        let end = move || {
            // Clients of the API that wait for a reply of this process get it.
            let control = thread::spawn(move || {
                for server in control {
                    server.stop();
                }
            });
            let clean = server.hand_over();
            let _ = control.join();
            let _ = sender.blocking_send(Event::Stopped(clean));
        };
        let started = thread::Builder::new().name("rn-handover".to_owned()).spawn(end);
        started.map(drop).map_err(|error| {
            Failure::Failed(format!(
                "stopped immediately and cut the responses in progress: {error}"
            ))
        })
    }

    /// Continues to serve after a prepared process has failed.
    fn take_back(&self, server: &Server) {
        self.leave_sockets(server, false);
        server.receive_quic(true, &[]);
        server.certificates().sessions.open();
    }

    /// Leaves the socket files to a process that takes over, or takes them back if `leaves` is false.
    fn leave_sockets(&self, server: &Server, leaves: bool) {
        let control = self.control.borrow();
        let servers = control.servers().chain([server]);
        servers.for_each(|server| server.leave_socket_files(leaves));
    }

    /// Returns true if the terminal of standard input was closed after the start. After a hangup, `isatty` on the old
    /// terminal fails.
    fn terminal_is_closed(&self) -> bool {
        self.start_settings.at_terminal && !is_terminal(StandardStream::Input)
    }
}

/// Returns true for requests that change the configuration, which the new process of an upgrade may have read already.
fn changes(request: &Request) -> bool {
    matches!(
        request,
        Request::Reload | Request::ReplaceConfig(_) | Request::EditConfig(_) | Request::UndoConfig(_)
    )
}

/// Drains the upstreams with an address, or ends the drain if `is_drained` is false. The scheme may be left out.
fn set_drained(server: &Server, address: &str, is_drained: bool) -> Result<Reply, ApiError> {
    let upstreams = &server.registries().upstreams;
    let candidates = [
        address.to_owned(),
        format!("http://{address}"),
        format!("https://{address}"),
    ];
    let found = candidates
        .into_iter()
        .find(|candidate| upstreams.set_drained(candidate, is_drained));
    let Some(address) = found else {
        return Err(ApiError::new(404, unknown_upstream(server)));
    };
    let what = if is_drained { "is drained" } else { "gets requests" };
    tracing::info!(upstream = address, "{what} by request of an operator");
    Ok(done(&format!("{address} {what}")))
}

/// Returns the error for an address that no upstream has, with some of the addresses that exist.
fn unknown_upstream(server: &Server) -> String {
    let mut known: Vec<String> = inventory::upstreams(server)
        .into_iter()
        .map(|upstream| upstream.address)
        .collect();
    known.dedup();
    let more = if known.len() > MAX_NAMED_UPSTREAMS { ", …" } else { "" };
    known.truncate(MAX_NAMED_UPSTREAMS);
    match &known[..] {
        [] => "there is no upstream with this address, because the server has none".to_owned(),
        known => format!(
            "there is no upstream with this address; there are {}{more}",
            known.join(", ")
        ),
    }
}

/// Maximum number of upstreams that an error names.
const MAX_NAMED_UPSTREAMS: usize = 10;

/// Queues of events. Signals have their own, so that they never wait for requests of the control API.
pub struct EventQueues {
    /// Signals.
    pub signals: Receiver<Event>,
    /// Other events.
    pub others: Receiver<Event>,
}

impl EventQueues {
    /// Waits for the next event; signals come first. Returns `None` if no sender is left.
    async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            Some(event) = self.signals.recv() => Some(event),
            event = self.others.recv() => event,
        }
    }
}

fn done(message: &str) -> Reply {
    Reply::Done(Done::new(message))
}

/// Spawns tasks that send an event for each signal received.
///
/// # Errors
///
/// Fails if a signal handler cannot be installed.
pub fn catch_signals(runtime: &Runtime, events: &Sender<Event>) -> io::Result<()> {
    let _inside = runtime.enter();
    let table: [(SignalKind, fn() -> Event); 5] = [
        (SignalKind::terminate(), || Event::Stop),
        (SignalKind::interrupt(), || Event::Stop),
        (SignalKind::hangup(), || Event::Reload),
        (SignalKind::user_defined1(), || Event::Reopen),
        (SignalKind::user_defined2(), || Event::Upgrade),
    ];
    for (kind, event) in table {
        let (mut signals, events) = (signal(kind)?, events.clone());
        runtime.spawn(async move {
            while signals.recv().await.is_some() {
                if events.send(event()).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// Sends an event whenever the control API is to be tried again.
pub async fn schedule_retries(events: Sender<Event>) {
    loop {
        time::sleep(RETRY_INTERVAL).await;
        if events.send(Event::RetryControl).await.is_err() {
            return;
        }
    }
}

/// Sends an event whenever the counters are to be recorded.
pub async fn schedule_samples(events: Sender<Event>) {
    let mut interval = time::interval_at(time::Instant::now() + SAMPLE_INTERVAL, SAMPLE_INTERVAL);
    // After a long reload one sample is enough.
    interval.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if events.send(Event::SampleLoad).await.is_err() {
            return;
        }
    }
}

/// Starts a thread that sends an event for each typed line. The thread is not joined, because it may still wait for
/// input when the program ends. The program continues if the thread ends.
///
/// # Errors
///
/// Fails if the thread cannot be started.
pub fn read_commands(events: Sender<Event>) -> io::Result<()> {
    let read = move || {
        console::read(console::TerminalInput, |line| {
            events.blocking_send(Event::Line(line)).is_ok()
        });
    };
    thread::Builder::new()
        .name("rn-console".to_owned())
        .stack_size(CONSOLE_STACK)
        .spawn(read)
        .map(drop)
}

/// Maximum number of events in each queue; further senders block.
pub const MAX_EVENTS: usize = 16;

/// Stack size in bytes of the console thread, which only splits lines and compares words.
const CONSOLE_STACK: usize = 128 * 1024;
