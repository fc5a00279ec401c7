//! The view-model: the state of the window, and what acts of the user and reports of the worker change in it.
//!
//! It uses no toolkit, starts no thread and reads no clock: times are arguments. The window calls [`Model::act`] and
//! [`Model::report`], carries out the returned [`Effect`]s, and draws the screen of the [`pages`](crate::pages).

mod acts;
mod added;
mod check_up;
mod chooser;
mod choosing;
mod config_state;
mod draft;
mod drafting;
mod drops;
mod edits;
mod ending;
mod entering;
mod fetched;
mod forms;
mod key_list;
mod links;
mod log_view;
mod notice;
mod permission;
mod places;
mod questions;
mod refused_undo;
mod reports;
mod request_line;
mod service_acts;
mod services;
mod settings;
mod site_edit;
mod text_edit;
mod texts;
mod traffic;
mod traffic_forms;
mod trouble;
mod typed;
mod undo;
mod website_facts;
mod websites;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use rocknet_control::CertificateSummary;
use rocknet_control::Status;
use rocknet_control::api::{Level, Permission};
use rocknet_control::config::{Change, ConfigState, Undo};
use rocknet_control::doctor::DoctorCheck;
use rocknet_control::samples::SampleHistory;

use crate::act::{Act, CertificateView, PageName, Span};
use crate::elsewhere::Elsewhere;
use crate::job::{Absence, Ending, FileConfig, Job, Query};
use crate::theme::{ColorScheme, Theme};
use crate::ways::{Starter, Ways};
use crate::words::Words;

pub use chooser::{FolderChooser, PARENT};
pub use draft::{Draft, DraftStage, WebsiteKind};
pub use ending::cause_text;
pub use fetched::Fetched;
pub use links::Link;
pub use log_view::{KeptLine, LogView, severity};
pub use notice::Notice;
pub use questions::Question;
pub use refused_undo::RefusedUndo;
pub use services::{Services, Upstream};
pub use settings::Settings;
pub use site_edit::SiteEdit;
pub use text_edit::{TextEdit, TextPlace};
pub use traffic_forms::{BAN_TIMES, BanForm, DropForm, DropSelection};
pub use trouble::{folder_trouble_text, trouble_text};
pub use website_facts::{CertificateTrust, WebsiteFacts, kind_label, trust_label};
pub use websites::{Website, WebsiteState, Websites};

/// Number of samples that are kept: an hour of seconds.
pub const MAX_SAMPLES: usize = 3_600;

/// Something that the window does for the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Sends a job to the worker.
    Job(Job),
    /// Puts a text on the clipboard.
    Copy(String),
    /// Moves the focus to the filter of the page.
    FocusFilter,
    Quit,
}

