//! Changes of the configuration, all by messages to the server, which writes the file.

use rocknet_control::api::ApiError;
use rocknet_control::config::{Edit, Edits, Saved};

use super::draft::DraftStage;
use super::websites::WebsiteState;
use super::{Effect, Model};
use crate::act::PageName;
use crate::job::{Job, Purpose};
use crate::words::fill;

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
        self.edit(from.clone(), Purpose::Duplicate(to, from), edit)
    }

    pub(super) fn remove_site(&mut self) -> Vec<Effect> {
        let Some(name) = self.selected_name() else {
            return Vec::new();
        };
        let path = vec!["site".to_owned(), name.clone()];
        self.edit(name.clone(), Purpose::Remove(name), Edit::Remove { path })
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
            Purpose::Enable(name.clone())
        } else {
            Purpose::Disable(name.clone())
        };
        self.edit(name, purpose, edit)
    }

    /// Returns the name of the selected website, while the list of websites is shown.
    fn selected_name(&self) -> Option<String> {
        if self.page != PageName::Websites {
            return None;
        }
        self.websites.selected().map(|website| website.summary.name.clone())
    }

    /// Returns true while the server carries out a change of this website that the list of websites has caused.
    pub fn is_changing(&self, site: &str) -> bool {
        self.changing.contains(site)
    }

    /// Returns the job that carries out an edit of a website, unless another one is in progress: a second press of a
    /// key would fail, and its error would replace the notice about the first one.
    fn edit(&mut self, site: String, purpose: Purpose, edit: Edit) -> Vec<Effect> {
        if !self.link.is_online() || !self.changing.insert(site) {
            return Vec::new();
        }
        let edits = Edits {
            edits: vec![edit],
            ..Edits::default()
        };
        vec![Effect::Job(Job::Edit(purpose, edits))]
    }

    /// Takes the result of a change.
    pub(super) fn edited(&mut self, purpose: Purpose, result: Result<Saved, ApiError>) -> Vec<Effect> {
        match &purpose {
            Purpose::Change(name) => return self.site_saved(name, result),
            Purpose::Text(file) => return self.text_saved(file, result),
            Purpose::Remove(site) | Purpose::Enable(site) | Purpose::Disable(site) | Purpose::Duplicate(_, site) => {
                self.changing.remove(site);
            }
            Purpose::Add(_) | Purpose::Undo => {}
        }
        let saved = match result {
            Ok(saved) => saved,
            Err(error) if purpose == Purpose::Undo => return self.undo_refused(error),
            Err(error) => {
                let text = match &error.details {
                    _ if error.status == 403 => self.not_permitted(),
                    Some(details) => format!("{}\n{details}", error.error),
                    None => error.error,
                };
                match (&purpose, &mut self.draft) {
                    // A draft that was begun meanwhile is another website.
                    (Purpose::Add(name), Some(draft)) if draft.is_saving(name) => {
                        draft.stage = DraftStage::Filling;
                        draft.failure = Some(text);
                    }
                    _ => self.complain(text),
                }
                return Vec::new();
            }
        };
        if purpose == Purpose::Undo {
            return self.undone(saved);
        }
        self.undo = saved.can_undo.then_some(saved.revision);
        let words = self.words();
        let text = match &purpose {
            Purpose::Add(name) => fill(words.added, &[name]),
            Purpose::Remove(name) => fill(words.removed, &[name]),
            Purpose::Enable(name) => fill(words.enabled_now, &[name]),
            Purpose::Disable(name) => fill(words.disabled_now, &[name]),
            Purpose::Duplicate(copy, original) => fill(words.duplicated, &[copy, original]),
            Purpose::Undo | Purpose::Change(_) | Purpose::Text(_) => String::new(),
        };
        self.tell(text, saved.can_undo);
        match purpose {
            Purpose::Add(name) => {
                let draft = self.draft.as_mut().filter(|draft| draft.is_saving(&name));
                self.websites.selected = Some(name);
                let Some(draft) = draft else {
                    return self.query_list();
                };
                draft.stage = DraftStage::Saved(saved.file);
                // The question about unsaved input is answered by the success.
                let leaving = self.leaving.take();
                let mut effects = self.visit();
                effects.extend(self.added_queries());
                effects.extend(leaving.map_or(Vec::new(), |act| self.act(act)));
                effects
            }
            Purpose::Duplicate(name, _) => {
                self.websites.selected = Some(name);
                self.query()
            }
            _ => self.query_list(),
        }
    }

    /// Returns the queries of a page that lists websites or changes.
    fn query_list(&mut self) -> Vec<Effect> {
        match self.page {
            PageName::History | PageName::Websites => self.query(),
            _ => Vec::new(),
        }
    }
}
