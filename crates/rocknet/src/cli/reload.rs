//! Reload: reads and checks the configuration, replaces it, and reports the result to the log and the terminal.

use std::path::PathBuf;

use rocknet::certificates::ServerEnvironment;
use rocknet::server::Server;
use rocknet_config::model::{self, LogTarget};
use rocknet_config::{Config, Finding, Loaded, Report};
use rocknet_control::api::Done;
use rocknet_control::config as control;
use rocknet_io::privileges;
use rocknet_io::terminal::{StandardStream, is_terminal};

use super::launch::ConfigSource;
use super::loaded_files::{ConfigFiles, LoadedRevisions};
use super::sandbox::ActiveSandbox;
use super::{findings, print_error, print_report, print_warning};

/// Settings that are read at start only, so that changing them needs a restart.
pub struct StartSettings {
    /// Section `[server]` at start.
    server: model::Server,
    /// Section `[admin]` at start.
    admin: model::Admin,
    /// True if `user` is set but was ignored, because the process did not start as root.
    pub user_ignored: bool,
    /// True if `script_user` is set but was ignored, because the process did not start as root.
    pub script_user_ignored: bool,
    /// True if standard input was a terminal at start.
    pub at_terminal: bool,
    /// Limits of the process. The caller sets them once the sandbox has been entered.
    pub sandbox: ActiveSandbox,
    /// Names of the rights of root that the process keeps, for the status. The caller sets them once the process has
    /// dropped the others.
    pub capabilities: String,
    /// State folder of the server. The caller sets it once the server has started.
    pub state: PathBuf,
}

impl StartSettings {
    /// Records the settings. Must be called before privileges are dropped. Afterwards it is unknown whether the process
    /// started as root.
    pub fn new(config: &Config) -> StartSettings {
        StartSettings {
            server: config.server.clone(),
            admin: config.admin.clone(),
            user_ignored: config.server.user.is_some() && !privileges::is_root(),
            script_user_ignored: config.server.script_user.is_some() && !privileges::is_root(),
            at_terminal: is_terminal(StandardStream::Input),
            sandbox: ActiveSandbox::default(),
            capabilities: String::new(),
            state: PathBuf::new(),
        }
    }

    /// Returns the changed keys that take effect only after a restart.
    fn needs_restart(&self, new: &Config) -> Vec<&'static str> {
        let (old, now) = (&self.server, &new.server);
        [
            ("server.blocking_threads", old.blocking_threads != now.blocking_threads),
            ("server.events", old.events != now.events),
            ("server.user", old.user != now.user),
            ("server.state", old.state != now.state),
            ("server.backend", old.backend != now.backend),
            ("server.sandbox", old.sandbox != now.sandbox),
            ("admin.socket", self.admin.socket != new.admin.socket),
            ("admin.listen", self.admin.listen != new.admin.listen),
            ("admin.password", self.admin.password != new.admin.password),
            ("admin.cert", self.admin.certificates != new.admin.certificates),
            ("admin.hosts", self.admin.hosts != new.admin.hosts),
        ]
        .into_iter()
        .filter_map(|(key, changed)| changed.then_some(key))
        .collect()
    }
}

/// Result of a reload.
pub struct Reloaded {
    /// Text for the operator in one line.
    pub message: String,
    /// Warnings about the configuration.
    pub findings: Vec<control::Finding>,
    /// Warning about changed keys that take effect only after a restart.
    pub needs_restart: Option<control::Finding>,
}

impl From<Reloaded> for Done {
    fn from(reloaded: Reloaded) -> Done {
        let mut findings = reloaded.findings;
        findings.extend(reloaded.needs_restart);
        Done {
            message: reloaded.message,
            findings,
        }
    }
}

/// Reason why a configuration was not reloaded.
pub struct ReloadError {
    pub message: String,
    /// Findings in the configuration, as text of several lines.
    pub findings: Option<String>,
}

