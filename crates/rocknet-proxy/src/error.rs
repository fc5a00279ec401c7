//! Why an upstream gave no answer, told to three: the client by a status, the operator by the log, and in `dev` mode by
//! the page.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use rocknet_proto::h1::{EncodeError, Fault};
use rocknet_proto::status::Status;
use tracing::Level;

use crate::tls_error;
use crate::upstream::Upstream;
use rocknet_handler::exchange::BodyError;
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_handler::fixed;
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

#[derive(Debug)]
pub enum ProxyError {
    /// Nobody listens there, or nobody may be asked.
    Connect(io::Error),
    /// Its name leads nowhere.
    Resolve(Arc<str>),
    /// There is a connection, and nobody to be believed, or to believe us, at its other end.
    Handshake(io::Error),
    /// All servers have as many requests as they may have, and too many wait.
    NoCapacity,
    /// Checks in the background found no server well.
    NoHealthyUpstream,
    /// No answer in time.
    Timeout,
    /// A connection that was kept was closed before anything came back. Asked again where that does no harm.
    ReusedConnectionClosed,
    /// The connection broke before the answer was whole.
    ConnectionLost(io::Error),
    /// The connection was closed, and there was no answer.
    NoResponse,
    /// What answers does not keep to HTTP.
    InvalidH1(Fault),
    /// What answers does not keep to HTTP/2.
    InvalidH2(String),
    /// It has taken nothing of the request, and says so.
    Refused,
    /// It has ended the stream of the request, with this code.
    StreamReset(h2::Reason),
    /// The request cannot be said in its version of HTTP.
    Encode(EncodeError),
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

    /// Whether it says something of the server.
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

    /// Nothing of the request was said, so that another server can be asked whatever it is.
    pub fn is_before_request(&self) -> bool {
        matches!(
            self,
            ProxyError::Connect(_) | ProxyError::Resolve(_) | ProxyError::Handshake(_) | ProxyError::Refused
        )
    }

    /// What the operator can do about it; nothing where the client has to.
    fn hint(&self, upstream: &str) -> Option<String> {
        Some(match self {
            ProxyError::Connect(error) if error.kind() == ErrorKind::PermissionDenied => {
                format!("RockNet may not open {upstream}. Give the user that it runs as the right to.")
            }
            ProxyError::Connect(error) if error.kind() == ErrorKind::TimedOut => {
                format!("Nothing answers at {upstream}. Is that the right host, and is there a firewall in between?")
            }
            ProxyError::Connect(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
            ProxyError::Connect(error) if is_resource_shortage(error) => "Raise the limit of open files.".to_owned(),
            ProxyError::Connect(_) => {
                format!("Nothing listens at {upstream}. Start that server, or correct `proxy` in the configuration.")
            }
            ProxyError::Resolve(_) => {
                format!("The name in {upstream} is not known here. Correct `proxy` in the configuration, or the DNS.")
            }
            ProxyError::Handshake(error) => tls_error::hint(error, upstream),
            ProxyError::NoCapacity => {
                "All servers have as many requests as `connections` of their proxy allows. Raise that, add servers, or find out what takes them so long.".to_owned()
            }
            ProxyError::NoHealthyUpstream => "No server passes its checks. See what `path` of `health` answers there.".to_owned(),
            ProxyError::Timeout => format!(
                "{upstream} takes longer than `first_byte` of its proxy allows. Raise that, or see what it waits for."
            ),
            ProxyError::ReusedConnectionClosed | ProxyError::ConnectionLost(_) | ProxyError::NoResponse => {
                format!("{upstream} closed the connection before it had answered. Its own log may tell why.")
            }
            ProxyError::InvalidH1(_) => {
                format!("What {upstream} answers is not HTTP/1.1. Is that the port of a web server, and without TLS?")
            }
            ProxyError::InvalidH2(_) => {
                format!("What {upstream} answers is not HTTP/2. Is that the port of a server that speaks it?")
            }
            ProxyError::Refused => format!("{upstream} takes no requests now. Its own log may tell why."),
            ProxyError::StreamReset(_) => format!("{upstream} gave up on the request. Its own log may tell why."),
            ProxyError::Encode(_) | ProxyError::RequestBody(_) => return None,
        })
    }

    /// The answer, and a line in the log where it is the operator's matter.
    pub fn log_and_respond(&self, upstream: Option<&Upstream>, label: &SiteLabel) -> Response {
        let status = self.status();
        let Some(hint) = self.hint(upstream.map_or("the server", |upstream| &upstream.name)) else {
            return Response::new(status);
        };
        self.log(upstream, label);
        if label.is_dev {
            fixed::error_with_hint(status, Some(&hint))
        } else {
            Response::new(status)
        }
    }

    pub fn log(&self, upstream: Option<&Upstream>, label: &SiteLabel) {
        let cause = Cause {
            level: Level::ERROR,
            what: "no answer from an upstream",
            site: &label.site,
            subject: upstream.map_or("", |upstream| &upstream.name),
        };
        if !cause.may_be_logged() {
            return;
        }
        match upstream {
            Some(upstream) => {
                let help = self.hint(&upstream.name).unwrap_or_default();
                tracing::error!(site = %label.site, upstream = %upstream.name, help, "no answer: {self}");
            }
            None => tracing::error!(site = %label.site, "no answer of any upstream: {self}"),
        }
    }
}

/// What the HTTP/2 library says of a stream or its connection. `may_repeat`: the connection was kept, and may have been
/// closed before it heard of the request.
pub fn from_h2(error: h2::Error, may_repeat: bool) -> ProxyError {
    // What had not been looked at when it said that it goes, never will be (RFC 9113 §6.8, §8.7).
    if error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM)) {
        return match error.reason() {
            Some(h2::Reason::NO_ERROR | h2::Reason::REFUSED_STREAM) => ProxyError::Refused,
            Some(reason) => ProxyError::InvalidH2(format!("it gives up with {reason:?}")),
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

/// How it is told to others who waited for the same.
pub fn io_kind(error: &ProxyError) -> ErrorKind {
    match error {
        ProxyError::Connect(error) | ProxyError::Handshake(error) | ProxyError::ConnectionLost(error) => error.kind(),
        _ => ErrorKind::Other,
    }
}

/// Descriptors, memory or local ports: nothing that the server could help.
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
            ProxyError::Resolve(error) => write!(f, "its name is not known: {error}"),
            ProxyError::Handshake(error) => write!(f, "no handshake: {}", tls_error::reason(error)),
            ProxyError::NoCapacity => f.write_str("all servers are full, and too many requests wait"),
            ProxyError::NoHealthyUpstream => f.write_str("no server is well"),
            ProxyError::Timeout => f.write_str("it did not answer in time"),
            ProxyError::ReusedConnectionClosed => f.write_str("it closed the connection"),
            ProxyError::ConnectionLost(error) => write!(f, "the connection broke: {error}"),
            ProxyError::NoResponse => f.write_str("it closed the connection without an answer"),
            ProxyError::InvalidH1(error) => f.write_str(error.reason()),
            ProxyError::InvalidH2(why) => write!(f, "no HTTP/2: {why}"),
            ProxyError::Refused => f.write_str("it takes no requests"),
            ProxyError::StreamReset(reason) => write!(f, "it ended the request: {}", reason.description()),
            ProxyError::Encode(error) => write!(f, "the request cannot be passed on: {error}"),
            ProxyError::RequestBody(error) => write!(f, "the request did not come whole: {error:?}"),
        }
    }
}
