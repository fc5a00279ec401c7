//! Errors of an exchange with a back end. The client receives a status. The log shows a hint of the handler, and in
//! `dev` mode the error page shows it too.

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

/// Reason why a back end gave no complete response.
#[derive(Debug)]
pub enum BackendError {
    /// The connection could not be opened.
    Unreachable(io::Error),
    /// Too many requests are in flight or waiting, the backlog of the socket is full, or the application rejected the
    /// request with `FCGI_OVERLOADED`.
    Full,
    /// The response did not begin in time, or the program was killed before its response was complete.
    Timeout,
    /// A reused connection was closed before any byte was received. The request is retried on a new connection.
    StaleConnection,
    /// The response exceeds its maximum length.
    ResponseTooLarge,
    /// The response ended before its `Content-Length`.
    Truncated,
    /// The connection failed before the response was complete.
    ConnectionLost(io::Error),
    /// The script ended, or the application closed the connection, without a response.
    NoResponse,
    /// The peer violates the FastCGI protocol.
    FastCgi(RecordError),
    /// The response head cannot be parsed.
    Head(CgiHeadError),
    /// The response head exceeds its limit.
    HeadTooLong,
    /// The request head is too large for the protocol of the application.
    Request(VariableError),
    /// The request body could not be received or stored.
    RequestBody(BodyError),
}

impl BackendError {
    /// Returns the status of the response to the client.
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

    /// Returns whether the error concerns the request or its body, not the back end. Such an error is logged here at
    /// most at the level `info`; the spool logs why a body could not be stored.
    pub fn is_client_error(&self) -> bool {
        matches!(self, BackendError::Request(_) | BackendError::RequestBody(_))
    }

    /// Returns whether the back end caused the error, so that another back end may succeed.
    pub fn is_backend_error(&self) -> bool {
        let is_resource_shortage = matches!(self, BackendError::Unreachable(error) if is_resource_shortage(error));
        !self.is_client_error() && !is_resource_shortage
    }

    /// Logs a request that is too large for a limit; other errors are not logged. `subject`: the script, or the
    /// protocol of the application.
    pub fn log_client_error(&self, site: &str, subject: &str) {
        let (what, help) = match self {
            BackendError::RequestBody(BodyError::TooLarge) => (
                "413 Content Too Large",
                "raise `body_size` of the site or of [limits] if requests of this size should be accepted",
            ),
            BackendError::Request(_) => (
                "431 Request Header Fields Too Large",
                "the header fields are longer than the protocol of the application allows",
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

    /// Returns whether the back end has not processed the request, so that it may be retried regardless of its method.
    /// The request was not sent, or was rejected with `FCGI_OVERLOADED`.
    pub fn is_before_send(&self) -> bool {
        matches!(self, BackendError::Unreachable(_) | BackendError::Full)
    }
}

/// Returns the error page, with the hint in `dev` mode.
pub fn error_page(status: Status, hint: &str, label: &SiteLabel) -> Response {
    if label.is_dev {
        fixed::error_with_hint(status, Some(hint))
    } else {
        Response::new(status)
    }
}

/// Returns whether the server ran out of descriptors, memory or local ports, for which the back end is not to blame.
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
            BackendError::Full => f.write_str("all its processes are busy and too many requests are waiting"),
            BackendError::ResponseTooLarge => f.write_str("the response exceeds its maximum length"),
            BackendError::Timeout => f.write_str("it did not complete its response in time"),
            BackendError::StaleConnection => f.write_str("it closed the connection"),
            BackendError::ConnectionLost(error) => write!(f, "the connection was lost: {error}"),
            BackendError::NoResponse => f.write_str("it ended without a response"),
            BackendError::Truncated => f.write_str("its response is shorter than its Content-Length"),
            BackendError::FastCgi(fault) => fault.fmt(f),
            BackendError::Head(fault) => fault.fmt(f),
            BackendError::HeadTooLong => f.write_str("its response header is too long"),
            BackendError::Request(error) => error.fmt(f),
            BackendError::RequestBody(BodyError::TooLarge) => f.write_str("the request body exceeds its maximum size"),
            BackendError::RequestBody(error) => write!(f, "the request body could not be received: {error:?}"),
        }
    }
}
