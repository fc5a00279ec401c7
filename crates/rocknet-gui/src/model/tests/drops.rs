//! Folders that are dropped onto the window.

use super::adding::elsewhere;
use super::editing::{edited_root, editing, form, report_form};
use super::*;

fn drop_on(model: &mut Model, text: &str) -> Vec<Job> {
    jobs(model.act(Act::Drop(text.to_owned())))
}

#[test]
fn a_dropped_folder_becomes_a_new_website() {
    let mut model = online(&["a.test"]);
    let asked = drop_on(&mut model, "file://desk/srv/My%20Blog\r\n");
    assert!(asked.contains(&Job::Inspect("/srv/My Blog".into())), "{asked:?}");
    assert_eq!(model.page, PageName::AddWebsite);
    // Another one replaces it as a whole, and the remaining ones are named.
    drop_on(&mut model, "file:///srv/b\r\nfile:///srv/c\r\n");
    assert_eq!(model.draft.as_ref().unwrap().folder, "/srv/b");
    assert!(notice(&model).contains("/srv/b"));
    // A file has no website, but its folder may.
    drop_on(&mut model, "/srv/b/index.html");
    let inspection = Inspection {
        is_file: true,
        ..Inspection::default()
    };
    model.report(Report::Inspected("/srv/b/index.html".into(), inspection));
    let crate::screen::Body::Form(form) = crate::pages::screen(&model).body else {
        panic!("no form")
    };
    assert_eq!(form.fields[0].problem, model.words().is_a_file);
    let repair = form.fields[0].fix.clone().unwrap().act;
    assert_eq!(jobs(model.act(repair)), [Job::Inspect("/srv/b".into())]);
    assert_eq!(drop_on(&mut model, "\n"), []);
}

#[test]
fn names_that_cannot_be_used_are_explained() {
    let mut model = online(&[]);
    let problem = |model: &Model| match crate::pages::screen(model).body {
        crate::screen::Body::Form(form) => form.fields[0].problem.clone(),
        other => panic!("{other:?}"),
    };
    drop_on(&mut model, "file:///srv/%ff");
    assert_eq!(problem(&model), model.words().folder_not_utf8);
    drop_on(&mut model, "file:///srv/a%20");
    model.report(Report::Inspected("/srv/a".into(), Inspection::default()));
    assert_eq!(problem(&model), model.words().folder_ends_in_space);
}

#[test]
fn a_dropped_folder_is_used_by_the_open_form() {
    let mut model = editing();
    drop_on(&mut model, "file:///srv/new");
    assert_eq!(
        (edited_root(&model).as_str(), model.page),
        ("/srv/new", PageName::EditWebsite)
    );
    // A URL that is pasted into the field is a path as well.
    model.act(Act::SetField(FieldId::Site(0), "file:///srv/x".to_owned()));
    assert_eq!(edited_root(&model), "/srv/x");
    // A form without a folder takes none.
    let mut without = form("r1", "/srv");
    without.fields[0].name = "title".to_owned();
    let mut model = online(&["a.test"]);
    model.act(Act::Select("a.test".to_owned()));
    model.act(Act::EditSite);
    report_form(&mut model, without);
    assert_eq!(drop_on(&mut model, "/srv/new"), []);
    assert!(!model.has_unsaved_input());
}

#[test]
fn a_drop_loses_no_input_and_needs_this_computer() {
    let mut model = online(&[]);
    model.act(Act::EditText);
    model.report(super::editing::text("r1", "a = 1\n"));
    model.act(Act::SetText("b = 1\n".to_owned(), 0));
    assert_eq!(drop_on(&mut model, "/srv/a"), []);
    assert_eq!(model.question(), Some(Question::Leave));
    model.act(Act::Discard);
    assert_eq!(model.draft.as_ref().unwrap().folder, "/srv/a");
    let mut model = elsewhere();
    assert_eq!(drop_on(&mut model, "/srv/a"), []);
    assert_eq!(
        (notice(&model), model.page),
        (model.words().dropped_elsewhere, PageName::Websites)
    );
}
