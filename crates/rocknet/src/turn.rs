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
const ACCEPTS_PER_TURN: usize = 64;
/// How long accepting rests when descriptors or memory have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A shortage is told once in so long.
const SHORTAGE_SILENCE_MS: u64 = 10_000;

/// Why a worker's loop ended.
pub enum End {
    /// `clean`: no connection had to be cut.
    Stopped {
        clean: bool,
    },
    Failed(io::Error),
}

pub struct Turn<'w> {
    worker: &'w Rc<Worker>,
    /// Gone once the worker is to stop.
    acceptor: Option<Acceptor>,
    /// Most connections at once.
    most: usize,
    /// On while there is anything that time matters to.
    ticker: Ticker,
    /// Accepting rests until this tick.
    rest_until: Option<Tick>,
    /// What is not done at this tick is cut.
    stop_by: Option<Tick>,
    shortage_told_ms: Option<u64>,
}

impl<'w> Turn<'w> {
    pub fn new(worker: &'w Rc<Worker>, acceptor: Acceptor, most: usize) -> io::Result<Turn<'w>> {
        Ok(Turn {
            worker,
            acceptor: Some(acceptor),
            most,
            ticker: Ticker::new(worker.wheel.tick_length())?,
            rest_until: None,
            stop_by: None,
            shortage_told_ms: None,
        })
    }

    /// Holds at most so many connections from now on. Those there are stay, however many.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    pub fn stop(&mut self, context: &mut Context<'_>, within: Duration) {
        if self.stop_by.is_none() {
            // Whoever waits to be accepted has a connection already, as far as he can tell.
            let _ = self.accept(context);
            self.acceptor = None;
            self.start_ticking();
            self.stop_by = Some(self.in_future(within));
            self.worker.stop();
        }
    }

    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.tick(context);
        if let Some(trouble) = self.accept(context) {
            return Poll::Ready(End::Failed(trouble));
        }
        if let Some(stop_by) = self.stop_by {
            self.worker.on_close(context.waker());
            let open = self.worker.connections();
            if open == 0 || !stop_by.is_later(self.worker.wheel.now()) {
                if open > 0 {
                    tracing::warn!(address = %self.worker.address, "cut {open} connections that did not finish in time");
                }
                self.worker.tick();
                return Poll::Ready(End::Stopped { clean: open == 0 });
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
            if self.worker.connections() == 0 && self.stop_by.is_none() && self.rest_until.is_none() {
                self.ticker.stop();
                self.worker.rest();
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

    fn in_future(&self, time: Duration) -> Tick {
        self.worker.wheel.now().after(self.worker.wheel.ticks(time))
    }

    fn accept(&mut self, context: &mut Context<'_>) -> Option<io::Error> {
        if self
            .rest_until
            .is_some_and(|until| until.is_later(self.worker.wheel.now()))
        {
            return None;
        }
        self.rest_until = None;
        for _ in 0..ACCEPTS_PER_TURN {
            let acceptor = self.acceptor.as_ref()?;
            if self.worker.connections() >= self.most {
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
                        self.tell_shortage(&error);
                        self.rest_until = Some(self.in_future(ACCEPT_PAUSE));
                        return None;
                    }
                },
            }
        }
        context.waker().wake_by_ref();
        None
    }

    fn tell_shortage(&mut self, error: &io::Error) {
        let now = self.worker.clock.uptime_ms();
        if self
            .shortage_told_ms
            .is_none_or(|told| now - told >= SHORTAGE_SILENCE_MS)
        {
            self.shortage_told_ms = Some(now);
            tracing::warn!(address = %self.worker.address, "cannot accept connections for now: {error}; the open ones go on");
        }
    }
}
