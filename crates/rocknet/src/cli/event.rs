//! Events of the main loop: signals, typed lines, and requests of the control API.

use rocknet::takeover::{Successor, UpgradeError};
use rocknet_control::api::{ApiError, Reply, Request};
use tokio::sync::oneshot;

use crate::console::ConsoleLine;

/// An event of the main loop.
pub enum Event {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGUSR1: reopen the log files.
    Reopen,
    /// Time to check the workers, for the watchdog of the service manager.
    CheckWorkers,
    /// Time to record the counters, from which the load of the last seconds is computed.
    SampleLoad,
    /// Time to check for new folders below a root with `{host}`.
    CheckHostFolders,
    /// Folders below a root with `{host}` were added or removed.
    HostFoldersChanged,
    /// Time to try again to serve the control API at addresses that could not be used.
    RetryControl,
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGUSR2: start a new process that takes over.
    Upgrade,
    /// The new process of an upgrade has started everything but its workers, or it has failed.
    Prepared(Result<Box<Successor>, UpgradeError>),
    /// The new process serves, or it has failed.
    Upgraded(Result<Box<Successor>, UpgradeError>),
    /// A typed line.
    Line(ConsoleLine),
    /// A request of the control API.
    Control(ControlRequest),
    /// The server has stopped; true if no connection was cut.
    Stopped(bool),
}

/// Request of the control API, whose client waits for the reply.
pub struct ControlRequest {
    pub request: Request,
    reply: oneshot::Sender<Result<Reply, ApiError>>,
}

impl ControlRequest {
    /// Creates the event of a request, and returns it with the receiver of the reply.
    pub fn event(request: Request) -> (Event, oneshot::Receiver<Result<Reply, ApiError>>) {
        let (reply, replied) = oneshot::channel();
        (Event::Control(ControlRequest { request, reply }), replied)
    }

    /// Sends the reply. The client may have disconnected.
    pub fn reply(self, reply: Result<Reply, ApiError>) {
        let _ = self.reply.send(reply);
    }
}
