//! Acts of the user and reports of the worker about services.

use rocknet_control::ban::NewBan;
use rocknet_control::{PhpPoolSummary, PhpState};

use super::trouble::trouble_text;
use super::{Effect, Fetched, Model, Upstream};
use crate::act::{PageName, ServiceSwitch};
use crate::job::{Database, DatabaseState, Job, Query, Report, ServiceJob, Trouble, UnitAction};
use crate::words::fill;

impl Model {
    /// Returns the queries of a page about services, the first of which is repeated.
    pub(super) fn service_queries(page: PageName) -> &'static [Query] {
        match page {
            PageName::Upstreams => &[Query::Upstreams, Query::Uses],
            PageName::Traffic => &[Query::Bans],
            PageName::Php => &[Query::Php, Query::Uses],
            PageName::Databases => &[Query::Databases],
            _ => &[],
        }
    }

    /// Takes a report about services.
    pub(super) fn report_service(&mut self, report: Report) -> Vec<Effect> {
        let words = self.words();
        let services = &mut self.services;
        match report {
            Report::Upstreams(Ok(report)) => services.take_upstreams(report),
            Report::Upstreams(Err(error)) => services.upstreams = Fetched::Failed(error),
            Report::Bans(result) => services.bans.take(result),
            Report::Php(Ok(report)) => {
                services.take_php(report);
                self.collect_facts();
            }
            Report::Php(Err(error)) => services.php = Fetched::Failed(error),
            Report::Uses(result) => {
                services.uses.take(result);
                self.collect_facts();
            }
            Report::Trust(result) => {
                services
                    .trust
                    .take(result.map_err(|trouble| trouble_text(words, &trouble)));
                self.collect_facts();
            }
            Report::Databases(report) => services.databases = Fetched::Loaded(report),
            Report::Denied(query) => self.deny(query),
            Report::Served(job, result) => return self.served(job, result),
            _ => {}
        }
        Vec::new()
    }

    fn deny(&mut self, query: Query) {
        match query {
            Query::Upstreams => self.services.upstreams = Fetched::Denied,
            Query::Bans => self.services.bans = Fetched::Denied,
            Query::Php | Query::PhpPools => self.services.php = Fetched::Denied,
            Query::Uses => self.services.uses = Fetched::Denied,
            Query::History => self.history = Fetched::Denied,
            _ => {}
        }
    }

    fn served(&mut self, job: ServiceJob, result: Result<String, Trouble>) -> Vec<Effect> {
        let words = self.words();
        if let ServiceJob::Database(unit, _) = &job {
            self.services.changing.remove(unit);
        }
        let effects = self.end_traffic_form(&job, result.is_ok());
        let message = match result {
            Ok(message) => message,
            Err(trouble) => {
                self.complain(trouble_text(words, &trouble));
                return effects;
            }
        };
        let text = match job {
            ServiceJob::Drain(address, true) => fill(words.drained_now, &[&address]),
            ServiceJob::Drain(address, false) => fill(words.undrained_now, &[&address]),
            ServiceJob::LiftBan(address) => fill(words.ban_lifted, &[&address]),
            ServiceJob::Ban(ban) => fill(words.banned_now, &[&ban.address]),
            ServiceJob::DropResponses(_)
            | ServiceJob::RestartPhp(_)
            | ServiceJob::StartPhp(_)
            | ServiceJob::StopPhp(_) => message,
            ServiceJob::Database(unit, UnitAction::Start) => fill(words.unit_started, &[&unit]),
            ServiceJob::Database(unit, UnitAction::Stop) => fill(words.unit_stopped, &[&unit]),
        };
        self.tell(text, false);
        effects
    }

    /// Returns the job of the button of a page about services for the selected row. The present state of the row does
    /// not matter: the server, or systemd, refuses what is no longer possible.
    pub(super) fn switch_service(&mut self, switch: ServiceSwitch) -> Vec<Effect> {
        let selected = self.selected.get(&(switch.page() as u8)).cloned();
        // The row that counts further bans has no key.
        let Some(key) = selected.filter(|key| !key.is_empty()) else {
            return Vec::new();
        };
        let job = match switch {
            ServiceSwitch::Drain => ServiceJob::Drain(key, true),
            ServiceSwitch::Enable => ServiceJob::Drain(key, false),
            ServiceSwitch::Ban => ServiceJob::Ban(NewBan {
                address: key,
                ..NewBan::default()
            }),
            ServiceSwitch::LiftBan => ServiceJob::LiftBan(key),
            ServiceSwitch::StartPhp => ServiceJob::StartPhp(key),
            ServiceSwitch::RestartPhp => ServiceJob::RestartPhp(key),
            ServiceSwitch::StartDatabase => return self.switch_database(&key, UnitAction::Start),
            ServiceSwitch::StopDatabase => return self.switch_database(&key, UnitAction::Stop),
        };
        self.while_online(Job::Service(job))
    }

    /// Returns the job that starts or stops a database, unless it is being started or stopped.
    fn switch_database(&mut self, key: &str, action: UnitAction) -> Vec<Effect> {
        let Some(database) = self.database(key).filter(|database| !database.unit.is_empty()) else {
            return Vec::new();
        };
        if self.services.state(database) == DatabaseState::Changing {
            return Vec::new();
        }
        let unit = database.unit.clone();
        self.services.changing.insert(unit.clone());
        vec![Effect::Job(Job::Service(ServiceJob::Database(unit, action)))]
    }

    /// Returns the job that stops the selected pool of PHP.
    pub(super) fn stop_service(&mut self) -> Vec<Effect> {
        let pool = self
            .selected_pool()
            .filter(|pool| self.page == PageName::Php && pool.state != PhpState::Stopped);
        let name = pool.map(|pool| pool.name.clone());
        name.map_or(Vec::new(), |name| {
            self.while_online(Job::Service(ServiceJob::StopPhp(name)))
        })
    }

    /// Returns the selected pool of PHP.
    pub fn selected_pool(&self) -> Option<&PhpPoolSummary> {
        let key = self.selected.get(&(PageName::Php as u8))?;
        let Fetched::Loaded(php) = &self.services.php else {
            return None;
        };
        php.pools.iter().find(|pool| pool.name == *key)
    }

    /// Returns the text that the button *Copy* of a page about services puts on the clipboard, with a notice.
    pub(super) fn copy_service(&mut self) -> Vec<Effect> {
        if self.page == PageName::CheckUp {
            return self.copy_remedy();
        }
        let words = self.words();
        let text = match self.page {
            PageName::Databases => self.selected_database().and_then(Database::connection),
            PageName::Php | PageName::AddWebsite => self.services.install_command().map(str::to_owned),
            PageName::Certificates => Some(self.system_trust()),
            _ => None,
        };
        let Some(text) = text else {
            return Vec::new();
        };
        self.tell(fill(words.copied, &[&text]), false);
        vec![Effect::Copy(text)]
    }

    /// Returns the command that installs the certificate of the local CA in the store of the system. It is run as
    /// the present user, because the local CA belongs to this user, and asks for root's rights itself.
    pub fn system_trust(&self) -> String {
        const COMMAND: &str = "rocknet trust";
        let status = self.status.as_ref();
        match status.and_then(|status| status.config_file.as_ref()) {
            Some(file) => {
                let file = file.to_string_lossy().replace('\'', "'\\''");
                let is_plain = file
                    .chars()
                    .all(|own| own.is_ascii_alphanumeric() || "/._-".contains(own));
                let quote = if is_plain { "" } else { "'" };
                format!("{COMMAND} --config {quote}{file}{quote}")
            }
            None => COMMAND.to_owned(),
        }
    }

    /// Returns the server with an address.
    pub fn upstream(&self, address: &str) -> Option<&Upstream> {
        let Fetched::Loaded(upstreams) = &self.services.upstreams else {
            return None;
        };
        upstreams.iter().find(|upstream| upstream.summary.address == address)
    }

    /// Returns true if the client or network with this address is banned, and false for another client of the list;
    /// `None` if it is not in the list.
    pub fn is_banned(&self, address: &str) -> Option<bool> {
        let Fetched::Loaded(report) = &self.services.bans else {
            return None;
        };
        let is_banned = report.bans.iter().any(|ban| ban.address == address);
        let is_listed = is_banned || report.offenders.iter().any(|client| client.address == address);
        is_listed.then_some(is_banned)
    }

    /// Returns the selected database.
    pub fn selected_database(&self) -> Option<&Database> {
        self.database(self.selected.get(&(PageName::Databases as u8))?)
    }

    fn database(&self, key: &str) -> Option<&Database> {
        let Fetched::Loaded(report) = &self.services.databases else {
            return None;
        };
        report.databases.iter().find(|database| database.key() == key)
    }
}

#[cfg(test)]
mod tests;
