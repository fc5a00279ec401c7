//! Why PHP gave no answer, told to three: the client by a status, the operator by the log, and in `dev` mode by the page.

use std::fmt;
use std::io::{self, ErrorKind};

use rocknet_config::model::Php;
use rocknet_proto::fastcgi::{Fault, HeadFault, PairTooLong};
use rocknet_proto::status::Status;

use super::{Around, Backend};
use crate::exchange::ContentError;
use crate::handler::fixed;
use crate::response::Response;
use crate::told::Told;

#[derive(Debug)]
pub enum Trouble {
    /// Nobody listens there, or nobody may be asked.
    Unreachable(io::Error),
    /// Too many requests are there already.
    Full,
    /// No answer in time.
    Slow,
    /// A connection that was kept was closed before anything came back. Tried again elsewhere.
    Unheard,
    /// More than any answer may have.
    TooMuch,
    /// The connection broke before the answer had begun.
    Broken(io::Error),
    /// The script ended, or its process did, and there was no answer.
    Silent,
    /// What answers does not keep to FastCGI.
    Records(Fault),
    Head(HeadFault),
    /// More fields than anybody takes.
    HeadTooLong,
    /// The request is too large to be told to an application.
    Request(PairTooLong),
    /// Content without a length, and more of it than is held for its sake.
    Unmeasured,
    Content(ContentError),
}

impl Trouble {
    pub(in crate::handler) fn status(&self) -> Status {
        match self {
            Trouble::Unreachable(error) if error.kind() == ErrorKind::TimedOut => Status::GATEWAY_TIMEOUT,
            Trouble::Unreachable(error) if is_shortage(error) => Status::SERVICE_UNAVAILABLE,
            Trouble::Unreachable(_) | Trouble::Unheard | Trouble::Broken(_) | Trouble::Silent => Status::BAD_GATEWAY,
            Trouble::Records(_) | Trouble::Head(_) | Trouble::HeadTooLong | Trouble::TooMuch => Status::BAD_GATEWAY,
            Trouble::Full => Status::SERVICE_UNAVAILABLE,
            Trouble::Slow => Status::GATEWAY_TIMEOUT,
            Trouble::Request(_) => Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Trouble::Unmeasured => Status::LENGTH_REQUIRED,
            Trouble::Content(ContentError::TooLarge) => Status::CONTENT_TOO_LARGE,
            Trouble::Content(ContentError::TooSlow) => Status::REQUEST_TIMEOUT,
            Trouble::Content(ContentError::Cut) => Status::BAD_REQUEST,
        }
    }

    /// What the operator can do about it; nothing where the client has to.
    fn cure(&self, place: &Php) -> Option<String> {
        Some(match self {
            Trouble::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied => format!(
                "RockNet may not open {place}. In the pool of php-fpm, set listen.owner or listen.group to the user that RockNet runs as."
            ),
            Trouble::Unreachable(error) if error.kind() == ErrorKind::TimedOut => {
                format!("Nothing answers at {place}. Is that the right host, and is there a firewall in between?")
            }
            Trouble::Unreachable(error) if is_shortage(error) => "Raise the limit of open files.".to_owned(),
            Trouble::Unreachable(_) if matches!(place, Php::Own { .. }) => match own_trouble(place) {
                Some(trouble) => format!("{trouble}."),
                None => format!("PHP {place} is being started. The error log tells how far it is."),
            },
            Trouble::Unreachable(_) => format!(
                "Nothing listens at {place}. Start php-fpm (systemctl start php8.2-fpm), or correct `php` in the configuration."
            ),
            Trouble::Full if matches!(place, Php::Own { .. }) => {
                "All processes of PHP are busy. Find out what takes them so long; a php-fpm of your own can have more of them (`php = \"unix:…\"`).".to_owned()
            }
            Trouble::Full => "All processes of php-fpm are busy. Raise pm.max_children of its pool, or find out what takes them so long.".to_owned(),
            Trouble::Slow => "The script takes longer than limits.answer_timeout. Raise that, or see what the script waits for.".to_owned(),
            Trouble::Records(_) => {
                format!("What listens at {place} does not speak FastCGI. `php` takes the address of php-fpm, not of a web server.")
            }
            Trouble::Unheard | Trouble::Broken(_) | Trouble::Silent => {
                "PHP ended before it had answered. The error log of php-fpm tells why; so does RockNet's.".to_owned()
            }
            Trouble::Head(_) | Trouble::HeadTooLong => "The script sends header fields that cannot be passed on.".to_owned(),
            Trouble::TooMuch => "The answer is longer than any may be.".to_owned(),
            Trouble::Request(_) | Trouble::Unmeasured | Trouble::Content(_) => return None,
        })
    }

    /// The answer, and a line in the log where it is the operator's matter.
    pub(super) fn tell(&self, backend: &Backend, around: &Around) -> Response {
        let status = self.status();
        let Some(cure) = self.cure(backend.place()) else {
            return Response::new(status);
        };
        if TOLD.is_due() {
            let own = own_trouble(backend.place()).map(|trouble| format!(". {trouble}"));
            let own = own.unwrap_or_default();
            tracing::error!(site = %around.site, php = %backend.place(), "no answer from PHP: {self}{own}");
        }
        if around.dev {
            fixed::error_with_hint(status, Some(&cure))
        } else {
            Response::new(status)
        }
    }
}

/// What keeps the PHP that RockNet starts itself from running.
fn own_trouble(place: &Php) -> Option<String> {
    match place {
        Php::Own { socket, .. } => crate::php::trouble(socket),
        Php::Unix(_) | Php::Tcp { .. } => None,
    }
}

static TOLD: Told = Told::never();

/// Descriptors or memory.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unreachable(error) => write!(f, "cannot connect: {error}"),
            Trouble::Full => f.write_str("all its processes are busy, and too many requests wait"),
            Trouble::TooMuch => f.write_str("it answered with more than any answer may have"),
            Trouble::Slow => f.write_str("it did not answer in time"),
            Trouble::Unheard => f.write_str("it closed the connection"),
            Trouble::Broken(error) => write!(f, "the connection broke: {error}"),
            Trouble::Silent => f.write_str("it ended without an answer"),
            Trouble::Records(fault) => fault.fmt(f),
            Trouble::Head(fault) => fault.fmt(f),
            Trouble::HeadTooLong => f.write_str("its header fields are too long"),
            Trouble::Request(error) => error.fmt(f),
            Trouble::Unmeasured => f.write_str("content without a length is too large to be collected"),
            Trouble::Content(error) => write!(f, "the request did not come whole: {error:?}"),
        }
    }
}
