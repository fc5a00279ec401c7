//! Permit of a request at an upstream, held while the request is in flight.

use std::sync::Arc;

use rocknet_config::model::Priority;

use crate::concurrency_limit::PermitKind;
use crate::upstream::Upstream;

/// Permit of one request at one upstream. Dropping it frees the capacity, and grants it to a waiting request if there
/// is one.
pub struct Permit {
    /// Upstream that the permit is for.
    pub upstream: Arc<Upstream>,
    kind: PermitKind,
}

impl Upstream {
    /// Returns a permit if fewer than `max` requests are in flight. Low priority may not use the reserve while requests
    /// of higher priority arrive. Waiting requests are not considered. `now_ms` is the uptime in milliseconds.
    pub fn try_acquire(self: &Arc<Upstream>, max: usize, priority: Priority, now_ms: u64) -> Option<Permit> {
        let kind = self.limit.try_acquire(max, priority, now_ms)?;
        Some(Permit {
            upstream: Arc::clone(self),
            kind,
        })
    }
}

impl Permit {
    /// Excludes the permit from the limit. It still counts as load of the upstream.
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
