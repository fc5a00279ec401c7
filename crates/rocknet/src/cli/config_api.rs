//! Requests of the control API about the files of the configuration: checks, edits, replacement, history and undo.
//!
//! A change of a file is checked together with the other files, written and loaded. If the server cannot load it, the
//! file gets its old text again.

mod errors;
mod files;
mod history;
mod site_form;

use std::path::{Path, PathBuf};

use rocknet::certificates::ServerEnvironment;
use rocknet::server::Server;
use rocknet_config::edit::Editor;
use rocknet_config::{Loaded, ProcessEnvironment, Report, form};
use rocknet_control::api::ApiError;
use rocknet_control::config::{
    Candidate, Change, Checked, ConfigText, Edit, Edits, Finding, MAX_TEXT, Replacement, Saved, Undo,
};
use rocknet_control::site_form::{ServerForm, SiteForm};

use super::config_file::{self, revision};
use super::findings;
use super::launch::ConfigSource;
use super::loaded_files::{ConfigFiles, LoadedRevisions};
use super::reload::{self, Reloaded, StartSettings};
use errors::{expect_revision, history_failed, invalid, not_toml, unreadable, unwritable};
use history::History;

/// The configuration files of a running server.
pub struct ConfigApi<'s> {
    server: &'s Server,
    /// Source of the configuration, which a reload reads again.
    source: &'s ConfigSource,
    /// Settings that take effect only at start.
    start_settings: &'s StartSettings,
    /// Revisions of the files that the server has loaded.
    loaded: &'s LoadedRevisions,
    /// Main file.
    main: PathBuf,
    history: History,
}

