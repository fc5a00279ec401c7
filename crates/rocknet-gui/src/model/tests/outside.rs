//! Edits by other programs, and the loss of rights, while a form or a text is open.

use super::editing::{edited_root, editing, form, report_form, text, text_edit, text_of, type_root};
use super::*;

#[test]
fn a_website_that_another_program_removes_is_shown_as_gone() {
    let mut model = editing();
    type_root(&mut model, "/mine");
    let gone = || Report::SiteForm("a.test".to_owned(), Err(ApiError::new(404, "no such website")));
    model.tell("removed".to_owned(), true);
    for second in 2..5 {
        // The query is repeated, because the website may be put back, but each failure is no new notice.
        assert_eq!(
            jobs(model.report(polled(second, &[]))),
            [Job::SiteForm("a.test".to_owned())]
        );
        model.report(gone());
        assert_eq!(notice(&model), "removed");
    }
    let is_gone = |model: &Model| match &model.site_edit {
        Fetched::Loaded(edit) => edit.is_gone,
        other => panic!("{other:?}"),
    };
    assert!(is_gone(&model) && edited_root(&model) == "/mine");
    assert_eq!(model.act(Act::Submit), []);
    assert_eq!(model.act(Act::LeaveField(FieldId::Site(0))), []);
    let banner = crate::pages::screen(&model).banner.unwrap();
    assert_eq!(banner.action.unwrap().act, Act::Cancel);
    report_form(&mut model, form("r2", "/srv"));
    assert!(!is_gone(&model) && edited_root(&model) == "/mine");
    assert_eq!(crate::pages::screen(&model).banner, None);
    assert!(matches!(jobs(model.act(Act::Submit))[..], [Job::Edit(..)]));
}

#[test]
fn a_file_that_cannot_be_read_for_a_moment_leaves_no_error_behind() {
    let mut model = online(&[]);
    model.act(Act::EditText);
    model.report(text("r1", "a = 1\n"));
    let missing = Err(ApiError::new(404, "no such file"));
    model.report(Report::ConfigText(Some("/r.toml".into()), missing));
    assert_eq!(crate::pages::screen(&model).banner.unwrap().text, "no such file");
    model.report(text("r1", "a = 1\n"));
    assert_eq!(crate::pages::screen(&model).banner, None);
    assert_eq!(text_edit(&model).failure, None);
}

#[test]
fn a_reply_about_a_file_that_was_shown_before_does_not_replace_the_chosen_one() {
    let mut model = online(&[]);
    model.act(Act::EditText);
    model.report(text("r1", "a = 1\n"));
    // The query of the poll is on its way while the user chooses another file.
    assert_eq!(
        jobs(model.report(polled(2, &[]))),
        [Job::ReadText(Some("/r.toml".into()))]
    );
    let chosen = || "/sites/b.toml".into();
    assert_eq!(
        jobs(model.act(Act::SetField(FieldId::File, "/sites/b.toml".to_owned()))),
        [Job::ReadText(Some(chosen()))]
    );
    model.report(text_of(Some("/r.toml"), "/r.toml", "r1", "a = 1\n"));
    assert_eq!(model.text_edit, Fetched::Loading);
    // A new connection reads the chosen file, not the main file.
    model.report(Report::Absent(Absence::Failed("gone".to_owned())));
    let asked = jobs(model.report(Report::Connected("/run/control.sock".into())));
    assert!(asked.contains(&Job::ReadText(Some(chosen()))), "{asked:?}");
    model.report(text_of(Some("/sites/b.toml"), "/sites/b.toml", "r1", "b = 1\n"));
    assert_eq!(text_edit(&model).text, "b = 1\n");
}
