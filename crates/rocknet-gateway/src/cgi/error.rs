//! Errors of CGI requests, with the response for the client and the hint for the operator.

use rocknet_proto::status::Status;
use tracing::Level;

use crate::gateway::error::{BackendError, error_page};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// Reason why a request has no response from a program.
pub enum CgiError {
    /// The exchange with the program failed, as it can with any back end.
    Backend(BackendError),
    /// The path leads to no program, or the server cannot run it now. Contains the status of the response.
    Status(Status),
    /// The file is not executable. Contains its path below the root.
    NotExecutable(String),
    /// The program cannot be started.
    Start(std::io::Error),
}

impl From<BackendError> for CgiError {
    fn from(error: BackendError) -> CgiError {
        CgiError::Backend(error)
    }
}

impl CgiError {
    /// Returns the response. Logs the error at a limited rate, except a [`CgiError::Status`]. An error that the request
    /// itself caused is logged only if the request exceeds a limit. `script`: path of the program below the root, if it
    /// was found; `path`: path of the request.
    pub fn response(&self, script: Option<&str>, path: &str, label: &SiteLabel) -> Response {
        let script = match self {
            CgiError::NotExecutable(name) => name,
            _ => script.unwrap_or_default(),
        };
        let (status, what, hint) = match self {
            CgiError::Status(status) => return Response::new(*status),
            CgiError::NotExecutable(_) => (
                Status::FORBIDDEN,
                "it is not executable".to_owned(),
                "Make the program executable for the user that it runs as: chmod +x.",
            ),
            CgiError::Start(error) => (
                Status::BAD_GATEWAY,
                format!("it cannot be started: {error}"),
                "Check that the first line of the program names an installed interpreter (#!/usr/bin/env python3), and \
                 that the user of the program may read both.",
            ),
            CgiError::Backend(error) => {
                let hint = match error {
                    BackendError::RequestBody(_) | BackendError::Request(_) => {
                        error.log_client_error(&label.site, script);
                        return Response::new(error.status());
                    }
                    BackendError::Full => {
                        "CGI programs take too long. Find the slow ones, raise cgi.programs or cgi.queue, or serve the \
                         application over FastCGI."
                    }
                    BackendError::Timeout => {
                        "The program takes longer than limits.answer_timeout or cgi.time. Raise the limit, or find out \
                         what the program waits for."
                    }
                    BackendError::Head(_) | BackendError::HeadTooLong => {
                        "The output of the program must begin with header fields and an empty line: `Content-Type: \
                         text/plain`."
                    }
                    BackendError::ResponseTooLarge => "The response is larger than cgi.output. Raise that limit.",
                    _ => "The program ended without a complete response. See its messages in the error log.",
                };
                (error.status(), error.to_string(), hint)
            }
        };
        let cause = Cause {
            level: Level::ERROR,
            what: "no response from a program",
            site: &label.site,
            subject: script,
        };
        if cause.may_be_logged() {
            tracing::error!(site = %label.site, script, path, help = hint, "no response from the program: {what}");
        }
        error_page(status, hint, label)
    }
}
