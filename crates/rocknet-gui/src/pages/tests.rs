//! Pages in each state: their contents and their buttons.

mod adding;
mod editing;

use rocknet_control::api::Level;
use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_control::logs::{LogEvent, LogKind};
use rocknet_control::{CertificateSummary, SiteSummary, Status};

use super::*;
use crate::act::FieldId;
use crate::job::{Ending, EndingCause, Job, Poll, Report, StartFailure};
use crate::model::{Effect, Settings};
use crate::screen::{Form, Message, Table};
use crate::ways::{Obstacle, Starter, UnitKind, UnitState, Ways};
use crate::words::Language;

mod place;
mod services;
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
fn a_missing_server_offers_to_start_one() {
    let mut model = model();
    assert_eq!(message(&model).mark, Mark::Busy);
    model.report(Report::Absent(Absence::Stopped(false)));
    let welcome = message(&model);
    assert_eq!(welcome.actions[0].act, Act::StartServer);
    model.report(Report::Absent(Absence::Stopped(true)));
    assert_ne!(message(&model).title, welcome.title);
    model.report(Report::Absent(Absence::NoAccess("/run/x".into())));
    assert!(message(&model).actions.is_empty() && message(&model).text.contains("/run/x"));
    model.report(Report::StartFailed(StartFailure::default()));
    assert!(message(&model).text.contains("rocknet"));
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
fn a_free_port_is_offered_in_place_of_a_taken_one() {
    let mut model = model();
    let failed = |port| {
        Report::StartFailed(StartFailure {
            reason: "port 8080 is in use by nginx (pid 7)".to_owned().into(),
            port,
            ..StartFailure::default()
        })
    };
    model.report(failed(None));
    assert_eq!(message(&model).actions[0].act, Act::StartServer);
    model.report(failed(Some((8080, 8081))));
    let first = message(&model).actions.remove(0);
    assert_eq!(
        (&*first.label, first.act.clone()),
        ("Use port 8081", Act::StartAt(8080, 8081))
    );
    assert_eq!(model.act(first.act), [Effect::Job(Job::StartAt(8080, 8081))]);
    assert_eq!(model.link, Link::Starting);
}

#[test]
fn the_end_of_a_server_is_explained_until_it_starts_again() {
    let mut model = online(1);
    let ended = |cause| {
        Report::Ended(Ending {
            cause,
            lines: vec!["1".to_owned(), "2".to_owned()],
        })
    };
    model.report(ended(EndingCause::Signal(9)));
    model.report(Report::Absent(Absence::Stopped(true)));
    let shown = message(&model);
    assert_eq!((shown.mark, shown.lines.len()), (Mark::Bad, 2));
    assert!(shown.text.contains("memory was short") && shown.text.ends_with(model.words().last_lines));
    assert_eq!(shown.actions[0].act, Act::StartServer);
    let copied = model.act(Act::CopyReason);
    assert!(
        matches!(&copied[..], [Effect::Copy(text)] if text.ends_with("short.\n1\n2")),
        "{copied:?}"
    );
    model.act(Act::CloseReason);
    assert_eq!(message(&model).title, model.words().offline_title);
    // A new start forgets the old end.
    model.report(ended(EndingCause::Code(1)));
    assert_eq!(message(&model).title, model.words().ended_title);
    model.act(Act::StartServer);
    model.report(Report::Absent(Absence::Stopped(true)));
    assert_eq!(message(&model).title, model.words().offline_title);
}

#[test]
fn the_log_explains_the_end_of_a_server_of_another_program() {
    let line = |text: &str| LogEvent {
        kind: LogKind::Error,
        line: text.to_owned(),
        site: None,
        lost: 0,
    };
    for (last, is_explained) in [("ERROR no memory", true), ("INFO stopping", false)] {
        let mut model = online(1);
        model.act(Act::Show(PageName::Logs));
        model.report(Report::Log(
            (0..9).map(|_| line("INFO ready")).chain([line(last)]).collect(),
        ));
        model.report(Report::Ended(Ending::default()));
        model.report(Report::Absent(Absence::Stopped(true)));
        assert_eq!(
            message(&model).lines.last().is_some_and(|line| line == last),
            is_explained
        );
    }
}

#[test]
fn a_server_that_hangs_can_be_restarted_by_its_unit() {
    for has_state in [false, true] {
        let mut model = if has_state {
            online(1)
        } else {
            Model::new(Settings::default())
        };
        let hangs = Report::Absent(Absence::NoReply("/run/x".into()));
        model.report(hangs.clone());
        // No unit runs the server, and a program that hangs cannot be stopped by a request.
        assert_eq!(
            (model.can_restart(), model.act(Act::RestartServer)),
            (false, Vec::new())
        );
        assert_eq!(server_state(&model).mark, Mark::Bad);
        model.report(Report::Ways(Ways {
            units: vec![UnitState {
                kind: UnitKind::System,
                is_active: true,
                may_ask: true,
                obstacle: None,
            }],
            running_unit: Some(UnitKind::System),
            ..Ways::default()
        }));
        let offered: Vec<Act> = match has_state {
            true => screen(&model)
                .banner
                .unwrap()
                .action
                .into_iter()
                .map(|button| button.act)
                .collect(),
            false => message(&model).actions.into_iter().map(|button| button.act).collect(),
        };
        assert_eq!(offered[0], Act::RestartServer, "{has_state}");
        assert_eq!(server_state(&model).action.unwrap().act, Act::RestartServer);
        assert_eq!(model.act(Act::StopServer), []);
        assert_eq!(model.act(Act::RestartServer), [Effect::Job(Job::Restart)]);
        // The unit was not restarted, and the server still hangs.
        model.report(hangs);
        assert!(model.can_restart());
    }
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
    ])));
    let marks: Vec<_> = table(&model).rows.iter().map(|row| row.cells[1].mark).collect();
    assert_eq!(marks, [Some(Mark::Good), Some(Mark::Bad), Some(Mark::Bad)]);
    model.act(Act::Show(PageName::CheckUp));
    model.report(Report::Doctor(Ok(vec![DoctorCheck {
        command: None,
        check: "local CA".to_owned(),
        verdict: DoctorVerdict::Fair,
        found: "not trusted by Chromium (/x): type `rocknet trust`".to_owned(),
    }])));
    let row = table(&model).rows.remove(0);
    assert_eq!(row.cells[2].detail, "type `rocknet trust`");
}

