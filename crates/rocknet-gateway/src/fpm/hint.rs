//! Hints for the operator when PHP gives no response. The log shows them, and in `dev` mode the error page too.

use std::io::ErrorKind;
use tracing::Level;

use crate::gateway::backend::Backend;
use crate::gateway::error::{BackendError, error_page, is_resource_shortage};
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// Returns the error response. Logs the error at a limited rate. An error that the request itself caused is logged only
/// if the body or the header fields of the request are too large.
pub fn error_response(error: &BackendError, backend: &Backend, script: &str, label: &SiteLabel) -> Response {
    let (status, address) = (error.status(), backend.address());
    let Some(hint) = hint(error, backend) else {
        error.log_client_error(&label.site, script);
        return Response::new(status);
    };
    // A connection that cannot be opened affects all scripts, so its log messages are limited by address, not by
    // script.
    let subject = if error.is_before_send() {
        address.to_string()
    } else {
        script.to_owned()
    };
    let cause = Cause {
        level: Level::ERROR,
        what: "no response from PHP",
        site: &label.site,
        subject: &subject,
    };
    if cause.may_be_logged() {
        // RockNet may have failed to start its own php-fpm.
        let start = backend.own_failure().map(|error| format!(". {error}"));
        let start = start.unwrap_or_default();
        tracing::error!(site = %label.site, php = %address, script, help = hint, "no response from PHP: {error}{start}");
    }
    error_page(status, &hint, label)
}

/// Returns the hint; `None` if the request caused the error.
fn hint(error: &BackendError, backend: &Backend) -> Option<String> {
    let address = backend.address();
    Some(match error {
        BackendError::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied => format!(
            "RockNet has no permission to open {address}. In the pool of php-fpm, set listen.owner to the user that \
             RockNet runs as, or listen.group to its group."
        ),
        BackendError::Unreachable(error) if error.kind() == ErrorKind::TimedOut => {
            format!("{address} does not respond. Check the host, and the firewalls in between.")
        }
        BackendError::Unreachable(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
        BackendError::Unreachable(error) if is_resource_shortage(error) => {
            "This machine has no file descriptor or memory for the connection. Raise the limit of open files, or find \
             out what uses the memory."
                .to_owned()
        }
        BackendError::Unreachable(_) if address.own_php.is_some() => match backend.own_failure() {
            Some(error) => format!("{error}."),
            None => format!("PHP {address} is being started. See the error log for its progress."),
        },
        BackendError::Unreachable(_) => format!(
            "{address} cannot be reached. Start php-fpm (systemctl start php8.2-fpm), or correct `php` in the \
             configuration."
        ),
        BackendError::Full if address.own_php.is_some() => {
            "All processes of PHP are busy. Find the slow scripts, or run php-fpm yourself with more processes \
             (`php = \"unix:…\"`)."
                .to_owned()
        }
        BackendError::Full => {
            "All processes of php-fpm are busy. Raise pm.max_children of its pool, or find the slow scripts.".to_owned()
        }
        BackendError::Timeout => {
            "The script takes longer than limits.answer_timeout. Raise that limit, or find out what the script waits \
             for."
                .to_owned()
        }
        BackendError::FastCgi(_) => {
            format!(
                "The server at {address} does not speak FastCGI. `php` takes the address of php-fpm, not of a web \
                 server."
            )
        }
        BackendError::StaleConnection
        | BackendError::ConnectionLost(_)
        | BackendError::NoResponse
        | BackendError::Truncated => {
            "PHP ended before its response was complete. See the error log of php-fpm and that of RockNet for the \
             reason."
                .to_owned()
        }
        BackendError::Head(_) | BackendError::HeadTooLong => {
            "The script sends header fields that cannot be passed on. Correct the header() calls of the script."
                .to_owned()
        }
        BackendError::ResponseTooLarge => "The response exceeds its maximum length.".to_owned(),
        BackendError::Request(_) | BackendError::RequestBody(_) => return None,
    })
}
