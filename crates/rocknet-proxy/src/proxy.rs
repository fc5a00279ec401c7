//! Settings of one proxied route and its upstream group: selects the upstream of a request and records the results.

mod selection;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use rocknet_config::model::{self, Balance, Host, RequestBuffering, UpstreamRole};
use rocknet_io::wheel::Wheel;
use rustls_pki_types::ServerName;

use crate::mirror::Mirror;
use crate::response_rewrite::ResponseRewrite;
use crate::rewrite::Rewrite;
use crate::transport::Dialer;
use crate::upstream::Upstream;
use crate::upstream_queue::UpstreamQueue;
use crate::upstreams::Upstreams;
use rocknet_handler::breaker::Rules;

pub use self::selection::Selection;

/// Maximum number of tries for one request: at the selected upstream, and at another one if the request may be retried.
pub(super) const MAX_TRIES: u8 = 2;

/// Maximum number of attempts to send one request to one HTTP/2 upstream. A pooled connection may be closing, and so
/// may the next one.
pub(super) const MAX_H2_ATTEMPTS: u32 = 3;

/// Default maximum number of concurrent requests at one upstream.
///
/// Without a limit, 150 HTTP/2 connections of clients that send 100 requests on each would cause 15,000 connections to
/// the upstream, until no local port is free. Envoy has the same default. nginx and HAProxy have no default limit, but
/// their clients mostly send one request at a time on a connection.
pub(super) const DEFAULT_CONNECTIONS: u32 = 1024;

/// Proxy of one route: its upstream group, with limits, timeouts and rewrite rules.
pub struct Proxy {
    members: Vec<Member>,
    /// Largest weight of the active members.
    max_weight: f64,
    balance: Balance,
    /// Number of selections by round robin or by least load so far, which determines the next candidate.
    next_index: AtomicUsize,
    /// Name of the sticky cookie; `None` without sticky sessions.
    pub(super) sticky: Option<String>,
    pub(super) rewrite: Rewrite,
    pub(super) response_rewrite: ResponseRewrite,
    /// True if the files that responses name in `X-Accel-Redirect` or `X-Sendfile` are sent.
    pub sends_files: bool,
    /// True if error responses of upstreams are replaced by the error pages of the site.
    pub intercepts: bool,
    /// Maximum number of bytes of a response that are received ahead of the client; 0 disables buffering.
    pub(super) response_buffer: usize,
    /// Part of the request body that is received before the request is sent to an upstream.
    pub request_buffering: RequestBuffering,
    pub(super) mirror: Option<Mirror>,
    /// Creates links that replace sockets; `None` if sockets are used.
    pub(super) dialer: Option<Arc<dyn Dialer>>,
    /// Rules by which the breaker takes an upstream out of rotation.
    rules: Rules,
    /// Time in milliseconds during which the weight of a recovered upstream rises; 0 disables this.
    slow_start_ms: u64,
    /// Maximum number of concurrent requests at one upstream.
    max_requests: usize,
    /// True if the configuration sets the limit. Tunnels then count against it.
    counts_tunnels: bool,
    /// Requests that wait for a permit.
    queue: Arc<UpstreamQueue>,
    /// Maximum wait for a permit.
    queue_timeout: Duration,
    /// Timeout of connecting and of the TLS handshake.
    pub(super) connect: Duration,
    /// Timeout from the last sent piece of the request to the response head.
    pub(super) first_byte: Duration,
    /// Timeout between two pieces of a body; also the maximum time for which an idle connection is kept.
    pub(super) idle: Duration,
    /// Write timeout of a tunnel: the maximum time in which the upstream accepts no bytes.
    pub(super) send_stall: Duration,
}

struct Member {
    upstream: Arc<Upstream>,
    weight: f64,
    role: UpstreamRole,
}

