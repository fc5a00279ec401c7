//! The accept loop of a worker, which also advances the worker's clock and timer wheel.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use rocknet_io::epoll::Acceptor;
use rocknet_io::socket::{AcceptErrorKind, accept_error_kind};
use rocknet_io::ticker::Ticker;
use rocknet_io::udp::UdpSocket;
use rocknet_io::wheel::Tick;
use rocknet_quic::{NewConnection, QuicEndpoint};

use crate::exchange::Client;
use crate::transport;
use crate::worker::Worker;

/// Maximum number of connections accepted from one TCP, Unix or UDP socket in one poll, so that the open connections
/// are served in between.
const MAX_ACCEPTS_PER_POLL: usize = 64;
/// Pause after the process ran out of descriptors or memory, or the UDP socket failed. It keeps the CPU time of a
/// lasting failure small.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for which idle connections stay open after another worker or process has taken over the sockets.
const IDLE_GRACE: Duration = Duration::from_secs(2);
/// Minimum time between two log lines about the same kind of failure.
const LOG_INTERVAL_MS: u64 = 10_000;

/// Limits on the time for which a stopping worker keeps its connections open, counted from the call that stops it.
#[derive(Clone, Copy, Debug)]
pub struct StopTimes {
    /// Time after which the remaining connections are cut.
    pub within: Duration,
    /// Time for which connections without a request in progress stay open. After it they are closed.
    pub idle_grace: Duration,
}

impl StopTimes {
    /// Returns the times of a worker whose sockets another worker or process takes over. Idle connections stay open for
    /// two seconds, but at most for half of `within`. A client that is just sending its next request on such a
    /// connection then still gets the response.
    pub fn of_drain(within: Duration) -> StopTimes {
        StopTimes {
            within,
            idle_grace: IDLE_GRACE.min(within / 2),
        }
    }
}

impl From<Duration> for StopTimes {
    /// Returns the times of a stop that closes idle connections immediately.
    fn from(within: Duration) -> StopTimes {
        StopTimes {
            within,
            idle_grace: Duration::ZERO,
        }
    }
}

/// Reason for the end of an accept loop, or for its failure to start.
pub enum LoopExit {
    /// The worker was stopped. `clean` is true if no connection had to be cut.
    Stopped { clean: bool },
    /// A listening socket failed, or the event loop or accept loop could not be created.
    Failed(io::Error),
}

/// Accepts the connections of one worker and advances its time.
pub struct AcceptLoop<'w> {
    worker: &'w Rc<Worker>,
    /// Listening sockets of this worker; empty once the worker is stopping.
    acceptors: Vec<Acceptor>,
    /// QUIC endpoint of the same address, if the address accepts QUIC connections.
    quic: Option<QuicEndpoint>,
    /// Maximum number of open connections.
    max_connections: usize,
    /// Runs only while connections are open, while accepting is paused, or while the worker stops.
    ticker: Ticker,
    /// End of the pause after a shortage of descriptors or memory; `None` if accepting is not paused.
    paused_until: Option<Tick>,
    /// End of the pause after a failure of the UDP socket.
    quic_paused_until: Option<Tick>,
    /// Tick at which the remaining connections are cut; `None` until the worker is stopping.
    stop_deadline: Option<Tick>,
    /// True while the worker is stopping, and the server continues or another process has taken over. The UDP socket
    /// of this worker may still receive datagrams for QUIC connections of older processes.
    is_draining: bool,
    /// Tick at which the connections without a request in progress close, while the worker stops.
    idle_deadline: Option<Tick>,
    /// Uptime in ms at which a shortage was last logged.
    shortage_logged_ms: Option<u64>,
    /// Uptime in ms at which a failure of the UDP socket was last logged.
    quic_error_logged_ms: Option<u64>,
}

impl<'w> AcceptLoop<'w> {
    /// Creates the accept loop of a worker. `max_connections`: maximum number of open connections.
    ///
    /// # Errors
    ///
    /// Fails if the ticker cannot be created.
    pub fn new(worker: &'w Rc<Worker>, acceptors: Vec<Acceptor>, max_connections: usize) -> io::Result<AcceptLoop<'w>> {
        Ok(AcceptLoop {
            worker,
            acceptors,
            quic: None,
            max_connections,
            ticker: Ticker::new(worker.wheel.tick_length())?,
            paused_until: None,
            quic_paused_until: None,
            stop_deadline: None,
            is_draining: false,
            idle_deadline: None,
            shortage_logged_ms: None,
            quic_error_logged_ms: None,
        })
    }

    /// Sets the maximum number of open connections. Connections that are already open are kept, even above the limit.
    pub fn set_max_connections(&mut self, max_connections: usize) {
        self.max_connections = max_connections;
    }

    /// Accepts QUIC connections too.
    pub fn add_quic(&mut self, endpoint: QuicEndpoint) {
        self.quic = Some(endpoint);
    }

    /// Sets whether this worker reads its UDP socket. During a handover another process receives the datagrams, and
    /// `receives` is false here.
    pub fn set_receiving_quic(&mut self, receives: bool) {
        if let Some(endpoint) = &mut self.quic {
            endpoint.set_receiving(receives);
        }
    }

    /// Switches to another UDP socket at the same port.
    pub fn replace_quic_socket(&mut self, socket: UdpSocket) {
        if let Some(endpoint) = &mut self.quic {
            endpoint.replace_socket(socket);
        }
    }

    /// Uses the current configuration of the worker for new QUIC connections.
    pub fn reconfigure_quic(&mut self) {
        if let Some(endpoint) = &mut self.quic
            && let Err(error) = transport::quic::reconfigure(endpoint, self.worker)
        {
            tracing::error!(address = %self.worker.address, "QUIC keeps the old certificates: {error}");
        }
    }

    /// Returns true once [`AcceptLoop::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.stop_deadline.is_some()
    }

