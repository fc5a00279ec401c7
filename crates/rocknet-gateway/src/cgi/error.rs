//! The reasons why a program gives no response, and what the client and the operator are told.

use rocknet_proto::status::Status;
use tracing::Level;

use crate::gateway::error::{BackendError, error_page};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// A reason why there is no response.
pub enum CgiError {
    /// As with any application.
    Backend(BackendError),
    /// No program is there, or it may not be run.
    Status(Status),
    /// Its name below the root.
    NotExecutable(String),
    Start(std::io::Error),
}

impl From<BackendError> for CgiError {
    fn from(error: BackendError) -> CgiError {
        CgiError::Backend(error)
    }
}

impl CgiError {
    /// Logs the reason and makes the response.
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
                "Make the program executable for the user that RockNet runs as: chmod +x.",
            ),
            CgiError::Start(error) => (
                Status::BAD_GATEWAY,
                format!("it cannot be started: {error}"),
                "See that the first line of the program names an interpreter that is there (#!/usr/bin/env python3), and that \
                 RockNet's user may read both.",
            ),
            CgiError::Backend(error) => {
                let hint = match error {
                    BackendError::RequestBody(_) | BackendError::Request(_) => {
                        error.log_client_error(&label.site, script);
                        return Response::new(error.status());
                    }
                    BackendError::Full => {
                        "Programs of CGI take too long. Find out which, raise cgi.programs or cgi.queue, or serve the application by \
                         FastCGI."
                    }
                    BackendError::Timeout => {
                        "The program takes longer than limits.answer_timeout. Raise that, or see what it waits for."
                    }
                    BackendError::Head(_) | BackendError::HeadTooLong => {
                        "What the program writes has to begin with header fields and an empty line: `Content-Type: text/plain`."
                    }
                    _ => "The program ended without an answer. The error log tells what it said.",
                };
                (error.status(), error.to_string(), hint)
            }
        };
        let cause = Cause {
            level: Level::ERROR,
            what: "no answer from a program",
            site: &label.site,
            subject: script,
        };
        if cause.may_be_logged() {
            tracing::error!(site = %label.site, script, path, help = hint, "no answer from the program: {what}");
        }
        error_page(status, hint, label)
    }
}
