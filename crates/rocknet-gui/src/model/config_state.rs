//! Edits of the configuration by other programs that the server has not loaded yet.

use rocknet_control::config::ConfigState;

use super::{Link, Model};
use crate::job::{Absence, FileConfig};

impl Model {
    /// Takes the comparison of the files with what the server has loaded. New websites join the list.
    pub(super) fn take_config_state(&mut self, state: Option<ConfigState>) {
        let added = state.as_ref().map_or(&[][..], |state| &state.added);
        if self.websites.set_not_loaded(added) {
            self.collect_facts();
        }
        self.config_state = state;
    }

    /// Returns the configuration of a server that is stopped; `None` if it is not known, or has neither websites nor
    /// errors.
    pub fn stopped_config(&self) -> Option<&FileConfig> {
        let is_stopped = matches!(self.link, Link::Absent(Absence::Stopped(true)));
        let config = self.file_config.as_ref()?;
        let has_contents = !config.sites.is_empty() || config.findings.iter().any(|finding| finding.is_error);
        let is_hidden = self.is_elsewhere() || self.ways.closed_server().is_some();
        (is_stopped && has_contents && !is_hidden).then_some(config)
    }

    /// Returns the comparison of the files with what the server has loaded, if they differ.
    pub fn unloaded_config(&self) -> Option<&ConfigState> {
        self.config_state.as_ref().filter(|state| !state.is_loaded)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rocknet_control::SiteSummary;
    use rocknet_control::config::ConfigState;

    use crate::act::Act;
    use crate::job::{Job, Poll, Report};
    use crate::model::{Effect, Model, Settings, WebsiteState};

    fn polled(second: u64, sites: Option<&[&str]>, added: &[&str]) -> Report {
        let site = |name: &&str| SiteSummary {
            name: (*name).to_owned(),
            ..SiteSummary::default()
        };
        Report::Polled(Box::new(Poll {
            at: Duration::from_secs(second),
            sites: sites.map(|sites| sites.iter().map(site).collect()),
            config: Some(ConfigState {
                is_loaded: added.is_empty(),
                added: added.iter().map(|name| (*name).to_owned()).collect(),
                ..ConfigState::default()
            }),
            ..Poll::default()
        }))
    }

    fn names(model: &Model) -> Vec<(String, WebsiteState)> {
        let shown = model.websites.shown();
        let row = |website: &&crate::model::Website| (website.summary.name.clone(), website.state());
        shown.iter().map(row).collect()
    }

    #[test]
    fn websites_of_the_file_join_the_list_until_they_are_loaded() {
        let mut model = Model::new(Settings::default());
        model.report(Report::Connected("/run/s".into()));
        model.report(polled(1, Some(&["a.test"]), &[]));
        assert!(model.unloaded_config().is_none());
        model.report(polled(2, None, &["b.test"]));
        let served = ("a.test".to_owned(), WebsiteState::Served);
        let waiting = ("b.test".to_owned(), WebsiteState::NotLoaded);
        assert_eq!(names(&model), [served.clone(), waiting.clone()]);
        assert!(model.unloaded_config().is_some());
        // The same state again, and a list of the server meanwhile, change nothing. The selection stays.
        model.act(Act::Select("b.test".to_owned()));
        model.report(polled(3, Some(&["a.test"]), &["b.test"]));
        assert_eq!(names(&model), [served.clone(), waiting]);
        assert_eq!(model.websites.selected.as_deref(), Some("b.test"));
        assert_eq!(model.act(Act::ReloadServer), [Effect::Job(Job::Reload)]);
        model.report(polled(4, Some(&["a.test", "b.test"]), &[]));
        let loaded = ("b.test".to_owned(), WebsiteState::Served);
        assert_eq!(names(&model), [served, loaded]);
        assert_eq!(model.websites.selected.as_deref(), Some("b.test"));
        // A website that leaves the file before it was loaded leaves the list.
        model.report(polled(5, None, &["c.test"]));
        assert_eq!(names(&model).len(), 3);
        model.report(polled(6, None, &[]));
        assert_eq!(names(&model).len(), 2);
    }
}
