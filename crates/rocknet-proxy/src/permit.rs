//! The place of a request at a server, for as long as the request is there.

use std::sync::Arc;

use rocknet_config::model::Priority;

use crate::concurrency_limit::PermitKind;
use crate::upstream::Upstream;

/// The place of one request at one server. When it is dropped, it is given to a request that waits, or given back.
pub struct Permit {
    pub upstream: Arc<Upstream>,
    kind: PermitKind,
}

impl Upstream {
    /// Takes a place, if there is room.
    pub fn try_acquire(self: &Arc<Upstream>, max: usize, priority: Priority, now_ms: u64) -> Option<Permit> {
        let kind = self.limit.try_acquire(max, priority, now_ms)?;
        Some(Permit {
            upstream: Arc::clone(self),
            kind,
        })
    }
}

impl Permit {
    /// Keeps being load of the server, but takes no room from requests any more.
    pub fn into_unlimited(mut self) -> Permit {
        self.kind = self.upstream.limit.convert_to_tunnel(self.kind);
        self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.upstream.limit.release(self.kind);
    }
}
