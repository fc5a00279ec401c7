//! Disables the buttons for which a token with read permission does not suffice, on all pages, and shows the reason.

use crate::act::{Act, PageName};
use crate::model::Model;
use crate::screen::{Banner, Body, Button, Mark, Screen};

/// Returns the screen, with the buttons disabled whose acts the connection does not permit. A notice gives the reason.
pub fn restricted(model: &Model, mut screen: Screen) -> Screen {
    if model.may_change() || !model.link.is_online() {
        return screen;
    }
    for button in buttons(&mut screen) {
        button.enabled &= model.permits(&button.act);
    }
    let concerns_server = !matches!(model.page, PageName::Settings | PageName::Databases);
    if concerns_server && screen.banner.is_none() {
        let words = model.words();
        screen.banner = Some(Banner {
            mark: Mark::Fair,
            text: words.reading_token.to_owned(),
            action: Some(Button::new(words.settings, Act::Show(PageName::Settings))),
        });
    }
    screen
}

/// Returns all buttons of a screen.
fn buttons(screen: &mut Screen) -> Vec<&mut Button> {
    let mut buttons: Vec<&mut Button> = screen.actions.iter_mut().collect();
    buttons.extend(screen.banner.iter_mut().filter_map(|banner| banner.action.as_mut()));
    match &mut screen.body {
        Body::Message(message) => buttons.extend(&mut message.actions),
        Body::Form(form) => {
            buttons.extend(&mut form.actions);
            buttons.extend(form.fields.iter_mut().filter_map(|field| field.fix.as_mut()));
            buttons.extend(form.checks.iter_mut().filter_map(|check| check.fix.as_mut()));
        }
        Body::Table(_) | Body::Charts(_) | Body::Lines(_) | Body::Diff(_) | Body::Editor(_) | Body::Chooser(_) => {}
    }
    buttons
}

#[cfg(test)]
mod tests {
    use rocknet_control::SiteSummary;
    use rocknet_control::api::{Level, Permission};

    use super::*;
    use crate::job::{Job, Poll, Query, Report};
    use crate::model::{Effect, Settings};
    use crate::pages::{screen, server_state};

    /// Returns a model that is connected with this permission, with a selected website.
    fn online(permission: Permission) -> Model {
        let mut model = Model::new(Settings::default());
        model.report(Report::Connected("/run/s".into()));
        model.report(Report::Permission(permission));
        model.report(Report::Polled(Box::new(Poll {
            sites: Some(vec![SiteSummary {
                name: "a.test".to_owned(),
                urls: vec!["http://a.test/".to_owned()],
                ..SiteSummary::default()
            }]),
            ..Poll::default()
        })));
        model.report(Report::Level(Level::Info));
        model.act(Act::Select("a.test".to_owned()));
        model
    }

    /// Returns the acts of the buttons of a page that can be pressed.
    fn enabled(model: &Model) -> Vec<Act> {
        let mut screen = screen(model);
        let enabled = buttons(&mut screen).into_iter().filter(|button| button.enabled);
        enabled.map(|button| button.act.clone()).collect()
    }

    #[test]
    fn a_reading_token_changes_nothing_on_any_page() {
        let mut model = online(Permission::Read);
        let jobs_that_read = |effect: &Effect| {
            matches!(
                effect,
                Effect::Job(Job::Query(_) | Job::Watch(_) | Job::WatchTraffic(_) | Job::FindWays | Job::FollowLogs)
                    | Effect::Job(Job::QueryDesktop | Job::Open(_) | Job::SaveSettings(_))
            )
        };
        for page in PageName::NAVIGATION {
            model.act(Act::Show(page));
            for act in enabled(&model) {
                let effects = model.act(act.clone());
                assert!(effects.iter().all(jobs_that_read), "{page:?} {act:?}: {effects:?}");
                model.act(Act::Show(page));
            }
            let banner = screen(&model).banner;
            let concerns_server = !matches!(page, PageName::Settings | PageName::Databases);
            let text = banner.map(|banner| banner.text);
            let reason = text.as_deref() == Some(model.words().reading_token);
            assert_eq!(reason, concerns_server, "{page:?} {text:?}");
        }
        assert!(!server_state(&model).action.unwrap().enabled);
    }

    #[test]
    fn keys_of_a_refused_act_give_the_reason() {
        let mut model = online(Permission::Read);
        for act in [
            Act::AddSite,
            Act::RemoveSite,
            Act::EditSite,
            Act::ReloadServer,
            Act::StopServer,
        ] {
            model.act(Act::DismissNotice);
            assert_eq!(model.act(act.clone()), [], "{act:?}");
            let notice = model.notice.as_ref().map(|notice| notice.text.clone());
            assert!(
                notice.is_some_and(|text| text.contains(model.words().denied_title)),
                "{act:?}"
            );
        }
        // F5 queries the lists of the page, but does not reload the configuration.
        assert!(
            model
                .act(Act::Refresh)
                .contains(&Effect::Job(Job::Query(Query::Certificates)))
        );
    }

    #[test]
    fn the_full_token_and_an_unknown_one_permit_everything() {
        let full = online(Permission::Full);
        assert!(enabled(&full).contains(&Act::RemoveSite) && screen(&full).banner.is_none());
        assert!(server_state(&full).action.unwrap().enabled);
        let mut model = online(Permission::Read);
        assert!(!enabled(&model).contains(&Act::RemoveSite));
        assert!(enabled(&model).contains(&Act::OpenSite));
        // Another connection has a permission of its own.
        model.report(Report::Connected("/run/s".into()));
        assert!(enabled(&model).contains(&Act::RemoveSite));
        // An older server does not name the permission.
        model.report(Report::NotPermitted);
        assert!(!enabled(&model).contains(&Act::RemoveSite));
    }
}
