//! Reports of the worker.

use rocknet_control::api::Permission;

use super::draft::DraftStage;
use super::links::Link;
use super::trouble::trouble_text;
use super::{Effect, Fetched, Model};
use crate::act::PageName;
use crate::job::{Absence, FolderTrouble, Job, Poll, Query, Report, StartFailure, Trouble};
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
            Report::Upgraded(result) => {
                self.is_upgrading = false;
                match result {
                    Ok(version) => self.tell(fill(self.words().upgraded, &[&version]), false),
                    Err(trouble) => {
                        let words = self.words();
                        self.complain(fill(words.not_upgraded, &[&trouble_text(words, &trouble)]));
                    }
                }
            }
            Report::FileConfig(config) => self.file_config = Some(*config),
            Report::Ended(ending) => self.end(ending),
            Report::Starting => self.link = Link::Starting,
            Report::StartFailed(failure) => self.link = Link::StartFailed(failure),
            Report::Refused(command) => {
                let reason = fill(self.words().refused, &[&command]);
                if self.link == Link::Starting {
                    self.link = Link::StartFailed(StartFailure {
                        reason: reason.into(),
                        ..StartFailure::default()
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
                    Some((port, holder, other)) if holder.is_empty() => fill(
                        self.words().port_taken,
                        &[&port.to_string(), self.words().other_program, &other.to_string()],
                    ),
                    Some((port, holder, other)) => fill(
                        self.words().port_taken,
                        &[&port.to_string(), &holder, &other.to_string()],
                    ),
                    None => self.words().server_started.to_owned(),
                };
                self.tell(text, false);
            }
            Report::FirstStart => {
                let url = self.websites.shown().first().and_then(|website| website.url());
                return url.map_or(Vec::new(), |url| vec![Effect::Job(Job::Open(url.to_owned()))]);
            }
            Report::StillStopping(connections) => {
                let text = fill(self.words().still_stopping, &[&connections.to_string()]);
                self.tell(text, false);
            }
            Report::Polled(poll) => {
                self.poll(*poll);
                let mut effects = self.unfollow_idle_logs();
                effects.extend(match self.page {
                    PageName::EditWebsite => self.watch_site(),
                    PageName::EditText => self.watch_text(),
                    PageName::AddWebsite => self.watch_added(),
                    _ => Vec::new(),
                });
                return effects;
            }
            Report::PortTaken(name, port, free) => {
                if let Some(draft) = self.draft.as_mut().filter(|draft| draft.is_saving(&name)) {
                    draft.free_port = Some((port, free));
                }
            }
            Report::Edited(purpose, result) => return self.edited(purpose, result),
            Report::Checked(number, result) => {
                if let Some(draft) = self.draft.as_mut().filter(|draft| draft.checking == Some(number)) {
                    draft.checking = None;
                    if std::mem::take(&mut draft.is_outdated) {
                        return self.check_draft();
                    }
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
            Report::Log(events) => {
                // Lines that arrive later may be those of another server.
                if self.log.is_followed() {
                    self.log.push(events);
                }
            }
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
                let awaits = |draft: &&mut super::Draft| draft.stage == DraftStage::Filling && draft.servers != servers;
                if let Some(draft) = self.draft.as_mut().filter(awaits) {
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
                self.is_upgrading = false;
                // An older server does not name the permission, so it is learned by the refusal.
                self.take_permission(Permission::Read);
                self.complain(self.not_permitted());
            }
            // It may still succeed.
            Report::Failed(trouble @ Trouble::Folder(_, FolderTrouble::Waiting)) => {
                self.tell(trouble_text(self.words(), &trouble), false);
            }
            Report::Failed(trouble) => self.complain(trouble_text(self.words(), &trouble)),
            report => return self.report_service(report),
        }
        Vec::new()
    }

    fn connect(&mut self, socket: std::path::PathBuf) -> Vec<Effect> {
        self.link = Link::Online(socket);
        self.ending = None;
        self.permission = None;
        self.config_state = None;
        self.shows_file_config = false;
        self.checks = Fetched::Missing;
        self.certificates = Fetched::Missing;
        self.history = Fetched::Missing;
        self.services.forget_server();
        // The worker has ended the stream of the last connection.
        self.log.stop();
        let mut effects = vec![Effect::Job(Job::WatchTraffic(self.page == PageName::Websites))];
        effects.extend(self.query());
        // A check that has failed without a server is repeated.
        effects.extend(match self.page {
            PageName::EditWebsite => self.check_site_edit(),
            PageName::EditText => self.check_text(),
            PageName::AddWebsite => self.check_draft(),
            _ => Vec::new(),
        });
        effects
    }

    fn lose(&mut self, absence: Absence) {
        let was_stopping = self.link == Link::Stopping;
        self.log.stop();
        if self.link.is_online() || was_stopping {
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
}
