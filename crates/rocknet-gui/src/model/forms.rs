//! The form that edits a website or the server: opening, checking, saving, and edits by other programs meanwhile.

use rocknet_control::api::ApiError;
use rocknet_control::config::{Checked, Saved};
use rocknet_control::site_form::SiteForm;

use super::site_edit::SiteEdit;
use super::{Effect, Fetched, Model};
use crate::act::{FieldId, PageName};
use crate::job::{Job, Purpose};
use crate::words::fill;

/// Status of a change that was refused, because the file was edited meanwhile.
pub(super) const CONFLICT: u16 = 409;

/// Status of a query of a website that the file lacks.
pub(super) const MISSING: u16 = 404;

impl Model {
    pub(super) fn edit_site(&mut self) -> Vec<Effect> {
        let Some(website) = self.websites.selected().filter(|_| self.page == PageName::Websites) else {
            return Vec::new();
        };
        if !self.link.is_online() {
            return Vec::new();
        }
        let name = website.summary.name.clone();
        let mut effects = self.enter(PageName::EditWebsite);
        self.notice = None;
        self.site_edit = Fetched::Loading;
        self.edited_site.clone_from(&name);
        effects.push(Effect::Job(Job::SiteForm(name)));
        effects
    }

    /// Opens the form of the server.
    pub(super) fn edit_server(&mut self) -> Vec<Effect> {
        if !self.link.is_online() {
            return Vec::new();
        }
        let mut effects = self.enter(PageName::EditWebsite);
        self.notice = None;
        self.site_edit = Fetched::Loading;
        self.edited_site.clear();
        effects.push(Effect::Job(Job::SiteForm(String::new())));
        effects
    }

    /// Returns the page that the open form belongs to.
    pub(super) fn page_of_form(&self) -> PageName {
        match self.edits_server() {
            true => PageName::Server,
            false => PageName::Websites,
        }
    }

    /// Returns true if the form of the server is open.
    pub fn edits_server(&self) -> bool {
        self.page == PageName::EditWebsite && self.edited_site.is_empty()
    }

    /// Takes the form of a website, which was queried to open it, or to notice edits by other programs.
    pub(super) fn take_site_form(&mut self, name: &str, result: Result<SiteForm, ApiError>) -> Vec<Effect> {
        if self.page != PageName::EditWebsite || self.edited_site != name {
            return Vec::new();
        }
        match (&mut self.site_edit, result) {
            (Fetched::Loaded(edit), Ok(form)) => {
                edit.is_gone = false;
                edit.trouble = None;
                let had_changes = edit.has_changes();
                if edit.merge(form) && edit.newer.is_none() {
                    if had_changes {
                        self.tell(self.words().edited_meanwhile.to_owned(), false);
                    }
                    return self.check_site_edit();
                }
                Vec::new()
            }
            // Input is kept, so that the user can copy it. The query is repeated, because another edit may put the
            // website back.
            (Fetched::Loaded(edit), Err(error)) => {
                edit.is_gone = error.status == MISSING;
                edit.trouble = Some(error.error);
                Vec::new()
            }
            (_, Ok(form)) => {
                self.site_edit = Fetched::Loaded(SiteEdit::new(form));
                self.check_site_edit()
            }
            (_, Err(error)) => {
                self.site_edit = Fetched::refused(error);
                Vec::new()
            }
        }
    }

