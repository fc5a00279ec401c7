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
pub enum Trouble {
    /// The client's.
    Content(BodyError),
    /// More content than a controller is given at once.
    TooLarge,
    /// Too many wait for a thread.
    Pool(JobError),
    /// The author's.
    Failed(CallError),
    NoStatus,
    Refused(Refused),
    /// The process of an isolated controller ended in the middle.
    Died,
    /// It does not run, and why.
    Absent(Arc<str>),
    /// It says what cannot be.
    Nonsense,
    /// It cannot be reached; the operator's, or the system's.
    Process(io::Error),
    /// Too many wait for it.
    Full,
}

impl Trouble {
    fn status(&self) -> Status {
        match self {
            Trouble::Content(error) => error.status(),
            Trouble::TooLarge => Status::CONTENT_TOO_LARGE,
            Trouble::Pool(JobError::Rejected | JobError::Stopped) => Status::SERVICE_UNAVAILABLE,
            Trouble::Pool(JobError::Panicked) => Status::INTERNAL_SERVER_ERROR,
            Trouble::Full => Status::SERVICE_UNAVAILABLE,
            Trouble::Died | Trouble::Absent(_) | Trouble::Nonsense | Trouble::Process(_) => Status::BAD_GATEWAY,
            Trouble::Failed(_) | Trouble::NoStatus | Trouble::Refused(_) => Status::INTERNAL_SERVER_ERROR,
        }
    }

    /// The answer, and a line in the log where it is the author's matter.
    pub fn tell(&self, controller: &str) -> Response {
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

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Content(error) => write!(f, "the request did not come whole: {error:?}"),
            Trouble::TooLarge => f.write_str("the request has more content than it takes"),
            Trouble::Pool(error) => error.fmt(f),
            Trouble::Failed(CallError(code)) => write!(f, "it gave {code}"),
            Trouble::NoStatus => f.write_str("it set no status"),
            Trouble::Refused(refused) => write!(f, "what it gave cannot be sent: {refused}"),
            Trouble::Died => f.write_str("its process ended in the middle"),
            Trouble::Absent(why) => write!(f, "its process does not run: {why}"),
            Trouble::Nonsense => f.write_str("what its process says makes no sense"),
            Trouble::Process(error) => write!(f, "its process is not reached: {error}"),
            Trouble::Full => f.write_str("too many requests wait for its process"),
        }
    }
}