#[test]
fn the_log_counts_lost_lines_and_offers_every_level() {
    let mut model = online(1);
    model.act(Act::Show(PageName::Logs));
    let line = |text: &str, lost| LogEvent {
        kind: LogKind::Error,
        line: text.to_owned(),
        site: None,
        lost,
    };
    model.report(Report::Log(vec![line("a", 0), line("b", 7)]));
    model.report(Report::Level(Level::Warn));
    let shown = screen(&model);
    let Body::Lines(lines) = shown.body else { panic!() };
    let texts: Vec<(Mark, &str)> = lines.lines.iter().map(|line| (line.mark, &*line.text)).collect();
    assert_eq!(
        texts,
        [(Mark::Off, "a"), (Mark::Busy, "… 7 lines left out"), (Mark::Off, "b")]
    );
    assert_eq!(shown.subtitle, "2 lines");
    let level = &shown.choices[1];
    let acts: Vec<Act> = level
        .options
        .iter()
        .map(|(value, _)| level.purpose.act(value.clone()))
        .collect();
    assert_eq!((&*level.value, acts), ("warn", Level::ALL.map(Act::SetLevel).to_vec()));
    model.report(Report::Absent(Absence::Failed("x".to_owned())));
    assert_eq!(screen(&model).choices.len(), 1);
}

