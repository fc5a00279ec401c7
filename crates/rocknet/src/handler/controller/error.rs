//! Errors of controllers, with their status codes and log lines.

use std::fmt;
use std::io;
use std::sync::Arc;

use rocknet_controller::Refused;
use rocknet_controller::host::CallError;
use rocknet_proto::status::Status;
use tracing::Level;

use crate::blocking::JobError;
use crate::exchange::BodyError;
use crate::log::throttle::Cause;
use crate::response::Response;

/// Error of a request to a controller.
#[derive(Debug)]
pub enum ControllerError {
    /// The request body could not be received: it is incomplete, too large or too slow, or it could not be stored.
    RequestBody(BodyError),
    /// The request body exceeds the limit for controllers that receive it as a whole, or a part of the request exceeds
    /// the maximum frame for isolated controllers.
    TooLarge,
    /// The queue of the pool is full, the pool is stopping, or the call panicked.
    Pool(JobError),
    /// The controller returned an error code.
    Failed(CallError),
    /// The controller set no status.
    NoStatus,
    /// The controller set a value that cannot be sent.
    Refused(Refused),
    /// The process of an isolated controller ended during the call.
    ProcessExited,
    /// The process does not run; the text is the reason.
    NotRunning(Arc<str>),
    /// The process violated the protocol between server and process.
    Protocol,
    /// The process cannot be reached because of a system error.
    Process(io::Error),
    /// Too many requests wait for the process, this request has waited until its deadline, or the control channel of
    /// the process is full.
    Full,
}

impl ControllerError {
    fn status(&self) -> Status {
        match self {
            ControllerError::RequestBody(error) => error.status(),
            ControllerError::TooLarge => Status::CONTENT_TOO_LARGE,
            ControllerError::Pool(JobError::Rejected | JobError::Stopped) => Status::SERVICE_UNAVAILABLE,
            ControllerError::Pool(JobError::Panicked) => Status::INTERNAL_SERVER_ERROR,
            ControllerError::Full => Status::SERVICE_UNAVAILABLE,
            ControllerError::ProcessExited
            | ControllerError::NotRunning(_)
            | ControllerError::Protocol
            | ControllerError::Process(_) => Status::BAD_GATEWAY,
            ControllerError::Failed(_) | ControllerError::NoStatus | ControllerError::Refused(_) => {
                Status::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// Returns the response, and logs errors that the author of the controller or the operator can fix.
    pub fn to_response(&self, controller: &str) -> Response {
        let status = self.status();
        // The log already has the reason why a request body could not be stored.
        let is_body_error = matches!(self, ControllerError::RequestBody(_));
        let is_server_error = matches!(status, Status::INTERNAL_SERVER_ERROR | Status::BAD_GATEWAY) && !is_body_error;
        let cause = Cause {
            level: Level::ERROR,
            what: "a controller failed",
            site: "",
            subject: controller,
        };
        if is_server_error && cause.may_be_logged() {
            tracing::error!(%controller, "a controller failed: {self}");
        }
        Response::new(status)
    }
}

impl fmt::Display for ControllerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerError::RequestBody(error) => write!(f, "the request body was not received: {error:?}"),
            ControllerError::TooLarge => f.write_str("the request is larger than the controller accepts"),
            ControllerError::Pool(error) => error.fmt(f),
            ControllerError::Failed(CallError(code)) => write!(f, "it returned error code {code}"),
            ControllerError::NoStatus => f.write_str("it set no status"),
            ControllerError::Refused(refused) => write!(f, "its response cannot be sent: {refused}"),
            ControllerError::ProcessExited => f.write_str("its process ended during the call"),
            ControllerError::NotRunning(why) => write!(f, "its process does not run: {why}"),
            ControllerError::Protocol => f.write_str("its process sent an invalid message"),
            ControllerError::Process(error) => write!(f, "its process cannot be reached: {error}"),
            ControllerError::Full => f.write_str("too many requests wait for its process"),
        }
    }
}
