//! Connections at rest, kept by each worker for itself: no lock is taken for them, and none ever changes its loop.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use hashbrown::HashMap;

use crate::h1_connection::H1Connection;
use crate::upstream::Upstream;
use rocknet_handler::services::WorkerLocal;

/// Connections at rest to one upstream: as many as 128 clients at once leave behind. Each holds a descriptor here and
/// there.
const MAX_IDLE: usize = 128;
/// A connection that rested longer may be closed by the other side at this very moment, with no word of it yet. Servers
/// keep theirs for five seconds and more mostly, two where they are short of them.
const SAFE_IDLE_MS: u64 = 1000;

#[derive(Default)]
pub struct ConnectionPool {
    by_upstream: RefCell<HashMap<u32, IdleConnections, foldhash::fast::FixedState>>,
    idle_count: Cell<usize>,
}

struct IdleConnections {
    upstream: Weak<Upstream>,
    /// The one that was used last is the last.
    connections: VecDeque<Box<H1Connection>>,
    idle_ms: u64,
}

impl ConnectionPool {
    /// A connection that was kept and stands as far as anybody knows; one that rested but a moment, unless the request may
    /// be said again.
    pub(super) fn take(&self, upstream: &Upstream, is_idempotent: bool, now_ms: u64) -> Option<Box<H1Connection>> {
        let mut by_upstream = self.by_upstream.borrow_mut();
        let idle = by_upstream.get_mut(&upstream.id)?;
        while let Some(mut connection) = idle.connections.pop_back() {
            let is_recent = now_ms.saturating_sub(connection.idle_since_ms) < SAFE_IDLE_MS;
            if !is_recent && !is_idempotent {
                idle.connections.push_back(connection);
                return None;
            }
            self.idle_count.set(self.idle_count.get() - 1);
            if connection.is_alive() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose answer has come whole.
    pub(super) fn keep(&self, upstream: &Arc<Upstream>, mut connection: Box<H1Connection>, now_ms: u64, idle_ms: u64) {
        if upstream.proxy_protocol.is_some() || !connection.prepare_for_reuse() {
            return;
        }
        connection.idle_since_ms = now_ms;
        let mut by_upstream = self.by_upstream.borrow_mut();
        let idle = by_upstream.entry(upstream.id).or_insert_with(|| IdleConnections {
            upstream: Arc::downgrade(upstream),
            connections: VecDeque::new(),
            idle_ms,
        });
        idle.idle_ms = idle_ms;
        if idle.connections.len() < MAX_IDLE {
            idle.connections.push_back(connection);
            self.idle_count.set(self.idle_count.get() + 1);
        }
    }

    /// Closes all that rests of one upstream: it has closed one of them.
    pub(super) fn forget(&self, upstream: &Upstream) {
        if let Some(idle) = self.by_upstream.borrow_mut().remove(&upstream.id) {
            self.idle_count.set(self.idle_count.get() - idle.connections.len());
        }
    }
}

impl WorkerLocal for ConnectionPool {
    /// Closes what has rested too long, what the other side has closed, and what no configuration names any more.
    fn tick(&self, now_ms: u64) {
        if self.idle_count.get() == 0 {
            return;
        }
        let mut idle_count = 0;
        self.by_upstream.borrow_mut().retain(|_, idle| {
            if idle.upstream.strong_count() == 0 {
                return false;
            }
            let idle_ms = idle.idle_ms;
            idle.connections.retain_mut(|connection| {
                now_ms.saturating_sub(connection.idle_since_ms) < idle_ms && connection.is_alive()
            });
            idle_count += idle.connections.len();
            !idle.connections.is_empty()
        });
        self.idle_count.set(idle_count);
    }

    /// Closes all: nobody is served, and nobody would notice when they are closed.
    fn release(&self) {
        self.by_upstream.borrow_mut().clear();
        self.idle_count.set(0);
    }
}
