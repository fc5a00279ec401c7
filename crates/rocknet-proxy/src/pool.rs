//! Pool of idle HTTP/1.1 connections to upstreams, one for each worker.
//!
//! Because each worker has its own pool, no lock is needed and a connection never moves to another event loop.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use hashbrown::HashMap;

use crate::h1_connection::H1Connection;
use crate::upstream::Upstream;
use rocknet_handler::services::WorkerLocal;

/// Maximum number of idle connections of one worker to one upstream, so that 128 concurrent requests can reuse
/// connections. Each connection occupies a descriptor on both sides.
const MAX_IDLE: usize = 128;
/// Idle time in milliseconds up to which a connection is used for a request that must not be sent twice.
///
/// The upstream may be closing a connection that was idle for longer. Most servers keep idle connections for at least
/// five seconds, or for two seconds if they are short of connections.
const SAFE_IDLE_MS: u64 = 1000;

/// Idle connections of one worker, by upstream.
#[derive(Default)]
pub struct ConnectionPool {
    by_upstream: RefCell<HashMap<u32, IdleConnections, foldhash::fast::FixedState>>,
    /// Number of idle connections to all upstreams.
    idle_count: Cell<usize>,
}

struct IdleConnections {
    upstream: Weak<Upstream>,
    /// Ordered by last use; the most recently used connection is at the back.
    connections: VecDeque<Box<H1Connection>>,
    /// Idle timeout in milliseconds. Proxies that share the upstream may have different ones; the last use sets it.
    idle_ms: u64,
}

impl ConnectionPool {
    /// Takes an idle connection that the upstream is not known to have closed; `None` if there is no suitable one. A
    /// request that is not idempotent gets only a connection that was idle for less than [`SAFE_IDLE_MS`]. `now_ms` is
    /// the uptime in milliseconds.
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

    /// Adds a connection whose response is complete. Closes it instead if it cannot be reused or the pool is full. With
    /// the PROXY protocol a connection is never reused, because its header names one client. `now_ms` is the uptime,
    /// and `idle_ms` the idle timeout, both in milliseconds.
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

    /// Closes all idle connections to an upstream, because it has closed one of them.
    pub(super) fn forget(&self, upstream: &Upstream) {
        if let Some(idle) = self.by_upstream.borrow_mut().remove(&upstream.id) {
            self.idle_count.set(self.idle_count.get() - idle.connections.len());
        }
    }
}

impl WorkerLocal for ConnectionPool {
    /// Closes connections that were idle too long or that the upstream has closed, and connections to upstreams that
    /// no configuration uses any more.
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

    /// Closes all connections. While the worker serves no client, it would not notice when upstreams close them.
    fn release(&self) {
        self.by_upstream.borrow_mut().clear();
        self.idle_count.set(0);
    }
}
