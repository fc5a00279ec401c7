//! Response cache: stores the responses of any handler in memory, by the rules of HTTP caching (RFC 9111).
//!
//! ```text
//! CacheHandler (handler.rs) ── request ─▶ key.rs ─▶ store/memory.rs ── fresh ─▶ respond.rs ─▶ Response
//!      │                                              │ stale or missing
//!      │   flight.rs: one request for a key is forwarded, others wait
//!      ▼                                              ▼
//!   inner handler ◀── forward.rs ── policy.rs: may the response be stored? ── fill.rs: body, while it is sent
//! ```
//! Responses are stored as the handler returns them. The filters of the route are applied to each response that is
//! sent.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod cache_control;
mod cached_route;
mod cookies;
mod fill;
pub mod flight;
mod forward;
pub mod fuzzing;
pub mod handler;
mod key;
pub mod policy;
mod respond;
mod status;
pub mod store;
mod stored;
mod vary;

pub use handler::CacheHandler;

use std::sync::Arc;

use flight::Flights;
use store::MemoryStore;

/// Stored responses of a server, and requests in progress. All workers share it, and it outlives configurations.
pub struct Responses {
    /// Responses in memory.
    pub memory: MemoryStore,
    /// Requests that are being forwarded.
    pub flights: Arc<Flights>,
}

impl Default for Responses {
    fn default() -> Responses {
        Responses {
            memory: MemoryStore::new(0),
            flights: Arc::default(),
        }
    }
}

impl Responses {
    /// Drops what is stored under a key, and what is being received for it. Returns true if something was stored.
    fn invalidate(&self, key: &[u8]) -> bool {
        self.flights.invalidate(key);
        self.memory.remove(key)
    }
}
