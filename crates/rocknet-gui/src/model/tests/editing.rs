//! Forms and texts: opening, checks, saving, conflicts, and questions before input is lost.

use rocknet_control::config::{ConfigText, Finding};
use rocknet_control::site_form::{SiteField, SiteForm};

use super::*;

pub(super) fn form(revision: &str, root: &str) -> SiteForm {
    SiteForm {
        name: "a.test".to_owned(),
        file: "/r.toml".into(),
        line: 7,
        revision: revision.to_owned(),
        fields: vec![SiteField {
            name: "root".to_owned(),
            text: root.to_owned(),
            ..SiteField::default()
        }],
    }
}

pub(super) fn report_form(model: &mut Model, form: SiteForm) -> Vec<Job> {
    jobs(model.report(Report::SiteForm("a.test".to_owned(), Ok(Box::new(form)))))
}

/// Returns a model with the form of a website.
pub(super) fn editing() -> Model {
    let mut model = online(&["a.test", "b.test"]);
    assert_eq!(model.act(Act::EditSite), []);
    model.act(Act::Select("a.test".to_owned()));
    let asked = jobs(model.act(Act::EditSite));
    assert_eq!(asked.last(), Some(&Job::SiteForm("a.test".to_owned())));
    assert_eq!(
        (model.page, &model.site_edit),
        (PageName::EditWebsite, &Fetched::Loading)
    );
    assert!(matches!(
        report_form(&mut model, form("r1", "/srv"))[..],
        [Job::Check(..)]
    ));
    model
}

pub(super) fn type_root(model: &mut Model, text: &str) {
    model.act(Act::SetField(FieldId::Site(0), text.to_owned()));
}

