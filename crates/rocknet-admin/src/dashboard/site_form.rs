//! Form of a website as it is filled in: the texts of its fields, the edits that they make, and the problems that the
//! server has found.

use std::collections::BTreeMap;

use form_urlencoded::parse;
use rocknet_control::api::ApiError;
use rocknet_control::config::{Edit, Edits, Finding};
pub use rocknet_control::site_form::content::{ContentKind, shown_with};
use rocknet_control::site_form::content::{KINDS, OF_KINDS};
use rocknet_control::site_form::{FieldInput, SiteField, SiteForm};

use super::new_website::{self, NewContent};

/// Purpose of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormMode {
    /// Adds a website.
    Add,
    /// Edits a website.
    Edit,
    /// Adds a copy of a website.
    Copy,
}

/// Kinds that the form of a new website offers. The form that edits a website offers the other kinds too.
const OF_NEW: [ContentKind; 3] = [ContentKind::Files, ContentKind::Php, ContentKind::Proxy];

/// Problem that the server has found, or that keeps the form from being sent to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub is_error: bool,
    pub text: String,
}

impl Problem {
    fn error(text: impl Into<String>) -> Problem {
        Problem {
            is_error: true,
            text: text.into(),
        }
    }
}

/// Field with its text in the form.
#[derive(Debug)]
pub struct FilledField {
    pub field: SiteField,
    /// Text that is filled in.
    pub text: String,
    pub problems: Vec<Problem>,
}

impl FilledField {
    /// Returns true if the form has an input for the field. Otherwise, `field.other` has the value of the key as TOML,
    /// such as an array of tables. The form only shows that value, and leaves it as it is.
    fn has_input(&self) -> bool {
        self.field.other.is_none()
    }
}

/// Form as it is filled in.
#[derive(Debug)]
pub struct FilledForm {
    pub mode: FormMode,
    /// Present name of the website, or the name of the website that is copied; empty for a new website.
    pub site: String,
    /// Name that is filled in.
    pub name: String,
    pub name_problems: Vec<Problem>,
    pub kind: ContentKind,
    /// Kind of the website in the file.
    present_kind: ContentKind,
    /// Configuration file of the website, and the line at which the website begins. A new website has neither.
    pub file: String,
    pub line: usize,
    /// Revision of the configuration file that the form was created from; empty for a new website.
    pub revision: String,
    pub fields: Vec<FilledField>,
    /// Name of the user to add. The form does not store the password.
    pub new_user: String,
    pub new_user_problems: Vec<Problem>,
    /// Problems that are not about a field.
    pub problems: Vec<Problem>,
}

