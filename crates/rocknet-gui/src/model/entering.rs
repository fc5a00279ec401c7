//! Changes of the page: the queries of the page that was left end, and those of the new one begin.

use super::{Effect, Model};
use crate::act::PageName;
use crate::job::Job;

impl Model {
    /// Changes the page, and returns the jobs that end the queries of the previous one and begin those of the new one.
    /// Its contents are queried by the caller.
    pub(super) fn enter(&mut self, page: PageName) -> Vec<Effect> {
        self.opened_change = None;
        self.refused_undo = None;
        self.chooser = None;
        self.viewed_command = None;
        self.shows_file_config = false;
        self.leaving = None;
        match page {
            PageName::Logs => self.log.is_read(),
            _ => self.log.leave(self.now),
        }
        self.page = page;
        let watched = Model::service_queries(page).first().copied();
        vec![
            Effect::Job(Job::WatchTraffic(page == PageName::Websites)),
            Effect::Job(Job::Watch(watched)),
        ]
    }

    /// Returns the job that ends following the logs, once their page was not shown for a while.
    pub(super) fn unfollow_idle_logs(&mut self) -> Vec<Effect> {
        match self.log.unfollow(self.now) {
            true => vec![Effect::Job(Job::UnfollowLogs)],
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::act::Act;
    use crate::job::{Poll, Query, Report};
    use crate::model::Settings;

    fn online() -> Model {
        let mut model = Model::new(Settings::default());
        model.report(Report::Connected("/run/s".into()));
        poll(&mut model);
        model
    }

    fn poll(model: &mut Model) -> Vec<Effect> {
        model.report(Report::Polled(Box::<Poll>::default()))
    }

    #[test]
    fn every_way_to_a_page_ends_the_queries_of_the_last_one() {
        let ended = [Effect::Job(Job::WatchTraffic(false)), Effect::Job(Job::Watch(None))];
        for act in [
            Act::AddSite,
            Act::EditText,
            Act::EditServer,
            Act::Show(PageName::History),
        ] {
            let mut model = online();
            let watched = model.act(Act::Show(PageName::Upstreams));
            assert!(watched.contains(&Effect::Job(Job::Watch(Some(Query::Upstreams)))));
            let effects = model.act(act.clone());
            assert!(
                ended.iter().all(|effect| effects.contains(effect)),
                "{act:?}: {effects:?}"
            );
        }
    }

    #[test]
    fn logs_that_are_not_read_are_no_longer_followed() {
        let mut model = online();
        let unfollowed = |effects: Vec<Effect>| effects.contains(&Effect::Job(Job::UnfollowLogs));
        let followed = |effects: Vec<Effect>| effects.contains(&Effect::Job(Job::FollowLogs));
        assert!(followed(model.act(Act::Show(PageName::Logs))));
        model.tick(Duration::from_secs(3_600));
        assert!(!unfollowed(poll(&mut model)), "they are being read");
        model.act(Act::Show(PageName::Server));
        model.tick(Duration::from_secs(3_700));
        assert!(!unfollowed(poll(&mut model)));
        model.tick(Duration::from_secs(3_901));
        assert!(unfollowed(poll(&mut model)));
        assert!(!unfollowed(poll(&mut model)), "once");
        assert!(followed(model.act(Act::Show(PageName::Logs))));
    }

    #[test]
    fn f5_queries_every_page() {
        for page in PageName::NAVIGATION {
            let mut model = online();
            model.act(Act::Show(page));
            let effects = model.act(Act::Refresh);
            assert!(!effects.is_empty(), "{page:?}");
        }
    }
}
