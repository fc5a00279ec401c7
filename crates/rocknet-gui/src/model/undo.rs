//! Undo: the last change of this window, and changes of the history.

use rocknet_control::api::ApiError;
use rocknet_control::config::{Saved, Undo};

use super::forms::{CONFLICT, MISSING};
use super::{Effect, Fetched, Model, RefusedUndo};
use crate::act::PageName;
use crate::job::Job;
use crate::words::fill;

impl Model {
    /// Returns true if the last change of this window can be taken back.
    pub fn can_undo(&self) -> bool {
        self.undo.is_some() && self.undoing.is_none() && self.link.is_online()
    }

    /// Returns the job that takes back the last change of this window.
    pub(super) fn take_back(&mut self) -> Vec<Effect> {
        if !self.link.is_online() || self.undoing.is_some() {
            return Vec::new();
        }
        let Some(revision) = self.undo.clone() else {
            self.tell(self.words().nothing_to_undo.to_owned(), false);
            return Vec::new();
        };
        // If the file was edited by hand after the change, the server refuses to undo it, so the edit is kept.
        self.send_undo(Undo {
            revision: Some(revision),
            ..Undo::default()
        })
    }

    pub(super) fn take_newest_back(&mut self) -> Vec<Effect> {
        let newest = self.changes().first().map(|change| change.id);
        newest.map_or(Vec::new(), |id| self.undo_change(id))
    }

    /// Returns the job that restores the file as it was before the opened or selected change.
    pub(super) fn go_back(&mut self) -> Vec<Effect> {
        match self.chosen_change() {
            Some(id) if self.page == PageName::History => self.undo_change(id),
            _ => Vec::new(),
        }
    }

    pub(super) fn discard_edits(&mut self) -> Vec<Effect> {
        if !self.link.is_online() || self.undoing.is_some() {
            return Vec::new();
        }
        let refused = self.refused_undo.take();
        refused.map_or(Vec::new(), |refused| self.send_undo(refused.undo))
    }

    /// Returns the number of the change whose differences are shown, or else of the selected one.
    pub fn chosen_change(&self) -> Option<u64> {
        let selected = || self.selected.get(&(PageName::History as u8))?.parse().ok();
        let chosen = self.opened_change.or_else(selected)?;
        self.changes()
            .iter()
            .any(|change| change.id == chosen)
            .then_some(chosen)
    }

    fn changes(&self) -> &[rocknet_control::config::Change] {
        match &self.history {
            Fetched::Loaded(changes) => changes,
            _ => &[],
        }
    }

    fn undo_change(&mut self, id: u64) -> Vec<Effect> {
        let change = self.changes().iter().find(|change| change.id == id);
        let Some(revision) = change.map(|change| change.revision.clone()) else {
            return Vec::new();
        };
        if !self.link.is_online() || self.undoing.is_some() {
            return Vec::new();
        }
        self.send_undo(Undo {
            id: Some(id),
            revision: Some(revision),
            discard_edits: false,
        })
    }

    fn send_undo(&mut self, undo: Undo) -> Vec<Effect> {
        self.undoing = Some(undo.clone());
        vec![Effect::Job(Job::TakeBack(undo))]
    }

    /// Takes the success of an undo.
    pub(super) fn undone(&mut self, saved: Saved) -> Vec<Effect> {
        let id = self.undoing.take().and_then(|undo| undo.id);
        let change = self.changes().iter().find(|change| Some(change.id) == id);
        let count = change.map_or(1, |undone| {
            let reverted =
                |change: &&rocknet_control::config::Change| change.file == undone.file && change.id >= undone.id;
            self.changes().iter().filter(reverted).count()
        });
        // The undo of several changes can be taken back. A single change is as easily made again.
        let can_undo = saved.can_undo && count > 1;
        self.undo = can_undo.then_some(saved.revision);
        self.opened_change = None;
        // The website that was added may be gone again.
        let has_added = self.draft.as_ref().is_some_and(super::Draft::is_saved);
        let words = self.words();
        let text = match count {
            1 => words.undone.to_owned(),
            _ => fill(words.undone_several, &[&count.to_string()]),
        };
        let effects = match self.page {
            PageName::AddWebsite if has_added => self.show(PageName::Websites),
            PageName::History | PageName::Websites => self.query(),
            _ => Vec::new(),
        };
        self.tell(text, can_undo);
        effects
    }

    /// Takes the refusal of an undo. After a failure of the connection, the last change can still be taken back.
    pub(super) fn undo_refused(&mut self, error: ApiError) -> Vec<Effect> {
        let undo = self.undoing.take();
        if matches!(error.status, CONFLICT | MISSING) {
            self.undo = None;
        }
        let page = self.page;
        match (undo, error.details) {
            (Some(undo), Some(edits)) if error.status == CONFLICT && undo.id.is_some() && page == PageName::History => {
                self.refused_undo = Some(RefusedUndo {
                    undo: Undo {
                        discard_edits: true,
                        ..undo
                    },
                    edits,
                });
                return Vec::new();
            }
            (_, details) => {
                let text = match details {
                    _ if error.status == 403 => self.not_permitted(),
                    Some(details) => format!("{}\n{details}", error.error),
                    None => error.error,
                };
                self.complain(text);
            }
        }
        // The list may be older than the file.
        match page {
            PageName::History => self.query(),
            _ => Vec::new(),
        }
    }
}
