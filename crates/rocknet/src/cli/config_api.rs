//! Requests of the control API about the configuration file: checks, edits, replacement, history and undo.
//!
//! A change is checked, written to the file and loaded. If the server cannot load it, the file gets its old text again.

mod file;
mod history;

use std::io;
use std::path::{Path, PathBuf};

use rocknet::certificates::ServerEnvironment;
use rocknet::server::Server;
use rocknet_config::edit::Editor;
use rocknet_config::{Loaded, Report};
use rocknet_control::api::ApiError;
use rocknet_control::config::{
    Candidate, Change, Checked, ConfigText, Edit, Edits, Finding, MAX_TEXT, Replacement, Saved, Undo,
};

use super::findings;
use super::launch::ConfigSource;
use super::reload::{self, Reloaded, StartSettings};
use file::{ReplaceError, revision};
use history::History;

/// The configuration file of a running server.
pub struct ConfigApi<'s> {
    server: &'s Server,
    source: &'s ConfigSource,
    start_settings: &'s StartSettings,
    file: PathBuf,
    history: History,
}

impl<'s> ConfigApi<'s> {
    /// Returns the interface to the configuration file. `state`: state folder of the server.
    ///
    /// # Errors
    ///
    /// Fails with status 404 if the server has no configuration file.
    pub fn new(
        server: &'s Server,
        source: &'s ConfigSource,
        start_settings: &'s StartSettings,
        state: &Path,
    ) -> Result<ConfigApi<'s>, ApiError> {
        let ConfigSource::File(file) = source else {
            return Err(ApiError::new(404, "this server has no configuration file"));
        };
        Ok(ConfigApi {
            server,
            source,
            start_settings,
            file: file.clone(),
            history: History::new(state),
        })
    }

    /// Returns the text of the file. `loaded`: revision of the text that the server has loaded.
    ///
    /// # Errors
    ///
    /// Status 500 if the file cannot be read.
    pub fn text(&self, loaded: Option<&str>) -> Result<ConfigText, ApiError> {
        let text = self.read()?;
        let revision = revision(&text);
        Ok(ConfigText {
            file: self.file.clone(),
            is_loaded: loaded == Some(revision.as_str()),
            revision,
            text,
        })
    }

    /// Checks a text without a change.
    pub fn check(&self, candidate: &Candidate) -> Checked {
        match self.checked(&candidate.text) {
            Ok(Loaded { warnings, .. }) => Checked {
                is_valid: true,
                findings: findings::for_api(&warnings),
            },
            Err(report) => Checked {
                is_valid: false,
                findings: findings::for_api(&report.findings),
            },
        }
    }

    /// Replaces the text.
    ///
    /// # Errors
    ///
    /// Status 409 if the file has another revision, and those of [`ConfigApi::save`].
    pub fn replace(&self, replacement: &Replacement) -> Result<Saved, ApiError> {
        let before = self.read()?;
        self.expect(&before, Some(&replacement.revision))?;
        self.save("replace the whole text", &before, &replacement.text)
    }

    /// Applies edits.
    ///
    /// # Errors
    ///
    /// Status 409 if the file has another revision, 422 if an edit cannot be applied, and those of [`ConfigApi::save`].
    pub fn edit(&self, edits: &Edits) -> Result<Saved, ApiError> {
        let before = self.read()?;
        let after = self.edited(&before, edits)?;
        let what: Vec<String> = edits.edits.iter().map(Edit::to_string).collect();
        self.save(&what.join(", "), &before, &after)
    }

    /// Checks the text that edits would produce.
    ///
    /// # Errors
    ///
    /// Status 409 if the file has another revision, 422 if an edit cannot be applied.
    pub fn check_edits(&self, edits: &Edits) -> Result<Checked, ApiError> {
        let text = self.edited(&self.read()?, edits)?;
        Ok(self.check(&Candidate { text }))
    }

    /// Returns the text after edits.
    fn edited(&self, before: &str, edits: &Edits) -> Result<String, ApiError> {
        self.expect(before, edits.revision.as_deref())?;
        let mut editor = Editor::new(before).map_err(|report| self.invalid(&report))?;
        for edit in &edits.edits {
            apply(&mut editor, edit).map_err(|error| ApiError::new(422, format!("cannot {edit}: {error}")))?;
        }
        Ok(editor.to_string())
    }

    /// Returns the changes, the latest first.
    ///
    /// # Errors
    ///
    /// Status 500 if the history or the file cannot be read.
    pub fn changes(&self) -> Result<Vec<Change>, ApiError> {
        let text = self.read()?;
        self.history
            .changes(&self.file, &text)
            .map_err(|error| history_failed(&error))
    }

    /// Restores the text before a change. This also undoes later changes.
    ///
    /// # Errors
    ///
    /// Status 404 if there is no such change, and 400 if edits are to be discarded without the revision that has them.
    /// Status 409 if the file has another revision, or edits that are in no record and are not to be discarded; the
    /// details show them. Further those of [`ConfigApi::save`].
    pub fn undo(&self, undo: &Undo) -> Result<Saved, ApiError> {
        if undo.discard_edits && undo.revision.is_none() {
            let message = "`discard_edits` needs the `revision` of the text with the edits";
            return Err(ApiError::new(400, message));
        }
        let found = self
            .history
            .since(&self.file, undo.id)
            .map_err(|error| history_failed(&error))?;
        let undone = found.ok_or_else(|| match undo.id {
            Some(id) => ApiError::new(404, format!("there is no change {id}")),
            None => ApiError::new(404, "there is no change to undo"),
        })?;
        let before = self.read()?;
        self.expect(&before, undo.revision.as_deref())?;
        if !undo.discard_edits
            && let Some(diff) = undone.unrecorded_edits(&before)
        {
            let file = self.file.display();
            let message = format!("{file} is not changed: undo would discard edits that are not in the history");
            return Err(ApiError {
                details: Some(diff).filter(|diff| !diff.is_empty()),
                ..ApiError::new(409, message)
            });
        }
        let what = format!("undo {}: {}", undone.id, undone.change.what);
        self.save(&what, &before, &undone.change.before)
    }

    /// Checks and writes a new text, loads it, and records the change. If the server cannot load it, the old text is
    /// written again. An edit of the file by another program in the meantime is kept. A text that equals the old one is
    /// loaded, but not recorded.
    ///
    /// # Errors
    ///
    /// Status 409 if the file no longer has the text `before`, 413 if the new text is too large, 422 if it is invalid
    /// or cannot be loaded, 500 if it cannot be written.
    fn save(&self, what: &str, before: &str, after: &str) -> Result<Saved, ApiError> {
        if after.len() > MAX_TEXT {
            let message = format!("the text is larger than {} KiB: edit the file by hand", MAX_TEXT / 1024);
            return Err(ApiError::new(413, message));
        }
        self.checked(after).map_err(|report| self.invalid(&report))?;
        self.write(before, after)?;
        let earlier_error = self.server.last_reload_error();
        let reloaded = reload::reload(self.server, self.source, self.start_settings);
        let Reloaded { message, mut findings } = match reloaded {
            Ok(reloaded) => reloaded,
            Err(error) => {
                let restored = match self.write(after, before) {
                    Ok(()) => {
                        self.server.restore_reload_error(earlier_error);
                        "the file has its old text again".to_owned()
                    }
                    Err(error) => error.error,
                };
                return Err(ApiError {
                    details: error.findings,
                    ..ApiError::new(422, format!("{}; {restored}", error.message))
                });
            }
        };
        tracing::info!("the configuration was changed by the control API: {what}");
        let mut can_undo = before != after;
        if can_undo && let Err(error) = self.history.record(&self.file, what, before, after) {
            let message = format!("the change cannot be undone, because the history cannot be written: {error}");
            tracing::warn!("{message}");
            findings.push(Finding::warning("no-history", message));
            can_undo = false;
        }
        Ok(Saved {
            message,
            revision: revision(after),
            can_undo,
            findings,
        })
    }

    fn checked(&self, text: &str) -> Result<Loaded, Report> {
        let environment = ServerEnvironment::with_manager(self.server.certificates());
        rocknet_config::check_text(text, &self.file, &environment)
    }

    fn read(&self) -> Result<String, ApiError> {
        file::read(&self.file)
            .map_err(|error| ApiError::new(500, format!("cannot read {}: {error}", self.file.display())))
    }

    /// Replaces the text `before` of the file.
    fn write(&self, before: &str, after: &str) -> Result<(), ApiError> {
        file::replace(&self.file, before, after).map_err(|error| {
            let ReplaceError::Io(error) = error else {
                return self.changed();
            };
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "; give the file and its folder to the user of the server, or edit it by hand"
                }
                _ => "",
            };
            ApiError::new(500, format!("cannot write {}: {error}{hint}", self.file.display()))
        })
    }

    /// Checks that the file has the revision that the client knows.
    fn expect(&self, text: &str, expected: Option<&str>) -> Result<(), ApiError> {
        if expected.is_none_or(|expected| expected == revision(text)) {
            return Ok(());
        }
        Err(self.changed())
    }

    fn changed(&self) -> ApiError {
        let file = self.file.display();
        ApiError::new(
            409,
            format!("{file} was changed by another program in the meantime, and stays as it is"),
        )
    }

    fn invalid(&self, report: &Report) -> ApiError {
        ApiError {
            details: Some(report.to_string()),
            ..ApiError::new(
                422,
                format!("{} is not changed: the new text is not valid", self.file.display()),
            )
        }
    }
}

/// Returns the revision of the configuration file; `None` if the server has none, or if the file cannot be read.
pub fn current_revision(source: &ConfigSource) -> Option<String> {
    match source {
        ConfigSource::File(path) => file::read(path).ok().map(|text| revision(&text)),
        ConfigSource::ServedFolder | ConfigSource::WelcomePage => None,
    }
}

fn apply(editor: &mut Editor, edit: &Edit) -> Result<(), String> {
    let applied = match edit {
        Edit::Set { path, value } => editor.set(&strings(path), value),
        Edit::Remove { path } if editor.remove(&strings(path)) => Ok(()),
        Edit::Remove { .. } => return Err("there is no such key".to_owned()),
        Edit::AddSite { name, root } => editor.add_site(name, root),
    };
    applied.map_err(|error| error.to_string())
}

fn strings(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn history_failed(error: &io::Error) -> ApiError {
    ApiError::new(500, format!("cannot read the history: {error}"))
}