pub(super) fn edited_root(model: &Model) -> String {
    match &model.site_edit {
        Fetched::Loaded(edit) => edit.shown().next().unwrap().2.to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_website_is_edited_and_saved() {
    let mut model = editing();
    // Without a change there is nothing to save.
    assert_eq!(model.act(Act::Submit), []);
    type_root(&mut model, "/new");
    let [Job::Check(number, _)] = jobs(model.act(Act::LeaveField(FieldId::Site(0))))[..] else {
        panic!("no check")
    };
    let mut finding = Finding::warning("missing", "there is no such folder");
    finding.is_error = true;
    finding.key = ["site", "a.test", "root"].map(str::to_owned).to_vec();
    let checked = Checked {
        is_valid: false,
        findings: vec![finding],
    };
    // The result of an earlier check is out of date.
    model.report(Report::Checked(number - 1, Ok(checked.clone())));
    let problems = |model: &Model| match &model.site_edit {
        Fetched::Loaded(edit) => edit.problems(FieldId::Site(0)).to_vec(),
        other => panic!("{other:?}"),
    };
    assert!(problems(&model).is_empty());
    model.report(Report::Checked(number, Ok(checked)));
    assert_eq!(problems(&model), ["there is no such folder"]);
    let [Job::Edit(Purpose::Change(name), edits)] = &jobs(model.act(Act::Submit))[..] else {
        panic!("no edit")
    };
    assert_eq!((name.as_str(), edits.revision.as_deref()), ("a.test", Some("r1")));
    assert_eq!(model.act(Act::Submit), []);
    // A refusal keeps the input.
    let purpose = || Purpose::Change("a.test".to_owned());
    model.report(Report::Edited(
        purpose(),
        Err(ApiError::new(422, "cannot set site.a.test.root: no")),
    ));
    assert_eq!(
        (problems(&model), edited_root(&model)),
        (
            vec!["there is no such folder".to_owned(), "no".to_owned()],
            "/new".to_owned()
        )
    );
    assert_eq!(jobs(model.act(Act::Submit)).len(), 1);
    model.report(Report::Edited(purpose(), Ok(saved(true))));
    assert_eq!((model.page, &model.site_edit), (PageName::Websites, &Fetched::Missing));
    assert!(model.can_undo() && notice(&model).starts_with("a.test"));
}

#[test]
fn input_survives_polls_and_edits_elsewhere() {
    let mut model = editing();
    type_root(&mut model, "/mine");
    assert_eq!(
        jobs(model.report(polled(2, &["a.test"]))),
        [Job::SiteForm("a.test".to_owned())]
    );
    report_form(&mut model, form("r1", "/srv"));
    assert_eq!(edited_root(&model), "/mine");
    // Another key of the file was edited.
    report_form(&mut model, form("r2", "/srv"));
    assert_eq!((edited_root(&model).as_str(), model.question()), ("/mine", None));
    assert_eq!(notice(&model), model.words().edited_meanwhile);
    model.report(Report::Absent(Absence::Failed("gone".to_owned())));
    assert_eq!(model.act(Act::Submit), []);
    model.report(Report::Connected("/run/control.sock".into()));
    assert_eq!(edited_root(&model), "/mine");
    // The form of another website is out of date.
    let other = Report::SiteForm("b.test".to_owned(), Err(ApiError::new(404, "no")));
    assert_eq!(model.report(other), []);
}

#[test]
fn a_conflict_asks() {
    let mut model = editing();
    type_root(&mut model, "/mine");
    model.act(Act::Submit);
    let conflict = Report::Edited(Purpose::Change("a.test".to_owned()), Err(ApiError::new(409, "changed")));
    assert_eq!(jobs(model.report(conflict)), [Job::SiteForm("a.test".to_owned())]);
    report_form(&mut model, form("r2", "/theirs"));
    assert_eq!(model.question(), Some(Question::Conflict));
    assert_eq!(model.act(Act::Submit), []);
    model.act(Act::KeepInput);
    assert_eq!((model.question(), edited_root(&model).as_str()), (None, "/mine"));
    let [Job::Edit(_, edits)] = &jobs(model.act(Act::Submit))[..] else {
        panic!("no edit")
    };
    assert_eq!(edits.revision.as_deref(), Some("r2"));
    model.report(Report::Edited(
        Purpose::Change("a.test".to_owned()),
        Err(ApiError::new(500, "no")),
    ));
    report_form(&mut model, form("r3", "/third"));
    model.act(Act::TakeOther);
    assert_eq!(
        (edited_root(&model).as_str(), model.has_unsaved_input()),
        ("/third", false)
    );
}

/// Acts that leave a page.
const LEAVING: [Act; 5] = [
    Act::Cancel,
    Act::Show(PageName::Logs),
    Act::AddSite,
    Act::EditText,
    Act::Quit,
];

#[test]
fn unsaved_input_is_asked_about_before_it_is_lost() {
    for act in LEAVING {
        let mut model = editing();
        type_root(&mut model, "/mine");
        assert_eq!(model.act(act.clone()), [], "{act:?}");
        assert_eq!(
            (model.question(), model.page),
            (Some(Question::Leave), PageName::EditWebsite)
        );
        // Esc answers the question, and stays.
        model.act(Act::Cancel);
        assert_eq!((model.question(), edited_root(&model).as_str()), (None, "/mine"));
        model.act(act.clone());
        let effects = model.act(Act::Discard);
        assert_eq!(model.question(), None);
        match act {
            Act::Quit => assert_eq!(effects, [Effect::Quit]),
            _ => assert_ne!(model.page, PageName::EditWebsite, "{act:?}"),
        }
    }
    // Without input, the page is left at once.
    let mut model = editing();
    model.act(Act::Cancel);
    assert_eq!((model.page, model.question()), (PageName::Websites, None));
}

#[test]
fn leaving_a_new_website_while_it_is_saved_asks_and_success_answers() {
    let leaving = || {
        let mut model = online(&[]);
        model.act(Act::AddSite);
        model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
        model.act(Act::SetField(FieldId::Address, "http://127.0.0.1:3000".to_owned()));
        assert_eq!(jobs(model.act(Act::Submit)).len(), 1);
        model.act(Act::Show(PageName::Logs));
        assert_eq!(model.question(), Some(Question::Leave));
        model
    };
    let purpose = || Purpose::Add("app-3000.localhost".to_owned());
    let mut model = leaving();
    model.report(Report::Edited(purpose(), Err(ApiError::new(422, "no"))));
    model.act(Act::Stay);
    assert_eq!(model.draft.as_ref().unwrap().address, "http://127.0.0.1:3000");
    let mut model = leaving();
    let saved = Saved {
        message: String::new(),
        file: "/r.toml".into(),
        revision: "2".to_owned(),
        can_undo: true,
        findings: Vec::new(),
    };
    model.report(Report::Edited(purpose(), Ok(saved)));
    assert_eq!((model.page, model.question()), (PageName::Logs, None));
}

#[test]
fn a_new_website_is_asked_about_before_its_input_is_lost() {
    let folder = || Act::SetField(FieldId::Folder, "/srv/shop".to_owned());
    for act in LEAVING {
        let mut model = online(&["a.test"]);
        model.act(Act::AddSite);
        model.act(folder());
        assert_eq!(model.act(act.clone()), [], "{act:?}");
        model.act(Act::Stay);
        assert_eq!(model.draft.as_ref().unwrap().folder, "/srv/shop");
        model.act(act.clone());
        let effects = model.act(Act::Discard);
        assert_eq!(model.question(), None);
        match act {
            Act::Quit => assert_eq!(effects, [Effect::Quit]),
            Act::AddSite => assert_eq!(model.draft.as_ref().unwrap().folder, ""),
            _ => assert_ne!(model.page, PageName::AddWebsite, "{act:?}"),
        }
    }
}

pub(super) fn text(revision: &str, text: &str) -> Report {
    text_of(None, "/r.toml", revision, text)
}

/// Returns the reply to a query of a file; `None`: of the main file.
pub(super) fn text_of(queried: Option<&str>, file: &str, revision: &str, text: &str) -> Report {
    let read = ConfigText {
        file: file.into(),
        files: vec!["/r.toml".into(), "/sites/b.toml".into()],
        text: text.to_owned(),
        revision: revision.to_owned(),
        is_loaded: true,
    };
    Report::ConfigText(queried.map(PathBuf::from), Ok(Box::new(read)))
}

pub(super) fn text_edit(model: &Model) -> &TextEdit {
    match &model.text_edit {
        Fetched::Loaded(edit) => edit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_text_is_edited_checked_and_saved() {
    let mut model = online(&[]);
    model.act(Act::Show(PageName::Server));
    assert_eq!(jobs(model.act(Act::EditText)).last(), Some(&Job::ReadText(None)));
    let [Job::CheckText(first, _)] = jobs(model.report(text("r1", "a = 1\n")))[..] else {
        panic!("no check")
    };
    let set = |model: &mut Model, text: &str| jobs(model.act(Act::SetText(text.to_owned(), 0)));
    assert_eq!(set(&mut model, "a = \n"), []);
    let valid = Checked {
        is_valid: true,
        findings: Vec::new(),
    };
    // The newer text is checked as soon as the check in progress is done.
    let [Job::CheckText(second, _)] = jobs(model.report(Report::Checked(first, Ok(valid))))[..] else {
        panic!("no check")
    };
    let mut finding = Finding::warning("syntax", "a value is missing");
    (finding.is_error, finding.line, finding.column) = (true, 1, 5);
    let broken = Checked {
        is_valid: false,
        findings: vec![finding],
    };
    assert_eq!(model.report(Report::Checked(second, Ok(broken))), []);
    model.act(Act::Select("0".to_owned()));
    assert_eq!(
        (text_edit(&model).place.line, text_edit(&model).place.takes_focus),
        (1, false)
    );
    model.act(Act::OpenRow);
    assert!(text_edit(&model).place.takes_focus);
    let [Job::Replace(Purpose::Text(name), replacement)] = &jobs(model.act(Act::Submit))[..] else {
        panic!("no replacement")
    };
    assert_eq!((name.as_str(), replacement.revision.as_str()), ("r.toml", "r1"));
    let purpose = || Purpose::Text("r.toml".to_owned());
    model.report(Report::Edited(purpose(), Err(ApiError::new(422, "not valid"))));
    assert_eq!(
        (notice(&model), text_edit(&model).text.as_str()),
        ("not valid", "a = \n")
    );
    set(&mut model, "a = 2\n");
    model.act(Act::Submit);
    // While the text is being saved, leaving asks, and the success answers.
    assert_eq!(model.act(Act::Cancel), []);
    assert_eq!(model.question(), Some(Question::Leave));
    model.report(Report::Edited(purpose(), Ok(saved(true))));
    assert!(!model.has_unsaved_input() && model.can_undo());
    assert_eq!((model.page, model.question()), (PageName::Server, None));
}

#[test]
fn a_text_opens_at_the_website_and_other_files_are_chosen() {
    let mut model = editing();
    let asked = jobs(model.act(Act::EditText));
    assert_eq!(asked[2], Job::ReadText(Some("/r.toml".into())));
    model.report(text_of(Some("/r.toml"), "/r.toml", "r1", "x\n"));
    assert_eq!((text_edit(&model).place.line, text_edit(&model).place.number), (7, 1));
    let choose = |model: &mut Model, file: &str| jobs(model.act(Act::SetField(FieldId::File, file.to_owned())));
    assert_eq!(choose(&mut model, "/r.toml"), []);
    model.act(Act::SetText("y\n".to_owned(), 1));
    assert_eq!(choose(&mut model, "/sites/b.toml"), []);
    assert_eq!(model.question(), Some(Question::Leave));
    assert_eq!(
        jobs(model.act(Act::Discard)),
        [Job::ReadText(Some("/sites/b.toml".into()))]
    );
    let failed = Err(ApiError::new(500, "no"));
    model.report(Report::ConfigText(Some("/sites/b.toml".into()), failed));
    assert_eq!(model.text_edit, Fetched::Failed("no".to_owned()));
    model.act(Act::Cancel);
    assert_eq!(model.page, PageName::Websites);
}

#[test]
fn a_text_that_another_program_has_edited_asks() {
    let mut model = online(&[]);
    model.act(Act::EditText);
    model.report(text("r1", "a\n"));
    model.act(Act::SetText("mine\n".to_owned(), 0));
    assert_eq!(
        jobs(model.report(polled(3, &[]))),
        [Job::ReadText(Some("/r.toml".into()))]
    );
    model.report(text("r2", "theirs\n"));
    assert_eq!(model.question(), Some(Question::Conflict));
    model.act(Act::KeepInput);
    assert_eq!((model.question(), text_edit(&model).text.as_str()), (None, "mine\n"));
    model.report(text("r3", "theirs again\n"));
    model.act(Act::TakeOther);
    assert_eq!(text_edit(&model).text, "theirs again\n");
}

#[test]
fn keys_for_websites_do_nothing_on_other_pages() {
    let mut model = editing();
    for act in [Act::RemoveSite, Act::ToggleSite, Act::DuplicateSite, Act::EditSite] {
        assert_eq!(model.act(act.clone()), [], "{act:?}");
    }
}

#[test]
fn the_differences_of_a_change_are_opened_and_closed() {
    let mut model = online(&[]);
    model.act(Act::Show(PageName::History));
    model.act(Act::Select("3".to_owned()));
    model.act(Act::OpenRow);
    assert_eq!(model.opened_change, Some(3));
    model.act(Act::Cancel);
    assert_eq!((model.opened_change, model.page), (None, PageName::History));
    model.act(Act::OpenRow);
    model.act(Act::Show(PageName::History));
    assert_eq!(model.opened_change, None);
}
