//! Reports of the worker.

use rocknet_control::api::{ApiError, Permission};
use rocknet_control::config::Saved;

use super::draft::DraftStage;
use super::links::Link;
use super::{CertificateTrust, Effect, Fetched, Model};
use crate::act::PageName;
use crate::job::{Absence, Job, Poll, Purpose, Query, Report, StartFailure, Visit};
use crate::ways::Starter;
use crate::words::fill;

impl Model {
    /// Takes a report of the worker, and returns what the window has to do.
    pub fn report(&mut self, report: Report) -> Vec<Effect> {
        match report {
            Report::Place(place) => self.take_place(place),
            Report::Connected(socket) => return self.connect(socket),
            Report::Permission(permission) => self.take_permission(permission),
            Report::Absent(absence) => self.lose(absence),
            Report::FileConfig(config) => self.file_config = Some(*config),
            Report::Starting => self.link = Link::Starting,
            Report::StartFailed(failure) => self.link = Link::StartFailed(failure),
            Report::Refused(command) => {
                let reason = fill(self.words().refused, &[&command]);
                if self.link == Link::Starting {
                    self.link = Link::StartFailed(StartFailure {
                        reason,
                        lines: Vec::new(),
                    });
                } else {
                    self.complain(reason);
                }
            }
            Report::Ways(ways) => {
                // The unit that runs the server now is also used to start it again.
                self.starter = ways.running_unit.map(Starter::Unit).or(self.starter);
                self.ways = ways;
            }
            Report::Desktop(wish) => self.desktop = wish,
            Report::Started(moved) => {
                let text = match moved {
                    Some((port, holder, other)) => fill(
                        self.words().port_taken,
                        &[&port.to_string(), &holder, &other.to_string()],
                    ),
                    None => self.words().server_started.to_owned(),
                };
                self.tell(text, false);
            }
            Report::StillStopping(connections) => {
                let text = fill(self.words().still_stopping, &[&connections.to_string()]);
                self.tell(text, false);
            }
            Report::Polled(poll) => {
                self.poll(*poll);
                return match self.page {
                    PageName::EditWebsite => self.watch_site(),
                    PageName::EditText => self.watch_text(),
                    PageName::AddWebsite => self.watch_added(),
                    _ => Vec::new(),
                };
            }
            Report::Edited(purpose, result) => return self.edited(purpose, result),
            Report::Checked(number, result) => {
                if let Some(draft) = self.draft.as_mut().filter(|draft| draft.checking == Some(number)) {
                    draft.checking = None;
                    draft.checked = Some(result);
                    return Vec::new();
                }
                self.take_site_check(number, &result);
                return self.take_text_check(number, result);
            }
            Report::SiteForm(name, result) => return self.take_site_form(&name, result.map(|form| *form)),
            Report::ConfigText(file, result) => return self.take_text(file.as_deref(), result.map(|text| *text)),
            Report::Certificates(result) => {
                self.certificates.take(result);
                self.collect_facts();
            }
            Report::Doctor(result) => self.checks.take(result),
            Report::History(result) => self.history.take(result),
            Report::Level(level) => self.level = Some(level),
            Report::LevelChanged(level) => {
                self.level = Some(level);
                self.tell(fill(self.words().level_changed, &[level.name()]), false);
            }
            Report::Log(events) => self.log.push(events),
            Report::LogsRefused(reason) => self.log.refuse(reason),
            Report::LogsResumed => self.log.resume(),
            Report::Inspected(folder, inspection) => {
                if let Some(draft) = &mut self.draft {
                    draft.inspect(&folder, inspection, &self.websites);
                    return match draft.stage {
                        DraftStage::Filling => self.check_draft(),
                        // The start page was created.
                        _ => self.visit(),
                    };
                }
            }
            Report::Listed(folder, result) => return self.take_listing(&folder, result),
            Report::FolderCreated(folder, result) => return self.take_created(&folder, result),
            Report::FoundServers(servers) => {
                if let Some(draft) = &mut self.draft {
                    draft.find_servers(servers, &self.websites);
                    return self.check_draft();
                }
            }
            Report::Visited(visit) => return self.visited(visit),
            Report::Done(message) => self.tell(message, false),
            Report::Trusted => {
                self.tell(self.words().trusted_now.to_owned(), false);
                return self.while_online(Job::Query(Query::Trust));
            }
            Report::NotPermitted => {
                // An older server does not name the permission, so it is learned by the refusal.
                self.take_permission(Permission::Read);
                self.complain(self.not_permitted());
            }
            Report::Failed(message) => self.complain(message),
            report => return self.report_service(report),
        }
        Vec::new()
    }

    fn connect(&mut self, socket: std::path::PathBuf) -> Vec<Effect> {
        self.link = Link::Online(socket);
        self.permission = None;
        self.config_state = None;
        self.checks = Fetched::Missing;
        self.certificates = Fetched::Missing;
        self.history = Fetched::Missing;
        self.services.forget_server();
        let mut effects = vec![Effect::Job(Job::WatchTraffic(self.page == PageName::Websites))];
        effects.extend(self.query());
        effects
    }