impl<'s> ConfigApi<'s> {
    /// Returns the interface to the configuration files. `loaded`: revisions that the server has loaded. `state`: state
    /// folder of the server.
    ///
    /// # Errors
    ///
    /// Fails with status 404 if the server has no configuration file.
    pub fn new(
        server: &'s Server,
        source: &'s ConfigSource,
        start_settings: &'s StartSettings,
        loaded: &'s LoadedRevisions,
        state: &Path,
    ) -> Result<ConfigApi<'s>, ApiError> {
        let ConfigSource::File(file) = source else {
            return Err(ApiError::new(404, "this server has no configuration file"));
        };
        Ok(ConfigApi {
            server,
            source,
            start_settings,
            loaded,
            main: file.clone(),
            history: History::new(state),
        })
    }

    /// Returns the text of a file. `named`: its path, or `None` for the main file.
    ///
    /// # Errors
    ///
    /// Status 404 if the configuration has no such file, 500 if the file cannot be read.
    pub fn text(&self, named: Option<&Path>) -> Result<ConfigText, ApiError> {
        let files = self.files();
        let file = self.named(named)?;
        let text = read(&file)?;
        let revision = revision(&text);
        Ok(ConfigText {
            is_loaded: self.loaded.contains(&file, &revision),
            file,
            files,
            revision,
            text,
        })
    }

    /// Returns the form of a site.
    ///
    /// # Errors
    ///
    /// Status 404 if there is no such site, 422 if its file is not TOML, 500 if the file cannot be read.
    pub fn site_form(&self, name: &str) -> Result<SiteForm, ApiError> {
        let missing = || ApiError::new(404, "there is no website with this name");
        let file = files::defining(&self.files(), &["site", name]).ok_or_else(missing)?;
        let text = read(&file)?;
        let editor = Editor::new(&text).map_err(|report| not_toml(&file, &report))?;
        Ok(site_form::of_site(name, &file, &text, &editor))
    }

    /// Returns the form of the server.
    ///
    /// # Errors
    ///
    /// Status 422 if the file is not TOML, 500 if it cannot be read.
    pub fn server_form(&self) -> Result<ServerForm, ApiError> {
        let file = files::defining(&self.files(), &["server"]).unwrap_or_else(|| self.main.clone());
        let text = read(&file)?;
        let editor = Editor::new(&text).map_err(|report| not_toml(&file, &report))?;
        Ok(site_form::of_server(&file, &text, &editor))
    }

    /// Checks a text without changing the file.
    ///
    /// # Errors
    ///
    /// Status 404 if the configuration has no such file.
    pub fn check(&self, candidate: &Candidate) -> Result<Checked, ApiError> {
        let file = self.named(candidate.file.as_deref())?;
        Ok(self.check_text(&file, &candidate.text))
    }

    fn check_text(&self, file: &Path, text: &str) -> Checked {
        result_of_check(file, text, &self.checked(file, Some(text)))
    }

    /// Replaces the text of a file.
    ///
    /// # Errors
    ///
    /// Status 404 if the configuration has no such file, 409 if the file has another revision, and the statuses of
    /// [`ConfigApi::save`].
    pub fn replace(&self, replacement: &Replacement) -> Result<Saved, ApiError> {
        let file = self.named(replacement.file.as_deref())?;
        let before = read(&file)?;
        expect_revision(&file, &before, Some(&replacement.revision))?;
        self.save(&file, "replace the whole text", Some(&before), Some(&replacement.text))
    }

    /// Applies edits.
    ///
    /// # Errors
    ///
    /// Status 400 or 404 if the edits name an unsuitable file, 409 if the file has another revision, 422 if an edit
    /// cannot be applied, and the statuses of [`ConfigApi::save`].
    pub fn edit(&self, edits: &Edits) -> Result<Saved, ApiError> {
        let (file, before, after) = self.edited(edits)?;
        let what: Vec<String> = edits.edits.iter().map(Edit::to_string).collect();
        self.save(&file, &what.join(", "), before.as_deref(), Some(&after))
    }

    /// Checks the text that edits would produce.
    ///
    /// # Errors
    ///
    /// Status 400 or 404 if the edits name an unsuitable file, 409 if the file has another revision, 422 if an edit
    /// cannot be applied or no `include` matches a new file.
    pub fn check_edits(&self, edits: &Edits) -> Result<Checked, ApiError> {
        let (file, _, after) = self.edited(edits)?;
        let checked = self.checked(&file, Some(&after));
        if edits.create
            && let Ok(loaded) = &checked
        {
            self.expect_included(&file, &loaded.config.files)?;
        }
        Ok(result_of_check(&file, &after, &checked))
    }

    /// Returns the file that the edits apply to, with its text before and after them. A new file has no text before
    /// them.
    fn edited(&self, edits: &Edits) -> Result<(PathBuf, Option<String>, String), ApiError> {
        let (file, before) = match &edits.file {
            Some(name) if edits.create => (self.new_file(name, edits)?, None),
            _ if edits.create => return Err(ApiError::new(400, "`create` needs the name of the new file in `file`")),
            Some(_) => {
                let file = self.named(edits.file.as_deref())?;
                let text = read(&file)?;
                (file, Some(text))
            }
            None => {
                let file = files::of_edits(&self.files(), &edits.edits)?.unwrap_or_else(|| self.main.clone());
                let text = read(&file)?;
                (file, Some(text))
            }
        };
        let text = before.as_deref().unwrap_or_default();
        expect_revision(&file, text, edits.revision.as_deref())?;
        let mut editor = Editor::new(text).map_err(|report| not_toml(&file, &report))?;
        for edit in &edits.edits {
            apply(&mut editor, edit).map_err(|error| ApiError::new(422, format!("cannot {edit}: {error}")))?;
        }
        Ok((file, before, editor.to_string()))
    }

    /// Returns the path of the file that the edits create.
    fn new_file(&self, name: &Path, edits: &Edits) -> Result<PathBuf, ApiError> {
        let file = files::new_file(&self.main, name)?;
        let Some(Edit::AddSite { name: site, .. }) = edits.edits.first() else {
            return Err(ApiError::new(400, "the first edit of a new file must add a site"));
        };
        if let Some(other) = files::defining(&self.files(), &["site", site]) {
            let message = format!("cannot add site {site}: {} defines it already", other.display());
            return Err(ApiError::new(422, message));
        }
        Ok(file)
    }

    /// Returns the changes of all files, the latest first.
    ///
    /// # Errors
    ///
    /// Status 500 if the history or the main file cannot be read.
    pub fn changes(&self) -> Result<Vec<Change>, ApiError> {
        // Without the main file, it is unknown which files the configuration has.
        read(&self.main)?;
        let files = self.recorded_files()?;
        // Changes of a file that cannot be read are left out, because they cannot be undone. A missing file counts as
        // empty, because it may be one that a change has removed.
        let present = |file: &Path| {
            let is_known = files.iter().any(|known| known == file);
            is_known
                .then(|| config_file::read_existing(file).ok())
                .flatten()
                .map(Option::unwrap_or_default)
        };
        self.history.changes(present).map_err(|error| history_failed(&error))
    }

    /// Restores the text of a file before a change. This also undoes later changes of the file.
    ///
    /// # Errors
    ///
    /// Status 404 if there is no such change, and 400 if `discard_edits` is set without a revision. Status 409 if the
    /// file has another revision. Status 409 too if the file contains edits that are not in the history and
    /// `discard_edits` is not set; the details of the error show these edits. Also fails in the same cases as
    /// [`ConfigApi::save`].
    pub fn undo(&self, undo: &Undo) -> Result<Saved, ApiError> {
        if undo.discard_edits && undo.revision.is_none() {
            let message = "`discard_edits` needs the `revision` of the text with the edits";
            return Err(ApiError::new(400, message));
        }
        let found = self
            .history
            .since(&self.recorded_files()?, undo.id)
            .map_err(|error| history_failed(&error))?;
        let undone = found.ok_or_else(|| match undo.id {
            Some(id) => ApiError::new(404, format!("there is no change {id}")),
            None => ApiError::new(404, "there is no change to undo"),
        })?;
        let file = &undone.change.file;
        let before = config_file::read_existing(file).map_err(|error| unreadable(file, &error))?;
        let text = before.as_deref().unwrap_or_default();
        expect_revision(file, text, undo.revision.as_deref())?;
        if !undo.discard_edits
            && let Some(diff) = undone.unrecorded_edits(text)
        {
            let file = file.display();
            let message = format!("{file} is not changed: undo would discard edits that are not in the history");
            return Err(ApiError {
                details: Some(diff).filter(|diff| !diff.is_empty()),
                ..ApiError::new(409, message)
            });
        }
        let what = format!("undo {}: {}", undone.id, undone.change.what);
        // Before a change that created the file, the file did not exist.
        let after = Some(undone.change.before.as_str()).filter(|_| !undone.change.is_new);
        self.save(file, &what, before.as_deref(), after)
    }

    /// Checks and writes a new text, loads it, and records the change. If the server cannot load the text, it
    /// restores the old one, but keeps an edit by another program in the meantime. A text that equals the old one is
    /// loaded but not recorded. `before` and `after` are the texts before and after the change; `None`: the file does
    /// not exist. `what` describes the change for the log and the history.
    ///
    /// # Errors
    ///
    /// Status 409 if the file no longer has the text `before`, 413 if the new text is too large, 422 if it is invalid
    /// or cannot be loaded, 500 if it cannot be written.
    fn save(&self, file: &Path, what: &str, before: Option<&str>, after: Option<&str>) -> Result<Saved, ApiError> {
        let text = after.unwrap_or_default();
        if text.len() > MAX_TEXT {
            let message = format!("the text is larger than {} KiB: edit the file by hand", MAX_TEXT / 1024);
            return Err(ApiError::new(413, message));
        }
        let checked = self.checked(file, after);
        let Loaded { warnings, config } = checked.map_err(|report| invalid(file, &report))?;
        if before.is_none() {
            self.expect_included(file, &config.files)?;
        }
        self.write(file, before, after)?;
        let earlier_error = self.server.last_reload_error();
        let reloaded = reload::reload(self.server, self.source, self.start_settings, self.loaded);
        let Reloaded {
            message, needs_restart, ..
        } = match reloaded {
            Ok(reloaded) => reloaded,
            Err(error) => {
                let restored = match self.write(file, after, before) {
                    Ok(()) => {
                        // The failed reload concerned a text that the file no longer has.
                        self.server.restore_reload_error(earlier_error);
                        match before {
                            Some(_) => "the file has its old text again".to_owned(),
                            None => "the file is removed again".to_owned(),
                        }
                    }
                    Err(error) => error.error,
                };
                return Err(ApiError {
                    details: error.findings,
                    ..ApiError::new(422, format!("{}; {restored}", error.message))
                });
            }
        };
        tracing::info!(file = %file.display(), "the configuration was changed by the control API: {what}");
        let mut findings = findings::of_file(&warnings, file, text);
        findings.extend(needs_restart);
        let mut can_undo = before != after;
        if can_undo && let Err(error) = self.history.record(file, what, before, after) {
            let message = format!("the change cannot be undone, because the history cannot be written: {error}");
            tracing::warn!("{message}");
            findings.push(Finding::warning("no-history", message));
            can_undo = false;
        }
        Ok(Saved {
            message,
            file: file.to_owned(),
            revision: revision(text),
            can_undo,
            findings,
        })
    }

    /// Checks the whole configuration with another text of a file. `None` stands for a missing file.
    fn checked(&self, file: &Path, text: Option<&str>) -> Result<Loaded, Report> {
        let environment = ServerEnvironment::with_manager(self.server.certificates());
        rocknet_config::check(&self.main, &ConfigFiles::with_text(&environment, file, text))
    }

    /// Checks that a new file is among the files of the configuration.
    fn expect_included(&self, file: &Path, files: &[PathBuf]) -> Result<(), ApiError> {
        if files.iter().any(|known| known == file) {
            return Ok(());
        }
        let (file, main) = (file.display(), self.main.display());
        let message = format!("{file} is not created: no pattern of `include` in {main} matches it");
        Err(ApiError::new(422, message))
    }

    /// Replaces the text `before` of a file with `after`. `None` stands for a missing file.
    fn write(&self, file: &Path, before: Option<&str>, after: Option<&str>) -> Result<(), ApiError> {
        let written = match (before, after) {
            (Some(before), Some(after)) => config_file::replace(file, before, after),
            (None, Some(after)) => config_file::create(file, &self.main, after),
            (Some(before), None) => config_file::remove(file, before),
            (None, None) => Ok(()),
        };
        written.map_err(|error| unwritable(file, error))
    }

    /// Returns the files that may have changes in the history: those of the configuration, and those that a change has
    /// removed.
    fn recorded_files(&self) -> Result<Vec<PathBuf>, ApiError> {
        let mut files = self.files();
        let folder = self.main.parent().unwrap_or(Path::new("/"));
        files.extend(self.history.removed(folder).map_err(|error| history_failed(&error))?);
        Ok(files)
    }

    /// Returns the files of the configuration as it is on disk, the main file first.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = rocknet_config::files(&self.main, &ProcessEnvironment);
        if files.is_empty() {
            files.push(self.main.clone());
        }
        files
    }

    /// Returns the path of a file of the configuration. `named`: its path, or `None` for the main file.
    fn named(&self, named: Option<&Path>) -> Result<PathBuf, ApiError> {
        match named {
            None => Ok(self.main.clone()),
            Some(named) => files::find(&self.files(), &self.main, named),
        }
    }
}

