//! What the operator can do where an application gave no answer: told by the log, and in `dev` mode by the page.

use std::io::ErrorKind;

use rocknet_config::model::Protocol;
use tracing::Level;

use super::group::Application;
use crate::gateway::backend::Place;
use crate::gateway::trouble::{Trouble, is_shortage, page};
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_handler::response::Response;
use rocknet_handler::route::SiteLabel;
use rocknet_log::throttle::Cause;

/// The answer, and a line in the log where it is the operator's matter. `asked`: who was asked last.
pub fn tell(trouble: &Trouble, application: &Application, asked: Option<usize>, label: &SiteLabel) -> Response {
    let status = trouble.status();
    if trouble.is_clients() {
        trouble.log_of_client(&label.site, application.protocol.key());
    }
    if let Trouble::Request(_) = trouble {
        return page(status, too_long(application.protocol), label);
    }
    let Some(number) = asked.filter(|_| !trouble.is_clients()) else {
        return Response::new(status);
    };
    log(trouble, application, number, &label.site);
    let cure = cure(trouble, application.protocol, application.member(number).place());
    page(status, &cure, label)
}

/// A line in the log, once in a while.
pub fn log(trouble: &Trouble, application: &Application, number: usize, site: &str) {
    let member = application.member(number);
    let cause = Cause {
        level: Level::ERROR,
        what: "no answer from an application",
        site,
        subject: &member.place().to_string(),
    };
    if cause.may_be_logged() {
        let protocol = application.protocol;
        let help = cure(trouble, protocol, member.place());
        tracing::error!(site, application = %member.place(), help, "no answer by {protocol}: {trouble}");
    }
}

fn too_long(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Uwsgi => {
            "The fields of this request are longer than uwsgi can tell: it has 64 KiB for all of them. FastCGI has more."
        }
        Protocol::FastCgi => "A field of this request is longer than FastCGI can tell: it has 64 KiB for each.",
        Protocol::Scgi => "The fields of this request are longer than any application takes.",
    }
}

fn cure(trouble: &Trouble, protocol: Protocol, place: &Place) -> String {
    let key = protocol.key();
    match trouble {
        Trouble::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied => {
            format!(
                "RockNet may not open {place}. Let the application make its socket for the user that RockNet runs as."
            )
        }
        Trouble::Unreachable(error) if error.kind() == ErrorKind::TimedOut => {
            format!("Nothing answers at {place}. Is that the right host, and is there a firewall in between?")
        }
        Trouble::Unreachable(error) if is_exhausted(error) => port_exhaustion::HINT.to_owned(),
        Trouble::Unreachable(error) if is_shortage(error) => "Raise the limit of open files.".to_owned(),
        Trouble::Unreachable(_) => {
            format!("Nothing listens at {place}. Start the application, or correct `{key}` in the configuration.")
        }
        Trouble::Full => {
            "All processes of the application are busy. Give it more of them, or find out what takes them so long."
                .to_owned()
        }
        Trouble::Slow => {
            "The application takes longer than limits.answer_timeout. Raise that, or see what it waits for.".to_owned()
        }
        Trouble::Records(_) => {
            format!("What listens at {place} does not speak FastCGI. Does it speak HTTP (`proxy`), SCGI or uwsgi?")
        }
        Trouble::Head(_) | Trouble::HeadTooLong => format!(
            "What {place} answers does not begin with header fields that can be passed on. Does it speak {protocol}, and is \
             every field one line?"
        ),
        Trouble::Unheard | Trouble::Broken(_) | Trouble::Silent | Trouble::Cut | Trouble::TooMuch => match protocol {
            Protocol::Uwsgi => format!(
                "The application at {place} closed the connection before it had answered. Its log tells why. Of uWSGI: \
                 does `socket` stand there, not `http-socket`, and is `buffer-size` (4096 where nobody says otherwise) more than \
                 the request's fields?"
            ),
            _ => format!("The application at {place} closed the connection before it had answered. Its log tells why."),
        },
        Trouble::Request(_) | Trouble::Content(_) => String::new(),
    }
}