    /// Returns the job that notices edits of the website by other programs.
    pub(super) fn watch_site(&self) -> Vec<Effect> {
        match &self.site_edit {
            Fetched::Loaded(edit) if self.page == PageName::EditWebsite && !edit.is_saving => {
                self.while_online(Job::SiteForm(self.edited_site.clone()))
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn set_site_field(&mut self, id: FieldId, text: &str) -> Vec<Effect> {
        let folder = self.folder_text(id, text);
        let Fetched::Loaded(edit) = &mut self.site_edit else {
            return Vec::new();
        };
        if edit.is_saving {
            return Vec::new();
        }
        let text = folder.as_deref().unwrap_or(text);
        // Text is checked after the field is left.
        if edit.set(id, text) {
            return self.check_site_edit();
        }
        Vec::new()
    }

    pub(super) fn leave_site_field(&mut self, id: FieldId) -> Vec<Effect> {
        if let Fetched::Loaded(edit) = &mut self.site_edit {
            edit.leave(id);
        }
        self.check_site_edit()
    }

    /// Returns the job that lets the server check the form, if it has changed since the last check.
    pub(super) fn check_site_edit(&mut self) -> Vec<Effect> {
        let Fetched::Loaded(edit) = &mut self.site_edit else {
            return Vec::new();
        };
        if !self.link.is_online() || edit.is_gone {
            return Vec::new();
        }
        let Some(edits) = edit.next_check() else {
            return Vec::new();
        };
        self.last_check += 1;
        edit.checking = Some(self.last_check);
        vec![Effect::Job(Job::Check(self.last_check, edits))]
    }

    /// Takes the result of a check of the form. Results of earlier checks are out of date.
    pub(super) fn take_site_check(&mut self, number: u64, result: &Result<Checked, ApiError>) {
        if let Fetched::Loaded(edit) = &mut self.site_edit
            && edit.checking == Some(number)
        {
            edit.checking = None;
            match result {
                Ok(checked) => edit.place(&checked.findings),
                Err(error) => {
                    edit.place(&[]);
                    edit.refuse(error);
                    edit.forget_check();
                }
            }
        }
    }

    pub(super) fn save_site(&mut self) -> Vec<Effect> {
        let is_online = self.link.is_online();
        let Fetched::Loaded(edit) = &mut self.site_edit else {
            return Vec::new();
        };
        let edits = edit.edits();
        if !edit.leave_all() || edits.is_empty() || edit.is_saving || !is_online || edit.newer.is_some() || edit.is_gone
        {
            return Vec::new();
        }
        edit.is_saving = true;
        edit.checking = None;
        let job = Job::Edit(Purpose::Change(edit.name.clone()), edit.request(edits, true));
        vec![Effect::Job(job)]
    }

    /// Takes the result of saving the form.
    pub(super) fn site_saved(&mut self, name: &str, result: Result<Saved, ApiError>) -> Vec<Effect> {
        // The user may have left the form, and opened that of another website.
        let is_open = matches!(&self.site_edit, Fetched::Loaded(edit) if edit.is_saving && edit.name == name);
        let saved = match result {
            Ok(saved) => saved,
            Err(error) if is_open => return self.site_refused(&error),
            Err(error) => {
                self.complain(error.error);
                return Vec::new();
            }
        };
        let warnings = saved.findings.iter().map(|finding| format!("\n{finding}"));
        let changed = match name {
            "" => self.words().server_changed.to_owned(),
            name => fill(self.words().changed, &[name]),
        };
        let text = changed + &warnings.collect::<String>();
        self.undo = saved.can_undo.then_some(saved.revision);
        self.tell(text, saved.can_undo);
        let opened_from = self.page_of_form();
        if !name.is_empty() {
            self.websites.selected = Some(name.to_owned());
        }
        if self.page == PageName::EditWebsite && is_open {
            self.site_edit = Fetched::Missing;
            let leaving = self.leaving.take();
            let mut effects = self.show(opened_from);
            effects.extend(leaving.map_or(Vec::new(), |act| self.act(act)));
            return effects;
        }
        Vec::new()
    }

    fn site_refused(&mut self, error: &ApiError) -> Vec<Effect> {
        let Fetched::Loaded(edit) = &mut self.site_edit else {
            return Vec::new();
        };
        edit.is_saving = false;
        if error.status == CONFLICT {
            let name = self.edited_site.clone();
            return self.while_online(Job::SiteForm(name));
        }
        edit.refuse(error);
        // The findings are placed beside the fields.
        if error.details.is_some() {
            return self.check_site_edit();
        }
        Vec::new()
    }
}
