//! State and counters of the response cache.

use rocknet_cache::Responses;
use rocknet_cache::counters::Counted;
use rocknet_control::status::{ResponseCache, ResponseCacheDisk};

use crate::metrics::Metrics;

/// Returns the state of the response cache. `metrics`: counters of the workers that use it.
pub fn response_cache(responses: &Responses, metrics: &Metrics) -> ResponseCache {
    let (addresses, bytes) = responses.usage();
    let disk = responses.disk().map(|disk| disk.usage());
    let sum = |outcome| responses.counters.sum(outcome);
    let cache = ResponseCache {
        addresses: addresses as u64,
        bytes,
        disk: disk.map(|disk| ResponseCacheDisk {
            responses: disk.objects,
            bytes: disk.size,
            hits: disk.hits,
        }),
        // Read before `hits`, which includes them, because the workers count further hits meanwhile.
        ready_hits: metrics.sum(|worker| worker.ready_hits.get()),
        hits: sum(Counted::Hit),
        stale: sum(Counted::Stale),
        collapsed: sum(Counted::Collapsed),
        misses: sum(Counted::Miss),
        bypassed: sum(Counted::Bypass),
        hit_ratio: None,
    };
    cache.with_hit_ratio()
}