    /// Replaces the listening sockets. A stopping worker gets none.
    pub fn set_acceptors(&mut self, acceptors: Vec<Acceptor>) {
        if self.stop_deadline.is_none() {
            self.acceptors = acceptors;
        }
    }

    /// Stops accepting. Connections that have not finished within `times.within` are cut. A further call can only
    /// shorten that time, and closes idle connections at once if its `idle_grace` is zero.
    pub fn stop(&mut self, context: &mut Context<'_>, times: StopTimes) {
        if let Some(deadline) = self.stop_deadline {
            let new_deadline = self.tick_after(times.within);
            if deadline.is_later(new_deadline) {
                self.stop_deadline = Some(new_deadline);
                // Tunnels have to close before the new deadline.
                self.worker.begin_drain(times.within);
            }
            if times.idle_grace.is_zero() {
                self.idle_deadline = None;
                self.is_draining = false;
                self.worker.stop(times.within);
            }
        } else {
            // Connections in the accept queue of a socket are established from the client's point of view. Up to
            // `MAX_ACCEPTS_PER_POLL` of them are therefore accepted before the socket is closed. An error of the socket
            // no longer matters.
            let _ = self.accept(context);
            self.acceptors.clear();
            if let Some(endpoint) = &mut self.quic {
                endpoint.stop();
            }
            self.start_ticking();
            self.stop_deadline = Some(self.tick_after(times.within));
            if times.idle_grace.is_zero() {
                self.worker.stop(times.within);
            } else {
                self.is_draining = true;
                self.idle_deadline = Some(self.tick_after(times.idle_grace));
                self.worker.begin_drain(times.within);
            }
        }
    }

