//! Upgrade of the running program, on the side of the old process: steps of the main loop while the new process starts,
//! and when it has taken over.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rocknet::certificates::ServerEnvironment;
use rocknet::certificates::resumption::SiteSessions;
use rocknet::gateway::accounts;
use rocknet::limit_transfer;
use rocknet::registries::Registries;
use rocknet::server::Server;
use rocknet::takeover::{Offer, SocketGroup, Successor, UpgradeError};
use rocknet_control::api::{ApiError, Done, Reply};
use rocknet_control::upgrade::{DEFAULT_TIMEOUT, TIMEOUTS, UpgradeOrder};
use tokio::sync::mpsc::Sender;

use super::control::ControlServers;
use super::event::{ControlRequest, Event};
use super::launch::ConfigSource;
use super::notifier::Notifier;
use super::sandbox::ActiveSandbox;

/// Path from which this program was started.
static OWN_PATH: OnceLock<PathBuf> = OnceLock::new();

/// Remembers the path of this program. Called when the process starts, because the system reports another path once the
/// file is replaced.
pub fn remember_own_path() {
    if let Ok(path) = std::env::current_exe() {
        let _ = OWN_PATH.set(path);
    }
}

/// The upgrade in progress, if any.
#[derive(Default)]
pub struct Handover {
    is_in_progress: bool,
    /// Request of the control API that gets the outcome; `None` after SIGUSR2.
    request: Option<ControlRequest>,
}

impl Handover {
    /// Returns true from the start of an upgrade until its failure. After a success it stays true, because the process
    /// ends.
    pub fn is_in_progress(&self) -> bool {
        self.is_in_progress
    }

    /// Starts the new process on a thread, which sends [`Event::Prepared`]. `request`: request of the control API that
    /// gets the outcome, if there is one. `servers`: the servers of the sites and of the control API, whose sockets are
    /// passed. If the upgrade is refused, the reason is logged, and the server continues. During another upgrade only
    /// the request gets an error.
    pub fn begin(
        &mut self,
        order: &UpgradeOrder,
        request: Option<ControlRequest>,
        servers: (&Server, &ControlServers),
        context: &HandoverContext<'_>,
    ) {
        if self.is_in_progress {
            if let Some(request) = request {
                request.reply(Err(ApiError::new(409, "refused: another upgrade is in progress")));
            }
            return;
        }
        self.is_in_progress = true;
        self.request = request;
        let begun = offer(order, servers, context).and_then(|offer| {
            tracing::info!("upgrading to {}", offer.program.display());
            let (sender, registries) = (context.sender.clone(), Arc::clone(servers.0.registries()));
            on_thread(move || {
                let started = with_helper(offer).and_then(Successor::start);
                if let Ok(successor) = &started {
                    pass_limits(successor, &registries);
                }
                let _ = sender.blocking_send(Event::Prepared(started.map(Box::new)));
            })
        });
        if let Err(error) = begun {
            self.fail(&error);
        }
    }

    /// Starts a thread that lets the prepared process serve and sends [`Event::Upgraded`]. The new process receives
    /// `sessions`, the TLS sessions that this server has stored.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started. The new process has then been killed, because `successor` was dropped.
    pub fn permit(
        successor: Box<Successor>,
        sessions: Vec<SiteSessions>,
        sender: &Sender<Event>,
    ) -> Result<(), UpgradeError> {
        let sender = sender.clone();
        on_thread(move || {
            let _ = sender.blocking_send(Event::Upgraded(successor.finish(sessions).map(Box::new)));
        })
    }

    /// Reports to the service manager and the operator that the new process has taken over.
    pub fn succeed(&mut self, successor: Successor, notifier: &Notifier) {
        let process = successor.id();
        notifier.handed_over(process);
        // The service manager accepts notifications of the new process from here on. The drop closes the channel to the
        // new process, which then sends them.
        drop(successor);
        let message = format!("process {process} has taken over from process {}", std::process::id());
        tracing::info!("{message}; this process ends after its connections");
        if let Some(request) = self.request.take() {
            request.reply(Ok(Reply::Done(Done::new(message))));
        }
    }

    /// Reports to the operator that the server continues without an upgrade.
    pub fn fail(&mut self, error: &UpgradeError) {
        self.is_in_progress = false;
        tracing::error!("the upgrade failed, and this process continues: {error}");
        if let Some(request) = self.request.take() {
            let mut lines = error.0.trim_end().lines();
            // The last line is the reason. Lines before it are the findings in a configuration.
            let last = lines.next_back().unwrap_or_default();
            let has_more = lines.next().is_some();
            request.reply(Err(ApiError {
                details: has_more.then(|| error.0.clone()),
                ..ApiError::new(
                    422,
                    format!("the upgrade failed, and the server continues unchanged: {last}"),
                )
            }));
        }
    }
}

