//! Undo of the last change, and of changes of the history.

use super::*;

fn change(id: u64, file: &str) -> Change {
    Change {
        id,
        unix_time: 0,
        file: file.into(),
        revision: format!("of {file}"),
        what: format!("change {id}"),
        diff: String::new(),
    }
}

/// Returns a model with the page of the history.
fn history() -> Model {
    let mut model = online(&[]);
    model.act(Act::Show(PageName::History));
    model.report(Report::History(Ok(vec![
        change(4, "/a"),
        change(3, "/b"),
        change(2, "/a"),
        change(1, "/a"),
    ])));
    model
}

fn undo(effects: Vec<Effect>) -> Undo {
    match &jobs(effects)[..] {
        [Job::TakeBack(undo)] => undo.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_undo_that_does_not_reach_the_server_can_be_repeated() {
    let mut model = online(&["a.test"]);
    model.act(Act::Select("a.test".to_owned()));
    model.act(Act::RemoveSite);
    model.report(Report::Edited(Purpose::Remove("a.test".to_owned()), Ok(saved(true))));
    let first = undo(model.act(Act::Undo));
    // A second press does not send it again.
    assert_eq!(model.act(Act::Undo), []);
    model.report(Report::Edited(Purpose::Undo, Err(ApiError::new(503, "broken pipe"))));
    assert!(notice(&model).contains("broken pipe"));
    assert_eq!(undo(model.act(Act::Undo)), first);
    // A file that was edited meanwhile stays as it is for good.
    model.report(Report::Edited(Purpose::Undo, Err(ApiError::new(409, "changed"))));
    assert!(!model.can_undo());
}

#[test]
fn any_listed_change_is_taken_back_with_the_later_ones_of_its_file() {
    let mut model = history();
    assert_eq!(model.act(Act::GoBack), []);
    model.act(Act::Select("2".to_owned()));
    let expected = Undo {
        id: Some(2),
        revision: Some("of /a".to_owned()),
        discard_edits: false,
    };
    assert_eq!(undo(model.act(Act::GoBack)), expected);
    assert_eq!(model.act(Act::GoBack), []);
    let asked = jobs(model.report(Report::Edited(Purpose::Undo, Ok(saved(true)))));
    assert_eq!(asked, [Job::Query(Query::History)]);
    // Changes 4 and 2, and this is undone by Ctrl+Z.
    assert!(notice(&model).starts_with("2 "), "{}", notice(&model));
    assert_eq!(undo(model.act(Act::Undo)).revision.as_deref(), Some("r2"));
    model.report(Report::Edited(Purpose::Undo, Ok(saved(true))));
    // The change whose lines are shown comes before the selected one.
    model.act(Act::OpenRow);
    model.act(Act::Select("1".to_owned()));
    assert_eq!(undo(model.act(Act::GoBack)).id, Some(2));
}

#[test]
fn edits_by_hand_are_shown_before_an_undo_discards_them() {
    let mut model = history();
    model.act(Act::Select("1".to_owned()));
    model.act(Act::GoBack);
    let refusal = || ApiError {
        details: Some("-old\n+by hand\n".to_owned()),
        ..ApiError::new(409, "edits that are not in the history")
    };
    model.report(Report::Edited(Purpose::Undo, Err(refusal())));
    let screen = crate::pages::screen(&model);
    let acts: Vec<&Act> = screen.actions.iter().map(|button| &button.act).collect();
    assert_eq!(acts, [&Act::Cancel, &Act::DiscardEdits]);
    let crate::screen::Body::Diff(lines) = screen.body else {
        panic!("{:?}", screen.body)
    };
    assert_eq!(lines.lines[1].text, "+by hand");
    // Esc keeps the edits, and the page.
    model.act(Act::Cancel);
    assert_eq!((model.page, &model.refused_undo), (PageName::History, &None));
    assert_eq!(model.act(Act::DiscardEdits), []);
    model.act(Act::GoBack);
    model.report(Report::Edited(Purpose::Undo, Err(refusal())));
    let undo = undo(model.act(Act::DiscardEdits));
    assert_eq!(
        (undo.id, undo.revision.as_deref(), undo.discard_edits),
        (Some(1), Some("of /a"), true)
    );
    // A list that is older than the file is queried again.
    let error = Err(ApiError::new(409, "another revision"));
    let asked = jobs(model.report(Report::Edited(Purpose::Undo, error)));
    assert_eq!(asked, [Job::Query(Query::History)]);
    assert!(model.refused_undo.is_none() && notice(&model).contains("another revision"));
}
