//! Changes of the configuration, all by messages to the server, which writes the file.

use rocknet_control::config::{Edit, Edits, Undo};

use super::draft::DraftStage;
use super::websites::WebsiteState;
use super::{Effect, Fetched, Model};
use crate::act::PageName;
use crate::job::{Job, Purpose};

impl Model {
    pub(super) fn submit(&mut self) -> Vec<Effect> {
        let is_online = self.link.is_online();
        let Some(draft) = self.draft.as_mut().filter(|draft| draft.stage == DraftStage::Filling) else {
            return Vec::new();
        };
        if !draft.leave_all(&self.websites) || !is_online {
            return Vec::new();
        }
        draft.stage = DraftStage::Saving;
        draft.failure = None;
        let job = Job::Edit(Purpose::Add(draft.name.clone()), draft.edits());
        vec![Effect::Job(job)]
    }

    pub(super) fn duplicate_site(&mut self) -> Vec<Effect> {
        let Some(from) = self.selected_name() else {
            return Vec::new();
        };
        let to = self.websites.copy_name(&from);
        let edit = Edit::CopySite {
            from: from.clone(),
            to: to.clone(),
        };
        self.edit(Purpose::Duplicate(to, from), edit)
    }

    pub(super) fn remove_site(&mut self) -> Vec<Effect> {
        let Some(name) = self.selected_name() else {
            return Vec::new();
        };
        let path = vec!["site".to_owned(), name.clone()];
        self.edit(Purpose::Remove(name), Edit::Remove { path })
    }

    pub(super) fn toggle_site(&mut self) -> Vec<Effect> {
        let Some(name) = self.selected_name() else {
            return Vec::new();
        };
        let is_disabled = |website: &super::Website| website.state() == WebsiteState::Disabled;
        let enable = self.websites.find(&name).is_some_and(is_disabled);
        let edit = Edit::SetField {
            site: name.clone(),
            field: "enabled".to_owned(),
            // Without the key, the website is enabled.
            text: if enable { String::new() } else { "false".to_owned() },
        };
        let purpose = if enable {
            Purpose::Enable(name)
        } else {
            Purpose::Disable(name)
        };
        self.edit(purpose, edit)
    }

    pub(super) fn take_back(&mut self) -> Vec<Effect> {
        if !self.link.is_online() {
            return Vec::new();
        }
        let Some(revision) = self.undo.take() else {
            self.tell(self.words().nothing_to_undo.to_owned(), false);
            return Vec::new();
        };
        let undo = Undo {
            revision: Some(revision),
            ..Undo::default()
        };
        vec![Effect::Job(Job::TakeBack(undo))]
    }

    pub(super) fn take_newest_back(&mut self) -> Vec<Effect> {
        let Fetched::Loaded(changes) = &self.history else {
            return Vec::new();
        };
        let Some(newest) = changes.first() else {
            return Vec::new();
        };
        // If the file was edited by hand after the change, the server refuses to undo it, so the edit is kept.
        self.while_online(Job::TakeBack(Undo {
            id: Some(newest.id),
            revision: Some(newest.revision.clone()),
            discard_edits: false,
        }))
    }

    /// Returns the name of the selected website, while the list of websites is shown.
    fn selected_name(&self) -> Option<String> {
        if self.page != PageName::Websites {
            return None;
        }
        self.websites.selected().map(|website| website.summary.name.clone())
    }

    fn edit(&self, purpose: Purpose, edit: Edit) -> Vec<Effect> {
        let edits = Edits {
            edits: vec![edit],
            ..Edits::default()
        };
        self.while_online(Job::Edit(purpose, edits))
    }
}
