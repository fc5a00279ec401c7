//! The place of the server as the user chooses it in the settings.

use super::links::Link;
use super::{Effect, Model};
use crate::act::FieldId;
use crate::elsewhere::Elsewhere;
use crate::job::Job;

impl Model {
    /// Returns true if the server may be on another computer, so that it does not use the files and programs of this
    /// one.
    pub fn is_elsewhere(&self) -> bool {
        self.used_place.is_elsewhere()
    }

    /// Returns true if the place that the user has typed differs from the place in use.
    pub fn has_new_place(&self) -> bool {
        self.elsewhere != self.used_place
    }

    /// Takes the place that was saved. The worker uses a server of this computer if it is not valid.
    pub(super) fn take_place(&mut self, place: Elsewhere) {
        self.elsewhere = place.clone();
        self.used_place = place;
        if self.used_place.server().is_err() {
            self.used_place = Elsewhere::default();
        }
    }

    /// Sets a field of the place. Returns false for another field.
    pub(super) fn set_place(&mut self, field: FieldId, text: &str) -> bool {
        let elsewhere = &mut self.elsewhere;
        match field {
            FieldId::ServerPlace => elsewhere.set_place(text),
            FieldId::ServerSocket => elsewhere.socket = text.to_owned(),
            FieldId::ServerAddress => elsewhere.address = text.to_owned(),
            FieldId::ServerToken => elsewhere.token = text.to_owned(),
            _ => return false,
        }
        true
    }

    /// Connects to the place that the user has typed, and discards the data of the present server.
    pub(super) fn use_place(&mut self) -> Vec<Effect> {
        if !self.has_new_place() || self.elsewhere.server().is_err() {
            return Vec::new();
        }
        self.used_place = self.elsewhere.clone();
        self.forget_server();
        self.link = Link::Connecting;
        vec![Effect::Job(Job::UseServer(self.elsewhere.clone()))]
    }

    /// Returns the message about an instruction that the token does not permit.
    pub(super) fn not_permitted(&self) -> String {
        format!("{}\n{}", self.words().denied_title, self.words().denied_change)
    }

    /// Connects again, after the cause of a failure was removed.
    pub(super) fn connect_again(&mut self) -> Vec<Effect> {
        self.link = Link::Connecting;
        vec![Effect::Job(Job::Connect)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::{Act, PageName};
    use crate::elsewhere::ServerPlace;
    use crate::job::{Absence, Poll, Report};
    use crate::model::Settings;

    #[test]
    fn another_server_is_used_once_its_place_is_complete() {
        let mut model = Model::new(Settings::default());
        model.report(Report::Connected("/run/s".into()));
        model.report(Report::Polled(Box::new(Poll {
            sites: Some(vec![rocknet_control::SiteSummary::default()]),
            ..Poll::default()
        })));
        model.act(Act::Show(PageName::Settings));
        let set = |model: &mut Model, field, text: &str| model.act(Act::SetField(field, text.to_owned()));
        assert_eq!(set(&mut model, FieldId::ServerPlace, "address"), []);
        assert!(model.has_new_place() && !model.is_elsewhere());
        assert_eq!(model.act(Act::Submit), []);
        set(&mut model, FieldId::ServerAddress, "localhost:7625");
        set(&mut model, FieldId::ServerToken, "abc");
        let effects = model.act(Act::Submit);
        let [Effect::Job(Job::UseServer(place))] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!((place.place, &*place.token), (ServerPlace::Address, "abc"));
        // Nothing from the previous server is shown.
        assert!(model.is_elsewhere() && model.status.is_none() && model.websites.count().0 == 0);
        assert_eq!(
            (model.link.clone(), model.act(Act::Submit)),
            (Link::Connecting, Vec::new())
        );
        model.report(Report::Absent(Absence::WrongToken("127.0.0.1:7625".to_owned())));
        assert_eq!(model.act(Act::ConnectAgain), [Effect::Job(Job::Connect)]);
        // No server of this computer is started in its place.
        assert_eq!(model.act(Act::StartServer), [Effect::Job(Job::Connect)]);
        set(&mut model, FieldId::ServerPlace, "here");
        assert_eq!(model.act(Act::Submit).len(), 1);
        assert!(!model.is_elsewhere());
    }

    #[test]
    fn a_server_elsewhere_is_not_restarted_and_its_folders_not_opened() {
        let mut model = Model::new(Settings::default());
        model.report(Report::Place(Elsewhere {
            place: ServerPlace::Socket,
            socket: "/s".to_owned(),
            ..Elsewhere::default()
        }));
        model.report(Report::Connected("/s".into()));
        let site = rocknet_control::SiteSummary {
            name: "a.test".to_owned(),
            root: Some("/srv".into()),
            ..rocknet_control::SiteSummary::default()
        };
        model.report(Report::Polled(Box::new(Poll {
            sites: Some(vec![site]),
            ..Poll::default()
        })));
        model.act(Act::Select("a.test".to_owned()));
        for act in [Act::OpenFolder, Act::OpenEditor, Act::OpenConfig, Act::RestartServer] {
            assert_eq!(model.act(act.clone()), [], "{act:?}");
        }
        assert!(model.link.is_online());
        // A token for reading permits no change.
        model.report(Report::NotPermitted);
        let notice = |model: &Model| model.notice.as_ref().unwrap().text.clone();
        assert!(notice(&model).starts_with(model.words().denied_title));
        model.act(Act::DismissNotice);
        let error = rocknet_control::api::ApiError::new(403, "no");
        model.report(Report::Edited(
            crate::job::Purpose::Remove("a.test".to_owned()),
            Err(error),
        ));
        assert!(notice(&model).starts_with(model.words().denied_title));
    }
}