/// Reads, checks and replaces the configuration. `loaded` gets the revisions of the files.
///
/// # Errors
///
/// The error was logged and shown already. The old configuration remains in use.
pub fn reload(
    server: &Server,
    source: &ConfigSource,
    start_settings: &StartSettings,
    loaded: &LoadedRevisions,
) -> Result<Reloaded, ReloadError> {
    let output = ReloadOutput::new(&server.snapshot().config);
    let file = match source {
        ConfigSource::File(file) => file,
        ConfigSource::ServedFolder => {
            return Err(output.failed("nothing to reload: `rocknet serve` has no configuration"));
        }
        ConfigSource::WelcomePage => {
            let what = match super::search::find() {
                Some(file) => format!(
                    "this server has no configuration; stop it and start again to serve {}",
                    file.display()
                ),
                None => "nothing to reload: there is no configuration; write rocknet.toml and start again".to_owned(),
            };
            return Err(output.failed(&what));
        }
    };
    let environment = ServerEnvironment::with_manager(server.certificates());
    let read = ConfigFiles::new(&environment);
    let Loaded { config, warnings } = match rocknet_config::check(file, &read) {
        Ok(loaded) => loaded,
        Err(report) => {
            let findings = report.to_string();
            server.reload_failed(positions(&report));
            output.show(&report);
            let errors = match report.errors() {
                1 => "1 error".to_owned(),
                errors => format!("{errors} errors"),
            };
            let error = output.failed(&format!(
                "{} is not reloaded, nothing has changed: {errors}",
                file.display()
            ));
            return Err(ReloadError {
                findings: Some(findings),
                ..error
            });
        }
    };
    let files = config.files.clone();
    let needs_restart = start_settings.needs_restart(&config);
    let within_sandbox = start_settings.sandbox.check(&config, &start_settings.state, source);
    if let Err(error) = within_sandbox {
        server.reload_failed(error.clone());
        return Err(output.failed(&format!(
            "{} is not reloaded, nothing has changed: {error}",
            file.display()
        )));
    }
    // `Server::reload` records its error itself.
    if let Err(error) = server.reload(config) {
        return Err(output.failed(&format!(
            "{} is not reloaded, nothing has changed: {error}",
            file.display()
        )));
    }
    loaded.replace(read, &files);
    let findings = findings::for_api(&warnings);
    if !warnings.is_empty() {
        output.show(&Report {
            findings: warnings,
            omitted: 0,
        });
    }
    let needs_restart = findings::needs_restart(&needs_restart);
    if let Some(finding) = &needs_restart {
        output.warn(&finding.message);
    }
    let sites = server.snapshot().sites.len();
    let message = format!("{} is reloaded, sites: {sites}", file.display());
    tracing::info!("{message}");
    Ok(Reloaded {
        message,
        findings,
        needs_restart,
    })
}

/// Returns the positions of the errors of a report, a line for each. The text shows neither lines of the file nor
/// messages, because they may quote a value, and every client of the control API may read the text.
fn positions(report: &Report) -> String {
    let errors = report.findings.iter().filter(|finding| finding.is_error());
    let lines: Vec<String> = errors
        .map(|finding| {
            format!(
                "{}the configuration has an error; `rocknet check` shows it",
                location(finding)
            )
        })
        .collect();
    lines.join("\n")
}

/// Returns the file, line and column of a finding as the prefix of its message. The prefix is empty if the finding
/// has no location.
fn location(finding: &Finding) -> String {
    let location = finding.location.as_ref();
    location.map_or_else(String::new, |at| {
        format!("{}:{}:{}: ", at.file.display(), at.line, at.column)
    })
}

/// Writes findings to the log.
pub fn log_findings(findings: &[Finding]) {
    for finding in findings {
        let (place, message) = (location(finding), &finding.message);
        let help = finding.help.as_deref().unwrap_or_default();
        if finding.is_error() {
            tracing::error!(help, "{place}{message}");
        } else {
            tracing::warn!(help, "{place}{message}");
        }
    }
}

/// Output of a reload. The terminal gets the whole report, and the log gets a line for each finding.
struct ReloadOutput {
    /// True if standard error is a terminal.
    is_terminal: bool,
    /// True if the log goes to the same terminal, so that messages are not printed twice.
    shows_log: bool,
}

impl ReloadOutput {
    fn new(config: &Config) -> ReloadOutput {
        let is_terminal = is_terminal(StandardStream::Error);
        ReloadOutput {
            is_terminal,
            shows_log: is_terminal && config.log.errors == LogTarget::Stderr,
        }
    }

    /// Shows a report, and logs its findings.
    fn show(&self, report: &Report) {
        if self.is_terminal {
            print_report(report);
        }
        if !self.shows_log {
            log_findings(&report.findings);
        }
    }

    /// Logs and shows an error, and returns it.
    fn failed(&self, message: &str) -> ReloadError {
        tracing::error!("{message}");
        if self.is_terminal && !self.shows_log {
            print_error(message);
        }
        ReloadError {
            message: message.to_owned(),
            findings: None,
        }
    }

    /// Logs and shows a warning.
    fn warn(&self, message: &str) {
        tracing::warn!("{message}");
        if self.is_terminal && !self.shows_log {
            print_warning(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::Workers;

    use super::*;

    #[test]
    fn keys_that_need_a_restart_are_listed() {
        fn check(change: fn(&mut Config), expected: &[&str]) {
            let start = Config::default();
            let start_settings = StartSettings::new(&start);
            let mut new = start;
            change(&mut new);
            assert_eq!(start_settings.needs_restart(&new), expected);
        }
        check(|_| {}, &[]);
        check(|new| new.cache.memory = 0, &[]);
        check(|new| new.server.workers = Workers::Count(3), &[]);
        check(|new| new.server.blocking_threads += 1, &["server.blocking_threads"]);
        check(|new| new.server.events.batch += 1, &["server.events"]);
        check(|new| new.server.user = Some("x".into()), &["server.user"]);
        check(|new| new.server.state = Some("/x".into()), &["server.state"]);
        check(|new| new.server.backend = model::IoBackend::Epoll, &["server.backend"]);
        check(|new| new.server.sandbox = model::Sandbox::Strict, &["server.sandbox"]);
        check(|new| new.admin.socket = model::ControlSocket::Off, &["admin.socket"]);
        check(|new| new.admin.hosts = vec!["a".into()], &["admin.hosts"]);
        check(|new| new.limits.connections = Some(7), &[]);
    }
}