/// State of the main loop that an upgrade uses.
pub struct HandoverContext<'a> {
    /// Source of the configuration in use.
    pub source: &'a ConfigSource,
    /// Folder of the server's state.
    pub state: &'a PathBuf,
    /// Queue of the main loop.
    pub sender: &'a Sender<Event>,
    /// Limits of this process, which the new process inherits.
    pub sandbox: &'a ActiveSandbox,
    pub notifier: &'a Notifier,
}

/// Checks that an upgrade is possible, and collects the program, the sockets and the state for the new process.
fn offer(
    order: &UpgradeOrder,
    (sites, control): (&Server, &ControlServers),
    context: &HandoverContext<'_>,
) -> Result<Offer, UpgradeError> {
    let refused = |why: &str| Err(UpgradeError(why.to_owned()));
    let ConfigSource::File(file) = context.source else {
        return refused("only a server with a configuration file can be upgraded: stop it and start it again");
    };
    if std::process::id() == 1 {
        return refused(
            "the server is the first process of a container, which would end with it: replace the container",
        );
    }
    // The new process inherits the sandbox of this process. A strict sandbox must permit everything that the current
    // configuration file needs. Errors of the configuration are ignored here, because the new process reports them.
    if matches!(context.sandbox, ActiveSandbox::Strict(_))
        && let Ok(loaded) = rocknet_config::load(file, &ServerEnvironment::new())
    {
        let within_sandbox = context
            .sandbox
            .check_successor(&loaded.config, context.state, context.source);
        within_sandbox.map_err(UpgradeError)?;
    }
    let timeout = order.timeout.unwrap_or(DEFAULT_TIMEOUT);
    if !TIMEOUTS.contains(&timeout) {
        let (min, max) = (TIMEOUTS.start(), TIMEOUTS.end());
        return Err(UpgradeError(format!(
            "the timeout has to be between {min} s and {max} s"
        )));
    }
    let program = order
        .binary
        .as_ref()
        .map(PathBuf::from)
        .or_else(|| OWN_PATH.get().cloned());
    let Some(program) = program else {
        return refused("the path of the program is unknown: name it with --binary");
    };
    if !program.is_absolute() {
        return refused("the path of the program has to be absolute");
    }
    let not_duplicated = |error: std::io::Error| UpgradeError(format!("the sockets cannot be duplicated: {error}"));
    let mut sockets = Vec::new();
    let control = control.servers().map(|server| (SocketGroup::Control, server));
    for (group, server) in std::iter::once((SocketGroup::Sites, sites)).chain(control) {
        let offered = server.offered_sockets().map_err(not_duplicated)?;
        sockets.extend(offered.into_iter().map(|socket| (group, socket)));
    }
    Ok(Offer {
        program,
        arguments: std::env::args_os().collect(),
        sockets,
        // Channels through which the new process passes on QUIC datagrams for connections of this and older processes.
        relays: sites.offered_relays().map_err(not_duplicated)?,
        // Each process has another number, which its QUIC connection IDs contain.
        generation: sites.generation().wrapping_add(1),
        // `with_helper` adds the helper on the thread that starts the new process, because the helper may be busy.
        helper: None,
        ticket_secrets: sites.certificates().ticket_secrets().encode(),
        limit_secrets: sites.registries().limit_secrets.encode(),
        has_dropped_root: accounts::has_dropped_rights(),
        state_folder: context.state.clone(),
        // Variables with which the new process notifies the service manager.
        environment: context.notifier.variables(),
        timeout: Duration::from_secs(timeout),
    })
}

/// Passes the limits and offences of clients to the prepared process, before this process stops reading its UDP
/// sockets. After a failure, the new process starts with empty tables.
fn pass_limits(successor: &Successor, registries: &Registries) {
    // The new process reads the stored bans before it serves.
    registries.bans.flush();
    let passed = limit_transfer::write(registries).and_then(|file| successor.send_limits(&file));
    if let Err(error) = passed {
        tracing::warn!("the counts of all limits begin at 0, because they cannot be passed on: {error}");
    }
}

/// Connects the new process to the helper that starts programs as other accounts.
fn with_helper(offer: Offer) -> Result<Offer, UpgradeError> {
    let helper = accounts::offer_helper();
    let refused = |error: std::io::Error| {
        let reason = match error.kind() {
            std::io::ErrorKind::WouldBlock => "too many old processes still finish their connections".to_owned(),
            _ => error.to_string(),
        };
        UpgradeError(format!(
            "scripts run as other accounts, and the process that starts them accepts no further server: {reason}"
        ))
    };
    Ok(Offer {
        helper: helper.map_err(refused)?,
        ..offer
    })
}

/// Runs a function on a new thread, because the steps of an upgrade block.
fn on_thread(run: impl FnOnce() + Send + 'static) -> Result<(), UpgradeError> {
    let thread = thread::Builder::new().name("rn-upgrade".to_owned()).spawn(run);
    thread
        .map(drop)
        .map_err(|error| UpgradeError(format!("no thread can be started: {error}")))
}