/// State of the window.
#[derive(Debug)]
pub struct Model {
    pub settings: Settings,
    /// Place of the server as the user has typed it, followed by the place in use.
    pub elsewhere: Elsewhere,
    used_place: Elsewhere,
    pub page: PageName,
    pub link: Link,
    /// End of the last server, if it was not stopped by this program, until it is started again.
    pub ending: Option<Ending>,
    /// Ways in which a server can be started and stopped.
    pub ways: Ways,
    /// Way of the last start.
    starter: Option<Starter>,
    /// Preference of the desktop for dark or light windows.
    pub desktop: Option<ColorScheme>,
    /// Configuration as its files had it when no server ran.
    pub file_config: Option<FileConfig>,
    /// True if the websites of the file are listed in place of the message that no server runs.
    pub shows_file_config: bool,
    /// Files of the configuration, compared with what the server has loaded.
    config_state: Option<ConfigState>,
    /// True while a new process takes over from the server.
    pub is_upgrading: bool,
    /// Command of a server elsewhere that the user views before it is copied.
    pub viewed_command: Option<String>,
    /// Permission of the connection; `None` if it is not known, such as that of an older server.
    permission: Option<Permission>,
    /// Latest state of the server; kept while the server is absent.
    pub status: Option<Status>,
    pub websites: Websites,
    pub samples: SampleHistory,
    pub span: Span,
    pub log: LogView,
    pub level: Option<Level>,
    pub draft: Option<Draft>,
    /// Row that is selected in the list of keys (F1), while the list is shown.
    pub shown_keys: Option<String>,
    /// Chooser of folders, while it is open.
    pub chooser: Option<FolderChooser>,
    /// Form of the website that is edited.
    pub site_edit: Fetched<SiteEdit>,
    /// Name of the edited website in the file; empty while the server is edited.
    edited_site: String,
    /// Text of the configuration that is edited.
    pub text_edit: Fetched<TextEdit>,
    /// File whose text is queried while it is not loaded; `None`: the main file.
    wanted_file: Option<PathBuf>,
    /// Line to scroll to once the text is loaded.
    text_line: Option<usize>,
    /// Page that the text was opened from.
    page_before_text: PageName,
    /// Act that would lose unsaved input, until the user confirms it.
    leaving: Option<Act>,
    pub certificates: Fetched<Vec<CertificateSummary>>,
    pub certificate_view: CertificateView,
    pub services: Services,
    pub ban_form: BanForm,
    pub drop_form: DropForm,
    pub checks: Fetched<Vec<DoctorCheck>>,
    pub history: Fetched<Vec<Change>>,
    /// Number of the change whose differences are shown.
    pub opened_change: Option<u64>,
    pub notice: Option<Notice>,
    /// Row that is selected on each page other than the websites, by `PageName as u8`.
    pub selected: BTreeMap<u8, String>,
    /// Revision after the last change of this window, which an undo takes back.
    undo: Option<String>,
    /// Undo in progress.
    undoing: Option<Undo>,
    /// Undo that would discard edits, until the user decides.
    pub refused_undo: Option<RefusedUndo>,
    /// Websites whose change is in progress.
    changing: BTreeSet<String>,
    /// Number of the last check of a draft, a form or a text.
    last_check: u64,
    /// Time of the latest act or report, since the start of the program.
    now: Duration,
}

impl Model {
    /// Creates the model of a window that has just been opened.
    pub fn new(settings: Settings) -> Model {
        Model {
            settings,
            elsewhere: Elsewhere::default(),
            used_place: Elsewhere::default(),
            page: PageName::default(),
            link: Link::default(),
            ending: None,
            ways: Ways::default(),
            starter: None,
            desktop: None,
            file_config: None,
            shows_file_config: false,
            config_state: None,
            is_upgrading: false,
            viewed_command: None,
            permission: None,
            status: None,
            websites: Websites::default(),
            samples: SampleHistory::new(MAX_SAMPLES),
            span: Span::default(),
            log: LogView::default(),
            level: None,
            draft: None,
            shown_keys: None,
            chooser: None,
            site_edit: Fetched::Missing,
            edited_site: String::new(),
            text_edit: Fetched::Missing,
            wanted_file: None,
            text_line: None,
            page_before_text: PageName::default(),
            leaving: None,
            certificates: Fetched::Missing,
            certificate_view: CertificateView::default(),
            services: Services::default(),
            ban_form: BanForm::default(),
            drop_form: DropForm::default(),
            checks: Fetched::Missing,
            history: Fetched::Missing,
            opened_change: None,
            notice: None,
            selected: BTreeMap::new(),
            undo: None,
            undoing: None,
            refused_undo: None,
            changing: BTreeSet::new(),
            last_check: 0,
            now: Duration::ZERO,
        }
    }