/// Returns the result of a check of the configuration with the text `text` of a file, for the client.
fn result_of_check(file: &Path, text: &str, checked: &Result<Loaded, Report>) -> Checked {
    let (is_valid, findings) = match checked {
        Ok(loaded) => (true, &loaded.warnings),
        Err(report) => (false, &report.findings),
    };
    Checked {
        is_valid,
        findings: findings::of_file(findings, file, text),
    }
}

fn read(file: &Path) -> Result<String, ApiError> {
    config_file::read(file).map_err(|error| unreadable(file, &error))
}

/// Applies an edit. The error is the reason why the edit is impossible.
fn apply(editor: &mut Editor, edit: &Edit) -> Result<(), String> {
    let applied = match edit {
        Edit::Set { path, value } => editor.set(&strings(path), value),
        Edit::Remove { path } if editor.remove(&strings(path)) => Ok(()),
        Edit::Remove { .. } => return Err("there is no such key".to_owned()),
        Edit::AddSite { name, root } => editor.add_site(name, root),
        Edit::CopySite { from, to } => editor.copy_site(from, to),
        Edit::RenameSite { from, to } => editor.rename_site(from, to),
        Edit::SetField { site, field, text } => match form::find(field) {
            Some(field) => editor.set_field(site, field, text),
            None => return Err("there is no such field".to_owned()),
        },
        Edit::SetServerField { field, text } => match form::find_of_server(field) {
            // The name of the site is ignored for a field of the server.
            Some(field) => editor.set_field("", field, text),
            None => return Err("there is no such field".to_owned()),
        },
    };
    applied.map_err(|error| error.to_string())
}

fn strings(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}
