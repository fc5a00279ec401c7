//! Chooses the I/O back end (epoll or io_uring), and records the reason for the log.

use std::fmt;

use rocknet_config::model;
use rocknet_io::runtime::io_uring_unavailable;

/// Environment variable that overrides the configuration, for comparisons of the back ends.
pub const VARIABLE: &str = "ROCKNET_BACKEND";

/// I/O back end of the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Readiness: the kernel reports that a socket is ready, and the worker performs the operation. Despite its name,
    /// this back end uses kqueue on macOS and BSD.
    Epoll,
    /// Completion: the worker submits an operation, and the kernel performs it.
    Ring,
}

/// The chosen back end, and the reason as the log states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendChoice {
    pub backend: Backend,
    reason: String,
}

impl BackendChoice {
    /// Chooses the back end from the environment variable `ROCKNET_BACKEND` if it is set and not empty, otherwise from
    /// the configuration.
    ///
    /// # Errors
    ///
    /// The message states why the requested back end is unavailable, or that the variable has an unknown value.
    pub fn new(configured: model::IoBackend) -> Result<BackendChoice, String> {
        let variable = std::env::var_os(VARIABLE).map(|value| value.to_string_lossy().into_owned());
        BackendChoice::of(configured, variable.as_deref(), io_uring_unavailable)
    }

    /// Chooses the back end like [`BackendChoice::new`]. `variable`: value of the environment variable.
    /// `io_uring_error` returns the reason why io_uring is unavailable, if it is.
    fn of(
        configured: model::IoBackend,
        variable: Option<&str>,
        io_uring_error: impl FnOnce() -> Option<String>,
    ) -> Result<BackendChoice, String> {
        let (choice, setting) = match variable.filter(|value| !value.is_empty()) {
            None => (configured, "server.backend"),
            Some("auto") => (model::IoBackend::Auto, VARIABLE),
            Some("epoll") => (model::IoBackend::Epoll, VARIABLE),
            Some("io_uring") => (model::IoBackend::IoUring, VARIABLE),
            Some(other) => return Err(format!("{VARIABLE} is {other:?}; write auto, epoll or io_uring")),
        };
        let chosen = |backend, reason| Ok(BackendChoice { backend, reason });
        match choice {
            model::IoBackend::Epoll => chosen(Backend::Epoll, format!("selected by {setting}")),
            model::IoBackend::IoUring => match io_uring_error() {
                None => chosen(Backend::Ring, format!("selected by {setting}")),
                Some(error) => Err(format!("{setting} selects io_uring, which is not available: {error}")),
            },
            // io_uring costs less for small responses to many clients, and more where the send buffers of sockets are
            // often full. So epoll is the default even if io_uring is available
            // (docs/decisions/0009-two-backends.md).
            model::IoBackend::Auto => {
                let reason = match io_uring_error() {
                    None => "the best choice over all measured loads; io_uring is available here too".to_owned(),
                    Some(error) => format!("io_uring is not available: {error}"),
                };
                chosen(Backend::Epoll, reason)
            }
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Epoll if cfg!(target_os = "linux") => "epoll",
            Backend::Epoll => "kqueue",
            Backend::Ring => "io_uring",
        })
    }
}

impl fmt::Display for BackendChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the I/O back end is {}: {}", self.backend, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::IoBackend::{Auto, Epoll as ConfiguredEpoll, IoUring};

    use super::Backend::{Epoll, Ring};
    use super::*;

    #[test]
    fn the_variable_or_else_the_configuration_selects_the_back_end() {
        // Configured back end, value of the variable, reason why io_uring is unavailable, expected back end, and a part
        // of the log line or error message.
        for (configured, variable, io_uring_error, expected, part) in [
            (Auto, None, None, Ok(Epoll), "is available here"),
            (Auto, None, Some("no"), Ok(Epoll), "is not available: no"),
            (ConfiguredEpoll, None, None, Ok(Epoll), "selected by server.backend"),
            (IoUring, None, None, Ok(Ring), "selected by server.backend"),
            (
                IoUring,
                None,
                Some("no"),
                Err(()),
                "server.backend selects io_uring, which is not available: no",
            ),
            (
                IoUring,
                Some("epoll"),
                Some("no"),
                Ok(Epoll),
                "selected by ROCKNET_BACKEND",
            ),
            (
                ConfiguredEpoll,
                Some("io_uring"),
                None,
                Ok(Ring),
                "selected by ROCKNET_BACKEND",
            ),
            (ConfiguredEpoll, Some("auto"), Some("no"), Ok(Epoll), "is not available"),
            (ConfiguredEpoll, Some(""), None, Ok(Epoll), "selected by server.backend"),
            (Auto, Some("uring"), None, Err(()), "write auto, epoll or io_uring"),
        ] {
            let found = BackendChoice::of(configured, variable, || io_uring_error.map(str::to_owned));
            let (backend, text) = match found {
                Ok(choice) => (Ok(choice.backend), choice.to_string()),
                Err(text) => (Err(()), text),
            };
            assert_eq!(backend, expected, "{configured:?}, {variable:?}: {text}");
            assert!(text.contains(part), "{text}");
        }
    }
}
