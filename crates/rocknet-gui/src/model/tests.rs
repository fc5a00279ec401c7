//! The model as users and the worker drive it, on virtual time.

mod adding;
mod drops;
mod editing;
mod history;
mod late;
mod outside;
mod server;

use std::path::PathBuf;

use rocknet_control::api::ApiError;
use rocknet_control::config::{Checked, Edit, Saved};
use rocknet_control::{SiteKind, SiteSummary};

use super::*;
use crate::act::{Act, FieldId};
use crate::job::{Absence, Inspection, Poll, Purpose, Report, StartFailure, Visit};
use crate::theme;
use crate::ways::UnitKind;
use crate::ways::tests::unit;

/// Returns a model that is connected to a server with these websites.
fn online(names: &[&str]) -> Model {
    let mut model = Model::new(Settings::default());
    model.report(Report::Connected("/run/control.sock".into()));
    model.report(polled(1, names));
    model
}

fn polled(second: u64, names: &[&str]) -> Report {
    let site = |name: &&str| SiteSummary {
        name: (*name).to_owned(),
        kind: SiteKind::Files,
        root: Some(format!("/srv/{name}").into()),
        urls: vec![format!("http://{name}/")],
        ..SiteSummary::default()
    };
    Report::Polled(Box::new(Poll {
        at: Duration::from_secs(second),
        sites: Some(names.iter().map(site).collect()),
        ..Poll::default()
    }))
}

fn saved(can_undo: bool) -> Saved {
    Saved {
        message: "saved".to_owned(),
        file: "/etc/rocknet.toml".into(),
        revision: "r2".to_owned(),
        can_undo,
        findings: Vec::new(),
    }
}

fn jobs(effects: Vec<Effect>) -> Vec<Job> {
    let job = |effect| match effect {
        Effect::Job(job) => Some(job),
        _ => None,
    };
    effects.into_iter().filter_map(job).collect()
}

fn notice(model: &Model) -> &str {
    model.notice.as_ref().map_or("", |notice| &notice.text)
}

#[test]
fn a_removed_website_can_be_taken_back_until_the_notice_ends() {
    let mut model = online(&["a.test", "b.test"]);
    assert_eq!(model.act(Act::RemoveSite), []);
    model.act(Act::Select("a.test".to_owned()));
    let [Job::Edit(Purpose::Remove(name), edits)] = &jobs(model.act(Act::RemoveSite))[..] else {
        panic!("no edit")
    };
    assert_eq!(name, "a.test");
    assert_eq!(edits.edits[0].path(), ["site", "a.test"]);
    model.report(polled(2, &["b.test"]));
    model.report(Report::Edited(Purpose::Remove("a.test".to_owned()), Ok(saved(true))));
    assert!(notice(&model).starts_with("a.test") && model.notice.as_ref().unwrap().can_undo);
    assert!(model.websites.selected().is_none());
    let [Job::TakeBack(undo)] = &jobs(model.act(Act::Undo))[..] else {
        panic!("no undo")
    };
    // The undo is refused if the file was edited meanwhile.
    assert_eq!((undo.revision.as_deref(), undo.discard_edits), (Some("r2"), false));
    model.report(Report::Edited(Purpose::Undo, Ok(saved(true))));
    assert!(!model.can_undo());
    assert_eq!(model.act(Act::Undo), []);
    assert!(!model.tick(Duration::from_secs(1)));
    assert!(model.tick(Duration::from_secs(60)) && model.notice.is_none());
}

#[test]
fn the_newest_change_is_taken_back_by_its_number() {
    let mut model = online(&[]);
    assert!(jobs(model.act(Act::Show(PageName::History))).contains(&Job::Query(Query::History)));
    assert_eq!(model.act(Act::UndoNewest), []);
    let change = |id, revision: &str| Change {
        id,
        unix_time: 0,
        file: PathBuf::new(),
        revision: revision.to_owned(),
        what: String::new(),
        diff: String::new(),
    };
    model.report(Report::History(Ok(vec![change(2, "r2"), change(1, "r1")])));
    let [Job::TakeBack(undo)] = &jobs(model.act(Act::UndoNewest))[..] else {
        panic!("no undo")
    };
    assert_eq!((undo.id, undo.revision.as_deref()), (Some(2), Some("r2")));
    let asked = jobs(model.report(Report::Edited(Purpose::Undo, Ok(saved(true)))));
    assert_eq!(asked, [Job::Query(Query::History)]);
}

