//! Questions before unsaved input is lost, and after an edit by another program.

use super::draft::{Draft, DraftStage};
use super::{Effect, Fetched, Model};
use crate::act::{Act, FieldId, PageName};

/// Question in place of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The user is leaving unsaved input.
    Leave,
    /// Another program has edited what the user is editing.
    Conflict,
}

impl Model {
    /// Returns the question that the user has to answer first.
    pub fn question(&self) -> Option<Question> {
        let conflicts = match (self.page, &self.site_edit, &self.text_edit) {
            (PageName::EditWebsite, Fetched::Loaded(edit), _) => edit.newer.is_some(),
            (PageName::EditText, _, Fetched::Loaded(edit)) => edit.newer.is_some(),
            _ => false,
        };
        match &self.leaving {
            Some(_) => Some(Question::Leave),
            None => conflicts.then_some(Question::Conflict),
        }
    }

    /// Returns true if the page has input that is not saved.
    pub fn has_unsaved_input(&self) -> bool {
        match (self.page, &self.site_edit, &self.text_edit) {
            (PageName::AddWebsite, ..) => self.draft.as_ref().is_some_and(Draft::has_input),
            (PageName::EditWebsite, Fetched::Loaded(edit), _) => edit.has_changes(),
            (PageName::EditText, _, Fetched::Loaded(edit)) => edit.has_changes(),
            _ => false,
        }
    }

    /// Returns true if an act would leave the input of the page.
    pub(super) fn leaves(&self, act: &Act) -> bool {
        match act {
            Act::Show(_)
            | Act::ShowSiteLog
            | Act::AddSite
            | Act::EditServer
            | Act::Cancel
            | Act::Quit
            | Act::SetField(FieldId::File, _) => true,
            Act::EditText => self.page != PageName::EditText,
            // The form that is open takes the folder.
            Act::Drop(_) => match self.page {
                PageName::AddWebsite => self
                    .draft
                    .as_ref()
                    .is_some_and(|draft| draft.stage != DraftStage::Filling),
                page => page != PageName::EditWebsite,
            },
            _ => false,
        }
    }

    pub(super) fn discard(&mut self) -> Vec<Effect> {
        let Some(act) = self.leaving.take() else {
            return Vec::new();
        };
        match self.page {
            PageName::AddWebsite => self.draft = None,
            PageName::EditWebsite => self.site_edit = Fetched::Missing,
            PageName::EditText => {
                if let Fetched::Loaded(edit) = &mut self.text_edit {
                    edit.discard();
                }
            }
            _ => {}
        }
        self.act(act)
    }

    pub(super) fn keep_input(&mut self) -> Vec<Effect> {
        match self.page {
            PageName::EditWebsite => {
                if let Fetched::Loaded(edit) = &mut self.site_edit {
                    edit.keep_input();
                }
                self.check_site_edit()
            }
            PageName::EditText => {
                if let Fetched::Loaded(edit) = &mut self.text_edit {
                    edit.keep_text();
                }
                self.check_text()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn take_other(&mut self) -> Vec<Effect> {
        match self.page {
            PageName::EditWebsite => {
                if let Fetched::Loaded(edit) = &mut self.site_edit
                    && let Some(newer) = edit.newer.take()
                {
                    *edit = super::SiteEdit::new(newer);
                }
                self.check_site_edit()
            }
            PageName::EditText => {
                if let Fetched::Loaded(edit) = &mut self.text_edit {
                    edit.take_other();
                }
                self.check_text()
            }
            _ => Vec::new(),
        }
    }
}
