//! Counters of one worker.

use std::sync::Arc;

use rocknet_proto::status::Status;

use super::counter::{Counter, CounterMap, Merge};
use super::histogram::Histogram;
use super::route_counters::{RouteCounters, response_class};

/// Counters of one worker. The number of open connections or tunnels is a `…_total` counter minus its `…_closed`
/// counter.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    pub connections_total: Counter,
    pub connections_closed: Counter,
    /// Accepted connections that use QUIC. They are also in `connections_total`.
    pub quic_total: Counter,
    pub quic_closed: Counter,
    /// Connections by the major version of HTTP that they speak. The index 0 stands for HTTP/1.
    pub versions_total: [Counter; 3],
    pub versions_closed: [Counter; 3],
    /// TLS handshakes, including those of QUIC.
    pub handshakes: HandshakeCounters,
    /// Restarts of this worker after a failure.
    pub restarts: Counter,
    pub requests: Counter,
    pub bytes_sent: Counter,
    pub cache_hits: Counter,
    /// Stored responses that were sent from the ready responses of the worker (`ready_responses.rs`).
    pub ready_hits: Counter,
    pub panics: Counter,
    pub tunnels_total: Counter,
    pub tunnels_closed: Counter,
    /// Responses by class: 1xx to 5xx.
    pub responses: [Counter; 5],
    /// Counters of routes, by number.
    pub routes: CounterMap<u32, RouteCounters>,
    /// Times from sending a request to an upstream or application until the head of its response, by address.
    pub upstreams: CounterMap<Arc<str>, Histogram>,
}

/// TLS handshakes by result.
#[derive(Debug, Default)]
pub struct HandshakeCounters {
    pub full: Counter,
    pub resumed: Counter,
    /// Handshakes that did not complete. A connection without a received byte is not a handshake.
    pub failed: Counter,
}

impl HandshakeCounters {
    /// Counts a completed handshake. `is_resumed`: true if the handshake has resumed an earlier session.
    pub fn count(&self, is_resumed: bool) {
        let counter = if is_resumed { &self.resumed } else { &self.full };
        counter.add(1);
    }
}

impl WorkerCounters {
    /// Counts a final response and the request that it belongs to.
    #[inline]
    pub fn count_response(&self, status: Status) {
        self.requests.add(1);
        if let Some(counter) = self.responses.get(response_class(status)) {
            counter.add(1);
        }
    }
}

impl Merge for WorkerCounters {
    fn merge(&self, other: &WorkerCounters) {
        // Destructured, so that the compiler reports a new counter that is missing here.
        let WorkerCounters {
            connections_total,
            connections_closed,
            quic_total,
            quic_closed,
            versions_total,
            versions_closed,
            handshakes: HandshakeCounters { full, resumed, failed },
            restarts,
            requests,
            bytes_sent,
            cache_hits,
            ready_hits,
            panics,
            tunnels_total,
            tunnels_closed,
            responses,
            routes,
            upstreams,
        } = other;
        self.connections_total.merge(connections_total);
        self.connections_closed.merge(connections_closed);
        self.quic_total.merge(quic_total);
        self.quic_closed.merge(quic_closed);
        self.versions_total.merge(versions_total);
        self.versions_closed.merge(versions_closed);
        self.handshakes.full.merge(full);
        self.handshakes.resumed.merge(resumed);
        self.handshakes.failed.merge(failed);
        self.restarts.merge(restarts);
        self.requests.merge(requests);
        self.bytes_sent.merge(bytes_sent);
        self.cache_hits.merge(cache_hits);
        self.ready_hits.merge(ready_hits);
        self.panics.merge(panics);
        self.tunnels_total.merge(tunnels_total);
        self.tunnels_closed.merge(tunnels_closed);
        self.responses.merge(responses);
        self.routes.merge(routes);
        self.upstreams.merge(upstreams);
    }
}
