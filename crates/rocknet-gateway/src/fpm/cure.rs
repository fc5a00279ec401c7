//! What the operator can do where PHP gave no answer: told by the log, and in `dev` mode by the page.

use std::io::ErrorKind;
use tracing::Level;

use crate::gateway::backend::Backend;
use crate::gateway::trouble::{Trouble, is_shortage, page};
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// The answer, and a line in the log where it is the operator's matter.
pub fn tell(trouble: &Trouble, backend: &Backend, script: &str, label: &SiteLabel) -> Response {
    let (status, place) = (trouble.status(), backend.place());
    let Some(cure) = cure(trouble, backend) else {
        trouble.log_of_client(&label.site, script);
        return Response::new(status);
    };
    // Where PHP is not reached, that is so for all scripts.
    let subject = if trouble.is_before_all() {
        place.to_string()
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
        let own = backend.own_trouble().map(|trouble| format!(". {trouble}"));
        let own = own.unwrap_or_default();
        tracing::error!(site = %label.site, php = %place, script, help = cure, "no answer from PHP: {trouble}{own}");
    }
    page(status, &cure, label)
}

/// Nothing where the client has to do it.
fn cure(trouble: &Trouble, backend: &Backend) -> Option<String> {
    let place = backend.place();
    Some(match trouble {
        Trouble::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied => format!(
            "RockNet may not open {place}. In the pool of php-fpm, set listen.owner or listen.group to the user that RockNet runs as."
        ),
        Trouble::Unreachable(error) if error.kind() == ErrorKind::TimedOut => {
            format!("Nothing answers at {place}. Is that the right host, and is there a firewall in between?")
        }
        Trouble::Unreachable(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
        Trouble::Unreachable(error) if is_shortage(error) => "Raise the limit of open files.".to_owned(),
        Trouble::Unreachable(_) if place.own.is_some() => match backend.own_trouble() {
            Some(trouble) => format!("{trouble}."),
            None => format!("PHP {place} is being started. The error log tells how far it is."),
        },
        Trouble::Unreachable(_) => format!(
            "Nothing listens at {place}. Start php-fpm (systemctl start php8.2-fpm), or correct `php` in the configuration."
        ),
        Trouble::Full if place.own.is_some() => {
            "All processes of PHP are busy. Find out what takes them so long; a php-fpm of your own can have more of them (`php = \"unix:…\"`).".to_owned()
        }
        Trouble::Full => "All processes of php-fpm are busy. Raise pm.max_children of its pool, or find out what takes them so long.".to_owned(),
        Trouble::Slow => "The script takes longer than limits.answer_timeout. Raise that, or see what the script waits for.".to_owned(),
        Trouble::Records(_) => {
            format!("What listens at {place} does not speak FastCGI. `php` takes the address of php-fpm, not of a web server.")
        }
        Trouble::Unheard | Trouble::Broken(_) | Trouble::Silent | Trouble::Cut => {
            "PHP ended before it had answered. The error log of php-fpm tells why; so does RockNet's.".to_owned()
        }
        Trouble::Head(_) | Trouble::HeadTooLong => "The script sends header fields that cannot be passed on.".to_owned(),
        Trouble::TooMuch => "The answer is longer than any may be.".to_owned(),
        Trouble::Request(_) | Trouble::Content(_) => return None,
    })
}
