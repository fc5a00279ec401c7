//! What the operator can do where PHP gave no answer: told by the log, and in `dev` mode by the page.

use std::io::ErrorKind;
use tracing::Level;

use crate::gateway::backend::Backend;
use crate::gateway::error::{BackendError, error_page, is_resource_shortage};
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// The answer, and a line in the log where it is the operator's matter.
pub fn error_response(error: &BackendError, backend: &Backend, script: &str, label: &SiteLabel) -> Response {
    let (status, address) = (error.status(), backend.address());
    let Some(hint) = hint(error, backend) else {
        error.log_client_error(&label.site, script);
        return Response::new(status);
    };
    // Where PHP is not reached, that is so for all scripts.
    let subject = if error.is_before_send() {
        address.to_string()
    } else {
        script.to_owned()
    };
    let cause = Cause {
        level: Level::ERROR,
        what: "no answer from PHP",
        site: &label.site,
        subject: &subject,
    };
    if cause.may_be_logged() {
        let own = backend.own_failure().map(|error| format!(". {error}"));
        let own = own.unwrap_or_default();
        tracing::error!(site = %label.site, php = %address, script, help = hint, "no answer from PHP: {error}{own}");
    }
    error_page(status, &hint, label)
}

/// Nothing where the client has to do it.
fn hint(error: &BackendError, backend: &Backend) -> Option<String> {
    let address = backend.address();
    Some(match error {
        BackendError::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied => format!(
            "RockNet may not open {address}. In the pool of php-fpm, set listen.owner or listen.group to the user that RockNet runs as."
        ),
        BackendError::Unreachable(error) if error.kind() == ErrorKind::TimedOut => {
            format!("Nothing answers at {address}. Is that the right host, and is there a firewall in between?")
        }
        BackendError::Unreachable(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
        BackendError::Unreachable(error) if is_resource_shortage(error) => "Raise the limit of open files.".to_owned(),
        BackendError::Unreachable(_) if address.own_php.is_some() => match backend.own_failure() {
            Some(error) => format!("{error}."),
            None => format!("PHP {address} is being started. The error log tells how far it is."),
        },
        BackendError::Unreachable(_) => format!(
            "Nothing listens at {address}. Start php-fpm (systemctl start php8.2-fpm), or correct `php` in the configuration."
        ),
        BackendError::Full if address.own_php.is_some() => {
            "All processes of PHP are busy. Find out what takes them so long; a php-fpm of your own can have more of them (`php = \"unix:…\"`).".to_owned()
        }
        BackendError::Full => "All processes of php-fpm are busy. Raise pm.max_children of its pool, or find out what takes them so long.".to_owned(),
        BackendError::Timeout => "The script takes longer than limits.answer_timeout. Raise that, or see what the script waits for.".to_owned(),
        BackendError::FastCgi(_) => {
            format!("What listens at {address} does not speak FastCGI. `php` takes the address of php-fpm, not of a web server.")
        }
        BackendError::StaleConnection | BackendError::ConnectionLost(_) | BackendError::NoResponse | BackendError::Truncated => {
            "PHP ended before it had answered. The error log of php-fpm tells why; so does RockNet's.".to_owned()
        }
        BackendError::Head(_) | BackendError::HeadTooLong => "The script sends header fields that cannot be passed on.".to_owned(),
        BackendError::ResponseTooLarge => "The answer is longer than any may be.".to_owned(),
        BackendError::Request(_) | BackendError::RequestBody(_) => return None,
    })
}
