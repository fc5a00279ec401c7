//! The configuration that is edited as text: the text of a file, the findings of the server about it, and proposals.

use std::path::{Path, PathBuf};

use rocknet_control::config::{Candidate, ConfigText, Finding, Replacement};

use crate::difference::Difference;
use crate::toml_text::{Completion, complete};

/// Place in the text that the editor shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextPlace {
    /// Number of the request to show it. Each request is carried out once.
    pub number: u64,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// True if the editor gets the focus.
    pub takes_focus: bool,
}

/// A file of the configuration that is edited as text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextEdit {
    /// File as it was read, with its revision.
    pub read: ConfigText,
    pub text: String,
    /// Number of times that the text was replaced other than by typing.
    pub version: u64,
    /// Findings of the last check, which may be older than the text.
    pub findings: Vec<Finding>,
    /// True if the server would accept the text that was checked last.
    pub is_valid: bool,
    /// Number of the check in progress.
    pub checking: Option<u64>,
    /// Text of the last check.
    checked: Option<String>,
    /// Reason why the text could not be checked or saved.
    pub failure: Option<String>,
    /// Error of the last reading of the file; `None` after a successful one.
    pub trouble: Option<String>,
    /// Text that is being saved.
    saving: Option<String>,
    /// The file as another program has edited it, while the text had unsaved changes.
    pub newer: Option<ConfigText>,
    /// Differences between that file and the text.
    pub difference: Difference,
    /// Index of the selected finding, which is also the key of its row.
    pub selected: Option<usize>,
    pub place: TextPlace,
    /// Byte of the cursor after the last typing, unless a place was shown since.
    pub cursor: Option<usize>,
    pub completion: Option<Completion>,
}

impl TextEdit {
    /// Creates an editor of a file.
    pub fn new(read: ConfigText) -> TextEdit {
        TextEdit {
            text: read.text.clone(),
            read,
            version: 1,
            findings: Vec::new(),
            is_valid: true,
            checking: None,
            checked: None,
            failure: None,
            trouble: None,
            saving: None,
            newer: None,
            difference: Difference::default(),
            selected: None,
            place: TextPlace::default(),
            cursor: None,
            completion: None,
        }
    }

    /// Returns true if the text differs from the file.
    pub fn has_changes(&self) -> bool {
        self.text != self.read.text
    }

    /// Returns true while the text is being saved.
    pub fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// Takes the text that the user has typed. `cursor`: byte after the last character. A list of proposals that is
    /// shown follows the typing.
    pub fn set(&mut self, text: String, cursor: usize) {
        if self.text == text {
            return;
        }
        self.text = text;
        self.failure = None;
        self.cursor = Some(cursor);
        if let Some(before) = self.completion.take() {
            self.complete(cursor);
            // The list is about one word.
            self.completion = self.completion.take().filter(|list| list.start == before.start);
        }
    }

    /// Proposes texts for the place of the cursor.
    pub fn complete(&mut self, cursor: usize) {
        self.completion = complete(&self.text, cursor);
    }

    /// Replaces the text with that of the file.
    pub fn discard(&mut self) {
        self.replace(self.read.text.clone());
        self.failure = None;
    }

    fn replace(&mut self, text: String) {
        if self.text != text {
            self.text = text;
            self.version += 1;
            self.completion = None;
        }
    }

    /// Returns the text to check; `None` if it was checked, or a check is in progress.
    pub fn next_check(&mut self) -> Option<Candidate> {
        if self.checking.is_some() || self.checked.as_ref() == Some(&self.text) {
            return None;
        }
        self.checked = Some(self.text.clone());
        Some(Candidate {
            text: self.text.clone(),
            file: Some(self.read.file.clone()),
        })
    }

    /// Returns true if the last check was of the present text.
    pub fn is_checked(&self) -> bool {
        self.checked.as_ref() == Some(&self.text)
    }

    /// Lets the same text be checked again, because its check has failed.
    pub fn forget_check(&mut self) {
        self.checked = None;
    }

    /// Takes the findings of a check.
    pub fn place_findings(&mut self, is_valid: bool, findings: Vec<Finding>) {
        self.is_valid = is_valid;
        self.findings = findings;
        self.selected = self.selected.filter(|at| *at < self.findings.len());
    }

    /// Returns the request that saves the text; `None` if the file has it already, or it is being saved.
    pub fn save(&mut self) -> Option<Replacement> {
        if !self.has_changes() || self.is_saving() || self.newer.is_some() {
            return None;
        }
        self.saving = Some(self.text.clone());
        Some(Replacement {
            text: self.text.clone(),
            revision: self.read.revision.clone(),
            file: Some(self.read.file.clone()),
        })
    }

    /// Takes the success of saving. Text that was typed meanwhile is unsaved.
    pub fn saved(&mut self, revision: String) {
        if let Some(text) = self.saving.take() {
            self.read.text = text;
            self.read.revision = revision;
            self.read.is_loaded = true;
        }
        self.failure = None;
    }

    /// Takes the failure of saving; `None` after an edit by another program, which [`merge`](Self::merge) finds next.
    pub fn refused(&mut self, failure: Option<String>) {
        self.saving = None;
        self.failure = failure;
    }

    /// Takes the present file. Returns true if another program has edited it and the text shows the edit.
    pub fn merge(&mut self, read: ConfigText) -> bool {
        if self.is_saving() || read.file != self.read.file {
            return false;
        }
        self.read.files.clone_from(&read.files);
        self.read.is_loaded = read.is_loaded;
        if read.revision == self.read.revision {
            self.newer = None;
            return false;
        }
        if self.has_changes() && self.text != read.text {
            if self.newer.as_ref().is_none_or(|newer| newer.revision != read.revision) {
                self.difference = Difference::of(&read.text, &self.text);
            }
            self.newer = Some(read);
            return false;
        }
        self.replace(read.text.clone());
        self.read = read;
        true
    }

    /// Continues with the text of the user, which replaces the present file when it is saved.
    pub fn keep_text(&mut self) {
        if let Some(newer) = self.newer.take() {
            self.read = newer;
        }
    }

    /// Shows the present file without the changes of the user.
    pub fn take_other(&mut self) {
        if let Some(newer) = self.newer.take() {
            self.replace(newer.text.clone());
            self.read = newer;
        }
    }

    /// Returns the findings about this file that have a line.
    pub fn marks(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| self.has_place(finding))
    }

    fn has_place(&self, finding: &Finding) -> bool {
        finding.line > 0 && finding.file.as_deref().is_none_or(|file| file == self.read.file)
    }

    /// Selects a finding, and shows its line. Returns the file of the finding if it is another one.
    pub fn select(&mut self, at: usize, takes_focus: bool) -> Option<PathBuf> {
        let finding = self.findings.get(at)?;
        let (line, column, has_place) = (finding.line, finding.column, self.has_place(finding));
        let other = finding.file.clone().filter(|file| *file != self.read.file);
        self.selected = Some(at);
        if has_place {
            self.go_to(line, column, takes_focus);
        }
        other
    }

    /// Shows a place in the text.
    pub fn go_to(&mut self, line: usize, column: usize, takes_focus: bool) {
        self.cursor = None;
        self.place = TextPlace {
            number: self.place.number + 1,
            line,
            column: column.max(1),
            takes_focus,
        };
    }

    /// Returns the name of a file as the choice of files shows it: relative to the folder of the main file.
    pub fn label(&self, file: &Path) -> String {
        let folder = self.read.files.first().and_then(|main| main.parent());
        let relative = folder.and_then(|folder| file.strip_prefix(folder).ok());
        relative.unwrap_or(file).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests;