#[test]
fn a_website_is_disabled_and_enabled_by_the_same_act() {
    let mut model = online(&["a.test"]);
    model.act(Act::Select("a.test".to_owned()));
    let toggle = |model: &mut Model| match &jobs(model.act(Act::ToggleSite))[..] {
        [Job::Edit(_, edits)] => edits.edits[0].clone(),
        other => panic!("{other:?}"),
    };
    let field = |text: &str| Edit::SetField {
        site: "a.test".to_owned(),
        field: "enabled".to_owned(),
        text: text.to_owned(),
    };
    assert_eq!(toggle(&mut model), field("false"));
    let mut disabled = SiteSummary {
        name: "a.test".to_owned(),
        disabled: true,
        ..SiteSummary::default()
    };
    model.websites.replace(vec![disabled.clone()]);
    model.report(Report::Edited(Purpose::Disable("a.test".to_owned()), Ok(saved(true))));
    assert_eq!(toggle(&mut model), field(""));
    assert_eq!(model.act(Act::OpenSite), []);
    disabled.disabled = false;
}

#[test]
fn a_website_is_added_in_three_fields() {
    let mut model = online(&["a.test"]);
    assert_eq!(jobs(model.act(Act::AddSite)).last(), Some(&Job::FindServers));
    assert_eq!(model.page, PageName::AddWebsite);
    // Nothing is saved before the fields are filled in.
    assert_eq!(model.act(Act::Submit), []);
    let folder = PathBuf::from("/srv/shop");
    let asked = jobs(model.act(Act::SetField(FieldId::Folder, "/srv/shop".to_owned())));
    assert_eq!(asked, [Job::Inspect(folder.clone())]);
    let inspection = Inspection {
        exists: true,
        readable: true,
        has_php: true,
        ..Inspection::default()
    };
    let [Job::Check(first, _)] = jobs(model.report(Report::Inspected(folder, inspection)))[..] else {
        panic!("no check")
    };
    // Letters that are typed during a check wait for its end.
    assert_eq!(model.act(Act::SetField(FieldId::Name, "my.tes".to_owned())), []);
    assert_eq!(model.act(Act::SetField(FieldId::Name, "my.test".to_owned())), []);
    let checked = Checked {
        is_valid: true,
        findings: Vec::new(),
    };
    let [Job::Check(second, edits)] = &jobs(model.report(Report::Checked(first, Ok(checked.clone()))))[..] else {
        panic!("no check")
    };
    let second = *second;
    assert_eq!(edits.edits[0].path(), ["site", "my.test"]);
    // The result of an earlier check is out of date.
    assert_eq!(model.draft.as_ref().unwrap().checked, None);
    model.report(Report::Checked(second, Ok(checked)));
    assert!(model.draft.as_ref().unwrap().checked.is_some());
    let [Job::Edit(Purpose::Add(name), edits)] = &jobs(model.act(Act::Submit))[..] else {
        panic!("no edit")
    };
    assert_eq!((name.as_str(), edits.edits.len()), ("my.test", 2));
    // A second press does not add it twice.
    assert_eq!(model.act(Act::Submit), []);
    model.report(polled(2, &["a.test", "my.test"]));
    let asked = jobs(model.report(Report::Edited(Purpose::Add("my.test".to_owned()), Ok(saved(true)))));
    assert_eq!(asked[0], Job::Visit("my.test".to_owned()));
    let visit = Visit {
        site: "my.test".to_owned(),
        url: "http://my.test/".to_owned(),
        reply: Ok(200),
        name_resolves: true,
    };
    let asked = jobs(model.report(Report::Visited(visit.clone())));
    assert_eq!(asked, [Job::Open("http://my.test/".to_owned())]);
    // The browser is opened once.
    assert_eq!(model.report(Report::Visited(visit)), []);
    model.act(Act::Cancel);
    assert_eq!((model.page, model.draft.is_none()), (PageName::Websites, true));
    assert_eq!(model.websites.selected.as_deref(), Some("my.test"));
}

#[test]
fn a_refused_website_leaves_the_form_as_it_was() {
    let mut model = online(&[]);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    model.act(Act::SetField(FieldId::Address, "http://127.0.0.1:3000".to_owned()));
    assert_eq!(jobs(model.act(Act::Submit)).len(), 1);
    let error = ApiError::new(422, "no");
    model.report(Report::Edited(
        Purpose::Add("app-3000.localhost".to_owned()),
        Err(error),
    ));
    let draft = model.draft.as_ref().unwrap();
    assert_eq!(
        (draft.stage.clone(), draft.failure.as_deref()),
        (DraftStage::Filling, Some("no"))
    );
    assert_eq!(draft.address, "http://127.0.0.1:3000");
    assert!(!model.can_undo());
}

#[test]
fn a_lost_server_disables_acts_and_keeps_figures() {
    let mut model = online(&["a.test"]);
    model.act(Act::Select("a.test".to_owned()));
    model.act(Act::Show(PageName::Logs));
    model.report(Report::Absent(Absence::Stopped(true)));
    for act in [
        Act::RemoveSite,
        Act::ToggleSite,
        Act::DuplicateSite,
        Act::AddSite,
        Act::OpenSite,
        Act::StopServer,
    ] {
        assert_eq!(model.act(act.clone()), [], "{act:?}");
    }
    assert!(model.status.is_some());
    // The logs of the next server are followed again.
    let asked = jobs(model.report(Report::Connected("/run/control.sock".into())));
    assert!(asked.contains(&Job::FollowLogs), "{asked:?}");
}

