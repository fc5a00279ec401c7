//! Acts of the user.

use std::path::PathBuf;

use super::draft::Draft;
use super::links::Link;
use super::typed::without_control;
use super::{BanForm, DropForm, Effect, Fetched, Model};
use crate::act::{Act, FieldId, PageName};
use crate::job::Job;
use crate::ways::Starter;
use crate::words::fill;

impl Model {
    /// Carries out an act of the user, and returns what the window has to do.
    pub fn act(&mut self, act: Act) -> Vec<Effect> {
        if self.shown_keys.is_some()
            && let Some(effects) = self.act_in_key_list(&act)
        {
            return effects;
        }
        if act == Act::Cancel && self.leaving.is_some() {
            return self.act(Act::Stay);
        }
        if self.chooser.is_some()
            && self.leaving.is_none()
            && let Some(effects) = self.act_in_chooser(&act)
        {
            return effects;
        }
        if self.has_unsaved_input() && self.leaves(&act) {
            self.leaving = Some(act);
            return Vec::new();
        }
        if !self.permits(&act) {
            // The notice above the page says more.
            self.complain(self.words().denied_title.to_owned());
            return Vec::new();
        }
        match act {
            Act::Show(page) => self.show(page),
            Act::Select(key) => {
                match self.page {
                    PageName::Websites => self.websites.selected = Some(key),
                    PageName::EditText => return self.select_finding(&key, false),
                    page => drop(self.selected.insert(page as u8, key)),
                }
                Vec::new()
            }
            Act::OpenRow => self.open_row(),
            Act::Filter(text) => {
                let text = without_control(&text, false);
                match self.page {
                    PageName::Logs => self.log.filter = text,
                    _ => self.websites.filter = text,
                }
                Vec::new()
            }
            Act::FocusFilter => vec![Effect::FocusFilter],
            Act::Sort(key) => {
                self.websites.sort_by(key);
                Vec::new()
            }
            Act::ConnectAgain => self.connect_again(),
            Act::StartServer | Act::StartBy(_) | Act::StartAt(..) if self.is_elsewhere() => self.connect_again(),
            Act::StartServer => self.start(self.starter()),
            Act::StartBy(starter) => self.start(starter),
            Act::StartAt(from, to) => {
                // The job starts the server itself, so the job of the ordinary start is discarded.
                self.start(Starter::Program);
                vec![Effect::Job(Job::StartAt(from, to))]
            }
            Act::StopServer if self.link.is_online() => self.stop(Job::Stop),
            // A server that this program could not start again is not stopped for a restart.
            Act::RestartServer if self.can_restart() => self.stop(Job::Restart),
            Act::StopServer | Act::RestartServer => Vec::new(),
            Act::ReloadServer => self.while_online(Job::Reload),
            Act::OpenSite => self.open_site(),
            Act::OpenFolder | Act::OpenEditor | Act::OpenConfig | Act::ChooseFolder if self.is_elsewhere() => {
                Vec::new()
            }
            Act::OpenFolder => {
                let root = self
                    .websites
                    .selected()
                    .and_then(|website| website.summary.root.clone());
                root.map_or(Vec::new(), |root| open(root.to_string_lossy().into_owned()))
            }
            Act::OpenEditor => {
                let selected = self.websites.selected();
                let root = selected.and_then(|website| website.summary.root.clone());
                root.map_or(Vec::new(), |root| vec![Effect::Job(Job::OpenEditor(root))])
            }
            Act::OpenConfig => {
                let served = self.status.as_ref().and_then(|status| status.config_file.clone());
                let of_stopped = self.file_config.as_ref().filter(|_| !self.link.is_online());
                let file = match &self.text_edit {
                    Fetched::Loaded(edit) if self.page == PageName::EditText => Some(edit.read.file.clone()),
                    _ => of_stopped.map(|config| config.file.clone()).or(served),
                };
                file.map_or(Vec::new(), |file| open(file.to_string_lossy().into_owned()))
            }
            Act::AddSite => self.add_site(),
            Act::EditSite => self.edit_site(),
            Act::EditServer => self.edit_server(),
            Act::UpgradeServer => self.upgrade(),
            Act::EditText => self.edit_text(),
            Act::DuplicateSite => self.duplicate_site(),
            Act::RemoveSite => self.remove_site(),
            Act::ToggleSite => self.toggle_site(),
            Act::SwitchService(switch) => self.switch_service(switch),
            Act::StopService => self.stop_service(),
            Act::CopyService => self.copy_service(),
            Act::ShowCertificates(view) => {
                self.certificate_view = view;
                Vec::new()
            }
            Act::Undo => self.take_back(),
            Act::UndoNewest => self.take_newest_back(),
            Act::GoBack => self.go_back(),
            Act::DiscardEdits => self.discard_edits(),
            Act::SetField(field, text) => {
                let text = self.typed(field, &text);
                self.set_field(field, &text)
            }
            Act::LeaveField(field) => {
                if let Some(draft) = &mut self.draft {
                    draft.leave(field);
                }
                if self.page == PageName::EditWebsite {
                    return self.leave_site_field(field);
                }
                Vec::new()
            }
            Act::Drop(text) => self.drop_folder(&text),
            Act::ChooseFolder => self.choose_folder(),
            Act::CompletePath | Act::UseFolder | Act::NewFolder => Vec::new(),
            Act::Submit => match self.page {
                PageName::Settings => self.use_place(),
                PageName::EditWebsite => self.save_site(),
                PageName::EditText => self.save_text(),
                PageName::AddBan => self.add_ban(),
                PageName::DropResponses => self.drop_responses(),
                _ => self.submit(),
            },
            Act::Cancel if self.refused_undo.take().is_some() => Vec::new(),
            Act::ShowFileConfig => {
                self.shows_file_config = true;
                Vec::new()
            }
            Act::Cancel => {
                self.draft = None;
                self.shows_file_config = false;
                self.viewed_command = None;
                self.opened_change = None;
                match self.page {
                    PageName::AddWebsite => self.show(PageName::Websites),
                    PageName::EditWebsite => self.show(self.page_of_form()),
                    PageName::EditText => self.show(self.page_before_text),
                    PageName::AddBan | PageName::DropResponses => self.show(PageName::Traffic),
                    _ => Vec::new(),
                }
            }
            Act::SetText(text, cursor) => self.set_text(text, cursor),
            Act::Complete(cursor) => {
                if let Fetched::Loaded(edit) = &mut self.text_edit {
                    edit.complete(cursor);
                }
                Vec::new()
            }
            Act::EndCompletion => {
                if let Fetched::Loaded(edit) = &mut self.text_edit {
                    edit.completion = None;
                }
                Vec::new()
            }
            Act::Stay => {
                self.leaving = None;
                Vec::new()
            }
            Act::Discard => self.discard(),
            Act::KeepInput => self.keep_input(),
            Act::TakeOther => self.take_other(),
            Act::Repair(fix) => self.repair(fix),
            Act::ShowSpan(span) => {
                self.span = span;
                Vec::new()
            }
            Act::ShowLog(choice) => {
                self.log.choice = choice;
                Vec::new()
            }
            Act::ShowSiteLog => {
                if self.page == PageName::Websites
                    && let Some(website) = self.websites.selected()
                {
                    self.log.site = Some(website.summary.name.clone());
                }
                self.show(PageName::Logs)
            }
            Act::Choose(name) => {
                self.log.site = Some(name).filter(|name| !name.is_empty());
                Vec::new()
            }
            Act::FollowLog(follows) => {
                self.log.follows = follows;
                Vec::new()
            }
            Act::SetLevel(level) => self.while_online(Job::SetLevel(level)),
            // These pages show the state of the server, which is queried each second anyway.
            Act::Refresh
                if self.may_change()
                    && matches!(self.page, PageName::Websites | PageName::Activity | PageName::Server) =>
            {
                self.act(Act::ReloadServer)
            }
            Act::Refresh => self.query(),
            Act::CopyReason => self.copy_reason(),
            Act::CloseReason => {
                self.ending = None;
                Vec::new()
            }
            Act::CopyText(text) => {
                // A failure stays in view while it is copied.
                if self.notice.as_ref().is_none_or(|notice| !notice.is_failure) {
                    self.tell(self.words().text_copied.to_owned(), false);
                }
                vec![Effect::Copy(text)]
            }
            Act::CopyLines => {
                let lines: Vec<String> = self.log.chosen().map(|line| line.event.line.clone()).collect();
                self.tell(self.words().lines_copied.to_owned(), false);
                vec![Effect::Copy(lines.join("\n"))]
            }
            Act::DismissNotice => {
                self.notice = None;
                Vec::new()
            }
            Act::Help => {
                self.shown_keys = Some(String::new());
                Vec::new()
            }
            Act::Quit => vec![Effect::Quit],
        }
    }

