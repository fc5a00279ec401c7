//! The website that is being added: its fields, the suggestions for them, and the edits that add the website.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rocknet_config::edit::text as toml_string;
use rocknet_control::api::ApiError;
use rocknet_control::config::{Checked, Edit, Edits, Finding};

use super::websites::Websites;
use crate::act::FieldId;
use crate::job::{Inspection, Visit};

/// Kind of a new website.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebsiteKind {
    #[default]
    Files,
    Php,
    WordPress,
    Laravel,
    Proxy,
}

impl WebsiteKind {
    /// All kinds, in the order of the choice.
    pub const ALL: [WebsiteKind; 5] = [
        WebsiteKind::Files,
        WebsiteKind::Php,
        WebsiteKind::WordPress,
        WebsiteKind::Laravel,
        WebsiteKind::Proxy,
    ];

    /// Returns the value of the choice.
    pub fn value(self) -> &'static str {
        match self {
            WebsiteKind::Files => "files",
            WebsiteKind::Php => "php",
            WebsiteKind::WordPress => "wordpress",
            WebsiteKind::Laravel => "laravel",
            WebsiteKind::Proxy => "proxy",
        }
    }

    /// Returns the kind of website that the contents of a folder suggest.
    pub fn of_folder(inspection: &Inspection) -> WebsiteKind {
        match inspection {
            Inspection { is_laravel: true, .. } => WebsiteKind::Laravel,
            Inspection { is_wordpress: true, .. } => WebsiteKind::WordPress,
            Inspection { has_php: true, .. } => WebsiteKind::Php,
            _ => WebsiteKind::Files,
        }
    }
}

/// Stage of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DraftStage {
    #[default]
    Filling,
    /// The website is being saved.
    Saving,
    /// The website is in the configuration file with this path, and is visited.
    Saved(PathBuf),
}

/// A website that is being added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    pub folder: String,
    pub kind: WebsiteKind,
    pub name: String,
    pub address: String,
    /// Fields that the user has changed, for which nothing is suggested any more.
    chosen: BTreeSet<FieldId>,
    /// Fields that the user has left, whose problems are shown.
    left: BTreeSet<FieldId>,
    /// Contents of the folder; `None` while they are unknown.
    pub inspection: Option<Inspection>,
    /// Development servers that were found.
    pub servers: Vec<String>,
    /// Number of the check in progress.
    pub checking: Option<u64>,
    /// Result of the last check.
    pub checked: Option<Result<Checked, ApiError>>,
    /// Error of saving.
    pub failure: Option<String>,
    pub stage: DraftStage,
    /// Result of the visit after saving.
    pub visit: Option<Visit>,
    /// True once the browser was opened.
    pub is_opened: bool,
}

impl Draft {
    /// Returns true if the user has filled in a field, and the website is not saved. A save can still be refused.
    pub fn has_input(&self) -> bool {
        matches!(self.stage, DraftStage::Filling | DraftStage::Saving) && !self.chosen.is_empty()
    }

    /// Takes a text that the user has typed or chosen.
    pub fn set(&mut self, field: FieldId, text: &str, websites: &Websites) {
        self.chosen.insert(field);
        self.failure = None;
        self.checked = None;
        match field {
            FieldId::Folder => {
                let folder = dropped(text);
                if self.folder != folder {
                    self.folder = folder;
                    self.inspection = None;
                }
            }
            FieldId::Kind => {
                if let Some(kind) = WebsiteKind::ALL.into_iter().find(|kind| kind.value() == text) {
                    self.kind = kind;
                }
            }
            FieldId::Name => text.trim().clone_into(&mut self.name),
            FieldId::Address => text.trim().clone_into(&mut self.address),
            _ => {}
        }
        self.suggest(websites);
    }

    /// Takes the contents of a folder. They are ignored if the field has another folder by now.
    pub fn inspect(&mut self, folder: &Path, inspection: Inspection, websites: &Websites) {
        if folder == Path::new(self.folder.trim()) {
            self.inspection = Some(inspection);
            self.suggest(websites);
        }
    }

    /// Takes the development servers that were found.
    pub fn find_servers(&mut self, servers: Vec<String>, websites: &Websites) {
        self.servers = servers;
        self.suggest(websites);
    }

    /// Fills in the fields that the user has not changed.
    fn suggest(&mut self, websites: &Websites) {
        if !self.chosen.contains(&FieldId::Kind)
            && let Some(inspection) = &self.inspection
        {
            self.kind = WebsiteKind::of_folder(inspection);
        }
        if !self.chosen.contains(&FieldId::Address) {
            self.address = self.servers.first().cloned().unwrap_or_default();
        }
        if !self.chosen.contains(&FieldId::Name) {
            self.name = self.suggested_name(websites);
        }
    }

