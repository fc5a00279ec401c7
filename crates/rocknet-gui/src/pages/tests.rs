//! Pages in each state: their contents and their buttons.

mod absence;
mod adding;
mod editing;
mod logs;

use rocknet_control::api::Level;
use rocknet_control::config::Saved;
use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_control::logs::{LogEvent, LogKind};
use rocknet_control::{CertificateSummary, SiteSummary, Status};

use super::*;
use crate::act::{FieldId, ServiceSwitch};
use crate::job::{Ending, EndingCause, Job, Poll, Report, StartFailure};
use crate::model::{Effect, Settings};
use crate::screen::{Form, Message, Table};
use crate::ways::{Obstacle, Starter, UnitKind, UnitState, Ways};
use crate::words::Language;

mod place;
mod services;
mod traffic;
mod websites;

fn model() -> Model {
    Model::new(Settings::default())
}

fn online(sites: usize) -> Model {
    let mut model = model();
    model.report(Report::Connected("/run/control.sock".into()));
    let site = |number| SiteSummary {
        name: format!("site-{number}.test"),
        urls: vec![format!("https://site-{number}.test/")],
        root: Some("/srv".into()),
        ..SiteSummary::default()
    };
    model.report(Report::Polled(Box::new(Poll {
        status: Status {
            config_file: Some("/etc/rocknet.toml".into()),
            ..Status::default()
        },
        sites: Some((0..sites).map(site).collect()),
        ..Poll::default()
    })));
    model
}

/// Returns the labels of the buttons in the heading that can be pressed.
fn labels(model: &Model) -> Vec<String> {
    let actions = screen(model).actions;
    actions
        .into_iter()
        .filter(|button| button.enabled)
        .map(|button| button.label)
        .collect()
}

/// Returns the label and the effect of the first button of a page about services, which can be pressed.
fn switch(model: &Model) -> (String, ServiceSwitch) {
    match screen(model).actions.into_iter().next() {
        Some(Button {
            label,
            act: Act::SwitchService(switch),
            enabled: true,
            ..
        }) => (label, switch),
        other => panic!("{other:?}"),
    }
}

/// Returns the reply to an edit.
fn saved() -> Saved {
    Saved {
        message: String::new(),
        file: "/etc/rocknet.toml".into(),
        revision: "2".to_owned(),
        can_undo: true,
        findings: Vec::new(),
    }
}

/// Returns a check-up with one finding, which a command repairs.
fn not_trusted() -> Report {
    Report::Doctor(Ok(vec![DoctorCheck {
        check: "local CA".to_owned(),
        verdict: DoctorVerdict::Fair,
        found: "not trusted by Chromium (/x): type `rocknet trust`".to_owned(),
        ..DoctorCheck::default()
    }]))
}

/// Returns the message of the page, without the button that copies it.
fn message(model: &Model) -> Message {
    match screen(model).body {
        Body::Message(mut message) => {
            message.actions.retain(|button| !matches!(button.act, Act::CopyText(_)));
            message
        }
        other => panic!("{other:?}"),
    }
}

fn table(model: &Model) -> Table {
    match screen(model).body {
        Body::Table(table) => table,
        other => panic!("{other:?}"),
    }
}

