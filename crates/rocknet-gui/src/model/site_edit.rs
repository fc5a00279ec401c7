//! The website, or the server, that is being edited: the form of the server as it is filled in, the edits that it
//! makes, and the problems that the server has found.

mod merging;

use std::collections::{BTreeMap, BTreeSet};

use rocknet_control::api::ApiError;
use rocknet_control::config::{Edit, Edits, Finding};
use rocknet_control::site_form::content::{ContentKind, KINDS, OF_KINDS, shown_with};
use rocknet_control::site_form::{FieldInput, SiteField, SiteForm};

use crate::act::FieldId;

/// A website that is being edited.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteEdit {
    /// Form of the file that the edits apply to.
    pub form: SiteForm,
    /// Name that is filled in.
    pub name: String,
    pub kind: ContentKind,
    /// Kind of the website in the file.
    present_kind: ContentKind,
    /// Texts that are filled in, one for each field of the form.
    texts: Vec<String>,
    /// Errors of the last check, by field.
    problems: BTreeMap<FieldId, Vec<String>>,
    /// Problems of the last check that concern no shown field. The flag is true for an error.
    pub others: Vec<(bool, String)>,
    /// Fields that the user has left, whose emptiness is a problem.
    left: BTreeSet<FieldId>,
    /// Number of the check in progress, and its edits.
    pub checking: Option<u64>,
    /// Edits of the last check.
    checked: Option<Vec<Edit>>,
    pub is_saving: bool,
    /// Form of a file that was edited meanwhile, if it contradicts the input.
    pub newer: Option<SiteForm>,
    /// True if the file lacks the website, which another program has removed or renamed.
    pub is_gone: bool,
    /// Error of the last query of the form; `None` after a successful one.
    pub trouble: Option<String>,
}

impl SiteEdit {
    /// Creates a form with the values of the file.
    pub fn new(form: SiteForm) -> SiteEdit {
        let kind = ContentKind::of(&form.fields.iter().collect::<Vec<_>>());
        SiteEdit {
            name: form.name.clone(),
            kind,
            present_kind: kind,
            texts: form.fields.iter().map(|field| field.present().to_owned()).collect(),
            form,
            problems: BTreeMap::new(),
            others: Vec::new(),
            left: BTreeSet::new(),
            checking: None,
            checked: None,
            is_saving: false,
            newer: None,
            is_gone: false,
            trouble: None,
        }
    }

    /// Returns the fields that the present choices show, each with its identifier and its text.
    pub fn shown(&self) -> impl Iterator<Item = (FieldId, &SiteField, &str)> {
        let fields = self.form.fields.iter().zip(&self.texts).enumerate();
        fields
            .filter(|(_, (field, _))| self.shows(&field.name))
            .filter_map(|(at, (field, text))| Some((FieldId::Site(u8::try_from(at).ok()?), field, text.as_str())))
    }

    /// Returns the kinds that the form offers, each with its value in the choice.
    pub fn kinds(&self) -> impl Iterator<Item = (ContentKind, &'static str)> {
        let present = self.present_kind;
        KINDS
            .into_iter()
            .filter(move |(kind, ..)| *kind != ContentKind::Other || present == ContentKind::Other)
            .map(|(kind, word, ..)| (kind, word))
    }