    fn suggested_name(&self, websites: &Websites) -> String {
        let label = match self.kind {
            WebsiteKind::Proxy => match self.address.rsplit_once(':') {
                Some((_, port)) => format!("app-{port}"),
                None => "app".to_owned(),
            },
            _ => folder_label(&self.folder),
        };
        let label = host_label(&label);
        if label.is_empty() {
            return String::new();
        }
        let name = format!("{label}.localhost");
        match websites.find(&name) {
            Some(_) => websites.copy_name(&name),
            None => name,
        }
    }

    /// Marks a field as left, so that its problem is shown.
    pub fn leave(&mut self, field: FieldId) {
        self.left.insert(field);
    }

    /// Marks all fields as left. Returns true if they can be saved.
    pub fn leave_all(&mut self, websites: &Websites) -> bool {
        self.left
            .extend([FieldId::Folder, FieldId::Kind, FieldId::Name, FieldId::Address]);
        self.is_complete(websites)
    }

    /// Returns true if the problem of a field is shown.
    pub fn is_left(&self, field: FieldId) -> bool {
        self.left.contains(&field)
    }

    /// Returns true if the kind has its source, a readable folder or an address, and the name is new. The server checks
    /// everything else.
    pub fn is_complete(&self, websites: &Websites) -> bool {
        let has_source = match self.kind {
            WebsiteKind::Proxy => !self.address.is_empty(),
            _ => self
                .inspection
                .is_some_and(|inspection| inspection.exists && inspection.readable),
        };
        has_source && !self.name.is_empty() && websites.find(&self.name).is_none()
    }

    /// Returns the folder that is served: for Laravel, only its public subfolder.
    pub fn served_folder(&self) -> PathBuf {
        let folder = PathBuf::from(self.folder.trim());
        match self.kind {
            WebsiteKind::Laravel if self.inspection.is_some_and(|inspection| inspection.is_laravel) => {
                folder.join("public")
            }
            _ => folder,
        }
    }

    /// Returns true if browsers would find no start page in the folder.
    pub fn lacks_start_page(&self) -> bool {
        self.kind == WebsiteKind::Files && self.inspection.is_some_and(|inspection| !inspection.has_index_html)
    }

    /// Returns the edits that add the website.
    pub fn edits(&self) -> Edits {
        let name = self.name.clone();
        let root = self.served_folder().to_string_lossy().into_owned();
        let edits = match self.kind {
            WebsiteKind::Proxy => vec![Edit::Set {
                path: vec!["site".to_owned(), name, "proxy".to_owned()],
                value: toml_string(&self.address),
            }],
            WebsiteKind::Files => vec![Edit::AddSite { name, root }],
            WebsiteKind::Php | WebsiteKind::WordPress | WebsiteKind::Laravel => vec![
                Edit::AddSite {
                    name: name.clone(),
                    root,
                },
                Edit::SetField {
                    site: name,
                    field: "php".to_owned(),
                    text: "auto".to_owned(),
                },
            ],
        };
        Edits {
            edits,
            ..Edits::default()
        }
    }

    /// Returns the errors of the last check that are about a field; for [`FieldId::Kind`], the errors about no field.
    pub fn findings(&self, field: FieldId) -> Vec<&Finding> {
        let Some(Ok(checked)) = &self.checked else {
            return Vec::new();
        };
        let of_site = |finding: &&Finding| finding.is_error && finding.key.get(1) == Some(&self.name);
        let place = |finding: &Finding| match finding.key.get(2).map(String::as_str) {
            Some("root") => FieldId::Folder,
            Some("proxy") => FieldId::Address,
            None => FieldId::Name,
            Some(_) => FieldId::Kind,
        };
        checked
            .findings
            .iter()
            .filter(of_site)
            .filter(|finding| place(finding) == field)
            .collect()
    }
}

/// Returns the path in a text. A folder that was dropped into the field arrives as a `file:` URL on a separate line.
fn dropped(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let Some(path) = line.trim().strip_prefix("file://") else {
        return line.to_owned();
    };
    let bytes = path.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let digits = path.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    let path = String::from_utf8_lossy(&decoded).into_owned();
    match path.trim_end_matches('/') {
        "" => path,
        trimmed => trimmed.to_owned(),
    }
}

/// Names of folders that do not name the website, so that the name of the parent folder is used.
const MEANINGLESS: [&str; 8] = ["public", "public_html", "htdocs", "www", "html", "web", "dist", "build"];