    /// Carries out the main act for the selected row of the page: opens the website, the change or the finding.
    fn open_row(&mut self) -> Vec<Effect> {
        let selected = self.selected.get(&(self.page as u8));
        match self.page {
            PageName::Websites => return self.open_site(),
            PageName::History => self.opened_change = selected.and_then(|key| key.parse().ok()),
            PageName::EditText => {
                let selected = match &self.text_edit {
                    Fetched::Loaded(edit) => edit.selected,
                    _ => None,
                };
                return selected.map_or(Vec::new(), |at| self.select_finding(&at.to_string(), true));
            }
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn show(&mut self, page: PageName) -> Vec<Effect> {
        if page != PageName::AddWebsite {
            self.draft = None;
        }
        let mut effects = self.enter(page);
        match page {
            PageName::Server => effects.push(Effect::Job(Job::FindWays)),
            PageName::AddBan => self.ban_form = BanForm::default(),
            PageName::DropResponses => self.drop_form = DropForm::default(),
            _ => {}
        }
        effects.extend(self.query());
        effects
    }

    fn start(&mut self, starter: Starter) -> Vec<Effect> {
        self.starter = Some(starter);
        self.ending = None;
        self.link = Link::Starting;
        vec![Effect::Job(Job::Start(starter))]
    }

    fn upgrade(&mut self) -> Vec<Effect> {
        if !self.link.is_online() || self.is_upgrading {
            return Vec::new();
        }
        self.is_upgrading = true;
        vec![Effect::Job(Job::Upgrade)]
    }

    fn stop(&mut self, job: Job) -> Vec<Effect> {
        self.link = Link::Stopping;
        vec![Effect::Job(job)]
    }

    /// Returns the job as an effect if there is a server.
    pub(super) fn while_online(&self, job: Job) -> Vec<Effect> {
        if self.link.is_online() {
            vec![Effect::Job(job)]
        } else {
            Vec::new()
        }
    }

    fn open_site(&mut self) -> Vec<Effect> {
        if !self.link.is_online() {
            return Vec::new();
        }
        let Some(url) = self.websites.selected().and_then(|website| website.url()) else {
            return Vec::new();
        };
        let url = url.to_owned();
        self.tell(fill(self.words().opened, &[&url]), false);
        open(url)
    }

    pub(super) fn add_site(&mut self) -> Vec<Effect> {
        if !self.link.is_online() {
            return Vec::new();
        }
        self.site_edit = Fetched::Missing;
        let mut effects = self.enter(PageName::AddWebsite);
        self.draft = Some(Draft::new(self.is_elsewhere()));
        self.notice = None;
        if !self.is_elsewhere() {
            effects.push(Effect::Job(Job::FindServers));
        }
        effects
    }

    pub(super) fn set_field(&mut self, field: FieldId, text: &str) -> Vec<Effect> {
        let key = match field {
            FieldId::Theme => "theme",
            FieldId::Language => "language",
            _ if self.set_place(field, text) || self.set_traffic_field(field, text) => return Vec::new(),
            FieldId::File => return self.choose_text(PathBuf::from(text)),
            _ if self.page == PageName::EditWebsite => return self.set_site_field(field, text),
            _ => return self.set_draft(field, text),
        };
        self.settings.set(key, text);
        self.collect_facts();
        vec![Effect::Job(Job::SaveSettings(self.settings.text()))]
    }
}

fn open(target: String) -> Vec<Effect> {
    vec![Effect::Job(Job::Open(target))]
}
