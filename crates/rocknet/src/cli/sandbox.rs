//! The sandbox of a server: limits that are set once at start, for the process and the programs that it starts.

mod folders;

use std::fmt;
use std::path::{Path, PathBuf};

use rocknet::backend::{Backend, BackendChoice};
use rocknet_config::Config;
use rocknet_config::model::{Mode, Sandbox};
use rocknet_io::sandbox::{self, SandboxError};

use self::folders::WritableFolder;
use super::launch::ConfigSource;

/// Sets the limits in two steps, before and after root's rights are dropped.
pub struct SandboxPlan {
    /// Value of `server.sandbox`.
    mode: Sandbox,
    /// Folders below which the strict sandbox permits changes of files.
    folders: Vec<WritableFolder>,
    /// True if the workers use io_uring.
    has_io_uring: bool,
    /// Reason why no limits are set; `None` if limits are set.
    off_reason: Option<String>,
}

impl SandboxPlan {
    /// Collects the settings of a configuration. `state`: folder of the server's state.
    pub fn new(config: &Config, state: &Path, source: &ConfigSource) -> SandboxPlan {
        SandboxPlan {
            mode: config.server.sandbox,
            folders: folders::of(config, state, source),
            has_io_uring: BackendChoice::new(config.server.backend).is_ok_and(|choice| choice.backend == Backend::Ring),
            off_reason: match (config.server.sandbox, config.server.mode) {
                (Sandbox::Off, _) => Some("switched off".to_owned()),
                (Sandbox::Auto, Mode::Dev) => Some("`auto` sets no limits in `dev` mode".to_owned()),
                _ => None,
            },
        }
    }

    /// Limits programs before root's rights are dropped, so that the account helper, which is started next, is limited
    /// too. In the mode `auto`, a failure is ignored.
    ///
    /// # Errors
    ///
    /// Fails if the strict sandbox is not possible.
    pub fn prepare(&self) -> Result<(), String> {
        match self.mode {
            _ if self.off_reason.is_some() => Ok(()),
            Sandbox::Strict => {
                folders::create(&self.folders)?;
                sandbox::renounce_privileges().map_err(|error| failed(&error))?;
                sandbox::limit_programs().map_err(|error| failed(&error))
            }
            // [`SandboxPlan::enter`] tries again once root's rights are dropped.
            _ => {
                let _ = sandbox::limit_programs();
                Ok(())
            }
        }
    }

    /// Sets all limits. To be called before threads start, and after all helpers have been started.
    ///
    /// # Errors
    ///
    /// Fails if the strict sandbox is not possible.
    pub fn enter(self) -> Result<ActiveSandbox, String> {
        let SandboxPlan { mode, off_reason, .. } = self;
        if let Some(reason) = off_reason {
            return Ok(ActiveSandbox::Off(reason));
        }
        if mode == Sandbox::Strict {
            sandbox::deny_system_calls(self.has_io_uring).map_err(|error| failed(&error))?;
            let writable = folders::existing(&self.folders)?;
            sandbox::limit_writes(&writable).map_err(|error| failed(&error))?;
            return Ok(ActiveSandbox::Strict(writable));
        }
        // After a success in `prepare`, the repeated call changes nothing.
        Ok(match sandbox::limit_programs() {
            Ok(()) => ActiveSandbox::Programs,
            Err(error) => ActiveSandbox::Off(error.to_string()),
        })
    }
}

/// Returns the message of an error. The text of `TooManyLayers` already names a remedy.
fn failed(error: &SandboxError) -> String {
    if matches!(error, SandboxError::TooManyLayers) {
        return format!("the sandbox cannot be entered: {error}");
    }
    format!("the sandbox cannot be entered: {error}; set `sandbox = \"auto\"` below [server] to start without it")
}

/// Limits that are in effect.
#[derive(Debug)]
pub enum ActiveSandbox {
    /// No limits, for this reason.
    Off(String),
    /// Programs are limited.
    Programs,
    /// Programs and the server are limited, and files can be changed below these folders only.
    Strict(Vec<PathBuf>),
}

impl Default for ActiveSandbox {
    /// Returns the value used before the sandbox is entered.
    fn default() -> Self {
        ActiveSandbox::Off(String::new())
    }
}

impl ActiveSandbox {
    /// Checks whether a configuration can be loaded within the limits, which cannot be widened.
    ///
    /// # Errors
    ///
    /// A message that names the folder, and what to do.
    pub fn check(&self, config: &Config, state: &Path, source: &ConfigSource) -> Result<(), String> {
        let ActiveSandbox::Strict(writable) = self else {
            return Ok(());
        };
        for WritableFolder { path, needed_for } in folders::of(config, state, source) {
            let path = path.canonicalize().unwrap_or(path);
            if !writable.iter().any(|folder| path.starts_with(folder)) {
                return Err(format!(
                    "the strict sandbox of the running server permits no changes below {} ({needed_for}), and it cannot be \
                     widened: restart the server to load this configuration",
                    path.display()
                ));
            }
        }
        Ok(())
    }

    /// Checks whether a new process that inherits the limits can serve a configuration.
    ///
    /// # Errors
    ///
    /// A message that names the key or the folder, and what to do.
    pub fn check_successor(&self, config: &Config, state: &Path, source: &ConfigSource) -> Result<(), String> {
        if matches!(self, ActiveSandbox::Strict(_)) && config.server.sandbox != Sandbox::Strict {
            return Err(
                "the strict sandbox of the running server limits the new process too, and the configuration \
                        no longer has `sandbox = \"strict\"`: restart the server to leave the sandbox"
                    .to_owned(),
            );
        }
        self.check(config, state, source)
    }
}

/// Describes the limits in a few words, for `rocknet status`.
impl fmt::Display for ActiveSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActiveSandbox::Off(reason) => write!(f, "off: {reason}"),
            ActiveSandbox::Programs => f.write_str("programs are limited (seccomp)"),
            ActiveSandbox::Strict(writable) => write!(
                f,
                "strict (seccomp and Landlock), folders that may be changed: {}",
                writable.len()
            ),
        }
    }
}
