//! Why an upstream gave no answer, told to three: the client by a status, the operator by the log, and in `dev` mode by
//! the page.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use rocknet_proto::h1::{EncodeError, ResponseError};
use rocknet_proto::status::Status;
use tracing::Level;

use crate::mistrust;
use crate::upstream::Upstream;
use rocknet_handler::exchange::BodyError;
use rocknet_handler::fixed;
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

#[derive(Debug)]
pub enum Trouble {
    /// Nobody listens there, or nobody may be asked.
    Unreachable(io::Error),
    /// Its name leads nowhere.
    Unresolved(Arc<str>),
    /// There is a connection, and nobody to be believed, or to believe us, at its other end.
    Handshake(io::Error),
    /// All servers have as many requests as they may have, and too many wait.
    Full,
    /// Checks in the background found no server well.
    Sick,
    /// No answer in time.
    Slow,
    /// A connection that was kept was closed before anything came back. Asked again where that does no harm.
    Unheard,
    /// The connection broke before the answer was whole.
    Broken(io::Error),
    /// The connection was closed, and there was no answer.
    Silent,
    /// What answers does not keep to HTTP.
    Fault(ResponseError),
    /// What answers does not keep to HTTP/2.
    NoHttp2(String),
    /// It has taken nothing of the request, and says so.
    Refused,
    /// It has ended the stream of the request, with this code.
    Reset(h2::Reason),
    /// The request cannot be said in its version of HTTP.
    Request(EncodeError),
    Content(BodyError),
}

impl Trouble {
    fn status(&self) -> Status {
        match self {
            Trouble::Unreachable(error) if error.kind() == ErrorKind::TimedOut => Status::GATEWAY_TIMEOUT,
            Trouble::Unreachable(error) if is_shortage(error) => Status::SERVICE_UNAVAILABLE,
            Trouble::Handshake(error) if error.kind() == ErrorKind::TimedOut => Status::GATEWAY_TIMEOUT,
            Trouble::Unreachable(_) | Trouble::Unresolved(_) | Trouble::Handshake(_) => Status::BAD_GATEWAY,
            Trouble::Unheard | Trouble::Broken(_) | Trouble::Silent | Trouble::Fault(_) => Status::BAD_GATEWAY,
            Trouble::NoHttp2(_) | Trouble::Reset(_) => Status::BAD_GATEWAY,
            Trouble::Full | Trouble::Sick | Trouble::Refused => Status::SERVICE_UNAVAILABLE,
            Trouble::Slow => Status::GATEWAY_TIMEOUT,
            Trouble::Request(_) => Status::BAD_REQUEST,
            Trouble::Content(error) => error.status(),
        }
    }

    /// Whether it says something of the server.
    pub fn is_upstreams(&self) -> bool {
        match self {
            Trouble::Unreachable(error) => !is_shortage(error),
            Trouble::Unresolved(_) | Trouble::Handshake(_) => true,
            Trouble::Slow | Trouble::Broken(_) | Trouble::Silent | Trouble::Fault(_) => true,
            Trouble::NoHttp2(_) | Trouble::Refused | Trouble::Reset(_) => true,
            Trouble::Full | Trouble::Sick | Trouble::Unheard | Trouble::Request(_) | Trouble::Content(_) => false,
        }
    }

    /// Nothing of the request was said, so that another server can be asked whatever it is.
    pub fn is_before_all(&self) -> bool {
        matches!(
            self,
            Trouble::Unreachable(_) | Trouble::Unresolved(_) | Trouble::Handshake(_) | Trouble::Refused
        )
    }

