//! Folders that are dropped onto the window.

use super::draft::{DraftStage, dropped, dropped_paths};
use super::{Effect, Fetched, Model};
use crate::act::{FieldId, PageName};
use crate::words::fill;

impl Model {
    /// Uses a folder that was dropped onto the window: in the form that is open, or else in a new website.
    pub(super) fn drop_folder(&mut self, text: &str) -> Vec<Effect> {
        let folders = dropped_paths(text);
        let Some(folder) = folders.first().filter(|folder| !folder.is_empty()) else {
            return Vec::new();
        };
        if self.is_elsewhere() {
            self.complain(self.words().dropped_elsewhere.to_owned());
            return Vec::new();
        }
        self.chooser = None;
        let effects = match self.page {
            PageName::EditWebsite => self.drop_into_site(folder),
            _ => self.drop_into_draft(folder),
        };
        if folders.len() > 1 {
            self.tell(fill(self.words().dropped_several, &[folder]), false);
        }
        effects
    }

    fn drop_into_site(&mut self, folder: &str) -> Vec<Effect> {
        let shows_folder = match &self.site_edit {
            Fetched::Loaded(edit) => edit
                .shown()
                .any(|(_, field, _)| field.name == "root" && field.other.is_none()),
            _ => false,
        };
        match shows_folder {
            true => self.set_site_field(FieldId::Folder, folder),
            false => Vec::new(),
        }
    }

    fn drop_into_draft(&mut self, folder: &str) -> Vec<Effect> {
        let is_filling = |draft: &super::Draft| draft.stage == DraftStage::Filling;
        let mut effects = match self.page == PageName::AddWebsite && self.draft.as_ref().is_some_and(is_filling) {
            true => Vec::new(),
            false => self.add_site(),
        };
        effects.extend(self.set_draft(FieldId::Folder, folder));
        // Its problem is shown as soon as it is known.
        if let Some(draft) = &mut self.draft {
            draft.leave(FieldId::Folder);
        }
        effects
    }

    /// Returns the path of a `file:` URL that was pasted into the field of the folder; `None` for other texts and
    /// fields.
    pub(super) fn folder_text(&self, field: FieldId, text: &str) -> Option<String> {
        let Fetched::Loaded(edit) = &self.site_edit else {
            return None;
        };
        let is_root = |at: u8| {
            edit.form
                .fields
                .get(usize::from(at))
                .is_some_and(|field| field.name == "root")
        };
        match field {
            FieldId::Site(at) if is_root(at) && text.trim_start().starts_with("file:/") => Some(dropped(text)),
            _ => None,
        }
    }
}
