//! The main loop of a server in the foreground: handles signals, typed commands and requests of the control API until
//! the server has stopped.

mod requests;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::thread;

use rocknet::log::ErrorLog;
use rocknet::server::Server;
use rocknet_control::Command;
use rocknet_control::api::{ApiError, Done, Reply, Request};
use rocknet_control::upgrade::UpgradeOrder;
use rocknet_io::child;
use rocknet_io::terminal::{StandardStream, is_terminal};
use rustix::process::Signal;
use tokio::sync::mpsc::Sender;

use super::config_state::StateCache;
use super::control::ControlServers;
use super::event::Event;
use super::event_sources::EventQueues;
use super::handover::{Handover, HandoverContext};
use super::host_folders::HostFolderWatch;
use super::inspection;
use super::launch::ConfigSource;
use super::loaded_files::LoadedRevisions;
use super::notifier::Notifier;
use super::reload::{self, ReloadError, Reloaded, StartSettings};
use super::{ExitStatus, Failure, print, print_error, print_warning};
use crate::console::{self, ConsoleLine};

/// State of the main loop.
pub struct MainLoop {
    /// Sends events of background threads, such as the end of the server, to the queue that [`MainLoop::run`] reads.
    pub sender: Sender<Event>,
    /// Origin of the configuration, which a reload reads again.
    pub source: ConfigSource,
    /// State folder of the server, which contains the history of the configuration.
    pub state: PathBuf,
    /// Revisions of the configuration files that the server has loaded.
    pub loaded: LoadedRevisions,
    /// Last comparison of the files on disk with the loaded ones.
    pub config_state: StateCache,
    /// Folders below roots with `{host}`.
    pub host_folders: HostFolderWatch,
    /// Settings at start. A reload reports which changed settings need a restart.
    pub start_settings: StartSettings,
    /// Error log, whose level the control API reads and sets. `Some` once the server has started.
    pub error_log: Option<ErrorLog>,
    /// Servers of the control API. They are stopped by `hand_over` after an upgrade, and otherwise by the caller of
    /// [`MainLoop::run`].
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
        // True once another process has taken over.
        let mut has_successor = false;
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
                    // The new process takes over the socket files, the datagrams of the UDP sockets, and the stored TLS
                    // sessions. Workers continue to read the UDP sockets that the new process does not use.
                    self.for_each_server(server, Server::leave_socket_files);
                    server.leave_quic(successor.unused_udp());
                    let sessions = server.certificates().sessions.close();
                    if let Err(error) = Handover::permit(successor, sessions, &self.sender) {
                        self.take_back(server);
                        handover.fail(&error);
                    }
                }
                (Event::Upgraded(Ok(successor)), Some(_)) => {
                    handover.succeed(*successor, &self.notifier);
                    has_successor = true;
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
                (Event::Reload | Event::Line(ConsoleLine::Command(Command::Reload)), Some(_))
                    if handover.is_in_progress() =>
                {
                    tracing::warn!("not reloaded: an upgrade is in progress, which reads the configuration");
                }
                (Event::Reload, Some(server)) => {
                    // `reload` reports errors itself. The message about success is for typed commands only.
                    let _ = self.reload(server);
                }
                (Event::CheckWorkers, Some(server)) => self.notifier.check_workers(server),
                (Event::SampleLoad, Some(server)) => server.metrics().sample_load(),
                (Event::CheckHostFolders, Some(_)) if handover.is_in_progress() => {}
                // The new process reads the folders itself. If it fails, this process serves them after the next check.
                (Event::HostFoldersChanged, Some(_)) if handover.is_in_progress() => self.host_folders.postpone(),
                (Event::CheckHostFolders, Some(server)) => {
                    let config = &server.snapshot().config;
                    self.host_folders.start_check(&config.host_folders, &self.sender);
                }
                (Event::HostFoldersChanged, Some(server)) => self.serve_new_folders(server),
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
                    request.reply(Err(ApiError::new(409, "refused: an upgrade is in progress")));
                }
                (Event::Control(request), Some(server)) if inspection::is_inspection(&request.request) => {
                    inspection::start(request, server, &self.source, (&self.loaded, &self.config_state));
                }
                (Event::Control(request), Some(server)) => {
                    let reply = self.reply(&request.request, server);
                    request.reply(reply);
                }
                (Event::Control(request), None) if has_successor => request.reply(Err(ApiError::taken_over())),
                (Event::Control(request), None) => {
                    request.reply(Err(ApiError::new(503, "refused: the server is stopping")));
                }
                // The server is stopping already. A prepared new process is killed when its event is dropped here.
                (_, None) => {}
            }
        }
        Ok(())
    }

    fn reload(&self, server: &Server) -> Result<Reloaded, ReloadError> {
        let reload = || reload::reload(server, &self.source, &self.start_settings, &self.loaded);
        self.as_reload(server, reload)
    }

    /// Reloads the configuration after a folder of a host was added or removed. If the configuration on disk differs
    /// from the loaded one, nothing is reloaded, and the folders are served after the next reload by the operator.
    fn serve_new_folders(&self, server: &Server) {
        let snapshot = server.snapshot();
        let ConfigSource::File(main) = &self.source else { return };
        let state = self.config_state.state(main, self.loaded.all(), &snapshot.config);
        if state.is_ok_and(|state| state.is_loaded) {
            let _ = self.reload(server);
        } else {
            tracing::info!(
                "folders of hosts have changed; they are served after a reload, because the configuration was edited"
            );
        }
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

    /// Ends the server on a separate thread after another process has taken over.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`MainLoop::stop`].
    fn hand_over(&self, server: Server) -> Result<(), Failure> {
        let control = self.control.borrow_mut().take();
        let sender = self.sender.clone();
        let end = move || {
            // `stop` waits for the requests of the control API in progress, so that their clients get the replies of
            // this process. If the thread cannot be started, the servers of the control API are dropped with the
            // closure, which ends them immediately.
            let stop = move || {
                for server in control {
                    server.stop();
                }
            };
            let stopping = thread::Builder::new().name("rn-handover".to_owned()).spawn(stop);
            let clean = server.hand_over();
            let _ = stopping.map(thread::JoinHandle::join);
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
        self.for_each_server(server, Server::own_socket_files);
        server.resume_quic();
        server.certificates().sessions.open();
        // The prepared process may have become the owner of the file of bans. This process writes the file again.
        server.registries().bans.take_back();
    }

    /// Calls a function for the servers of the control API, and for `server`.
    fn for_each_server(&self, server: &Server, call: fn(&Server)) {
        let control = self.control.borrow();
        control.servers().chain([server]).for_each(call);
    }

    /// Returns true if standard input was a terminal when the server started, and the terminal was closed since. After
    /// a hangup, `isatty` on the old terminal fails.
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

fn done(message: &str) -> Reply {
    Reply::Done(Done::new(message))
}
