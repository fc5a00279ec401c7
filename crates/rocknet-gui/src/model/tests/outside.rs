//! Edits by other programs, and the loss of rights, while a form or a text is open.

use super::editing::{edited_root, editing, form, report_form, text, text_edit, type_root};
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
    model.report(Report::ConfigText(Err("no such file".to_owned())));
    assert_eq!(crate::pages::screen(&model).banner.unwrap().text, "no such file");
    model.report(text("r1", "a = 1\n"));
    assert_eq!(crate::pages::screen(&model).banner, None);
    assert_eq!(text_edit(&model).failure, None);
}
