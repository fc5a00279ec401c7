//! Commands of the server to its workers.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rocknet_io::socket::Listener;
use tokio::sync::mpsc::UnboundedSender;

use crate::accept_loop::StopTimes;
use crate::heartbeat::{BeatNumber, Heartbeat};
use crate::snapshot::Snapshot;
use crate::transport::quic::QuicSocket;

/// Command of the server to a worker.
pub enum WorkerCommand {
    /// Replaces the configuration.
    Swap {
        snapshot: Arc<Snapshot>,
        /// Maximum number of open connections of this worker from now on.
        connections: usize,
        /// UDP socket of the worker, if HTTP/3 is switched on at an address that did not have it.
        quic: Option<QuicSocket>,
    },
    /// Replaces the listening sockets of the worker, at least one.
    Listen(Vec<Arc<Listener>>),
    /// Stops accepting, and ends the worker once its connections have finished or the times are over.
    Stop {
        times: StopTimes,
        /// Dropped once the worker has closed its listening sockets.
        released: mpsc::Sender<()>,
    },
    /// Reads the UDP socket, or leaves its datagrams to another process.
    ReceiveQuic {
        /// True if the worker reads the socket.
        receives: bool,
        /// Dropped once the worker has applied the command.
        applied: mpsc::Sender<()>,
    },
    /// Closes the worker's own UDP socket, and uses this one instead. It belongs to a listener whose address covers
    /// that of the worker, as `*:443` covers `127.0.0.1:443`.
    ReplaceQuic(QuicSocket),
    /// Marks the heartbeat as received.
    Heartbeat(BeatNumber),
    /// Makes the worker panic, for tests of the restart.
    #[doc(hidden)]
    Panic,
}

/// A worker thread, as the server sees it.
pub struct WorkerHandle {
    pub commands: UnboundedSender<WorkerCommand>,
    pub heartbeat: Heartbeat,
    /// Thread of the worker. Its result is true if the worker has stopped without cutting a connection.
    pub thread: JoinHandle<bool>,
}