impl Proxy {
    /// Prepares the proxy of a configured route. `send_stall` is the write timeout of tunnels.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if the TLS settings cannot be used.
    pub fn new(model: &model::Proxy, upstreams: &Arc<Upstreams>, send_stall: Duration) -> Result<Proxy, String> {
        // All upstreams with TLS have the same version of HTTP, because only the key `http2` of the proxy sets it.
        let mut tls_members = model.to.iter().filter(|to| to.upstream.is_secure);
        let tls = tls_members
            .next()
            .map(|to| upstreams.tls_config(&model.tls, to.upstream.http2));
        let tls = tls.transpose()?;
        let member = |to: &model::WeightedUpstream| {
            let tls = tls.as_ref().filter(|_| to.upstream.is_secure);
            let tls = tls.map(|tls| Ok::<_, String>((Arc::clone(tls), server_name(model, &to.upstream)?)));
            let upstream = upstreams.get(&to.upstream, model.health.as_ref(), model.resolve, tls.transpose()?);
            let weight = f64::from(to.weight);
            Ok::<_, String>(Member {
                upstream,
                weight,
                role: to.role,
            })
        };
        let members = model.to.iter().map(member).collect::<Result<Vec<Member>, _>>()?;
        let max_requests = model.connections.unwrap_or(DEFAULT_CONNECTIONS);
        let is_backup = |member: &Member| member.role == UpstreamRole::Backup;
        // Upstreams that an operator drains are included, because the drain may end before the next reload. The queue
        // ranks them last while they are drained.
        let queued = members.iter().filter(|member| member.role != UpstreamRole::Drain);
        let queued = queued.map(|member| (Arc::clone(&member.upstream), is_backup(member)));
        let queue = upstreams.queue(queued.collect(), max_requests);
        Ok(Proxy {
            max_weight: active_members(&members).map(|member| member.weight).fold(0.0, f64::max),
            members,
            balance: model.balance.clone(),
            next_index: AtomicUsize::new(0),
            sticky: model.sticky.clone(),
            rewrite: Rewrite::new(model),
            response_rewrite: ResponseRewrite::new(model),
            sends_files: model.send_files,
            intercepts: model.intercept,
            response_buffer: model.buffering,
            request_buffering: model.request_buffering,
            mirror: model
                .mirror
                .as_ref()
                .map(|mirror| Mirror::new(mirror, model.resolve, upstreams)),
            dialer: upstreams.dialer(),
            rules: Rules {
                fails: model.fails,
                window_ms: millis(model.fail_time),
            },
            slow_start_ms: millis(model.slow_start),
            max_requests: max_requests as usize,
            counts_tunnels: model.connections.is_some(),
            queue,
            queue_timeout: model.queue,
            connect: model.connect,
            first_byte: model.first_byte,
            idle: model.idle,
            send_stall,
        })
    }

    /// Returns the configured balance.
    pub fn balance(&self) -> &Balance {
        &self.balance
    }

    /// Returns the number of ticks within which the proxy returns a response, its next piece, or an error.
    pub fn response_ticks(&self, wheel: &Wheel) -> u32 {
        // Each try can take the queue timeout, the connect timeout (several times with HTTP/2), and the first-byte
        // timeout.
        let one = self.queue_timeout + self.connect * MAX_H2_ATTEMPTS + self.first_byte;
        // The client's connection waits one tick longer, because otherwise it would respond with 503 before the proxy
        // reports its own error.
        wheel
            .ticks((one * u32::from(MAX_TRIES)).max(self.idle))
            .saturating_add(1)
    }

    /// Returns the number of ticks within which the proxy returns the next piece of a response, or an error.
    pub fn body_ticks(&self, wheel: &Wheel) -> u32 {
        // One tick longer, as for the response.
        wheel.ticks(self.idle).saturating_add(1)
    }

    /// Returns true if there is an upstream other than `tried` that may get new clients.
    pub(super) fn has_others(&self, tried: u32) -> bool {
        non_draining_members(&self.members).any(|member| member.upstream.id != tried)
    }

    /// Records that a response has begun.
    pub(super) fn succeeded(&self, upstream: &Arc<Upstream>, now_ms: u64) {
        upstream.succeeded(now_ms);
    }

    /// Records a failure that is the upstream's fault.
    pub(super) fn failed(&self, upstream: &Upstream, now_ms: u64) {
        upstream.failed(now_ms, self.rules);
    }
}

/// Returns the name for which the certificate of an upstream must be valid.
fn server_name(model: &model::Proxy, upstream: &model::Upstream) -> Result<ServerName<'static>, String> {
    let name = match (&model.tls.server_name, &upstream.host) {
        (Some(name), _) => name.clone(),
        (None, Host::Name(name, _)) => name.clone(),
        (None, Host::Address(ip, _)) => ip.to_string(),
        (None, Host::Unix(_)) => "localhost".to_owned(),
    };
    ServerName::try_from(name.clone()).map_err(|_| {
        format!(
            "\"{name}\" cannot be the name in a certificate; set `server_name` of the proxy to the name in the \
             certificate of the upstream"
        )
    })
}

impl Member {
    /// Returns true if only clients that are bound to the upstream by a cookie use it.
    fn is_draining(&self) -> bool {
        self.role == UpstreamRole::Drain || self.upstream.is_drained()
    }
}

/// Returns the members among which requests are balanced normally.
fn active_members(members: &[Member]) -> impl Iterator<Item = &Member> {
    members.iter().filter(|member| member.role == UpstreamRole::Active)
}

/// Returns the members that may get new clients: active upstreams and backups.
fn non_draining_members(members: &[Member]) -> impl Iterator<Item = &Member> {
    members.iter().filter(|member| !member.is_draining())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
