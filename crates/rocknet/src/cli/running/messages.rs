//! Output when a server starts: the start-up block with its notes, and the warnings.

use std::io;

use rocknet::gateway::accounts;
use rocknet::gateway::php;
use rocknet::report::MAX_FOLDERS_CHECKED;
use rocknet_config::model::LogTarget;
use rocknet_config::{Code, Report};
use rocknet_control::SiteSummary;
use rocknet_io::privileges;
use rocknet_io::terminal::{StandardStream, shows_colour};

use super::super::launch::{AddressList, ConfigSource};
use super::super::search::resolved;
use super::super::{address_watch, banner, print, print_report, print_warning, reload, trust};
use super::RunningServer;

impl RunningServer {
    /// Prints the start-up block with its notes, the warnings, and how to stop the server. After an upgrade, only the
    /// warnings are printed.
    pub(super) fn print_start(&self, sites: &[SiteSummary]) {
        let mut notes = self.options.notes.clone();
        if self.options.addresses != AddressList::Hidden {
            let with_qr_code = self.options.addresses == AddressList::UrlsAndQrCode;
            let config = &self.server.snapshot().config;
            notes.extend(address_watch::present_note(sites, config, with_qr_code));
        }
        let file = match &self.options.source {
            ConfigSource::File(file) => Some(file.as_path()),
            ConfigSource::ServedFolder | ConfigSource::WelcomePage => None,
        };
        notes.extend(trust::hint(&self.server.snapshot().config, file));
        let is_upgrade = self.options.predecessor.is_some();
        if !is_upgrade {
            print(banner::start_block(sites, &notes, shows_colour(StandardStream::Output)));
        }
        // Warnings are also written to the error log, unless it is standard error.
        let to_log = self.server.snapshot().config.log.errors != LogTarget::Stderr;
        for warning in self.warnings() {
            if to_log {
                tracing::warn!("{warning}");
            }
            print_warning(warning);
        }
        if !self.options.warnings.is_empty() {
            if to_log {
                reload::log_findings(&self.options.warnings);
            }
            print_report(&Report {
                findings: self.options.warnings.clone(),
                omitted: 0,
            });
        }
        let has_file = matches!(self.options.source, ConfigSource::File(_));
        if !is_upgrade {
            print(banner::stop_hint(self.has_console, has_file));
        }
    }

    /// Returns the warnings that can be determined only at start.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let snapshot = self.server.snapshot();
        let from_file = matches!(self.options.source, ConfigSource::File(_));
        match (&snapshot.config.server.user, privileges::is_root()) {
            (Some(user), _) if self.start_settings.user_ignored => {
                warnings.push(format!("`user` is ignored: only root can become {user}"));
            }
            (None, true) if from_file => warnings.push(
                "running as root: `useradd --system rocknet` creates an account that RockNet switches to once its ports are open \
                 (or name one as `user` below [server])"
                    .to_owned(),
            ),
            (None, true) => warnings.push("running as root, which is not needed here: start it as an ordinary user".to_owned()),
            _ => {}
        }
        if self.start_settings.script_user_ignored {
            warnings.push("`script_user` is ignored: only root can run scripts as another user".to_owned());
        }
        warnings.extend(accounts::warning(accounts::runs_scripts(&snapshot.config)));
        warnings.extend(php::missing(&snapshot.config));
        warnings.extend(snapshot.spool_trouble());
        // If the check of the configuration found anything missing, it has reported missing folders too.
        let is_known_finding = |error: &io::Error| {
            error.kind() == io::ErrorKind::NotFound
                && self
                    .options
                    .warnings
                    .iter()
                    .any(|finding| finding.code == Code::Missing)
        };
        for (site, folder, error) in snapshot.missing_folders(MAX_FOLDERS_CHECKED) {
            if !is_known_finding(&error) {
                warnings.push(format!(
                    "site {site}: its folder {} cannot be opened: {error}",
                    resolved(folder).display()
                ));
            }
        }
        warnings
    }
}