/// Returns the part of a path that names the website.
fn folder_label(folder: &str) -> String {
    let parts = Path::new(folder.trim()).components().rev();
    let mut names = parts.filter_map(|part| match part {
        std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let last = names.next().unwrap_or_default();
    if MEANINGLESS.contains(&last.to_lowercase().as_str()) {
        names.next().unwrap_or(last)
    } else {
        last
    }
}

/// Returns a text as a label of a host name: lower case, with hyphens for everything that is not a letter or digit.
fn host_label(text: &str) -> String {
    /// Maximum length of a label (RFC 1035).
    const MAX_LABEL: usize = 63;
    let mut label = String::new();
    for letter in text.to_lowercase().chars() {
        match letter {
            'a'..='z' | '0'..='9' => label.push(letter),
            'ä' => label.push_str("ae"),
            'ö' => label.push_str("oe"),
            'ü' => label.push_str("ue"),
            'ß' => label.push_str("ss"),
            _ if !label.is_empty() && !label.ends_with('-') => label.push('-'),
            _ => {}
        }
    }
    label.truncate(MAX_LABEL);
    label.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocknet_control::SiteSummary;

    fn readable() -> Inspection {
        Inspection {
            exists: true,
            readable: true,
            ..Inspection::default()
        }
    }

    #[test]
    fn names_are_suggested_until_the_user_types_one() {
        let mut websites = Websites::default();
        websites.replace(vec![SiteSummary {
            name: "shop.localhost".to_owned(),
            ..SiteSummary::default()
        }]);
        let mut draft = Draft::default();
        for (folder, expected) in [
            ("/home/me/My Blog!", "my-blog.localhost"),
            ("/home/me/Müller/public/", "mueller.localhost"),
            ("/srv/shop", "shop-2.localhost"),
            ("/", ""),
            ("", ""),
        ] {
            draft.set(FieldId::Folder, folder, &websites);
            assert_eq!(draft.name, expected, "{folder}");
        }
        draft.set(FieldId::Name, " own.test ", &websites);
        draft.set(FieldId::Folder, "/srv/other", &websites);
        assert_eq!(draft.name, "own.test");
    }

    #[test]
    fn dropped_folders_become_paths() {
        for (text, expected) in [
            ("/srv/a", "/srv/a"),
            ("file:///srv/My%20Blog/\r\n", "/srv/My Blog"),
            ("\nfile:///srv/%C3%A4%zz%", "/srv/ä%zz%"),
            ("file:///", "/"),
            ("", ""),
        ] {
            assert_eq!(dropped(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_kind_follows_from_the_folder() {
        let websites = Websites::default();
        let php = Inspection {
            has_php: true,
            ..readable()
        };
        let laravel = Inspection {
            is_laravel: true,
            ..php
        };
        let wordpress = Inspection {
            is_wordpress: true,
            ..php
        };
        for (inspection, kind, root) in [
            (readable(), WebsiteKind::Files, "/a"),
            (php, WebsiteKind::Php, "/a"),
            (wordpress, WebsiteKind::WordPress, "/a"),
            (laravel, WebsiteKind::Laravel, "/a/public"),
        ] {
            let mut draft = Draft::default();
            draft.set(FieldId::Folder, "/a", &websites);
            draft.inspect(Path::new("/other"), laravel, &websites);
            assert_eq!(draft.inspection, None);
            draft.inspect(Path::new("/a"), inspection, &websites);
            assert_eq!((draft.kind, draft.served_folder()), (kind, PathBuf::from(root)));
            assert!(draft.is_complete(&websites));
            let has_php = draft.edits().edits.len() == 2;
            assert_eq!(has_php, kind != WebsiteKind::Files);
        }
    }

    #[test]
    fn a_proxy_needs_an_address_only() {
        let websites = Websites::default();
        let mut draft = Draft::default();
        draft.set(FieldId::Kind, "proxy", &websites);
        assert!(!draft.is_complete(&websites));
        draft.find_servers(vec!["http://127.0.0.1:5173".to_owned()], &websites);
        assert_eq!(
            (draft.name.as_str(), draft.is_complete(&websites)),
            ("app-5173.localhost", true)
        );
        let [Edit::Set { path, value }] = &draft.edits().edits[..] else {
            panic!("{:?}", draft.edits())
        };
        assert_eq!(path, &["site", "app-5173.localhost", "proxy"]);
        assert_eq!(value, "\"http://127.0.0.1:5173\"");
    }

    #[test]
    fn findings_are_placed_beside_their_field() {
        let finding = |key: &[&str], is_error| Finding {
            is_error,
            key: key.iter().map(|part| (*part).to_owned()).collect(),
            ..Finding::warning("x", "y")
        };
        let draft = Draft {
            name: "a.test".to_owned(),
            checked: Some(Ok(Checked {
                is_valid: false,
                findings: vec![
                    finding(&["site", "a.test", "root"], true),
                    finding(&["site", "a.test"], true),
                    finding(&["site", "a.test", "php"], true),
                    finding(&["site", "a.test", "root"], false),
                    finding(&["site", "b.test", "root"], true),
                ],
            })),
            ..Draft::default()
        };
        for field in [FieldId::Folder, FieldId::Name, FieldId::Kind] {
            assert_eq!(draft.findings(field).len(), 1, "{field:?}");
        }
        assert!(draft.findings(FieldId::Address).is_empty());
    }
}
