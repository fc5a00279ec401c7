//! What a worker does beside serving connections: accepting them, and noticing that time passes.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use rocknet_io::epoll::Acceptor;
use rocknet_io::socket::{AcceptErrorKind, accept_error_kind};
use rocknet_io::ticker::Ticker;
use rocknet_io::wheel::Tick;

use crate::transport;
use crate::worker::Worker;

/// Connections taken in one turn, so that those already open are served in between.
const MAX_ACCEPTS_PER_POLL: usize = 64;
/// How long accepting rests when descriptors or memory have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A shortage is told once in so long.
const SHORTAGE_LOG_INTERVAL_MS: u64 = 10_000;

/// Why a worker's loop ended.
pub enum LoopExit {
    /// `clean`: no connection had to be cut.
    Stopped {
        clean: bool,
    },
    Failed(io::Error),
}

pub struct AcceptLoop<'w> {
    worker: &'w Rc<Worker>,
    /// Gone once the worker is to stop.
    acceptor: Option<Acceptor>,
    /// Most connections at once.
    max_connections: usize,
    /// On while there is anything that time matters to.
    ticker: Ticker,
    /// Accepting rests until this tick.
    paused_until: Option<Tick>,
    /// What is not done at this tick is cut.
    stop_deadline: Option<Tick>,
    shortage_logged_ms: Option<u64>,
}

impl<'w> AcceptLoop<'w> {
    pub fn new(worker: &'w Rc<Worker>, acceptor: Acceptor, max_connections: usize) -> io::Result<AcceptLoop<'w>> {
        Ok(AcceptLoop {
            worker,
            acceptor: Some(acceptor),
            max_connections,
            ticker: Ticker::new(worker.wheel.tick_length())?,
            paused_until: None,
            stop_deadline: None,
            shortage_logged_ms: None,
        })
    }

    /// Holds at most so many connections from now on. Those there are stay, however many.
    pub fn set_max_connections(&mut self, max_connections: usize) {
        self.max_connections = max_connections;
    }

    pub fn stop(&mut self, context: &mut Context<'_>, within: Duration) {
        if self.stop_deadline.is_none() {
            // Whoever waits to be accepted has a connection already, as far as he can tell.
            let _ = self.accept(context);
            self.acceptor = None;
            self.start_ticking();
            self.stop_deadline = Some(self.tick_after(within));
            self.worker.stop();
        }
    }

    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<LoopExit> {
        self.tick(context);
        if let Some(error) = self.accept(context) {
            return Poll::Ready(LoopExit::Failed(error));
        }
        if let Some(stop_deadline) = self.stop_deadline {
            self.worker.on_close(context.waker());
            let open = self.worker.connections();
            if open == 0 || !stop_deadline.is_later(self.worker.wheel.now()) {
                if open > 0 {
                    tracing::warn!(address = %self.worker.address, "cut {open} connections that did not finish in time");
                }
                self.worker.tick();
                return Poll::Ready(LoopExit::Stopped { clean: open == 0 });
            }
        }
        Poll::Pending
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        loop {
            let ticks = self.ticker.poll_ticks(context);
            if ticks == 0 {
                return;
            }
            for _ in 1..ticks {
                self.worker.wheel.advance();
            }
            self.worker.tick();
            // With nobody connected nothing has to be looked at: an idle worker sleeps.
            if self.worker.connections() == 0 && self.stop_deadline.is_none() && self.paused_until.is_none() {
                self.ticker.stop();
                self.worker.release_idle();
            }
        }
    }

    fn start_ticking(&mut self) {
        if !self.ticker.is_on() {
            // Time has stood still for this worker.
            self.worker.tick();
            self.ticker.start();
        }
    }

    fn tick_after(&self, time: Duration) -> Tick {
        self.worker.wheel.now().after(self.worker.wheel.ticks(time))
    }

    fn accept(&mut self, context: &mut Context<'_>) -> Option<io::Error> {
        if self
            .paused_until
            .is_some_and(|until| until.is_later(self.worker.wheel.now()))
        {
            return None;
        }
        self.paused_until = None;
        for _ in 0..MAX_ACCEPTS_PER_POLL {
            let acceptor = self.acceptor.as_ref()?;
            if self.worker.connections() >= self.max_connections {
                // The next one to close makes room, and wakes us.
                self.worker.on_close(context.waker());
                return None;
            }
            match acceptor.poll_accept(context) {
                Poll::Pending => return None,
                Poll::Ready(Ok((socket, peer))) => {
                    self.start_ticking();
                    if let Err(error) = transport::serve(self.worker, socket, peer) {
                        tracing::debug!("a connection was lost before it began: {error}");
                    }
                }
                Poll::Ready(Err(error)) => match accept_error_kind(&error) {
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
        context.waker().wake_by_ref();
        None
    }

    fn log_shortage(&mut self, error: &io::Error) {
        let now = self.worker.clock.uptime_ms();
        if self
            .shortage_logged_ms
            .is_none_or(|logged| now - logged >= SHORTAGE_LOG_INTERVAL_MS)
        {
            self.shortage_logged_ms = Some(now);
            tracing::warn!(address = %self.worker.address, "cannot accept connections for now: {error}; the open ones go on");
        }
    }
}
