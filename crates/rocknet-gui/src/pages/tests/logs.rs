//! Lines of the logs: severity, lost lines and levels.

use super::*;

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
        [(Mark::Off, "a"), (Mark::Busy, "… lines left out: 7"), (Mark::Off, "b")]
    );
    assert_eq!(shown.subtitle, "Lines: 2");
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

#[test]
fn lines_of_a_server_that_is_no_longer_shown_are_dropped() {
    let line = |text: &str| LogEvent {
        kind: LogKind::Error,
        line: text.to_owned(),
        site: None,
        lost: 0,
    };
    let mut model = online(1);
    model.act(Act::Show(PageName::Logs));
    model.report(Report::Log(vec![line("of a")]));
    model.report(Report::Absent(Absence::NoReply("/s".into())));
    model.report(Report::Log(vec![line("late")]));
    // The new connection follows the logs again, and its lines are shown after the known ones.
    let effects = model.report(Report::Connected("/s".into()));
    assert!(effects.contains(&Effect::Job(Job::FollowLogs)), "{effects:?}");
    model.report(Report::Log(vec![line("of a"), line("new")]));
    let texts: Vec<&str> = model.log.chosen().map(|line| &*line.event.line).collect();
    assert_eq!(texts, ["of a", "new"]);
    // A connection to a server that has restarted meanwhile has no other report before it.
    let effects = model.report(Report::Connected("/s".into()));
    assert!(effects.contains(&Effect::Job(Job::FollowLogs)), "{effects:?}");
}
