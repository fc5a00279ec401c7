//! Errors of the proxy, each with its status for the client, its log message, and a hint. The hint is shown in the log
//! and on the error page of `dev` mode.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use rocknet_proto::h1::{EncodeError, ResponseError};
use rocknet_proto::status::Status;
use tracing::Level;

use crate::tls_error;
use crate::upstream::Upstream;
use rocknet_handler::exchange::BodyError;
use rocknet_handler::fixed;
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// Reason why a request got no complete response from an upstream.
#[derive(Debug)]
pub enum ProxyError {
    /// The connection could not be opened.
    Connect(io::Error),
    /// The host name could not be resolved.
    Resolve(Arc<str>),
    /// The TLS handshake failed: one side rejected the other, the connection ended, or the handshake timed out.
    Handshake(io::Error),
    /// All upstreams are at their limit, and the queue was full or the wait in it timed out. Alternatively, the worker
    /// has no free stream on its HTTP/2 connections to the upstream, and may open no more connections.
    NoCapacity,
    /// Each upstream fails its health checks or is drained.
    NoHealthyUpstream,
    /// The response, or its next piece, did not arrive in time.
    Timeout,
    /// A reused connection was closed before any response arrived. An idempotent request is sent again.
    ReusedConnectionClosed,
    /// The connection failed before the response was complete.
    ConnectionLost(io::Error),
    /// The upstream closed the connection without a response.
    NoResponse,
    /// The response violates HTTP/1.1.
    InvalidH1(ResponseError),
    /// The response violates HTTP/2.
    InvalidH2(String),
    /// The upstream reports that it has not processed the request (RFC 9113 §8.7), or its connection ended before the
    /// request was sent.
    Refused,
    /// The upstream reset the stream of the request with this code.
    StreamReset(h2::Reason),
    /// The request cannot be encoded in the upstream's version of HTTP.
    Encode(EncodeError),
    /// The request body did not arrive completely from the client, or could not be stored.
    RequestBody(BodyError),
}

impl ProxyError {
    fn status(&self) -> Status {
        match self {
            ProxyError::Connect(error) if error.kind() == ErrorKind::TimedOut => Status::GATEWAY_TIMEOUT,
            ProxyError::Connect(error) if is_resource_shortage(error) => Status::SERVICE_UNAVAILABLE,
            ProxyError::Handshake(error) if error.kind() == ErrorKind::TimedOut => Status::GATEWAY_TIMEOUT,
            ProxyError::Connect(_) | ProxyError::Resolve(_) | ProxyError::Handshake(_) => Status::BAD_GATEWAY,
            ProxyError::ReusedConnectionClosed
            | ProxyError::ConnectionLost(_)
            | ProxyError::NoResponse
            | ProxyError::InvalidH1(_) => Status::BAD_GATEWAY,
            ProxyError::InvalidH2(_) | ProxyError::StreamReset(_) => Status::BAD_GATEWAY,
            ProxyError::NoCapacity | ProxyError::NoHealthyUpstream | ProxyError::Refused => Status::SERVICE_UNAVAILABLE,
            ProxyError::Timeout => Status::GATEWAY_TIMEOUT,
            ProxyError::Encode(_) => Status::BAD_REQUEST,
            ProxyError::RequestBody(error) => error.status(),
        }
    }

    /// Returns true if the error is the upstream's fault, so that its breaker counts it.
    pub fn counts_against_upstream(&self) -> bool {
        match self {
            ProxyError::Connect(error) => !is_resource_shortage(error),
            ProxyError::Resolve(_) | ProxyError::Handshake(_) => true,
            ProxyError::Timeout | ProxyError::ConnectionLost(_) | ProxyError::NoResponse | ProxyError::InvalidH1(_) => {
                true
            }
            ProxyError::InvalidH2(_) | ProxyError::Refused | ProxyError::StreamReset(_) => true,
            ProxyError::NoCapacity
            | ProxyError::NoHealthyUpstream
            | ProxyError::ReusedConnectionClosed
            | ProxyError::Encode(_)
            | ProxyError::RequestBody(_) => false,
        }
    }

    /// Returns true if the upstream has not processed the request, so that it may be retried regardless of its method.
    pub fn is_unprocessed(&self) -> bool {
        matches!(
            self,
            ProxyError::Connect(_) | ProxyError::Resolve(_) | ProxyError::Handshake(_) | ProxyError::Refused
        )
    }

