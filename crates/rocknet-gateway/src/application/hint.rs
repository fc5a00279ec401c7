//! What the operator can do where an application gave no answer: told by the log, and in `dev` mode by the page.

use std::io::ErrorKind;

use rocknet_config::model::Protocol;
use tracing::Level;

use super::group::ApplicationGroup;
use crate::gateway::backend::BackendAddress;
use crate::gateway::error::{BackendError, error_page, is_resource_shortage};
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// The answer, and a line in the log where it is the operator's matter. `last_tried`: who was asked last.
pub fn error_response(
    error: &BackendError,
    application: &ApplicationGroup,
    last_tried: Option<usize>,
    label: &SiteLabel,
) -> Response {
    let status = error.status();
    if error.is_client_error() {
        error.log_client_error(&label.site, application.protocol.key());
    }
    if let BackendError::Request(_) = error {
        return error_page(status, fields_too_long(application.protocol), label);
    }
    let Some(number) = last_tried.filter(|_| !error.is_client_error()) else {
        return Response::new(status);
    };
    log(error, application, number, &label.site);
    let hint = hint(error, application.protocol, application.member(number).address());
    error_page(status, &hint, label)
}

/// A line in the log, once in a while.
pub fn log(error: &BackendError, application: &ApplicationGroup, number: usize, site: &str) {
    let member = application.member(number);
    let cause = Cause {
        level: Level::ERROR,
        what: "no answer from an application",
        site,
        subject: &member.address().to_string(),
    };
    if cause.may_be_logged() {
        let protocol = application.protocol;
        let help = hint(error, protocol, member.address());
        tracing::error!(site, application = %member.address(), help, "no answer by {protocol}: {error}");
    }
}

fn fields_too_long(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Uwsgi => {
            "The fields of this request are longer than uwsgi can tell: it has 64 KiB for all of them. FastCGI has more."
        }
        Protocol::FastCgi => "A field of this request is longer than FastCGI can tell: it has 64 KiB for each.",
        Protocol::Scgi => "The fields of this request are longer than any application takes.",
    }
}

fn hint(error: &BackendError, protocol: Protocol, address: &BackendAddress) -> String {
    let key = protocol.key();
    match error {
        BackendError::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied => {
            format!(
                "RockNet may not open {address}. Let the application make its socket for the user that RockNet runs as."
            )
        }
        BackendError::Unreachable(error) if error.kind() == ErrorKind::TimedOut => {
            format!("Nothing answers at {address}. Is that the right host, and is there a firewall in between?")
        }
        BackendError::Unreachable(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
        BackendError::Unreachable(error) if is_resource_shortage(error) => "Raise the limit of open files.".to_owned(),
        BackendError::Unreachable(_) => {
            format!("Nothing listens at {address}. Start the application, or correct `{key}` in the configuration.")
        }
        BackendError::Full => {
            "All processes of the application are busy. Give it more of them, or find out what takes them so long."
                .to_owned()
        }
        BackendError::Timeout => {
            "The application takes longer than limits.answer_timeout. Raise that, or see what it waits for.".to_owned()
        }
        BackendError::FastCgi(_) => {
            format!("What listens at {address} does not speak FastCGI. Does it speak HTTP (`proxy`), SCGI or uwsgi?")
        }
        BackendError::Head(_) | BackendError::HeadTooLong => format!(
            "What {address} answers does not begin with header fields that can be passed on. Does it speak {protocol}, and is \
             every field one line?"
        ),
        BackendError::StaleConnection
        | BackendError::ConnectionLost(_)
        | BackendError::NoResponse
        | BackendError::Truncated
        | BackendError::ResponseTooLarge => match protocol {
            Protocol::Uwsgi => format!(
                "The application at {address} closed the connection before it had answered. Its log tells why. Of uWSGI: \
                 does `socket` stand there, not `http-socket`, and is `buffer-size` (4096 where nobody says otherwise) more than \
                 the request's fields?"
            ),
            _ => {
                format!("The application at {address} closed the connection before it had answered. Its log tells why.")
            }
        },
        BackendError::Request(_) | BackendError::RequestBody(_) => String::new(),
    }
}
