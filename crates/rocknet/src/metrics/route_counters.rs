//! Counters of the requests to one route.

use rocknet_proto::status::Status;

use super::counter::{Counter, Merge};
use super::histogram::Histogram;

/// Counters of the requests to one route.
#[derive(Debug, Default)]
pub struct RouteCounters {
    /// Responses by the class of their final status. 1xx counts upgrades (101).
    pub responses: [Counter; 5],
    /// Bytes of response bodies and tunnels that were sent.
    pub sent_bytes: Counter,
    /// Bytes of request bodies that were received.
    pub received_bytes: Counter,
    /// Durations of exchanges, as in [`CountedResponse::duration_us`]. Tunnels are not included.
    pub durations: Histogram,
}

impl Merge for RouteCounters {
    fn merge(&self, other: &RouteCounters) {
        let RouteCounters {
            responses,
            sent_bytes,
            received_bytes,
            durations,
        } = other;
        self.responses.merge(responses);
        self.sent_bytes.merge(sent_bytes);
        self.received_bytes.merge(received_bytes);
        self.durations.merge(durations);
    }
}

/// A response with its request, to be counted.
#[derive(Debug, Clone, Copy)]
pub struct CountedResponse {
    /// Final status.
    pub status: Status,
    /// Bytes of the response body or tunnel.
    pub sent_bytes: u64,
    /// Bytes of the request body.
    pub received_bytes: u64,
    /// Time from the parsed request head until the response was passed to the connection as a whole, in microseconds;
    /// `None` for a tunnel.
    pub duration_us: Option<u64>,
}

impl RouteCounters {
    /// Counts a response.
    #[inline]
    pub fn count(&self, response: CountedResponse) {
        if let Some(counter) = self.responses.get(response_class(response.status)) {
            counter.add(1);
        }
        self.sent_bytes.add(response.sent_bytes);
        self.received_bytes.add(response.received_bytes);
        if let Some(duration_us) = response.duration_us {
            self.durations.add(duration_us);
        }
    }
}

/// Returns the index of the class of a status: 0 for 1xx, 4 for 5xx.
#[inline]
pub fn response_class(status: Status) -> usize {
    (status.code() / 100).wrapping_sub(1) as usize
}
