//! Hints for the operator when an application gives no response. The log shows them, and in `dev` mode the error page
//! too.

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

/// Returns the error response. Logs the error at a limited rate. An error that the request itself caused is logged only
/// if the request exceeds a limit. `last_tried`: number of the last application that was tried.
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

/// Logs the error of the application with this number, at a limited rate.
pub fn log(error: &BackendError, application: &ApplicationGroup, number: usize, site: &str) {
    let member = application.member(number);
    let cause = Cause {
        level: Level::ERROR,
        what: "no response from an application",
        site,
        subject: &member.address().to_string(),
    };
    if cause.may_be_logged() {
        let protocol = application.protocol;
        let help = hint(error, protocol, member.address());
        tracing::error!(site, application = %member.address(), help, "no response over {protocol}: {error}");
    }
}

/// Returns the hint for a request whose header fields the protocol cannot encode.
fn fields_too_long(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Uwsgi => {
            "The header fields of this request are longer than uwsgi can encode: 64 KiB for all of them. FastCGI \
             allows more."
        }
        Protocol::FastCgi => "A header field of this request is longer than FastCGI can encode: 64 KiB for each.",
        Protocol::Scgi => "The header fields of this request are longer than SCGI applications accept.",
    }
}

/// Returns the hint; empty if the request caused the error.
fn hint(error: &BackendError, protocol: Protocol, address: &BackendAddress) -> String {
    let key = protocol.key();
    match error {
        BackendError::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied => {
            format!(
                "RockNet has no permission to open {address}. Configure the application so that the user that RockNet \
                 runs as may write to its socket."
            )
        }
        BackendError::Unreachable(error) if error.kind() == ErrorKind::TimedOut => {
            format!("{address} does not respond. Check the host, and the firewalls in between.")
        }
        BackendError::Unreachable(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
        BackendError::Unreachable(error) if is_resource_shortage(error) => {
            "This machine has no file descriptor or memory for the connection. Raise the limit of open files, or find \
             out what uses the memory."
                .to_owned()
        }
        BackendError::Unreachable(_) => {
            format!("{address} cannot be reached. Start the application, or correct `{key}` in the configuration.")
        }
        BackendError::Full => {
            "All processes of the application are busy. Give it more processes, or find its slow requests.".to_owned()
        }
        BackendError::Timeout => {
            "The application takes longer than limits.answer_timeout. Raise that limit, or find out what it waits for."
                .to_owned()
        }
        BackendError::FastCgi(_) => {
            format!("The server at {address} does not speak FastCGI. Does it speak HTTP (`proxy`), SCGI or uwsgi?")
        }
        BackendError::Head(_) | BackendError::HeadTooLong => format!(
            "The response of {address} does not begin with valid header fields. Does it speak {protocol}, and is every \
             field one line?"
        ),
        // `ResponseTooLarge` occurs with CGI only.
        BackendError::StaleConnection
        | BackendError::ConnectionLost(_)
        | BackendError::NoResponse
        | BackendError::Truncated
        | BackendError::ResponseTooLarge => match protocol {
            Protocol::Uwsgi => format!(
                "The application at {address} closed the connection before its response was complete. See its log for \
                 the reason. With uWSGI, check that it listens with `socket`, not `http-socket`, and that \
                 `buffer-size` (4096 by default) exceeds the header fields of the request."
            ),
            _ => {
                format!(
                    "The application at {address} closed the connection before its response was complete. See its log \
                     for the reason."
                )
            }
        },
        BackendError::Request(_) | BackendError::RequestBody(_) => String::new(),
    }
}