#[test]
fn lines_of_logs_are_marked_by_severity() {
    let mut model = online(1);
    model.act(Act::Show(PageName::Logs));
    let event = |kind, line: &str| LogEvent {
        kind,
        line: line.to_owned(),
        site: None,
        lost: 0,
    };
    model.report(Report::Log(vec![
        event(LogKind::Error, "2026-11-28T00:00:00 ERROR x"),
        event(LogKind::Error, "2026-11-28T00:00:00 WARN  x"),
        event(LogKind::Access, "GET /"),
    ]));
    let Body::Lines(lines) = screen(&model).body else {
        panic!()
    };
    let marks: Vec<_> = lines.lines.iter().map(|line| line.mark).collect();
    assert_eq!(marks, [Mark::Bad, Mark::Fair, Mark::Good]);

    // A server that refuses says why, and is queried again by the button.
    model.report(Report::LogsRefused(Some("too many".to_owned())));
    assert_eq!(message(&model).text, "too many");
    assert!(
        model
            .act(message(&model).actions[0].act.clone())
            .contains(&Effect::Job(Job::FollowLogs))
    );
    model.report(Report::LogsRefused(None));
    assert_eq!(message(&model).title, model.words().denied_title);
}

fn system_unit(is_active: bool, obstacle: Option<Obstacle>) -> Ways {
    Ways {
        units: vec![UnitState {
            kind: UnitKind::System,
            is_active,
            may_ask: true,
            obstacle,
        }],
        ..Ways::default()
    }
}

#[test]
fn a_stopped_service_and_a_server_of_the_user_are_offered() {
    let mut model = model();
    model.report(Report::Absent(Absence::Stopped(true)));
    assert_eq!(message(&model).actions.len(), 1);
    model.report(Report::Ways(system_unit(false, None)));
    let offered = message(&model);
    let acts: Vec<_> = offered.actions.iter().map(|button| button.act.clone()).collect();
    assert_eq!(acts, [Act::StartServer, Act::StartBy(Starter::Program)]);
    assert!(offered.text.contains("service rocknet of this computer"));
    model.act(Act::StartServer);
    assert!(message(&model).text.contains("password"));
    // After a refusal, the other way is still there.
    model.report(Report::Refused("sudo systemctl start rocknet".to_owned()));
    let acts: Vec<_> = message(&model).actions.into_iter().map(|button| button.act).collect();
    assert_eq!(
        acts,
        [Act::StartServer, Act::StartBy(Starter::Program), Act::CopyReason]
    );
}

#[test]
fn a_closed_server_of_the_system_names_its_group() {
    let mut model = model();
    model.report(Report::Absent(Absence::Stopped(true)));
    let obstacle = Obstacle::NoMember {
        account: "ann".to_owned(),
        group: "web".to_owned(),
    };
    model.report(Report::Ways(system_unit(true, Some(obstacle))));
    let closed = message(&model);
    assert!(closed.text.contains("sudo usermod -aG web ann"), "{}", closed.text);
    assert_eq!((closed.mark, closed.actions.len()), (Mark::Fair, 1));
}

#[test]
fn the_page_of_the_server_says_what_is_not_possible() {
    let mut model = online(1);
    model.act(Act::Show(PageName::Server));
    let restart = |model: &Model| {
        let actions = screen(model).actions;
        let enabled = actions
            .iter()
            .any(|button| button.act == Act::RestartServer && button.enabled);
        let rows = table(model).rows;
        let reason = rows.into_iter().find(|row| row.key == model.words().restart_server);
        (enabled, reason.map(|row| row.cells[1].text.clone()).unwrap_or_default())
    };
    let (enabled, reason) = restart(&model);
    assert!(!enabled && reason.contains("another configuration"), "{reason}");
    let mut ways = system_unit(true, Some(Obstacle::NoPolkit));
    ways.running_unit = Some(UnitKind::System);
    model.report(Report::Ways(ways.clone()));
    let (enabled, reason) = restart(&model);
    assert!(!enabled && reason.contains("polkit"), "{reason}");
    ways.units[0].obstacle = None;
    model.report(Report::Ways(ways));
    assert_eq!(restart(&model), (true, String::new()));
    let started_by = table(&model)
        .rows
        .into_iter()
        .find(|row| row.key == model.words().started_by);
    assert!(started_by.unwrap().cells[1].text.contains("service rocknet"));
}
