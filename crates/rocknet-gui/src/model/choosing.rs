//! Acts of the user in the chooser of folders, and reports for it.

use std::path::{Path, PathBuf};

use super::chooser::{FolderChooser, with_slash};
use super::{Effect, Fetched, Model};
use crate::act::{Act, FieldId, PageName};
use crate::job::{FolderTrouble, Job, Listing};

impl Model {
    /// Opens the chooser at the folder of the field.
    pub(super) fn choose_folder(&mut self) -> Vec<Effect> {
        let folder = match (self.page, &self.site_edit, &self.draft) {
            (PageName::AddWebsite, _, Some(draft)) => PathBuf::from(draft.folder.trim()),
            (PageName::EditWebsite, Fetched::Loaded(edit), _) => {
                // A relative folder begins at the one of the file.
                let base = edit.form.file.parent().unwrap_or(Path::new("/"));
                base.join(edit.root().trim())
            }
            _ => return Vec::new(),
        };
        let (chooser, job) = FolderChooser::begin(&folder);
        self.chooser = Some(chooser);
        vec![Effect::Job(job)]
    }

    /// Carries out an act of the user in the chooser; `None` for other acts.
    pub(super) fn act_in_chooser(&mut self, act: &Act) -> Option<Vec<Effect>> {
        Some(match act {
            Act::Cancel => {
                self.chooser = None;
                Vec::new()
            }
            Act::Select(key) => self.in_chooser(|chooser| {
                chooser.selected = Some(key.clone());
                None
            }),
            Act::OpenRow => self.open_folder_row(),
            Act::Submit => self.submit_folder(),
            Act::SetField(field @ (FieldId::ChooserPath | FieldId::HiddenFolders), text) => {
                let text = self.typed(*field, text);
                self.set_in_chooser(*field, &text)
            }
            Act::LeaveField(FieldId::ChooserPath | FieldId::HiddenFolders) => Vec::new(),
            Act::CompletePath => self.complete_path(),
            Act::UseFolder => self.use_folder(),
            Act::NewFolder => self.new_folder(),
            _ => return None,
        })
    }

    /// Changes the chooser, if it is open.
    fn in_chooser(&mut self, change: impl FnOnce(&mut FolderChooser) -> Option<Job>) -> Vec<Effect> {
        let job = self.chooser.as_mut().and_then(change);
        job.into_iter().map(Effect::Job).collect()
    }

    fn set_in_chooser(&mut self, field: FieldId, text: &str) -> Vec<Effect> {
        self.in_chooser(|chooser| match field {
            FieldId::ChooserPath => chooser.set_path(text),
            _ => {
                chooser.shows_hidden = text == "true";
                None
            }
        })
    }

    fn complete_path(&mut self) -> Vec<Effect> {
        self.in_chooser(FolderChooser::complete)
    }

    fn open_folder_row(&mut self) -> Vec<Effect> {
        self.in_chooser(|chooser| {
            let name = chooser.selected.clone()?;
            chooser.open(&name)
        })
    }

    /// Uses the folder that the path names, or opens the only one that begins with it.
    fn submit_folder(&mut self) -> Vec<Effect> {
        match &self.chooser {
            Some(chooser) if chooser.chosen().is_some() => self.use_folder(),
            Some(chooser) if chooser.matching().len() == 1 => self.complete_path(),
            _ => Vec::new(),
        }
    }

    fn use_folder(&mut self) -> Vec<Effect> {
        let Some(folder) = self.chooser.as_ref().and_then(FolderChooser::chosen) else {
            return Vec::new();
        };
        self.chooser = None;
        self.set_field(FieldId::Folder, &folder)
    }

    /// Creates the folder that the path names. If it names none that is new, proposes a name.
    fn new_folder(&mut self) -> Vec<Effect> {
        let name = self.words().new_folder_name;
        self.in_chooser(|chooser| {
            if chooser.is_new() {
                return Some(Job::CreateFolder(PathBuf::from(&chooser.path)));
            }
            let folder = with_slash(Path::new(&chooser.chosen()?));
            chooser.version += 1;
            chooser.focus += 1;
            chooser.set_path(&format!("{folder}{name}"))
        })
    }

    pub(super) fn take_listing(&mut self, folder: &Path, result: Result<Listing, FolderTrouble>) -> Vec<Effect> {
        self.in_chooser(|chooser| chooser.take(folder, result))
    }

    pub(super) fn take_created(&mut self, folder: &Path, result: Result<(), FolderTrouble>) -> Vec<Effect> {
        self.in_chooser(|chooser| match result {
            // The user may have gone to another folder while this one did not reply.
            _ if chooser.path != folder.to_string_lossy() => None,
            Ok(()) => Some(chooser.go_to(folder)),
            Err(trouble) => {
                chooser.failure = Some(trouble);
                None
            }
        })
    }
}