impl FilledForm {
    /// Creates a form with the values of the file.
    pub fn new(mode: FormMode, form: SiteForm) -> FilledForm {
        let fields: Vec<FilledField> = form
            .fields
            .into_iter()
            .map(|mut field| {
                if mode == FormMode::Copy && field.name == "aliases" {
                    // Two websites cannot have the same names.
                    (field.text, field.other) = (String::new(), None);
                }
                FilledField {
                    text: field.present().to_owned(),
                    field,
                    problems: Vec::new(),
                }
            })
            .collect();
        let kind = ContentKind::of(&fields.iter().map(|filled| &filled.field).collect::<Vec<_>>());
        FilledForm {
            mode,
            name: match mode {
                FormMode::Edit => form.name.clone(),
                FormMode::Add | FormMode::Copy => String::new(),
            },
            site: form.name,
            name_problems: Vec::new(),
            kind,
            present_kind: kind,
            file: form.file.to_string_lossy().into_owned(),
            line: form.line,
            revision: form.revision,
            fields,
            new_user: String::new(),
            new_user_problems: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Creates the empty form of a new website.
    pub fn for_new_website() -> FilledForm {
        FilledForm {
            kind: ContentKind::Files,
            ..FilledForm::new(FormMode::Add, new_website::form())
        }
    }

    /// Fills in the form with the body that a browser has sent. Fields that the body lacks keep their values, except
    /// switches, which browsers send only if they are on.
    pub fn fill(&mut self, body: &[u8]) {
        let sent: BTreeMap<_, _> = parse(body).into_owned().collect();
        for filled in self.fields.iter_mut().filter(|filled| filled.has_input()) {
            let text = sent.get(&filled.field.name);
            match (filled.field.input, text) {
                (FieldInput::Switch, text) => filled.text = text.is_some().to_string(),
                (_, Some(text)) => filled.text = text.replace("\r\n", "\n"),
                (_, None) => {}
            }
        }
        if let Some(name) = sent.get("name") {
            self.name = name.trim().to_owned();
        }
        if let Some(user) = sent.get("new-user") {
            self.new_user = user.trim().to_owned();
        }
        if let Some(revision) = sent.get("revision") {
            self.revision.clone_from(revision);
        }
        let kind = sent.get("kind");
        if let Some((kind, ..)) = KINDS.iter().find(|(_, word, ..)| kind.is_some_and(|kind| kind == word)) {
            self.kind = *kind;
        }
    }

    /// Adds the new user with the hash of the password, or a problem if `hash` is an error message. If the user
    /// exists already, the new hash replaces the old one.
    pub fn add_user(&mut self, hash: Result<String, String>) {
        let (name, hash) = match hash {
            Ok(hash) => (std::mem::take(&mut self.new_user), hash),
            Err(message) => return self.new_user_problems.push(Problem::error(message)),
        };
        if let Some(auth) = self.fields.iter_mut().find(|filled| filled.field.name == "auth") {
            if !auth.has_input() {
                let text = "This website authenticates its visitors in another way than by passwords of users.";
                return self.new_user_problems.push(Problem::error(text));
            }
            let is_other = |line: &&str| line.split('=').next().is_some_and(|user| user.trim() != name);
            let mut lines: Vec<&str> = auth.text.lines().filter(is_other).collect();
            let added = format!("{name} = {hash}");
            lines.push(&added);
            auth.text = lines.join("\n");
        }
    }

    /// Returns the kinds that the form offers, each with its value in the form and its label.
    pub fn kinds(&self) -> impl Iterator<Item = (ContentKind, &'static str, &'static str)> {
        let present = self.present_kind;
        let is_added = self.mode == FormMode::Add;
        KINDS
            .into_iter()
            .filter(move |(kind, ..)| *kind != ContentKind::Other || present == ContentKind::Other)
            .filter(move |(kind, ..)| !is_added || OF_NEW.contains(kind))
            .map(|(kind, word, label, _)| (kind, word, label))
    }

    /// Returns the groups of fields, each with its heading.
    pub fn groups(&self) -> Vec<(&str, &[FilledField])> {
        let groups = self.fields.chunk_by(|one, next| one.field.group == next.field.group);
        groups
            .filter_map(|fields| Some((fields.first()?.field.group.as_str(), fields)))
            .collect()
    }

    /// Returns the edits that write the values of the form to the file.
    pub fn edits(&self) -> Vec<Edit> {
        let mut edits = Vec::new();
        let (from, to) = (self.site.clone(), self.name.clone());
        match self.mode {
            FormMode::Add => return self.edits_of_new(),
            FormMode::Copy => edits.push(Edit::CopySite { from, to }),
            FormMode::Edit if from != to => edits.push(Edit::RenameSite { from, to }),
            FormMode::Edit => {}
        }
        for filled in &self.fields {
            if self.is_abandoned(filled) {
                let path = ["site", &self.name, &filled.field.name];
                edits.push(Edit::Remove {
                    path: path.map(str::to_owned).to_vec(),
                });
                continue;
            }
            let wanted = self.wanted(filled).filter(|_| filled.has_input());
            let Some(text) = wanted else { continue };
            if text.trim() != filled.field.present().trim() {
                edits.push(Edit::SetField {
                    site: self.name.clone(),
                    field: filled.field.name.clone(),
                    text,
                });
            }
        }
        edits
    }

    fn edits_of_new(&self) -> Vec<Edit> {
        let content = match self.kind {
            ContentKind::Proxy => NewContent::Proxy(self.text("proxy").trim()),
            kind => NewContent::Folder {
                root: self.text("root").trim(),
                has_php: kind == ContentKind::Php,
            },
        };
        new_website::edits(&self.name, content)
    }

    /// Returns the edits as a request. `has_revision`: true if the file must have the revision of the form.
    pub fn request(&self, edits: Vec<Edit>, has_revision: bool) -> Edits {
        Edits {
            edits,
            revision: (has_revision && self.mode != FormMode::Add).then(|| self.revision.clone()),
            // The server chooses the file of a new website.
            file: (self.mode != FormMode::Add).then(|| self.file.clone().into()),
            create: false,
        }
    }

    /// Returns the text to write for a field; `None` keeps the value in the file. An empty text removes the key.
    fn wanted(&self, filled: &FilledField) -> Option<String> {
        let name = filled.field.name.as_str();
        if !self.shows(name) {
            return None;
        }
        let text = filled.text.trim();
        // The kind needs PHP, so a field that does not turn PHP on becomes `auto`.
        if name == "php" && self.kind == ContentKind::Php && ["", "false"].contains(&text) {
            return Some("auto".to_owned());
        }
        Some(filled.text.clone())
    }

    /// Returns true if only the previous kind of the website uses a key, such as `proxy` after a change to files. The
    /// key and the other keys of its table would still have an effect, so the whole key is removed.
    fn is_abandoned(&self, filled: &FilledField) -> bool {
        let name = filled.field.name.as_str();
        let is_present = !filled.has_input() || !filled.field.text.is_empty();
        OF_KINDS.contains(&name) && !self.shows(name) && self.kind != self.present_kind && is_present
    }

    /// Returns true if the present choices in the form show a field.
    fn shows(&self, name: &str) -> bool {
        let Some((choice, words)) = shown_with(name) else {
            return true;
        };
        // `KINDS` has the order of the variants.
        let (_, kind, ..) = KINDS[self.kind as usize];
        words.contains(&if choice == "kind" { kind } else { self.text(choice) })
    }

    /// Returns the text of the field with this name; empty if the form has no such field.
    fn text(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|filled| filled.field.name == name);
        found.map_or("", |filled| &filled.text)
    }

    /// Adds a problem to each field that is needed and empty. Returns true if all such fields are filled in.
    pub fn report_missing(&mut self) -> bool {
        if self.name.is_empty() {
            self.name_problems.push(Problem::error(FILL_IN));
        }
        let (.., of_kind) = KINDS[self.kind as usize];
        let has_files = self.text("tls") == "files";
        let mut is_complete = !self.name.is_empty();
        for filled in &mut self.fields {
            let name = filled.field.name.as_str();
            // An empty field `php` becomes `auto`, and `tls.key` may be empty if the certificate file has the key.
            let is_needed = of_kind.contains(&name) && name != "php" || name == "tls.cert" && has_files;
            if is_needed && filled.text.trim().is_empty() && filled.has_input() {
                filled.problems.push(Problem::error(FILL_IN));
                is_complete = false;
            }
        }
        is_complete
    }

    /// Places the findings of the server beside the fields that they are about. Warnings about other parts of the
    /// configuration are left out.
    pub fn place(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            let problem = Problem {
                is_error: finding.is_error,
                text: match &finding.help {
                    Some(help) => format!("{}: {help}", finding.message),
                    None => finding.message.clone(),
                },
            };
            match finding.key.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["site", site] if site == self.name => self.name_problems.push(problem),
                ["site", site, ref key @ ..] if site == self.name => self.add_problem(key, problem),
                _ if finding.is_error => self.problems.push(problem),
                _ => {}
            }
        }
    }

    /// Places the error of a request with `edits` beside the field whose key the failed edit sets or removes. The error
    /// of an edit of the whole website is placed beside the name. Any other error concerns the whole form. The server
    /// begins the error of an edit with `cannot`, the edit as text, and a colon.
    pub fn refuse(&mut self, error: &ApiError, edits: &[Edit]) {
        let about = edits.iter().find_map(|edit| {
            let rest = error.error.strip_prefix(&format!("cannot {edit}: "))?;
            Some((edit, Problem::error(rest)))
        });
        match about {
            Some((Edit::SetField { field, .. }, problem)) => {
                self.add_problem(&field.split('.').collect::<Vec<_>>(), problem);
            }
            Some((Edit::Remove { path }, problem)) => {
                let key: Vec<&str> = path.iter().skip(2).map(String::as_str).collect();
                self.add_problem(&key, problem);
            }
            Some((_, problem)) => self.name_problems.push(problem),
            None => self.problems.push(Problem::error(match &error.details {
                Some(details) => format!("{}\n{details}", error.error),
                None => error.error.clone(),
            })),
        }
    }

    /// Adds a problem beside the field of a site key, or to the whole form if the field is hidden or missing.
    fn add_problem(&mut self, key: &[&str], problem: Problem) {
        let shown = self.field_of(key).map(|filled| filled.field.name.clone());
        let is_shown = shown.is_some_and(|name| self.shows(&name));
        match self.field_of(key) {
            Some(filled) if is_shown => filled.problems.push(problem),
            Some(filled) => {
                let text = format!("{}: {}", filled.field.label, problem.text);
                self.problems.push(Problem { text, ..problem });
            }
            None => self.problems.push(problem),
        }
    }

    /// Returns the field of a site key, such as `root`. A key without a field, such as `auth.alice`, belongs to the
    /// field of the innermost table that has one, here `auth`. Returns `None` if no such table has a field.
    fn field_of(&mut self, key: &[&str]) -> Option<&mut FilledField> {
        let depth = |filled: &FilledField| {
            let parts: Vec<&str> = filled.field.name.split('.').collect();
            key.starts_with(&parts).then_some(parts.len())
        };
        let found = self.fields.iter_mut().filter(|filled| depth(filled).is_some());
        found.max_by_key(|filled| depth(filled))
    }

    /// Reports that a website with the name exists.
    pub fn refuse_name(&mut self) {
        let text = "There is a website with this name already.";
        self.name_problems.push(Problem::error(text));
    }

    /// Removes the problems of empty fields, because the visitor has not reached them yet.
    pub fn forget_missing(&mut self) {
        let of_fields = self.fields.iter_mut().map(|filled| &mut filled.problems);
        for problems in of_fields.chain([&mut self.name_problems]) {
            problems.retain(|problem| problem.text != FILL_IN);
        }
    }

    /// Returns true if a field or the form has an error.
    pub fn has_errors(&self) -> bool {
        let of_fields = self.fields.iter().flat_map(|filled| &filled.problems);
        let mut all = of_fields
            .chain(&self.name_problems)
            .chain(&self.new_user_problems)
            .chain(&self.problems);
        all.any(|problem| problem.is_error)
    }
}

/// Problem of a required field that is empty.
const FILL_IN: &str = "Fill in this field.";

#[cfg(test)]
mod tests;
