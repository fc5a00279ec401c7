//! The website that is being added: its fields, the suggestions for them, and the edits that add the website.

mod names;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rocknet_config::edit::text as toml_string;
use rocknet_control::api::ApiError;
use rocknet_control::config::{Checked, Edit, Edits, Finding};

use super::websites::Websites;
use crate::act::FieldId;
use crate::job::{Inspection, Visit};
pub use names::{dropped, dropped_paths};
use names::{folder_label, host_label};

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

    /// Returns true if PHP runs the website.
    pub fn has_php(self) -> bool {
        matches!(self, WebsiteKind::Php | WebsiteKind::WordPress | WebsiteKind::Laravel)
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
    /// True if the server may be on another computer, whose folders this program cannot look into.
    pub is_elsewhere: bool,
    pub folder: String,
    pub kind: WebsiteKind,
    pub name: String,
    pub address: String,
    /// True if the website has no HTTPS, which is on by default.
    pub is_plain: bool,
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
    /// True if the draft has changed since the check in progress began.
    pub is_outdated: bool,
    /// Result of the last check.
    pub checked: Option<Result<Checked, ApiError>>,
    /// Port of the website that another program holds, and a free port.
    pub free_port: Option<(u16, u16)>,
    /// Default ports that other programs hold, each with the port that the website uses in its place.
    ports: Vec<(u16, u16)>,
    /// Error of saving.
    pub failure: Option<String>,
    pub stage: DraftStage,
    /// Result of the visit after saving.
    pub visit: Option<Visit>,
    /// True once the trust stores were looked into again, after the first certificate of the local CA.
    pub has_looked_again: bool,
    /// True once the browser was opened.
    pub is_opened: bool,
}

impl Draft {
    /// Creates an empty draft. `is_elsewhere`: true if the server may be on another computer.
    pub fn new(is_elsewhere: bool) -> Draft {
        Draft {
            is_elsewhere,
            ..Draft::default()
        }
    }

    /// Returns true if the user has filled in a field, and the website is not saved. A save can still be refused.
    pub fn has_input(&self) -> bool {
        matches!(self.stage, DraftStage::Filling | DraftStage::Saving) && !self.chosen.is_empty()
    }

    /// Returns true if the website is in the configuration file.
    pub fn is_saved(&self) -> bool {
        matches!(self.stage, DraftStage::Saved(_))
    }

    /// Takes a text that the user has typed or chosen.
    pub fn set(&mut self, field: FieldId, text: &str, websites: &Websites) {
        self.chosen.insert(field);
        self.failure = None;
        self.free_port = None;
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
            FieldId::Https => self.is_plain = text == "false",
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

    /// Fills in the fields that the user has not changed. A website that was saved keeps its values.
    fn suggest(&mut self, websites: &Websites) {
        if self.stage != DraftStage::Filling {
            return;
        }
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
        // The suggestion would lead browsers to this computer.
        if self.is_elsewhere {
            return String::new();
        }
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

    /// Returns true if this website is being saved.
    pub fn is_saving(&self, name: &str) -> bool {
        self.stage == DraftStage::Saving && self.name == name
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
    /// everything else. A folder of another computer is a path that only the server can look into.
    pub fn is_complete(&self, websites: &Websites) -> bool {
        let has_source = match self.kind {
            WebsiteKind::Proxy => !self.address.is_empty(),
            _ if self.is_elsewhere => Path::new(self.folder.trim()).is_absolute(),
            _ => self
                .inspection
                .is_some_and(|inspection| inspection.exists && inspection.readable),
        };
        has_source && !self.name.is_empty() && websites.find(&self.name).is_none()
    }

    /// Returns the folder that is served: for Laravel, only its public subfolder.
    pub fn served_folder(&self) -> PathBuf {
        let folder = PathBuf::from(self.folder.trim());
        let is_laravel = match self.inspection {
            Some(inspection) => inspection.is_laravel,
            None => self.is_elsewhere && !folder.ends_with("public"),
        };
        match self.kind {
            WebsiteKind::Laravel if is_laravel => folder.join("public"),
            _ => folder,
        }
    }

    /// Uses another port in place of one that another program holds.
    pub fn use_port(&mut self, taken: u16, free: u16) {
        self.failure = None;
        self.free_port = None;
        match self.name.strip_suffix(&format!(":{taken}")) {
            Some(host) => self.name = format!("{host}:{free}"),
            None => self.ports.push((taken, free)),
        }
    }

    /// Returns the value of `listen`; `None` for the default ports.
    fn listen(&self) -> Option<String> {
        const DEVELOPMENT: [u16; 2] = [8080, 8443];
        const PRODUCTION: [u16; 2] = [80, 443];
        let (first, _) = self.ports.first()?;
        // A port that was taken shows which defaults the server has.
        let defaults = if DEVELOPMENT.contains(first) {
            DEVELOPMENT
        } else {
            PRODUCTION
        };
        let moved = |port| {
            self.ports
                .iter()
                .fold(port, |port, (taken, free)| if port == *taken { *free } else { port })
        };
        let [plain, secure] = defaults.map(moved);
        Some(match self.is_plain {
            true => format!("\"http://{plain}\""),
            false => format!("[\"http://{plain}\", {secure}]"),
        })
    }

    /// Returns true if browsers would find no start page in the folder.
    pub fn lacks_start_page(&self) -> bool {
        self.kind == WebsiteKind::Files && self.inspection.is_some_and(|inspection| !inspection.has_index_html)
    }

    /// Returns the edits that add the website.
    pub fn edits(&self) -> Edits {
        let name = self.name.clone();
        let root = self.served_folder().to_string_lossy().into_owned();
        let mut edits = match self.kind {
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
        if let Some(listen) = self.listen() {
            edits.push(Edit::Set {
                path: vec!["site".to_owned(), self.name.clone(), "listen".to_owned()],
                value: listen,
            });
        }
        if self.is_plain {
            edits.push(Edit::SetField {
                site: self.name.clone(),
                field: "tls".to_owned(),
                text: "off".to_owned(),
            });
        }
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
            Some("tls") => FieldId::Https,
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

#[cfg(test)]
mod tests;
