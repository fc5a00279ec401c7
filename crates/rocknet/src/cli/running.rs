//! Start of a server in the foreground: signals, privileges, and the text with the URLs of the sites.

mod hooks;
mod messages;

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rocknet::certificates::state_folder;
use rocknet::gateway::accounts;
use rocknet::gateway::php;
use rocknet::log::ErrorLog;
use rocknet::server::{Server, StartError};
use rocknet::takeover::Predecessor;
use rocknet_config::Config;
use rocknet_control::SiteSummary;
use rocknet_io::privileges;
use rocknet_io::service_manager::ServiceEnvironment;
use rocknet_io::terminal::{StandardStream, is_terminal};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Sender, channel};

use self::hooks::{ProgramStart, StateFolder};
use super::config_state::StateCache;
use super::control::{ControlAddresses, ControlServers, MainLoopControl};
use super::event::Event;
use super::event_sources::{
    EventQueues, MAX_EVENTS, catch_signals, read_commands, schedule_folder_checks, schedule_retries, schedule_samples,
};
use super::host_folders::HostFolderWatch;
use super::launch::{AddressList, ConfigSource, LaunchOptions};
use super::loaded_files::LoadedRevisions;
use super::log_feed::FollowerCount;
use super::main_loop::MainLoop;
use super::notifier::Notifier;
use super::reload::StartSettings;
use super::sandbox::{ActiveSandbox, SandboxPlan};
use super::{Failure, address_watch, browser, print_warning};

/// The reason why a server could not be started.
pub enum NotStarted {
    /// The server itself could not be started.
    Start(StartError),
    /// The runtime of the main loop or a signal handler could not be created.
    Io(io::Error),
}

/// A started server with its main loop.
pub struct RunningServer {
    runtime: Runtime,
    events: EventQueues,
    /// Sends events other than signals to the main loop.
    sender: Sender<Event>,
    server: Server,
    options: LaunchOptions,
    start_settings: StartSettings,
    /// State folder of the server.
    state: PathBuf,
    /// Revisions of the configuration files at start.
    loaded: LoadedRevisions,
    /// Error log, which the start has opened.
    error_log: Option<ErrorLog>,
    control: ControlServers,
    notifier: Notifier,
    /// True if commands can be typed.
    has_console: bool,
}

/// Starts a server and serves until it is stopped.
pub fn run(config: Config, options: LaunchOptions, mut service: ServiceEnvironment) -> Result<(), Failure> {
    start(config, options, &mut service)?.serve()
}

/// Starts a server. Requests are served once this function returns. Takes the inherited sockets out of `service`.
pub fn start(
    mut config: Config,
    options: LaunchOptions,
    service: &mut ServiceEnvironment,
) -> Result<RunningServer, NotStarted> {
    // Signals are caught before any state exists that a signal could leave inconsistent. Neither this runtime nor its
    // signal handling starts a thread, so privileges can still be dropped.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(NotStarted::Io)?;
    let (sender, others) = channel(MAX_EVENTS);
    let (signal_sender, signals) = channel(MAX_EVENTS);
    let events = EventQueues { signals, others };
    catch_signals(&runtime, &signal_sender).map_err(NotStarted::Io)?;

    let mut start_settings = StartSettings::new(&config);
    let predecessor = options.predecessor.clone();
    if let Some(predecessor) = &predecessor {
        let taken_over = take_over_rights(predecessor, &mut config, &mut start_settings);
        taken_over.map_err(|error| NotStarted::Start(StartError::Setup(error)))?;
    }
    let loaded = LoadedRevisions::read(config.files.clone());
    // Without a configuration file, the process does not switch to the account of the package, which may not be able to
    // read the folder of `rocknet serve`.
    let user = match options.source {
        ConfigSource::File(_) => accounts::server_account(&config),
        ConfigSource::ServedFolder | ConfigSource::WelcomePage => config.server.user.clone(),
    };
    let scripts = accounts::AccountPlan::from_config(&config);
    let state = StateFolder {
        folder: state_folder(&config),
        is_needed: config.sites.iter().any(|site| site.tls.is_some()) || php::is_wanted(&config),
    };
    let start_config = config.clone();
    let mut hooks = ProgramStart {
        user: user.as_deref(),
        state: &state,
        scripts: &scripts,
        config: &start_config,
        predecessor: predecessor.as_deref(),
        sockets: std::mem::take(&mut service.sockets),
        sandbox: Some(SandboxPlan::new(&start_config, &state.folder, &options.source)),
        active_sandbox: ActiveSandbox::default(),
        error_log: None,
    };
    let addresses = match options.source {
        ConfigSource::File(_) => ControlAddresses::new(&config, &state.folder),
        ConfigSource::ServedFolder | ConfigSource::WelcomePage => ControlAddresses::of_environment(&state.folder),
    };
    // Mounts are handlers that a program adds to the sites of the configuration. This program adds none.
    let mounts = Vec::new();
    let server = Server::start(config, mounts, &mut hooks).map_err(NotStarted::Start)?;
    // Even without `[ban]`, an operator can add bans, which are kept across restarts.
    server.keep_bans();
    tracing::debug!("{}", server.backend());
    let error_log = hooks.error_log;
    tracing::debug!("sandbox: {}", hooks.active_sandbox);
    start_settings.sandbox = hooks.active_sandbox;
    start_settings.capabilities = privileges::capabilities().unwrap_or_default();
    start_settings.state.clone_from(&state.folder);
    let api = MainLoopControl {
        events: sender.clone(),
        logger: server.logger().clone(),
        followers: FollowerCount::default(),
    };
    let inherited = predecessor.as_deref().map(Predecessor::control);
    let control = ControlServers::start(addresses, api, inherited.unwrap_or_default());
    announce_ready(predecessor.as_deref(), service);
    let has_console = options.console || is_terminal(StandardStream::Input);
    Ok(RunningServer {
        runtime,
        events,
        sender,
        server,
        options,
        start_settings,
        state: state.folder,
        loaded,
        error_log,
        control,
        notifier: Notifier::new(service.notify.clone(), service.watchdog),
        has_console,
    })
}

