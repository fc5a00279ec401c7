//! The form of a new website: its input, its check, and the repairs of its problems.

use std::path::PathBuf;

use super::draft::DraftStage;
use super::{Effect, Model};
use crate::act::{FieldId, Fix};
use crate::job::Job;
use crate::words::fill;

impl Model {
    pub(super) fn set_draft(&mut self, field: FieldId, text: &str) -> Vec<Effect> {
        let Some(draft) = self.draft.as_mut().filter(|draft| draft.stage == DraftStage::Filling) else {
            return Vec::new();
        };
        draft.set(field, text, &self.websites);
        if field == FieldId::Folder && !draft.folder.trim().is_empty() && !draft.is_elsewhere {
            // The result of the check in progress is that of the earlier folder.
            draft.is_outdated = draft.checking.is_some();
            let folder = PathBuf::from(draft.folder.trim());
            return vec![Effect::Job(Job::Inspect(folder))];
        }
        self.check_draft()
    }

    /// Returns the job that lets the server check the draft, once it is complete.
    pub(super) fn check_draft(&mut self) -> Vec<Effect> {
        let is_online = self.link.is_online();
        let Some(draft) = &mut self.draft else {
            return Vec::new();
        };
        if !is_online || draft.stage != DraftStage::Filling || !draft.is_complete(&self.websites) {
            draft.checking = None;
            return Vec::new();
        }
        // One check is in progress at a time, so fast typing does not fill the queue.
        if draft.checking.is_some() {
            draft.is_outdated = true;
            return Vec::new();
        }
        self.last_check += 1;
        draft.checking = Some(self.last_check);
        vec![Effect::Job(Job::Check(self.last_check, draft.edits()))]
    }

    pub(super) fn repair(&mut self, fix: Fix) -> Vec<Effect> {
        match fix {
            // Folders and trust stores of this computer are not those of a server elsewhere.
            Fix::CreateStartPage | Fix::TrustCertificates if self.is_elsewhere() => Vec::new(),
            Fix::UseName(name) => self.set_draft(FieldId::Name, &name),
            Fix::UseFolder(folder) => self.set_draft(FieldId::Folder, &folder),
            Fix::CreateStartPage => match &self.draft {
                Some(draft) => vec![Effect::Job(Job::CreateStartPage(draft.served_folder()))],
                None => Vec::new(),
            },
            Fix::TrustCertificates => self.while_online(Job::Trust),
            Fix::UsePort(taken, free) => {
                if let Some(draft) = &mut self.draft {
                    draft.use_port(taken, free);
                }
                self.submit()
            }
            Fix::CopyHostsLine => match self.hosts_line() {
                Some(line) => {
                    self.tell(fill(self.words().copied, &[&line]), false);
                    vec![Effect::Copy(line)]
                }
                None => Vec::new(),
            },
        }
    }
}
