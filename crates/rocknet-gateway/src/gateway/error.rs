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
pub enum BackendError {
    /// Nobody listens there, or nobody may be asked.
    Unreachable(io::Error),
    /// Too many requests are there already.
    Full,
    /// No answer in time.
    Timeout,
    /// A connection that was kept was closed before anything came back. Tried again elsewhere.
    StaleConnection,
    /// More than any answer may have.
    ResponseTooLarge,
    /// It ended before all was there that its length had told.
    Truncated,
    /// The connection broke before the answer had begun.
    ConnectionLost(io::Error),
    /// The script ended, or its process did, and there was no answer.
    NoResponse,
    /// What answers does not keep to FastCGI.
    FastCgi(RecordError),
    Head(CgiHeadError),
    /// More fields than anybody takes.
    HeadTooLong,
    /// The request is too large to be told to an application.
    Request(VariableError),
    RequestBody(BodyError),
}

impl BackendError {
    pub fn status(&self) -> Status {
        match self {
            BackendError::Unreachable(error) if error.kind() == ErrorKind::TimedOut => Status::GATEWAY_TIMEOUT,
            BackendError::Unreachable(error) if is_resource_shortage(error) => Status::SERVICE_UNAVAILABLE,
            BackendError::Unreachable(_)
            | BackendError::StaleConnection
            | BackendError::ConnectionLost(_)
            | BackendError::NoResponse
            | BackendError::Truncated => Status::BAD_GATEWAY,
            BackendError::FastCgi(_)
            | BackendError::Head(_)
            | BackendError::HeadTooLong
            | BackendError::ResponseTooLarge => Status::BAD_GATEWAY,
            BackendError::Full => Status::SERVICE_UNAVAILABLE,
            BackendError::Timeout => Status::GATEWAY_TIMEOUT,
            BackendError::Request(_) => Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
            BackendError::RequestBody(error) => error.status(),
        }
    }

    /// Whether it is the client's matter, so that nobody else has to be told.
    pub fn is_client_error(&self) -> bool {
        matches!(self, BackendError::Request(_) | BackendError::RequestBody(_))
    }

    /// Whether it speaks against the application, and another one may do better.
    pub fn is_backend_error(&self) -> bool {
        let is_resource_shortage = matches!(self, BackendError::Unreachable(error) if is_resource_shortage(error));
        !self.is_client_error() && !is_resource_shortage
    }

    /// Logs why a request was not passed on, where that is the client's matter. `subject`: the script or the kind of
    /// application.
    pub fn log_client_error(&self, site: &str, subject: &str) {
        let (what, help) = match self {
            BackendError::RequestBody(BodyError::TooLarge) => (
                "413 Content Too Large",
                "raise `body_size` of the site or of [limits], if such requests are wanted",
            ),
            BackendError::Request(_) => (
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
    pub fn is_before_send(&self) -> bool {
        matches!(self, BackendError::Unreachable(_) | BackendError::Full)
    }
}

/// The error itself, with what helps where its reader may be told.
pub fn error_page(status: Status, hint: &str, label: &SiteLabel) -> Response {
    if label.is_dev {
        fixed::error_with_hint(status, Some(hint))
    } else {
        Response::new(status)
    }
}

/// Descriptors, memory or local ports: nothing that the application could help.
pub fn is_resource_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    is_exhausted(error) || matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS))
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackendError::Unreachable(error) if is_exhausted(error) => f.write_str(port_exhaustion::HINT),
            BackendError::Unreachable(error) => write!(f, "cannot connect: {error}"),
            BackendError::Full => f.write_str("all its processes are busy, and too many requests wait"),
            BackendError::ResponseTooLarge => f.write_str("it answered with more than any answer may have"),
            BackendError::Timeout => f.write_str("it did not answer in time"),
            BackendError::StaleConnection => f.write_str("it closed the connection"),
            BackendError::ConnectionLost(error) => write!(f, "the connection broke: {error}"),
            BackendError::NoResponse => f.write_str("it ended without an answer"),
            BackendError::Truncated => f.write_str("its answer is shorter than it told"),
            BackendError::FastCgi(fault) => fault.fmt(f),
            BackendError::Head(fault) => fault.fmt(f),
            BackendError::HeadTooLong => f.write_str("its header fields are too long"),
            BackendError::Request(error) => error.fmt(f),
            BackendError::RequestBody(error) => write!(f, "the request did not come whole: {error:?}"),
        }
    }
}
