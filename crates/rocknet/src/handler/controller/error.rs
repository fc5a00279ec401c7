//! What goes wrong between a request and its controller, whose matter that is, and what the client is told.

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

#[derive(Debug)]
pub enum ControllerError {
    /// The client's.
    RequestBody(BodyError),
    /// More content than a controller is given at once.
    TooLarge,
    /// Too many wait for a thread.
    Pool(JobError),
    /// The controller returned an error code.
    Failed(CallError),
    /// The controller set no status.
    NoStatus,
    Refused(Refused),
    /// The process of an isolated controller ended in the middle.
    ProcessExited,
    /// It does not run, and why.
    NotRunning(Arc<str>),
    /// It says what cannot be.
    Protocol,
    /// It cannot be reached; the operator's, or the system's.
    Process(io::Error),
    /// Too many wait for it.
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

    /// The answer, and a line in the log where it is the author's matter.
    pub fn to_response(&self, controller: &str) -> Response {
        let status = self.status();
        let is_ours = matches!(status, Status::INTERNAL_SERVER_ERROR | Status::BAD_GATEWAY);
        let cause = Cause {
            level: Level::ERROR,
            what: "no answer from a controller",
            site: "",
            subject: controller,
        };
        if is_ours && cause.may_be_logged() {
            tracing::error!(%controller, "no answer from a controller: {self}");
        }
        Response::new(status)
    }
}

impl fmt::Display for ControllerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerError::RequestBody(error) => write!(f, "the request did not come whole: {error:?}"),
            ControllerError::TooLarge => f.write_str("the request has more content than it takes"),
            ControllerError::Pool(error) => error.fmt(f),
            ControllerError::Failed(CallError(code)) => write!(f, "it returned error code {code}"),
            ControllerError::NoStatus => f.write_str("it set no status"),
            ControllerError::Refused(refused) => write!(f, "what it gave cannot be sent: {refused}"),
            ControllerError::ProcessExited => f.write_str("its process ended in the middle"),
            ControllerError::NotRunning(why) => write!(f, "its process does not run: {why}"),
            ControllerError::Protocol => f.write_str("what its process says makes no sense"),
            ControllerError::Process(error) => write!(f, "its process is not reached: {error}"),
            ControllerError::Full => f.write_str("too many requests wait for its process"),
        }
    }
}
