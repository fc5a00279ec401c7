//! The website that was added: the visit to it, and its certificate.

use super::draft::DraftStage;
use super::{CertificateTrust, Effect, Fetched, Model, WebsiteKind};
use crate::job::{Job, Query, Visit};

impl Model {
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

    /// Returns the queries whose results the page of the website that was added shows.
    pub(super) fn added_queries(&self) -> Vec<Effect> {
        let mut effects = Model::fact_queries();
        if self.draft.as_ref().is_some_and(|draft| draft.kind.has_php()) {
            // With the versions that are missing.
            effects.push(Effect::Job(Job::Query(Query::Php)));
        }
        effects
    }

    /// Returns the line of `/etc/hosts` that leads the name of the new website to this computer; `None` for a name that
    /// the file cannot have, or that the DNS of the internet resolves.
    pub fn hosts_line(&self) -> Option<String> {
        let name = self.draft.as_ref()?.name.to_lowercase();
        let host = name.split(':').next().filter(|host| !host.is_empty())?;
        let is_address = host.parse::<std::net::IpAddr>().is_ok();
        let is_wanted = rocknet_config::is_local_name(host) && !is_address && !host.contains('*');
        (is_wanted && !host.ends_with(".localhost")).then(|| format!("127.0.0.1 {host} # RockNet"))
    }

    /// Returns the job that looks again for what the page waits for: a development server that is being started, or the
    /// certificate of the website that was added.
    pub(super) fn watch_added(&mut self) -> Vec<Effect> {
        let awaits_server = |draft: &super::Draft| {
            draft.kind == WebsiteKind::Proxy && draft.stage == DraftStage::Filling && !draft.is_elsewhere
        };
        if self.draft.as_ref().is_some_and(awaits_server) {
            return vec![Effect::Job(Job::FindServers)];
        }
        let added = self.draft.as_ref().filter(|draft| draft.is_saved());
        let website = added.and_then(|draft| self.websites.find(&draft.name));
        match website.map(|website| website.facts.trust) {
            Some(CertificateTrust::Fault) => self.while_online(Job::Query(Query::Certificates)),
            // The first certificate creates the local CA, which the first query of the trust stores did not find.
            Some(CertificateTrust::Local) if self.services.trust == Fetched::Loaded(Vec::new()) => {
                let has_looked = |draft: &mut super::Draft| std::mem::replace(&mut draft.has_looked_again, true);
                match self.draft.as_mut().is_none_or(has_looked) {
                    true => Vec::new(),
                    false => self.while_online(Job::Query(Query::Trust)),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Takes the result of the visit. If the website replies as it should, it is opened in the browser, once.
    pub(super) fn visited(&mut self, visit: Visit) -> Vec<Effect> {
        // The user may have begun to add another website.
        let Some(draft) = self
            .draft
            .as_mut()
            .filter(|draft| draft.is_saved() && draft.name == visit.site)
        else {
            return Vec::new();
        };
        let is_good = visit.reply.as_ref().is_ok_and(|status| *status < 400) && !draft.lacks_start_page();
        // A website with a wildcard has no URL to open.
        let is_good = is_good && !visit.url.is_empty();
        let url = visit.url.clone();
        draft.visit = Some(visit);
        if is_good && !std::mem::replace(&mut draft.is_opened, true) {
            return vec![Effect::Job(Job::Open(url))];
        }
        Vec::new()
    }
}
