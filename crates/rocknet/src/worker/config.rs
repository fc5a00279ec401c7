//! The configuration of a worker: the snapshot, and values derived from it for the listening address.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::Limits;
use rocknet_io::socket::Address;
use rocknet_io::wheel::Wheel;
use rocknet_proto::limits::Limits as HeadLimits;

use crate::site_table::SiteTable;
use crate::snapshot::{ListenerSites, Snapshot};
use crate::traces::WorkerTracer;

/// The configuration of one worker: the snapshot, and values derived from it for the worker's listening address.
pub struct WorkerConfig {
    /// Configuration of the whole server.
    pub snapshot: Arc<Snapshot>,
    /// Sites of the listening address. Shared with the TLS handshakes of QUIC.
    pub sites: Arc<SiteTable>,
    /// True if connections use TLS.
    pub is_secure: bool,
    /// True if requests pass the preflight checks: HTTPS redirects, misdirected requests and ACME challenges.
    pub needs_preflight: bool,
    pub head_limits: HeadLimits,
    /// True if clients may use HTTP/2 without TLS, with prior knowledge.
    pub h2c: bool,
    /// True if HTTP/1.1 clients may upgrade to HTTP/2 without TLS.
    pub h2c_upgrade: bool,
    pub ticks: Ticks,
    /// Tracer of requests; `None` if their spans are not recorded.
    pub tracer: Option<WorkerTracer>,
}

/// Timeouts in ticks of the timer wheel, most of them from the keys of `[limits]`.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    /// Time to receive a request head, or to complete a TLS handshake.
    pub header: u32,
    /// Rate window of a request body.
    pub body: u32,
    /// Rate window in which the client must take response bytes.
    pub send: u32,
    /// Time that a handler has for a response, or for the next piece of its body.
    pub answer: u32,
    /// Like `answer`, but for a client that has closed its sending side.
    pub half_closed: u32,
    /// Time that an idle connection stays open.
    pub keep_alive: u32,
    /// Maximum age of a connection; 0 without keep-alive.
    pub age: u32,
    /// Time that a client has to close the connection after the last response.
    pub linger: u32,
}

/// Time that a client has to take the last response and close the connection. A client that has not taken all bytes by
/// then must take the rest at the minimum rate.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of a response for a client that has closed its sending side. The client may still read, as `printf … | nc`
/// does, or it may be gone. The server cannot distinguish the two cases before it sends something.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(5);

impl WorkerConfig {
    /// Creates the configuration of a worker. `address`: its configured listening address.
    pub(super) fn new(snapshot: &Arc<Snapshot>, address: &Address, wheel: &Wheel) -> WorkerConfig {
        let limits = &snapshot.config.limits;
        let listener = snapshot.listeners.get(address);
        WorkerConfig {
            tracer: WorkerTracer::new(snapshot.tracer.as_ref()),
            snapshot: Arc::clone(snapshot),
            sites: Arc::new(SiteTable::new(listener)),
            is_secure: listener.is_some_and(|listener| listener.secure),
            needs_preflight: listener.is_some_and(|listener| needs_preflight(snapshot, listener)),
            head_limits: head_limits(limits),
            h2c: snapshot.config.server.h2c || listener.is_some_and(|listener| listener.h2c),
            h2c_upgrade: snapshot.config.server.h2c_upgrade,
            ticks: Ticks {
                header: wheel.ticks(limits.header_timeout),
                body: wheel.ticks(limits.body_idle),
                send: wheel.ticks(limits.send_stall),
                answer: wheel.ticks(limits.answer_timeout),
                half_closed: wheel.ticks(limits.answer_timeout.min(HALF_CLOSED_TIMEOUT)),
                keep_alive: wheel.ticks(limits.keep_alive),
                // Without keep-alive, every connection reaches its maximum age at its first response.
                age: if limits.keep_alive.is_zero() {
                    0
                } else {
                    wheel.ticks(limits.connection_age)
                },
                linger: wheel.ticks(LINGER_TIMEOUT),
            },
        }
    }

    /// Returns the minimum number of request-body bytes that a client must send in each rate window, and the length of
    /// the window in ticks.
    pub fn receive_rate_window(&self) -> (u64, u32) {
        let limits = &self.snapshot.config.limits;
        (bytes_in(limits.body_rate, limits.body_idle), self.ticks.body)
    }

    /// Returns the minimum number of response bytes that a client must receive in each rate window, and the length of
    /// the window in ticks.
    pub fn send_rate_window(&self) -> (u64, u32) {
        let limits = &self.snapshot.config.limits;
        // `body_rate` is the minimum rate of request bodies and of responses.
        (bytes_in(limits.body_rate, limits.send_stall), self.ticks.send)
    }

    /// Returns the site of an authority (`Host` or `:authority`). If no site has this host, returns the catch-all site,
    /// which serves all other names; `None` if there is no such site. `local`: local IP address of the connection, if
    /// sites are selected by it.
    #[inline]
    pub fn site(&self, local: Option<IpAddr>, authority: &[u8]) -> Option<u32> {
        self.sites.site(local, authority)
    }

    /// Returns the default site, for requests that have no host or cannot be parsed: the catch-all site, or the first
    /// site if there is no catch-all site. `local`: see [`WorkerConfig::site`].
    pub fn default_site(&self, local: Option<IpAddr>) -> Option<u32> {
        self.sites.default_site(local)
    }
}

/// Returns true if requests of a listener pass the preflight checks. Under TLS, the requested site must be one that the
/// handshake permits. Without TLS, a site may redirect to HTTPS, and if any site of the server uses TLS, requests for
/// ACME challenges may arrive for its names.
fn needs_preflight(snapshot: &Snapshot, listener: &ListenerSites) -> bool {
    listener.secure || snapshot.sites.iter().any(|site| site.secure.is_some())
}

/// Returns the number of bytes that `rate` bytes per second amount to in `time`, which may be a fraction of a second.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_millis() / 1000).unwrap_or(u64::MAX)
}

/// Returns the limits of request heads.
pub fn head_limits(limits: &Limits) -> HeadLimits {
    HeadLimits {
        head_size: limits.header_size,
        fields: limits.header_fields,
        target_size: limits.target_size,
        ..HeadLimits::default()
    }
}
