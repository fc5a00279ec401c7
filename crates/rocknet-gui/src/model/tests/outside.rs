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

#[test]
fn a_token_for_reading_opens_no_form_and_no_text() {
    let denied = || ApiError::new(403, "this token only permits to read what is no secret");
    let title = |model: &Model| match crate::pages::screen(model).body {
        crate::screen::Body::Message(message) => message.title,
        other => panic!("{other:?}"),
    };
    let mut model = online(&["a.test"]);
    model.act(Act::Select("a.test".to_owned()));
    model.act(Act::EditSite);
    model.report(Report::SiteForm("a.test".to_owned(), Err(denied())));
    assert_eq!(title(&model), model.words().denied_title);
    model.act(Act::EditText);
    model.report(Report::ConfigText(None, Err(denied())));
    assert_eq!(title(&model), model.words().denied_title);
    // The form of a new website says so, and leads to the settings.
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    let [Job::Check(number, _)] =
        jobs(model.act(Act::SetField(FieldId::Address, "http://127.0.0.1:3000".to_owned())))[..]
    else {
        panic!("no check")
    };
    model.report(Report::Checked(number, Err(denied())));
    let crate::screen::Body::Form(form) = crate::pages::screen(&model).body else {
        panic!("no form")
    };
    let refused = form.checks.last().unwrap();
    assert!(refused.text.starts_with(model.words().denied_title), "{refused:?}");
    assert_eq!(refused.fix.clone().unwrap().act, Act::Show(PageName::Settings));
}

#[test]
fn the_file_that_is_shown_is_opened_in_another_editor() {
    let mut model = online(&[]);
    model.act(Act::EditText);
    model.report(text("r1", "a = 1\n"));
    model.act(Act::SetField(FieldId::File, "/sites/b.toml".to_owned()));
    model.report(text_of(Some("/sites/b.toml"), "/sites/b.toml", "r1", "b = 1\n"));
    assert_eq!(
        jobs(model.act(Act::OpenConfig)),
        [Job::Open("/sites/b.toml".to_owned())]
    );
    // A server elsewhere has the file on its computer.
    let mut model = super::adding::elsewhere();
    model.act(Act::EditText);
    model.report(text("r1", "a = 1\n"));
    assert_eq!(model.act(Act::OpenConfig), []);
    let actions = crate::pages::screen(&model).actions;
    let open = actions.iter().find(|button| button.act == Act::OpenConfig).unwrap();
    assert!(!open.enabled);
}
