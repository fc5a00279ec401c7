//! The reasons why a program gives no response, and what the client and the operator are told.

use rocknet_proto::status::Status;
use tracing::Level;

use crate::gateway::trouble::{Trouble, page};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// A reason why there is no response.
pub enum Failure {
    /// As with any application.
    Trouble(Trouble),
    /// No program is there, or it may not be run.
    Status(Status),
    /// Its name below the root.
    NotExecutable(String),
    Start(std::io::Error),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Failure {
        Failure::Trouble(trouble)
    }
}

impl Failure {
    /// Logs the reason and makes the response.
    pub fn tell(&self, script: Option<&str>, path: &str, label: &SiteLabel) -> Response {
        let script = match self {
            Failure::NotExecutable(name) => name,
            _ => script.unwrap_or_default(),
        };
        let (status, what, cure) = match self {
            Failure::Status(status) => return Response::new(*status),
            Failure::NotExecutable(_) => (
                Status::FORBIDDEN,
                "it is not executable".to_owned(),
                "Make the program executable for the user that RockNet runs as: chmod +x.",
            ),
            Failure::Start(error) => (
                Status::BAD_GATEWAY,
                format!("it cannot be started: {error}"),
                "See that the first line of the program names an interpreter that is there (#!/usr/bin/env python3), and that \
                 RockNet's user may read both.",
            ),
            Failure::Trouble(trouble) => {
                let cure = match trouble {
                    Trouble::Content(_) | Trouble::Request(_) => {
                        trouble.log_of_client(&label.site, script);
                        return Response::new(trouble.status());
                    }
                    Trouble::Full => {
                        "Programs of CGI take too long. Find out which, raise cgi.programs or cgi.queue, or serve the application by \
                         FastCGI."
                    }
                    Trouble::Slow => {
                        "The program takes longer than limits.answer_timeout. Raise that, or see what it waits for."
                    }
                    Trouble::Head(_) | Trouble::HeadTooLong => {
                        "What the program writes has to begin with header fields and an empty line: `Content-Type: text/plain`."
                    }
                    _ => "The program ended without an answer. The error log tells what it said.",
                };
                (trouble.status(), trouble.to_string(), cure)
            }
        };
        let cause = Cause {
            level: Level::ERROR,
            what: "no answer from a program",
            site: &label.site,
            subject: script,
        };
        if cause.may_be_logged() {
            tracing::error!(site = %label.site, script, path, help = cure, "no answer from the program: {what}");
        }
        page(status, cure, label)
    }
}