    /// Returns advice for the operator, or `None` if the error concerns the request or its body.
    fn hint(&self, upstream: &str) -> Option<String> {
        Some(match self {
            ProxyError::Connect(error) if error.kind() == ErrorKind::PermissionDenied => {
                format!("RockNet has no permission to open {upstream}. Grant it to the user that RockNet runs as.")
            }
            ProxyError::Connect(error) if error.kind() == ErrorKind::TimedOut => {
                format!("{upstream} does not respond. Check the address, and the firewalls in between.")
            }
            ProxyError::Connect(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
            ProxyError::Connect(error) if is_resource_shortage(error) => {
                "This machine has no file descriptor or memory for the connection. Raise the limit of open files, or \
                 find out what uses the memory."
                    .to_owned()
            }
            ProxyError::Connect(_) => {
                format!("{upstream} cannot be reached. Start that server, or correct `proxy` in the configuration.")
            }
            ProxyError::Resolve(_) => {
                format!("The name in {upstream} cannot be resolved. Correct `proxy` in the configuration, or the DNS.")
            }
            ProxyError::Handshake(error) => tls_error::hint(error, upstream),
            ProxyError::NoCapacity => {
                "All upstreams have as many requests as `connections` of the proxy or their HTTP/2 connections permit. \
                 Raise `connections`, add upstreams, or find out why they are slow."
                    .to_owned()
            }
            ProxyError::NoHealthyUpstream => {
                "Each upstream fails its health checks or is drained. Request `path` of `health` from an upstream by \
                 hand, and compare the status. `rocknet upstreams` lists the drained ones."
                    .to_owned()
            }
            ProxyError::Timeout => format!(
                "{upstream} did not begin its response within `first_byte` of the proxy, or paused in the response for \
                 longer than `idle`. Raise that timeout, or find out what the upstream waits for."
            ),
            ProxyError::ReusedConnectionClosed | ProxyError::ConnectionLost(_) | ProxyError::NoResponse => format!(
                "{upstream} closed the connection before its response was complete. See the log of the upstream."
            ),
            ProxyError::InvalidH1(_) => format!(
                "{upstream} does not respond in HTTP/1.1. Check that an HTTP server without TLS listens on this port."
            ),
            ProxyError::InvalidH2(_) => format!(
                "{upstream} does not respond in HTTP/2. Check that a server that speaks HTTP/2 listens on this port."
            ),
            ProxyError::Refused => format!("{upstream} accepts no requests at present. See the log of the upstream."),
            ProxyError::StreamReset(_) => format!("{upstream} cancelled the request. See the log of the upstream."),
            ProxyError::Encode(_) | ProxyError::RequestBody(_) => return None,
        })
    }

    /// Returns the error response, and logs the error unless it concerns the request or its body.
    pub fn log_and_respond(&self, upstream: Option<&Upstream>, label: &SiteLabel) -> Response {
        let status = self.status();
        let Some(hint) = self.hint(upstream.map_or("the upstream", |upstream| &upstream.name)) else {
            return Response::new(status);
        };
        self.log(upstream, label);
        if label.is_dev {
            fixed::error_with_hint(status, Some(&hint))
        } else {
            Response::new(status)
        }
    }

    /// Logs the error, at most once a second for each site and upstream.
    pub fn log(&self, upstream: Option<&Upstream>, label: &SiteLabel) {
        let cause = Cause {
            level: Level::ERROR,
            what: "no response from an upstream",
            site: &label.site,
            subject: upstream.map_or("", |upstream| &upstream.name),
        };
        if !cause.may_be_logged() {
            return;
        }
        match upstream {
            Some(upstream) => {
                let help = self.hint(&upstream.name).unwrap_or_default();
                tracing::error!(site = %label.site, upstream = %upstream.name, help, "no response: {self}");
            }
            None => tracing::error!(site = %label.site, "no response from any upstream: {self}"),
        }
    }
}

/// Converts an error of the HTTP/2 library. `may_repeat`: true if the connection was reused, so that the upstream may
/// have closed it before it received the request.
pub fn from_h2(error: h2::Error, may_repeat: bool) -> ProxyError {
    // A request was not processed if GOAWAY excludes its stream or REFUSED_STREAM resets it (RFC 9113 §6.8, §8.7).
    if error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM)) {
        return match error.reason() {
            Some(h2::Reason::NO_ERROR | h2::Reason::REFUSED_STREAM) => ProxyError::Refused,
            // GOAWAY with any other code also ends streams that it does not exclude, so the request may have been
            // processed.
            Some(reason) => ProxyError::InvalidH2(format!("the connection was ended with {reason:?}")),
            None => ProxyError::Refused,
        };
    }
    match error.reason() {
        Some(reason) if error.is_reset() && error.is_remote() => ProxyError::StreamReset(reason),
        Some(_) => ProxyError::InvalidH2(error.to_string()),
        None if may_repeat => ProxyError::ReusedConnectionClosed,
        None => match error.into_io() {
            Some(error) => ProxyError::ConnectionLost(error),
            None => ProxyError::NoResponse,
        },
    }
}

/// Returns the kind of the I/O error with which the other requests that waited for the same connection fail.
pub fn io_kind(error: &ProxyError) -> ErrorKind {
    match error {
        ProxyError::Connect(error) | ProxyError::Handshake(error) | ProxyError::ConnectionLost(error) => error.kind(),
        _ => ErrorKind::Other,
    }
}

/// Returns true if this machine ran out of descriptors, memory or local ports. The upstream is not to blame for this.
fn is_resource_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    is_exhausted(error) || matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS))
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyError::Connect(error) if is_exhausted(error) => f.write_str(port_exhaustion::HINT),
            ProxyError::Connect(error) => write!(f, "cannot connect: {error}"),
            ProxyError::Resolve(error) => write!(f, "cannot resolve the name: {error}"),
            ProxyError::Handshake(error) => write!(f, "the TLS handshake failed: {}", tls_error::reason(error)),
            ProxyError::NoCapacity => f.write_str("all upstreams are at their limit of requests"),
            ProxyError::NoHealthyUpstream => f.write_str("each upstream fails its health checks or is drained"),
            ProxyError::Timeout => f.write_str("the upstream did not respond in time"),
            ProxyError::ReusedConnectionClosed => f.write_str("the upstream closed a reused connection"),
            ProxyError::ConnectionLost(error) => write!(f, "the connection failed: {error}"),
            ProxyError::NoResponse => f.write_str("the upstream closed the connection without a response"),
            ProxyError::InvalidH1(error) => f.write_str(error.reason()),
            ProxyError::InvalidH2(why) => write!(f, "invalid HTTP/2: {why}"),
            ProxyError::Refused => f.write_str("the upstream refused the request"),
            ProxyError::StreamReset(reason) => write!(f, "the upstream reset the stream: {}", reason.description()),
            ProxyError::Encode(error) => write!(f, "the request cannot be encoded for the upstream: {error}"),
            ProxyError::RequestBody(error) => write!(f, "the request body was not received: {error:?}"),
        }
    }
}
