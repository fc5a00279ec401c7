//! Why an application gave no answer: the client is told by a status, the operator by the log, and in `dev` mode by the page,
//! in the words of the handler that asked.

use std::fmt;
use std::io::{self, ErrorKind};

use rocknet_proto::cgi::{CgiHeadError, VariableError};
use rocknet_proto::fastcgi::RecordError;
use rocknet_proto::status::Status;
use tracing::Level;

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
    /// Too many requests are there already.
    Full,
    /// No answer in time.
    Slow,
    /// A connection that was kept was closed before anything came back. Tried again elsewhere.
    Unheard,
    /// More than any answer may have.
    TooMuch,
    /// It ended before all was there that its length had told.
    Cut,
    /// The connection broke before the answer had begun.
    Broken(io::Error),
    /// The script ended, or its process did, and there was no answer.
    Silent,
    /// What answers does not keep to FastCGI.
    Records(RecordError),
    Head(CgiHeadError),
    /// More fields than anybody takes.
    HeadTooLong,
    /// The request is too large to be told to an application.
    Request(VariableError),
    Content(BodyError),
}

impl Trouble {
    pub fn status(&self) -> Status {
        match self {
            Trouble::Unreachable(error) if error.kind() == ErrorKind::TimedOut => Status::GATEWAY_TIMEOUT,
            Trouble::Unreachable(error) if is_shortage(error) => Status::SERVICE_UNAVAILABLE,
            Trouble::Unreachable(_) | Trouble::Unheard | Trouble::Broken(_) | Trouble::Silent | Trouble::Cut => {
                Status::BAD_GATEWAY
            }
            Trouble::Records(_) | Trouble::Head(_) | Trouble::HeadTooLong | Trouble::TooMuch => Status::BAD_GATEWAY,
            Trouble::Full => Status::SERVICE_UNAVAILABLE,
            Trouble::Slow => Status::GATEWAY_TIMEOUT,
            Trouble::Request(_) => Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Trouble::Content(error) => error.status(),
        }
    }

    /// Whether it is the client's matter, so that nobody else has to be told.
    pub fn is_clients(&self) -> bool {
        matches!(self, Trouble::Request(_) | Trouble::Content(_))
    }

    /// Whether it speaks against the application, and another one may do better.
    pub fn is_applications(&self) -> bool {
        let is_shortage = matches!(self, Trouble::Unreachable(error) if is_shortage(error));
        !self.is_clients() && !is_shortage
    }

    /// Logs why a request was not passed on, where that is the client's matter. `subject`: the script or the kind of
    /// application.
    pub fn log_of_client(&self, site: &str, subject: &str) {
        let (what, help) = match self {
            Trouble::Content(BodyError::TooLarge) => (
                "413 Content Too Large",
                "raise `body_size` of the site or of [limits], if such requests are wanted",
            ),
            Trouble::Request(_) => (
                "431 Request Header Fields Too Large",
                "the fields are longer than the protocol of the application allows",
            ),
            _ => return,
        };
        let cause = Cause {
            level: Level::INFO,
            what,
            site,
            subject,
        };
        if cause.may_be_logged() {
            tracing::info!(site, of = subject, help, "{what}: {self}");
        }
    }

    /// Nothing of the request was told to anybody.
    pub fn is_before_all(&self) -> bool {
        matches!(self, Trouble::Unreachable(_) | Trouble::Full)
    }
}

/// The error itself, with what helps where its reader may be told.
pub fn page(status: Status, cure: &str, label: &SiteLabel) -> Response {
    if label.is_dev {
        fixed::error_with_hint(status, Some(cure))
    } else {
        Response::new(status)
    }
}

/// Descriptors, memory or local ports: nothing that the application could help.
pub fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    is_exhausted(error) || matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unreachable(error) if is_exhausted(error) => f.write_str(port_exhaustion::HINT),
            Trouble::Unreachable(error) => write!(f, "cannot connect: {error}"),
            Trouble::Full => f.write_str("all its processes are busy, and too many requests wait"),
            Trouble::TooMuch => f.write_str("it answered with more than any answer may have"),
            Trouble::Slow => f.write_str("it did not answer in time"),
            Trouble::Unheard => f.write_str("it closed the connection"),
            Trouble::Broken(error) => write!(f, "the connection broke: {error}"),
            Trouble::Silent => f.write_str("it ended without an answer"),
            Trouble::Cut => f.write_str("its answer is shorter than it told"),
            Trouble::Records(fault) => fault.fmt(f),
            Trouble::Head(fault) => fault.fmt(f),
            Trouble::HeadTooLong => f.write_str("its header fields are too long"),
            Trouble::Request(error) => error.fmt(f),
            Trouble::Content(error) => write!(f, "the request did not come whole: {error:?}"),
        }
    }
}