    /// Returns the value of the present choice of a kind.
    pub fn kind_word(&self) -> &'static str {
        KINDS[self.kind as usize].1
    }

    /// Takes a text that the user has typed or chosen. Returns true if it was chosen, so that it is complete and can be
    /// checked at once.
    pub fn set(&mut self, id: FieldId, text: &str) -> bool {
        self.problems.remove(&id);
        match id {
            FieldId::SiteName => {
                text.trim().clone_into(&mut self.name);
                false
            }
            FieldId::SiteKind => {
                if let Some((kind, ..)) = KINDS.iter().find(|(_, word, ..)| *word == text) {
                    self.kind = *kind;
                }
                true
            }
            FieldId::Folder => match self.form.fields.iter().position(|field| field.name == "root") {
                Some(at) => self.set(FieldId::Site(at as u8), text) | true,
                None => false,
            },
            FieldId::Site(at) => {
                let Some(own) = self.texts.get_mut(usize::from(at)) else {
                    return false;
                };
                text.clone_into(own);
                let input = self.form.fields[usize::from(at)].input;
                matches!(input, FieldInput::Switch | FieldInput::Choice)
            }
            _ => false,
        }
    }

    /// Marks a field as left.
    pub fn leave(&mut self, id: FieldId) {
        self.left.insert(id);
    }

    /// Marks every field as left. Returns true if all fields that are needed are filled in.
    pub fn leave_all(&mut self) -> bool {
        let all: Vec<FieldId> = self.shown().map(|(id, ..)| id).collect();
        self.left.extend(all);
        self.left.insert(FieldId::SiteName);
        self.is_complete()
    }

    /// Returns true if the form is that of the server, which has no name and no kind.
    pub fn is_of_server(&self) -> bool {
        self.form.name.is_empty()
    }

    /// Returns true if all fields that are needed are filled in.
    pub fn is_complete(&self) -> bool {
        (self.is_of_server() || !self.name.is_empty())
            && !self.shown().any(|(_, field, text)| self.is_missing(field, text))
    }

    /// Returns true if the field is needed and empty.
    fn is_missing(&self, field: &SiteField, text: &str) -> bool {
        let name = field.name.as_str();
        let (.., of_kind) = KINDS[self.kind as usize];
        // An empty field `php` becomes `auto`, and `tls.key` may be empty if the certificate file has the key.
        let is_needed = of_kind.contains(&name) && name != "php" || name == "tls.cert" && self.text("tls") == "files";
        is_needed && text.trim().is_empty() && field.other.is_none()
    }

    /// Returns true if a field that the user has left is needed and empty.
    pub fn lacks(&self, id: FieldId) -> bool {
        let is_empty = match id {
            FieldId::SiteName => self.name.is_empty(),
            id => self
                .shown()
                .any(|(shown, field, text)| shown == id && self.is_missing(field, text)),
        };
        is_empty && self.left.contains(&id)
    }

    /// Returns the errors of a field.
    pub fn problems(&self, id: FieldId) -> &[String] {
        self.problems.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns true if the file would change.
    pub fn has_changes(&self) -> bool {
        !self.edits().is_empty()
    }

    /// Returns the edits that write the values of the form to the file.
    pub fn edits(&self) -> Vec<Edit> {
        let mut edits = Vec::new();
        if self.name != self.form.name {
            edits.push(Edit::RenameSite {
                from: self.form.name.clone(),
                to: self.name.clone(),
            });
        }
        for (field, text) in self.form.fields.iter().zip(&self.texts) {
            if self.is_abandoned(field) {
                let path = ["site", &self.name, &field.name];
                edits.push(Edit::Remove {
                    path: path.map(str::to_owned).to_vec(),
                });
                continue;
            }
            let Some(text) = self.wanted(field, text).filter(|_| field.other.is_none()) else {
                continue;
            };
            if text.trim() != field.present().trim() {
                let field = field.name.clone();
                edits.push(match self.is_of_server() {
                    true => Edit::SetServerField { field, text },
                    false => Edit::SetField {
                        site: self.name.clone(),
                        field,
                        text,
                    },
                });
            }
        }
        edits
    }

    /// Returns edits as a request. `has_revision`: true if the file must have the revision of the form.
    pub fn request(&self, edits: Vec<Edit>, has_revision: bool) -> Edits {
        Edits {
            edits,
            revision: has_revision.then(|| self.form.revision.clone()),
            file: Some(self.form.file.clone()),
            create: false,
        }
    }

    /// Returns the edits to check; `None` if the result is known, or if the form is not complete.
    pub fn next_check(&mut self) -> Option<Edits> {
        let edits = self.edits();
        if !self.is_complete() || self.is_saving || self.checked.as_ref() == Some(&edits) {
            return None;
        }
        self.checked = Some(edits.clone());
        Some(self.request(edits, false))
    }

    /// Lets the same edits be checked again, because their check has failed.
    pub fn forget_check(&mut self) {
        self.checked = None;
    }

    /// Returns the text to write for a field; `None` keeps the value in the file. An empty text removes the key.
    fn wanted(&self, field: &SiteField, text: &str) -> Option<String> {
        if !self.shows(&field.name) {
            return None;
        }
        // The kind needs PHP, so a field that does not turn PHP on becomes `auto`.
        if field.name == "php" && self.kind == ContentKind::Php && ["", "false"].contains(&text.trim()) {
            return Some("auto".to_owned());
        }
        Some(text.to_owned())
    }

    /// Returns true if only the previous kind uses a key, which would still have an effect.
    fn is_abandoned(&self, field: &SiteField) -> bool {
        let is_present = field.other.is_some() || !field.text.is_empty();
        OF_KINDS.contains(&field.name.as_str())
            && !self.shows(&field.name)
            && self.kind != self.present_kind
            && is_present
    }

    /// Returns true if the present choices in the form show a field.
    fn shows(&self, name: &str) -> bool {
        let Some((choice, words)) = shown_with(name) else {
            return true;
        };
        words.contains(&match choice {
            "kind" => self.kind_word(),
            choice => self.text(choice),
        })
    }

    /// Returns the folder that is filled in.
    pub fn root(&self) -> &str {
        self.text("root")
    }

    fn text(&self, name: &str) -> &str {
        let mut fields = self.form.fields.iter().zip(&self.texts);
        fields
            .find(|(field, _)| field.name == name)
            .map_or("", |(_, text)| text)
    }

    /// Places the findings of the server beside the fields that they are about. Warnings about other parts of the
    /// configuration are left out.
    pub fn place(&mut self, findings: &[Finding]) {
        self.problems.clear();
        self.others.clear();
        for finding in findings {
            let text = match &finding.help {
                Some(help) => format!("{}: {help}", finding.message),
                None => finding.message.clone(),
            };
            match finding.key.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ref key @ ["server", ..] if self.is_of_server() => self.add_problem(key, finding.is_error, text),
                ["site", site, ref key @ ..] if site == self.name => self.add_problem(key, finding.is_error, text),
                _ if finding.is_error => self.others.push((true, text)),
                _ => {}
            }
        }
    }

    /// Places the error of a request beside the field that the failed edit sets, or beside the name. Any other error
    /// concerns the whole form.
    pub fn refuse(&mut self, error: &ApiError) {
        let edits = self.edits();
        let about = edits.iter().find_map(|edit| {
            let rest = error.error.strip_prefix(&format!("cannot {edit}: "))?;
            Some((edit, rest.to_owned()))
        });
        match about {
            Some((Edit::SetField { field, .. } | Edit::SetServerField { field, .. }, text)) => {
                self.add_problem(&field.split('.').collect::<Vec<_>>(), true, text);
            }
            Some((Edit::Remove { path }, text)) => {
                let key: Vec<&str> = path.iter().skip(2).map(String::as_str).collect();
                self.add_problem(&key, true, text);
            }
            Some((_, text)) => self.add_problem(&[], true, text),
            None => self.others.push((
                true,
                match &error.details {
                    Some(details) => format!("{}\n{details}", error.error),
                    None => error.error.clone(),
                },
            )),
        }
    }

    /// Adds a problem beside the field of a key of the website: of the innermost table that contains the key and has a
    /// field. Warnings, and problems of hidden fields, concern the whole form.
    fn add_problem(&mut self, key: &[&str], is_error: bool, text: String) {
        let depth = |field: &SiteField| {
            let parts: Vec<&str> = field.name.split('.').collect();
            key.starts_with(&parts).then_some(parts.len())
        };
        let found = self.shown().filter(|(_, field, _)| depth(field).is_some());
        let id = match found.max_by_key(|(_, field, _)| depth(field)) {
            Some((id, ..)) => Some(id),
            None => key.is_empty().then_some(FieldId::SiteName),
        };
        match id.filter(|_| is_error) {
            Some(id) => self.problems.entry(id).or_default().push(text),
            None => self.others.push((is_error, text)),
        }
    }

    fn of_name(&self, name: &str) -> Option<(&SiteField, &str)> {
        let mut fields = self.form.fields.iter().zip(&self.texts);
        fields
            .find(|(field, _)| field.name == name)
            .map(|(field, text)| (field, text.as_str()))
    }
}

#[cfg(test)]
mod tests;