    /// What the operator can do about it; nothing where the client has to.
    fn cure(&self, upstream: &str) -> Option<String> {
        Some(match self {
            Trouble::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied => {
                format!("RockNet may not open {upstream}. Give the user that it runs as the right to.")
            }
            Trouble::Unreachable(error) if error.kind() == ErrorKind::TimedOut => {
                format!("Nothing answers at {upstream}. Is that the right host, and is there a firewall in between?")
            }
            Trouble::Unreachable(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
            Trouble::Unreachable(error) if is_shortage(error) => "Raise the limit of open files.".to_owned(),
            Trouble::Unreachable(_) => {
                format!("Nothing listens at {upstream}. Start that server, or correct `proxy` in the configuration.")
            }
            Trouble::Unresolved(_) => {
                format!("The name in {upstream} is not known here. Correct `proxy` in the configuration, or the DNS.")
            }
            Trouble::Handshake(error) => mistrust::cure(error, upstream),
            Trouble::Full => {
                "All servers have as many requests as `connections` of their proxy allows. Raise that, add servers, or find out what takes them so long.".to_owned()
            }
            Trouble::Sick => "No server passes its checks. See what `path` of `health` answers there.".to_owned(),
            Trouble::Slow => format!(
                "{upstream} takes longer than `first_byte` of its proxy allows. Raise that, or see what it waits for."
            ),
            Trouble::Unheard | Trouble::Broken(_) | Trouble::Silent => {
                format!("{upstream} closed the connection before it had answered. Its own log may tell why.")
            }
            Trouble::Fault(_) => {
                format!("What {upstream} answers is not HTTP/1.1. Is that the port of a web server, and without TLS?")
            }
            Trouble::NoHttp2(_) => {
                format!("What {upstream} answers is not HTTP/2. Is that the port of a server that speaks it?")
            }
            Trouble::Refused => format!("{upstream} takes no requests now. Its own log may tell why."),
            Trouble::Reset(_) => format!("{upstream} gave up on the request. Its own log may tell why."),
            Trouble::Request(_) | Trouble::Content(_) => return None,
        })
    }

    /// The answer, and a line in the log where it is the operator's matter.
    pub fn tell(&self, upstream: Option<&Upstream>, label: &SiteLabel) -> Response {
        let status = self.status();
        let Some(cure) = self.cure(upstream.map_or("the server", |upstream| &upstream.name)) else {
            return Response::new(status);
        };
        self.log(upstream, label);
        if label.is_dev {
            fixed::error_with_hint(status, Some(&cure))
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
                let help = self.cure(&upstream.name).unwrap_or_default();
                tracing::error!(site = %label.site, upstream = %upstream.name, help, "no answer: {self}");
            }
            None => tracing::error!(site = %label.site, "no answer of any upstream: {self}"),
        }
    }
}

/// What the HTTP/2 library says of a stream or its connection. `may_repeat`: the connection was kept, and may have been
/// closed before it heard of the request.
pub fn of_http2(error: h2::Error, may_repeat: bool) -> Trouble {
    // What had not been looked at when it said that it goes, never will be (RFC 9113 §6.8, §8.7).
    if error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM)) {
        return match error.reason() {
            Some(h2::Reason::NO_ERROR | h2::Reason::REFUSED_STREAM) => Trouble::Refused,
            Some(reason) => Trouble::NoHttp2(format!("it gives up with {reason:?}")),
            None => Trouble::Refused,
        };
    }
    match error.reason() {
        Some(reason) if error.is_reset() && error.is_remote() => Trouble::Reset(reason),
        Some(_) => Trouble::NoHttp2(error.to_string()),
        None if may_repeat => Trouble::Unheard,
        None => match error.into_io() {
            Some(error) => Trouble::Broken(error),
            None => Trouble::Silent,
        },
    }
}

/// How it is told to others who waited for the same.
pub fn kind(trouble: &Trouble) -> ErrorKind {
    match trouble {
        Trouble::Unreachable(error) | Trouble::Handshake(error) | Trouble::Broken(error) => error.kind(),
        _ => ErrorKind::Other,
    }
}

/// Descriptors, memory or local ports: nothing that the server could help.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    is_exhausted(error) || matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unreachable(error) if is_exhausted(error) => f.write_str(port_exhaustion::HINT),
            Trouble::Unreachable(error) => write!(f, "cannot connect: {error}"),
            Trouble::Unresolved(error) => write!(f, "its name is not known: {error}"),
            Trouble::Handshake(error) => write!(f, "no handshake: {}", mistrust::reason(error)),
            Trouble::Full => f.write_str("all servers are full, and too many requests wait"),
            Trouble::Sick => f.write_str("no server is well"),
            Trouble::Slow => f.write_str("it did not answer in time"),
            Trouble::Unheard => f.write_str("it closed the connection"),
            Trouble::Broken(error) => write!(f, "the connection broke: {error}"),
            Trouble::Silent => f.write_str("it closed the connection without an answer"),
            Trouble::Fault(fault) => f.write_str(fault.reason()),
            Trouble::NoHttp2(why) => write!(f, "no HTTP/2: {why}"),
            Trouble::Refused => f.write_str("it takes no requests"),
            Trouble::Reset(reason) => write!(f, "it ended the request: {}", reason.description()),
            Trouble::Request(error) => write!(f, "the request cannot be passed on: {error}"),
            Trouble::Content(error) => write!(f, "the request did not come whole: {error:?}"),
        }
    }
}