#[test]
fn the_first_page_is_opened_after_the_first_start() {
    let mut model = Model::new(Settings::default());
    assert_eq!(model.report(Report::FirstStart), []);
    let mut model = online(&["a.test"]);
    let url = model.websites.shown()[0].url().unwrap().to_owned();
    assert_eq!(model.report(Report::FirstStart), [Effect::Job(Job::Open(url))]);
}

#[test]
fn a_failed_start_stays_visible() {
    let mut model = Model::new(Settings::default());
    assert_eq!(jobs(model.act(Act::StartServer)), [Job::Start(Starter::Program)]);
    let failure = StartFailure {
        reason: "port 8080 is in use".to_owned().into(),
        lines: Vec::new(),
        port: None,
    };
    model.report(Report::StartFailed(failure.clone()));
    model.report(Report::Absent(Absence::Stopped(true)));
    assert_eq!(model.link, Link::StartFailed(failure));
    model.report(Report::Connected("/run/control.sock".into()));
    assert!(model.link.is_online());
    model.act(Act::StopServer);
    model.report(Report::Absent(Absence::Stopped(true)));
    assert_eq!(notice(&model), "The server has stopped.");
}

#[test]
fn a_day_of_figures_is_bounded() {
    let mut model = online(&[]);
    for second in 0..86_400 {
        model.report(Report::Polled(Box::new(Poll {
            at: Duration::from_secs(second),
            ..Poll::default()
        })));
    }
    assert_eq!(model.samples.iter().count(), MAX_SAMPLES);
}

#[test]
fn settings_are_saved_and_take_effect() {
    let mut model = Model::new(Settings::default());
    let asked = jobs(model.act(Act::SetField(FieldId::Language, "de".to_owned())));
    assert!(matches!(&asked[..], [Job::SaveSettings(text)] if text.contains("language = \"de\"")));
    assert_eq!(model.words().websites, "Websites");
    assert_eq!(model.words().certificates, "Zertifikate");
}

#[test]
fn a_unit_starts_the_server_again_that_it_has_run() {
    let mut model = online(&["a.test"]);
    let mut ways = Ways {
        units: vec![unit(UnitKind::System, true, None)],
        running_unit: Some(UnitKind::System),
        has_own_config: true,
        ..Ways::default()
    };
    model.report(Report::Ways(ways.clone()));
    assert_eq!(jobs(model.act(Act::RestartServer)), [Job::Restart]);
    assert!(model.may_ask());
    // The user has cancelled the question for the password.
    model.report(Report::Connected("/run/control.sock".into()));
    model.report(Report::Refused("sudo systemctl restart rocknet".to_owned()));
    assert!(model.link.is_online() && notice(&model).contains("sudo systemctl restart rocknet"));
    model.act(Act::StopServer);
    model.report(Report::Absent(Absence::Stopped(true)));
    ways.units[0].is_active = false;
    ways.running_unit = None;
    model.report(Report::Ways(ways));
    // Without this, the configuration of the user would come first.
    assert_eq!(
        jobs(model.act(Act::StartServer)),
        [Job::Start(Starter::Unit(UnitKind::System))]
    );
    assert!(model.may_ask());
    model.report(Report::Refused("sudo systemctl start rocknet".to_owned()));
    assert!(
        matches!(&model.link, Link::StartFailed(failure) if failure.reason.message().contains("sudo systemctl start"))
    );
    assert_eq!(
        jobs(model.act(Act::StartBy(Starter::Program))),
        [Job::Start(Starter::Program)]
    );
    assert!(!model.may_ask());
}

#[test]
fn a_server_that_was_started_elsewhere_is_not_restarted() {
    let mut model = online(&[]);
    assert_eq!(model.act(Act::RestartServer), []);
    assert!(model.link.is_online());
    model.report(Report::Ways(Ways {
        serves_own_config: true,
        has_own_config: true,
        ..Ways::default()
    }));
    assert_eq!(jobs(model.act(Act::RestartServer)), [Job::Restart]);
}

#[test]
fn the_desktop_decides_about_the_colours_unless_the_user_does() {
    let mut model = Model::new(Settings::default());
    assert_eq!(model.theme(), theme::LIGHT);
    model.report(Report::Desktop(Some(ColorScheme::Dark)));
    assert_eq!(model.theme(), theme::DARK);
    assert!(
        model
            .act(Act::Show(PageName::Settings))
            .contains(&Effect::Job(Job::QueryDesktop))
    );
    model.act(Act::SetField(FieldId::Theme, "light".to_owned()));
    assert_eq!(model.theme(), theme::LIGHT);
}
