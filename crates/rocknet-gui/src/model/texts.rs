//! The configuration as text: opening, checking, saving, and edits by other programs meanwhile.

use std::path::{Path, PathBuf};

use rocknet_control::api::ApiError;
use rocknet_control::config::{Checked, ConfigText, Saved};

use super::forms::CONFLICT;
use super::text_edit::TextEdit;
use super::{Effect, Fetched, Model};
use crate::act::PageName;
use crate::job::{Job, Purpose};

impl Model {
    /// Opens the text. From the form of a website, it shows the line of the website.
    pub(super) fn edit_text(&mut self) -> Vec<Effect> {
        if !self.link.is_online() || self.page == PageName::EditText {
            return Vec::new();
        }
        let site = match &self.site_edit {
            Fetched::Loaded(edit) if self.page == PageName::EditWebsite => {
                Some((edit.form.file.clone(), edit.form.line))
            }
            _ => None,
        };
        let file = site.as_ref().map(|(file, _)| file.clone());
        self.text_line = site.map(|(_, line)| line);
        self.page_before_text = self.page.entry();
        let mut effects = self.enter(PageName::EditText);
        self.draft = None;
        self.site_edit = Fetched::Missing;
        self.text_edit = Fetched::Loading;
        self.wanted_file.clone_from(&file);
        effects.push(Effect::Job(Job::ReadText(file)));
        effects
    }

    pub(super) fn choose_text(&mut self, file: PathBuf) -> Vec<Effect> {
        let is_shown = |edit: &TextEdit| edit.read.file == file;
        match &self.text_edit {
            Fetched::Loaded(edit) if is_shown(edit) => Vec::new(),
            _ => {
                self.text_edit = Fetched::Loading;
                self.wanted_file = Some(file.clone());
                self.while_online(Job::ReadText(Some(file)))
            }
        }
    }

    /// Takes the text of a file, which was queried to open it, or to notice edits by other programs. A reply about
    /// another file is out of date, because the user has chosen this one meanwhile.
    pub(super) fn take_text(&mut self, file: Option<&Path>, result: Result<ConfigText, ApiError>) -> Vec<Effect> {
        let is_wanted = match &self.text_edit {
            Fetched::Loaded(edit) => file.is_none_or(|file| edit.read.file == file),
            _ => file == self.wanted_file.as_deref(),
        };
        if self.page != PageName::EditText || !is_wanted {
            return Vec::new();
        }
        match (&mut self.text_edit, result) {
            (Fetched::Loaded(edit), Ok(read)) => {
                edit.trouble = None;
                if edit.merge(read) {
                    self.tell(self.words().text_reloaded.to_owned(), false);
                }
            }
            (Fetched::Loaded(edit), Err(error)) => edit.trouble = Some(error.error),
            (state, Ok(read)) => {
                let mut edit = TextEdit::new(read);
                if let Some(line) = self.text_line.take() {
                    edit.go_to(line, 1, true);
                }
                *state = Fetched::Loaded(edit);
            }
            (state, Err(error)) => *state = Fetched::refused(error),
        }
        self.check_text()
    }

    /// Returns the job that notices edits of the file by other programs.
    pub(super) fn watch_text(&self) -> Vec<Effect> {
        match &self.text_edit {
            Fetched::Loaded(edit) if self.page == PageName::EditText && !edit.is_saving() => {
                self.while_online(Job::ReadText(Some(edit.read.file.clone())))
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn set_text(&mut self, text: String, cursor: usize) -> Vec<Effect> {
        if let Fetched::Loaded(edit) = &mut self.text_edit {
            edit.set(text, cursor);
        }
        self.check_text()
    }

    /// Returns the job that lets the server check the text. One check is in progress at a time, so fast typing does not
    /// fill the queue.
    pub(super) fn check_text(&mut self) -> Vec<Effect> {
        let Fetched::Loaded(edit) = &mut self.text_edit else {
            return Vec::new();
        };
        if !self.link.is_online() {
            return Vec::new();
        }
        let Some(candidate) = edit.next_check() else {
            return Vec::new();
        };
        self.last_check += 1;
        edit.checking = Some(self.last_check);
        vec![Effect::Job(Job::CheckText(self.last_check, candidate))]
    }

    /// Takes the result of a check of the text, and checks text that was typed meanwhile.
    pub(super) fn take_text_check(&mut self, number: u64, result: Result<Checked, ApiError>) -> Vec<Effect> {
        let Fetched::Loaded(edit) = &mut self.text_edit else {
            return Vec::new();
        };
        if edit.checking != Some(number) {
            return Vec::new();
        }
        edit.checking = None;
        match result {
            Ok(checked) => edit.place_findings(checked.is_valid, checked.findings),
            Err(error) => {
                edit.failure = Some(error.error);
                // It is repeated with the next letter, or when the server is there again.
                let is_current = edit.is_checked();
                edit.forget_check();
                if is_current {
                    return Vec::new();
                }
            }
        }
        self.check_text()
    }

    pub(super) fn save_text(&mut self) -> Vec<Effect> {
        let is_online = self.link.is_online();
        let Fetched::Loaded(edit) = &mut self.text_edit else {
            return Vec::new();
        };
        if !is_online {
            return Vec::new();
        }
        let file = edit.label(&edit.read.file);
        edit.save().map_or(Vec::new(), |replacement| {
            vec![Effect::Job(Job::Replace(Purpose::Text(file), replacement))]
        })
    }

    /// Takes the result of saving the text.
    pub(super) fn text_saved(&mut self, file: &str, result: Result<Saved, ApiError>) -> Vec<Effect> {
        let mut edit = match &mut self.text_edit {
            Fetched::Loaded(edit) if edit.label(&edit.read.file) == file => Some(edit),
            // The user has chosen another file meanwhile.
            _ => None,
        };
        match result {
            Ok(saved) => {
                if let Some(edit) = &mut edit {
                    edit.saved(saved.revision.clone());
                }
                let is_open = edit.is_some();
                let warnings = saved.findings.iter().map(|finding| format!("\n{finding}"));
                let text = self.words().text_saved.to_owned() + &warnings.collect::<String>();
                self.undo = saved.can_undo.then_some(saved.revision);
                self.tell(text, saved.can_undo);
                // The question about unsaved text is answered by the success.
                match self.leaving.take_if(|_| is_open) {
                    Some(act) => self.act(act),
                    None => Vec::new(),
                }
            }
            Err(error) => {
                if let Some(edit) = edit {
                    if error.status == CONFLICT {
                        edit.refused(None);
                        return self.watch_text();
                    }
                    // The findings of the check are in the list already.
                    edit.refused(Some(error.error.clone()));
                }
                self.complain(error.error);
                Vec::new()
            }
        }
    }

    /// Selects a finding of the list, and shows its place.
    pub(super) fn select_finding(&mut self, key: &str, takes_focus: bool) -> Vec<Effect> {
        let Fetched::Loaded(edit) = &mut self.text_edit else {
            return Vec::new();
        };
        let Ok(at) = key.parse() else {
            return Vec::new();
        };
        let Some(other) = edit.select(at, takes_focus) else {
            return Vec::new();
        };
        // Another file is opened at the line of the finding, unless there is input to lose.
        if takes_focus && !edit.has_changes() && edit.read.files.contains(&other) {
            self.text_line = edit.findings.get(at).map(|finding| finding.line);
            return self.choose_text(other);
        }
        Vec::new()
    }
}
