//! The window without a server: stopped, ended, hanging, of another account, and not started.

use super::*;

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
    assert_eq!(closed.lines, ["sudo usermod -aG web ann"]);
    let Body::Message(closed) = screen(&model).body else {
        panic!("no message")
    };
    let acts: Vec<&Act> = closed.actions.iter().map(|button| &button.act).collect();
    let copy = Act::CopyText("sudo usermod -aG web ann".to_owned());
    assert_eq!((closed.mark, acts), (Mark::Fair, vec![&Act::StartServer, &copy]));
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