fn form(model: &Model) -> Form {
    match screen(model).body {
        Body::Form(form) => form,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_page_has_contents_in_every_state_and_language() {
    let mut failed = model();
    failed.report(Report::StartFailed(StartFailure {
        reason: "port".to_owned().into(),
        lines: vec!["line".to_owned()],
        port: Some((8080, 8081)),
    }));
    let absent = |absence| {
        let mut model = model();
        model.report(Report::Absent(absence));
        model
    };
    let states = [
        model(),
        failed,
        absent(Absence::Stopped(true)),
        absent(Absence::Stopped(false)),
        absent(Absence::NoAccess("/run/x".into())),
        absent(Absence::Failed("broken".to_owned())),
        absent(Absence::NoReply("/run/x".into())),
        absent(Absence::Foreign("127.0.0.1:1".to_owned())),
        absent(Absence::Unreachable("127.0.0.1:1".to_owned())),
        absent(Absence::WrongToken("127.0.0.1:1".to_owned())),
        online(0),
        online(500),
    ];
    for mut model in states {
        for language in Language::ALL {
            model.settings.language = language;
            for page in PageName::NAVIGATION {
                model.act(Act::Show(page));
                let screen = screen(&model);
                assert!(!screen.title.is_empty());
                let has_contents = match &screen.body {
                    Body::Message(message) => !message.title.is_empty(),
                    Body::Table(table) => !table.rows.is_empty(),
                    Body::Charts(charts) => !charts.is_empty(),
                    Body::Lines(lines) | Body::Diff(lines) => !lines.empty.is_empty(),
                    Body::Editor(editor) => !editor.text.is_empty(),
                    Body::Chooser(chooser) => !chooser.label.is_empty(),
                    Body::Form(form) => !form.fields.is_empty(),
                };
                assert!(has_contents, "{page:?} {:?}", model.link);
                assert!(navigation(&model).iter().any(|entry| entry.is_chosen));
            }
        }
    }
}

#[test]
fn buttons_of_websites_need_a_selected_one() {
    let mut model = online(3);
    let enabled = |model: &Model| {
        let actions = screen(model).actions;
        actions
            .into_iter()
            .filter(|button| button.enabled)
            .map(|button| button.act)
            .collect::<Vec<_>>()
    };
    assert_eq!(enabled(&model), [Act::AddSite]);
    model.act(Act::Select("site-1.test".to_owned()));
    assert_eq!(enabled(&model).len(), 9);
    assert_eq!(table(&model).selected, Some(1));
    model.act(Act::Filter("site-2".to_owned()));
    assert_eq!((table(&model).rows.len(), table(&model).selected), (1, None));
    assert_eq!(enabled(&model), [Act::AddSite]);
    model.act(Act::Filter("nothing".to_owned()));
    assert!(table(&model).rows.is_empty() && table(&model).empty.contains("nothing"));
    model.report(Report::Absent(Absence::Failed("x".to_owned())));
    assert_eq!(enabled(&model), []);
    assert!(screen(&model).banner.is_some());
}

#[test]
fn errors_are_copied_whole() {
    let mut model = online(1);
    model.act(Act::Show(PageName::Certificates));
    model.report(Report::Certificates(Err("no port".to_owned())));
    let Body::Message(message) = screen(&model).body else {
        panic!("no message")
    };
    let text = format!("{}\nno port", model.words().query_failed);
    let copy = message.actions.last().unwrap();
    assert_eq!(copy.act, Act::CopyText(text.clone()));
    assert_eq!(model.act(copy.act.clone()), [Effect::Copy(text)]);
    // A notice about a failure stays, also while it is copied.
    model.report(Report::Failed("no rights".to_owned().into()));
    model.act(Act::CopyText("no rights".to_owned()));
    model.tick(std::time::Duration::from_secs(86_400));
    assert_eq!(model.notice.as_ref().map(|notice| &*notice.text), Some("no rights"));
    model.act(Act::DismissNotice);
    assert!(model.notice.is_none());
}

#[test]
fn a_failed_reload_is_shown_on_every_page() {
    let mut model = online(1);
    model.report(Report::Polled(Box::new(Poll {
        status: Status {
            last_reload_error: Some("rocknet.toml:3: bad\n  more".to_owned()),
            ..Status::default()
        },
        ..Poll::default()
    })));
    let banner = screen(&model).banner.unwrap();
    assert!(banner.text.contains("rocknet.toml:3: bad") && !banner.text.contains("more"));
}

#[test]
fn a_page_with_input_can_be_left_without_a_server() {
    for absence in [Absence::Stopped(true), Absence::WrongToken("example.com:7625".into())] {
        let mut model = online(1);
        model.act(Act::AddSite);
        model.act(Act::SetField(FieldId::Name, "shop.test".to_owned()));
        model.report(Report::Absent(absence.clone()));
        model.act(Act::Show(PageName::Settings));
        let Body::Message(question) = screen(&model).body else {
            panic!("{absence:?}: no question")
        };
        let actions: Vec<&Act> = question.actions.iter().map(|button| &button.act).collect();
        assert_eq!(actions, [&Act::Stay, &Act::Discard], "{absence:?}");
        model.act(Act::Discard);
        assert_eq!((model.page, model.question()), (PageName::Settings, None));
    }
}

#[test]
fn problems_are_shown_after_leaving_a_field() {
    let mut model = online(1);
    model.act(Act::AddSite);
    let problems = |model: &Model| {
        let fields = form(model).fields;
        fields
            .into_iter()
            .filter(|field| !field.problem.is_empty())
            .map(|field| field.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(problems(&model), []);
    assert!(!form(&model).actions[0].enabled);
    model.act(Act::LeaveField(FieldId::Folder));
    assert_eq!(problems(&model), [FieldId::Folder]);
    // A name that is taken is known at once, and has a repair.
    model.act(Act::SetField(FieldId::Name, "site-0.test".to_owned()));
    let name = form(&model).fields.remove(2);
    let repair = name.fix.unwrap().act;
    assert!(!name.problem.is_empty());
    model.act(repair);
    assert_eq!(form(&model).fields[2].text, "site-0-2.test");
    assert_eq!(problems(&model), [FieldId::Folder]);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    assert_eq!(form(&model).fields[1].id, FieldId::Address);
}

#[test]
fn lists_are_loading_then_loaded_or_failed() {
    let mut model = online(1);
    model.act(Act::Show(PageName::Certificates));
    assert_eq!(message(&model).mark, Mark::Busy);
    model.report(Report::Certificates(Err("no".to_owned())));
    assert_eq!((message(&model).mark, message(&model).actions.len()), (Mark::Bad, 1));
    model.report(Report::Certificates(Ok(Vec::new())));
    assert_eq!(message(&model).mark, Mark::Off);
    let certificate = |days_left, names: &[&str]| CertificateSummary {
        site: "a.test".to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        days_left,
        ..CertificateSummary::default()
    };
    model.report(Report::Certificates(Ok(vec![
        certificate(3, &["a.test"]),
        certificate(-1, &["a.test"]),
        certificate(0, &[]),
        CertificateSummary {
            source: "files".to_owned(),
            ..certificate(1, &["a.test"])
        },
    ])));
    let rows = table(&model).rows;
    let marks: Vec<_> = rows.iter().filter_map(|row| row.cells[1].mark).collect();
    assert_eq!(marks, [Mark::Good, Mark::Bad, Mark::Bad, Mark::Fair]);
    assert_eq!(rows[3].cells[1].text, "1 day left", "nothing renews a file");
    model.act(Act::Show(PageName::CheckUp));
    model.report(not_trusted());
    let row = table(&model).rows.remove(0);
    assert_eq!(row.cells[2].detail, "type `rocknet trust`");
}
