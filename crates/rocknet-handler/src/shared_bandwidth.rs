//! Traits for a bandwidth that several responses share. The server implements them for the filter that limits the
//! bandwidth of responses (bandwidth.rs).

use rocknet_config::template::Values;

use crate::client::Client;

/// Bandwidth that several responses share, such as those to one client.
pub trait SharedBandwidth: Send + Sync {
    /// Adds a response; `None` if it is exempt. `values`: those of the request. `now_ns`: uptime in nanoseconds.
    fn join(&self, client: Client, values: &dyn Values, now_ns: u64) -> Option<Box<dyn BandwidthPart>>;
}

/// Part of a response in a shared bandwidth. The response leaves when the value is dropped.
pub trait BandwidthPart {
    /// Takes at most `max` bytes, which may then be sent. Returns 0 if the response has to wait. `interval_ns`: time
    /// between two attempts.
    fn take(&mut self, max: u64, interval_ns: u64, now_ns: u64) -> u64;

    /// Returns bytes that were taken and not sent.
    fn give_back(&mut self, bytes: u64);
}