    /// Returns the texts in the language of the user.
    pub fn words(&self) -> &'static Words {
        self.settings.language.words()
    }

    /// Returns the colours of the window.
    pub fn theme(&self) -> Theme {
        self.settings.theme.theme(self.desktop)
    }

    /// Returns the way in which a server is started, unless the user chooses another one.
    pub fn starter(&self) -> Starter {
        let starters = self.ways.starters();
        let last = self.starter.filter(|starter| starters.contains(starter));
        last.or(starters.first().copied()).unwrap_or_default()
    }

    /// Returns true while the system may ask for a password, because the server is being started or stopped.
    pub fn may_ask(&self) -> bool {
        match self.link {
            Link::Starting => self.ways.may_ask(self.starter()),
            Link::Stopping => {
                let unit = self.ways.running_unit.map(Starter::Unit);
                // Without polkit, the server is stopped by the control API, which needs no password.
                unit.is_some_and(|unit| self.ways.may_ask(unit)) && self.ways.no_restart().is_none()
            }
            _ => false,
        }
    }

    /// Returns true if the server can be restarted. A server that does not reply can be restarted only by the unit that
    /// runs it.
    pub fn can_restart(&self) -> bool {
        let is_restartable = match &self.link {
            Link::Online(_) => true,
            Link::Absent(Absence::NoReply(_)) => self.ways.running_unit.is_some(),
            _ => false,
        };
        is_restartable && self.ways.no_restart().is_none() && !self.is_elsewhere()
    }

    /// Sets the present time. Returns true if something that is shown has changed.
    pub fn tick(&mut self, now: Duration) -> bool {
        self.now = now;
        let expired = self.notice.as_ref().is_some_and(|notice| notice.is_over(now));
        if expired {
            self.notice = None;
        }
        expired
    }

    /// Discards the data of the previous server, because another server is used from now on.
    fn forget_server(&mut self) {
        self.websites.forget();
        self.samples = SampleHistory::new(MAX_SAMPLES);
        self.ending = None;
        self.log.forget();
        self.log.site = None;
        self.status = None;
        self.permission = None;
        self.config_state = None;
        self.level = None;
        self.undo = None;
        self.services.forget_server();
    }

    /// Collects the facts about websites from the other lists.
    fn collect_facts(&mut self) {
        let words = self.words();
        let http3 = self.status.as_ref().map_or(&[][..], |status| &status.http3_ports);
        let (services, certificates) = (&self.services, &self.certificates);
        self.websites.collect_facts(|site, is_not_loaded| match is_not_loaded {
            true => WebsiteFacts::of_file(words, site),
            false => WebsiteFacts::new(words, site, http3, services, certificates),
        });
    }

    /// Shows a notice of a success. `can_undo`: the notice offers to take the change back.
    fn tell(&mut self, text: String, can_undo: bool) {
        self.notice = Some(Notice::new(text, false, can_undo, self.now));
    }

    /// Shows a notice of a failure.
    fn complain(&mut self, text: String) {
        self.notice = Some(Notice::new(text, true, false, self.now));
    }

    /// Returns the jobs that query the lists from which facts about websites are read.
    fn fact_queries() -> Vec<Effect> {
        [Query::Certificates, Query::Trust, Query::Uses, Query::PhpPools]
            .map(|query| Effect::Job(Job::Query(query)))
            .into()
    }

    /// Returns the job that fills the page, if it shows a list that is queried.
    fn query(&mut self) -> Vec<Effect> {
        if !self.link.is_online() && !matches!(self.page, PageName::Databases | PageName::Settings) {
            return Vec::new();
        }
        let services = Model::service_queries(self.page);
        if !services.is_empty() {
            return services.iter().map(|query| Effect::Job(Job::Query(*query))).collect();
        }
        let query = match self.page {
            PageName::Websites => return Model::fact_queries(),
            PageName::Certificates => {
                if !matches!(self.certificates, Fetched::Loaded(_)) {
                    self.certificates = Fetched::Loading;
                }
                return [Query::Certificates, Query::Trust]
                    .map(|query| Effect::Job(Job::Query(query)))
                    .into();
            }
            PageName::CheckUp => {
                self.checks = Fetched::Loading;
                return [Query::Trust, Query::Doctor]
                    .map(|query| Effect::Job(Job::Query(query)))
                    .into();
            }
            PageName::AddWebsite if self.draft.as_ref().is_some_and(Draft::is_saved) => {
                let mut effects = self.visit();
                effects.extend(self.added_queries());
                return effects;
            }
            PageName::History => {
                if !matches!(self.history, Fetched::Loaded(_)) {
                    self.history = Fetched::Loading;
                }
                Query::History
            }
            PageName::EditWebsite => return self.while_online(Job::SiteForm(self.edited_site.clone())),
            PageName::EditText => {
                return match &self.text_edit {
                    Fetched::Loaded(_) => self.watch_text(),
                    _ => self.while_online(Job::ReadText(self.wanted_file.clone())),
                };
            }
            PageName::Logs => {
                let follow = self.log.start();
                if follow && !self.log.is_empty() {
                    self.log.resume();
                }
                let mut effects = vec![Effect::Job(Job::Query(Query::Level))];
                effects.extend(follow.then_some(Effect::Job(Job::FollowLogs)));
                return effects;
            }
            PageName::Settings => return vec![Effect::Job(Job::QueryDesktop)],
            _ => return Vec::new(),
        };
        vec![Effect::Job(Job::Query(query))]
    }
}

#[cfg(test)]
mod tests;