    fn lose(&mut self, absence: Absence) {
        let was_stopping = self.link == Link::Stopping;
        if self.link.is_online() || was_stopping {
            self.log.stop();
            self.websites.forget_rates();
        }
        if was_stopping && matches!(absence, Absence::Stopped(_)) {
            self.tell(self.words().server_stopped.to_owned(), false);
        }
        self.link.lose(absence);
    }

    fn poll(&mut self, poll: Poll) {
        self.samples.push(poll.at, poll.status.clone());
        self.status = Some(poll.status);
        if let Some(sites) = poll.sites {
            self.websites.replace(sites);
            self.collect_facts();
        }
        self.take_config_state(poll.config);
        if let Some(traffic) = poll.traffic {
            self.websites.measure(poll.at, &traffic);
        } else if poll.traffic_error.is_some() {
            self.websites.forget_rates();
        }
        self.websites.list_error = poll.sites_error;
        self.websites.rates_error = poll.traffic_error;
    }

    fn edited(&mut self, purpose: Purpose, result: Result<Saved, ApiError>) -> Vec<Effect> {
        match &purpose {
            Purpose::Change(name) => return self.site_saved(name, result),
            Purpose::Text(_) => return self.text_saved(result),
            _ => {}
        }
        let saved = match result {
            Ok(saved) => saved,
            Err(error) => {
                let text = match &error.details {
                    _ if error.status == 403 => self.not_permitted(),
                    Some(details) => format!("{}\n{details}", error.error),
                    None => error.error,
                };
                match (&purpose, &mut self.draft) {
                    (Purpose::Add(_), Some(draft)) => {
                        draft.stage = DraftStage::Filling;
                        draft.failure = Some(text);
                    }
                    _ => self.complain(text),
                }
                return Vec::new();
            }
        };
        self.undo = saved.can_undo.then_some(saved.revision);
        let can_undo = saved.can_undo && purpose != Purpose::Undo;
        let words = self.words();
        let text = match &purpose {
            Purpose::Add(name) => fill(words.added, &[name]),
            Purpose::Remove(name) => fill(words.removed, &[name]),
            Purpose::Enable(name) => fill(words.enabled_now, &[name]),
            Purpose::Disable(name) => fill(words.disabled_now, &[name]),
            Purpose::Duplicate(copy, original) => fill(words.duplicated, &[copy, original]),
            Purpose::Undo => words.undone.to_owned(),
            Purpose::Change(_) | Purpose::Text(_) => String::new(),
        };
        if purpose == Purpose::Undo {
            self.undo = None;
            // The website that was added may be gone again.
            if self
                .draft
                .as_ref()
                .is_some_and(|draft| draft.stage != DraftStage::Filling)
            {
                self.draft = None;
                self.page = PageName::Websites;
            }
        }
        self.tell(text, can_undo);
        match purpose {
            Purpose::Add(name) => {
                self.websites.selected = Some(name);
                if let Some(draft) = &mut self.draft {
                    draft.stage = DraftStage::Saved(saved.file);
                }
                // The question about unsaved input is answered by the success.
                let leaving = self.leaving.take();
                let mut effects = self.visit();
                effects.extend(Model::fact_queries());
                effects.extend(leaving.map_or(Vec::new(), |act| self.act(act)));
                effects
            }
            Purpose::Duplicate(name, _) => {
                self.websites.selected = Some(name);
                self.query()
            }
            _ if matches!(self.page, PageName::History | PageName::Websites) => self.query(),
            _ => Vec::new(),
        }
    }

    /// Returns the job that requests the start page of the website that was added, if the server is on this computer.
    pub(super) fn visit(&mut self) -> Vec<Effect> {
        if self.is_elsewhere() {
            return Vec::new();
        }
        let Some(draft) = &mut self.draft else {
            return Vec::new();
        };
        draft.visit = None;
        let name = draft.name.clone();
        self.while_online(Job::Visit(name))
    }

    /// Returns the job that queries the certificate of the website that was added, until it is ready.
    fn watch_added(&self) -> Vec<Effect> {
        let added = self.draft.as_ref().filter(|draft| draft.is_saved());
        let website = added.and_then(|draft| self.websites.find(&draft.name));
        match website.is_some_and(|website| website.facts.trust == CertificateTrust::Fault) {
            true => self.while_online(Job::Query(Query::Certificates)),
            false => Vec::new(),
        }
    }

    /// Takes the result of the visit. If the website replies as it should, it is opened in the browser, once.
    fn visited(&mut self, visit: Visit) -> Vec<Effect> {
        let Some(draft) = &mut self.draft else {
            return Vec::new();
        };
        let is_good = visit.reply.as_ref().is_ok_and(|status| *status < 400) && !draft.lacks_start_page();
        let url = visit.url.clone();
        draft.visit = Some(visit);
        if is_good && !std::mem::replace(&mut draft.is_opened, true) {
            return vec![Effect::Job(Job::Open(url))];
        }
        Vec::new()
    }
}