    /// Advances the time and accepts connections. Ready once the worker has stopped or a listening socket has failed.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<LoopExit> {
        self.tick(context);
        if let Some(error) = self.accept(context) {
            return Poll::Ready(LoopExit::Failed(error));
        }
        self.accept_quic(context);
        let now = self.worker.wheel.now();
        if self.idle_deadline.take_if(|deadline| !deadline.is_later(now)).is_some() {
            self.worker.close_idle();
        }
        if let Some(stop_deadline) = self.stop_deadline {
            self.worker.on_close(context.waker());
            let open = self.worker.connections();
            // Older processes get the datagrams of their QUIC connections through the UDP socket of this worker.
            let serves_older = self.is_draining && self.quic.as_mut().is_some_and(QuicEndpoint::serves_relays);
            if (open == 0 && !serves_older) || !stop_deadline.is_later(now) {
                if open > 0 {
                    tracing::warn!(address = %self.worker.address, "cut {open} connections that did not finish in time");
                }
                // Flushes the access log.
                self.worker.tick();
                return Poll::Ready(LoopExit::Stopped { clean: open == 0 });
            }
        }
        Poll::Pending
    }

    /// Advances the clock and the timer wheel by the ticks that have passed. Stops the ticker of an idle worker.
    fn tick(&mut self, context: &mut Context<'_>) {
        // Repeated until no tick has passed, because only then does the ticker wake this task at the next tick.
        loop {
            let ticks = self.ticker.poll_ticks(context);
            if ticks == 0 {
                return;
            }
            // `Worker::tick` advances the wheel by the last of these ticks.
            for _ in 1..ticks {
                self.worker.wheel.advance();
            }
            self.worker.tick();
            // Without connections no timer can expire, so an idle worker sleeps. It first releases what it has cached.
            let is_paused = self.paused_until.is_some() || self.quic_paused_until.is_some();
            if self.worker.connections() == 0 && self.stop_deadline.is_none() && !is_paused {
                self.ticker.stop();
                self.worker.release_idle();
            }
        }
    }

    /// Starts the ticker, unless it already runs.
    fn start_ticking(&mut self) {
        if !self.ticker.is_on() {
            // The clock of this worker stood still while the ticker was off.
            self.worker.tick();
            self.ticker.start();
        }
    }

    /// Returns the tick at which `time` will have passed.
    fn tick_after(&self, time: Duration) -> Tick {
        self.worker.wheel.now().after(self.worker.wheel.ticks(time))
    }

    /// Accepts connections until none waits or a limit is reached. Returns the error of a listening socket that failed.
    fn accept(&mut self, context: &mut Context<'_>) -> Option<io::Error> {
        (0..self.acceptors.len()).find_map(|index| self.accept_from(index, context))
    }

    /// Accepts connections of one socket. Returns the error of a socket that has failed.
    fn accept_from(&mut self, index: usize, context: &mut Context<'_>) -> Option<io::Error> {
        if is_paused(&mut self.paused_until, self.worker.wheel.now()) {
            return None;
        }
        for _ in 0..MAX_ACCEPTS_PER_POLL {
            if self.worker.connections() >= self.max_connections {
                // This task is woken when a connection closes.
                self.worker.on_close(context.waker());
                return None;
            }
            match self.acceptors[index].poll_accept(context) {
                Poll::Pending => return None,
                Poll::Ready(Ok((socket, peer))) => {
                    self.start_ticking();
                    if let Err(error) = transport::serve(self.worker, socket, peer) {
                        tracing::debug!("a connection ended before it could be served: {error}");
                    }
                }
                Poll::Ready(Err(error)) => match accept_error_kind(&error) {
                    // Nothing was accepted. The next call accepts another connection, or waits for one.
                    AcceptErrorKind::WouldBlock | AcceptErrorKind::ConnectionLost => {}
                    AcceptErrorKind::ListenerBroken => return Some(error),
                    AcceptErrorKind::Exhausted => {
                        self.start_ticking();
                        self.log_shortage(&error);
                        self.paused_until = Some(self.tick_after(ACCEPT_PAUSE));
                        return None;
                    }
                },
            }
        }
        // More connections may wait. They are accepted after the open connections have been served.
        context.waker().wake_by_ref();
        None
    }

    /// Receives the datagrams of all QUIC connections. Accepts new connections while the worker has fewer than
    /// `max_connections`.
    pub fn accept_quic(&mut self, context: &mut Context<'_>) {
        let (worker, max_connections) = (self.worker, self.max_connections);
        if is_paused(&mut self.quic_paused_until, worker.wheel.now()) {
            return;
        }
        for _ in 0..MAX_ACCEPTS_PER_POLL {
            let Some(endpoint) = &mut self.quic else { return };
            match endpoint.poll_accept(context, |source| decide(worker, source, max_connections)) {
                Poll::Pending => return,
                Poll::Ready(Ok(connection)) => {
                    self.start_ticking();
                    transport::quic::serve(worker, connection);
                }
                Poll::Ready(Err(error)) => {
                    // The worker continues after a pause, because the socket may work again, and open connections
                    // depend on it.
                    self.log_quic_error(&error);
                    self.start_ticking();
                    self.quic_paused_until = Some(self.tick_after(ACCEPT_PAUSE));
                    return;
                }
            }
        }
        // More datagrams may wait. They are received after the open connections have been served.
        context.waker().wake_by_ref();
    }

    fn log_quic_error(&mut self, error: &io::Error) {
        if is_log_due(&mut self.quic_error_logged_ms, self.worker.clock.uptime_ms()) {
            tracing::error!(address = %self.worker.address, "the UDP socket of HTTP/3 failed and is tried again: {error}");
        }
    }

    fn log_shortage(&mut self, error: &io::Error) {
        if is_log_due(&mut self.shortage_logged_ms, self.worker.clock.uptime_ms()) {
            tracing::warn!(address = %self.worker.address, "cannot accept connections: {error}; accepting pauses, and open connections continue");
        }
    }
}

/// Decides about a new QUIC connection: ignores a banned client, and refuses others while the worker has
/// `max_connections` connections.
fn decide(worker: &Worker, source: SocketAddr, max_connections: usize) -> NewConnection {
    let client = Client::Ip {
        address: source.ip(),
        port: source.port(),
    };
    if worker.is_banned(client) {
        worker.shared.registries.bans.count_connection();
        return NewConnection::Ignore;
    }
    match worker.connections() < max_connections {
        true => NewConnection::Accept,
        false => NewConnection::Refuse,
    }
}

/// Returns true until the end of a pause. Then clears `until`, and returns false.
fn is_paused(until: &mut Option<Tick>, now: Tick) -> bool {
    *until = until.filter(|until| until.is_later(now));
    until.is_some()
}

/// Returns true, and records the time, if the last line was logged long enough ago. `logged_ms`: time of the last line.
fn is_log_due(logged_ms: &mut Option<u64>, now_ms: u64) -> bool {
    let is_due = logged_ms.is_none_or(|logged| now_ms - logged >= LOG_INTERVAL_MS);
    if is_due {
        *logged_ms = Some(now_ms);
    }
    is_due
}
