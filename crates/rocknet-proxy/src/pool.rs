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
const SURE_MS: u64 = 1000;

#[derive(Default)]
pub struct ConnectionPool {
    shelves: RefCell<HashMap<u32, IdleConnections, foldhash::fast::FixedState>>,
    resting: Cell<usize>,
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
    pub(super) fn take(&self, upstream: &Upstream, is_repeatable: bool, now_ms: u64) -> Option<Box<H1Connection>> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.get_mut(&upstream.id)?;
        while let Some(mut connection) = shelf.connections.pop_back() {
            let is_sure = now_ms.saturating_sub(connection.rests_since_ms) < SURE_MS;
            if !is_sure && !is_repeatable {
                shelf.connections.push_back(connection);
                return None;
            }
            self.resting.set(self.resting.get() - 1);
            if connection.still_stands() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose answer has come whole.
    pub(super) fn keep(&self, upstream: &Arc<Upstream>, mut connection: Box<H1Connection>, now_ms: u64, idle_ms: u64) {
        if upstream.announce.is_some() || !connection.may_rest() {
            return;
        }
        connection.rests_since_ms = now_ms;
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.entry(upstream.id).or_insert_with(|| IdleConnections {
            upstream: Arc::downgrade(upstream),
            connections: VecDeque::new(),
            idle_ms,
        });
        shelf.idle_ms = idle_ms;
        if shelf.connections.len() < MAX_IDLE {
            shelf.connections.push_back(connection);
            self.resting.set(self.resting.get() + 1);
        }
    }

    /// Closes all that rests of one upstream: it has closed one of them.
    pub(super) fn forget(&self, upstream: &Upstream) {
        if let Some(shelf) = self.shelves.borrow_mut().remove(&upstream.id) {
            self.resting.set(self.resting.get() - shelf.connections.len());
        }
    }
}

impl WorkerLocal for ConnectionPool {
    /// Closes what has rested too long, what the other side has closed, and what no configuration names any more.
    fn tick(&self, now_ms: u64) {
        if self.resting.get() == 0 {
            return;
        }
        let mut resting = 0;
        self.shelves.borrow_mut().retain(|_, shelf| {
            if shelf.upstream.strong_count() == 0 {
                return false;
            }
            let idle_ms = shelf.idle_ms;
            shelf.connections.retain_mut(|connection| {
                now_ms.saturating_sub(connection.rests_since_ms) < idle_ms && connection.still_stands()
            });
            resting += shelf.connections.len();
            !shelf.connections.is_empty()
        });
        self.resting.set(resting);
    }

    /// Closes all: nobody is served, and nobody would notice when they are closed.
    fn release(&self) {
        self.shelves.borrow_mut().clear();
        self.resting.set(0);
    }
}