/// Applies what the previous process passes on: the folder of its state, the rights that it has dropped, and the helper
/// that starts programs under other accounts.
///
/// # Errors
///
/// The message with which the start fails.
fn take_over_rights(
    predecessor: &Predecessor,
    config: &mut Config,
    start_settings: &mut StartSettings,
) -> Result<(), String> {
    config
        .server
        .state
        .get_or_insert_with(|| predecessor.state_folder.clone());
    if predecessor.has_dropped_root {
        accounts::inherit_dropped_rights();
    }
    if let Some(helper) = predecessor.helper() {
        accounts::adopt_helper(helper)?;
    }
    // The previous process has switched to the user already.
    (start_settings.user_ignored, start_settings.script_user_ignored) = (false, false);
    Ok(())
}

/// Announces to the previous process that requests are served. Called once, after everything has started. If there is a
/// service manager, waits until the previous process has notified it.
fn announce_ready(predecessor: Option<&Predecessor>, service: &ServiceEnvironment) {
    let Some(predecessor) = predecessor else { return };
    match predecessor.ready() {
        Ok(()) => tracing::info!("process {} has taken over", std::process::id()),
        Err(error) => tracing::warn!("the old process has ended during the upgrade: {error}"),
    }
    if service.notify.is_some() {
        predecessor.wait_for_release(RELEASE_TIMEOUT);
    }
}

impl RunningServer {
    /// Serves until a signal or command stops the server.
    pub fn serve(self) -> Result<(), Failure> {
        let mut sites = self.server.sites();
        sites.retain(|site| !site.disabled);
        self.print_start(&sites);
        if self.options.open {
            open_browser(&sites);
        }
        if self.options.addresses != AddressList::Hidden {
            let with_qr_code = self.options.addresses == AddressList::UrlsAndQrCode;
            let config = self.server.snapshot().config.clone();
            self.runtime.spawn(address_watch::run(sites, config, with_qr_code));
        }
        if self.has_console
            && let Err(error) = read_commands(self.sender.clone())
        {
            print_warning(format_args!("terminal commands are not available: {error}"));
        }
        let RunningServer {
            runtime,
            events,
            sender,
            server,
            options,
            start_settings,
            state,
            loaded,
            error_log,
            control,
            notifier,
            has_console,
        } = self;
        runtime.spawn(Notifier::schedule_checks(notifier.watchdog(), sender.clone()));
        runtime.spawn(schedule_samples(sender.clone()));
        runtime.spawn(schedule_folder_checks(sender.clone()));
        let is_complete = control.is_complete();
        let control = Rc::new(RefCell::new(control));
        if !is_complete {
            runtime.spawn(schedule_retries(sender.clone()));
        }
        let main_loop = MainLoop {
            control: Rc::clone(&control),
            sender,
            source: options.source,
            state,
            loaded,
            config_state: StateCache::default(),
            host_folders: HostFolderWatch::default(),
            start_settings,
            error_log,
            notifier,
            has_console,
        };
        let registries = Arc::clone(server.registries());
        let served = runtime.block_on(main_loop.run(server, events));
        // `Ok`: the main loop has ended after an orderly stop. Stopping the control API waits for its requests in
        // progress, and those that the main loop has not processed get 503. After an immediate stop (`Err`), the
        // process does not wait for them.
        if served.is_ok()
            && let Ok(control) = Rc::try_unwrap(control)
        {
            control.into_inner().stop();
        }
        // CGI programs are stopped even after an immediate stop, because their child processes do not end with this
        // process.
        registries.programs.stop(Instant::now() + CGI_STOP_TIMEOUT);
        served
    }
}

fn open_browser(sites: &[SiteSummary]) {
    let Some(url) = sites
        .iter()
        .flat_map(|site| &site.urls)
        .find(|url| url.starts_with("http"))
    else {
        return print_warning("a browser cannot open a Unix socket");
    };
    browser::open(url);
}

impl From<NotStarted> for Failure {
    fn from(error: NotStarted) -> Failure {
        Failure::Failed(match error {
            NotStarted::Start(error) => format!("cannot start: {error}"),
            NotStarted::Io(error) => format!("cannot start: {error}"),
        })
    }
}

/// Maximum time that the previous process has to notify the service manager of this one.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for the processes of CGI programs to end after they have been killed.
const CGI_STOP_TIMEOUT: Duration = Duration::from_secs(5);
