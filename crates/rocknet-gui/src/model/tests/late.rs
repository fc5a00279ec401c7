//! Results that arrive after the user has gone on to something else, or after a failed check.

use super::editing::{editing, form, type_root};
use super::*;

/// Fills in the form of a website, and returns the name that is suggested.
fn fill(model: &mut Model, folder: &str) -> String {
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Folder, folder.to_owned()));
    model.report(Report::Inspected(folder.into(), readable(false)));
    model.draft.as_ref().unwrap().name.clone()
}

fn readable(has_index_html: bool) -> Inspection {
    Inspection {
        exists: true,
        readable: true,
        has_index_html,
        ..Inspection::default()
    }
}

fn name(model: &Model) -> &str {
    &model.draft.as_ref().unwrap().name
}

#[test]
fn a_saved_website_keeps_its_suggested_name() {
    let mut model = online(&[]);
    let added = fill(&mut model, "/srv/shop");
    assert_eq!(added, "shop.localhost");
    model.act(Act::Submit);
    model.report(polled(2, &["shop.localhost"]));
    model.report(Report::Edited(Purpose::Add(added.clone()), Ok(saved(true))));
    // The start page was created, and a development server was found meanwhile.
    model.report(Report::FoundServers(vec!["http://127.0.0.1:3000".to_owned()]));
    let asked = jobs(model.report(Report::Inspected("/srv/shop".into(), readable(true))));
    assert_eq!(asked, [Job::Visit(added.clone())]);
    assert_eq!(name(&model), added);
}

#[test]
fn a_website_that_is_saved_late_does_not_become_the_next_one() {
    let mut model = online(&[]);
    let first = fill(&mut model, "/srv/shop");
    model.act(Act::Submit);
    model.act(Act::AddSite);
    model.act(Act::Discard);
    let second = fill(&mut model, "/srv/blog");
    assert_ne!(first, second);
    model.report(Report::Edited(Purpose::Add(first.clone()), Ok(saved(true))));
    let draft = model.draft.as_ref().unwrap();
    assert!(!draft.is_saved() && draft.has_input());
    assert_eq!(jobs(model.act(Act::Submit)).len(), 1, "the second one can be saved");
    // Its own failure is shown in the form, and that of another one as a notice.
    model.report(Report::Edited(Purpose::Add(first), Err(ApiError::new(422, "first"))));
    assert_eq!(notice(&model), "first");
    assert_eq!(model.draft.as_ref().unwrap().failure, None);
    model.report(Report::Edited(Purpose::Add(second), Err(ApiError::new(422, "second"))));
    assert_eq!(model.draft.as_ref().unwrap().failure.as_deref(), Some("second"));
}

#[test]
fn a_visit_of_the_last_website_does_not_open_the_next_one() {
    let mut model = online(&[]);
    let first = fill(&mut model, "/srv/shop");
    model.act(Act::Submit);
    model.report(Report::Edited(Purpose::Add(first), Ok(saved(true))));
    model.act(Act::AddSite);
    let visit = Visit {
        site: "shop.localhost".to_owned(),
        url: "http://shop.localhost/".to_owned(),
        reply: Ok(200),
        name_resolves: true,
    };
    assert_eq!(model.report(Report::Visited(visit)), []);
    let draft = model.draft.as_ref().unwrap();
    assert!(draft.visit.is_none() && !draft.is_opened);
}

#[test]
fn an_undone_website_leads_back_to_a_list_with_rates() {
    let mut model = online(&[]);
    let added = fill(&mut model, "/srv/shop");
    model.act(Act::Submit);
    model.report(Report::Edited(Purpose::Add(added), Ok(saved(true))));
    assert!(!jobs(model.act(Act::Undo)).is_empty());
    let asked = jobs(model.report(Report::Edited(Purpose::Undo, Ok(saved(false)))));
    assert!(asked.contains(&Job::WatchTraffic(true)), "{asked:?}");
    assert_eq!((model.page, model.draft.is_none()), (PageName::Websites, true));
    assert!(!notice(&model).is_empty());
}

#[test]
fn an_undo_leaves_a_website_alone_that_is_being_saved() {
    let mut model = online(&["a.test"]);
    model.act(Act::Select("a.test".to_owned()));
    model.act(Act::ToggleSite);
    model.report(Report::Edited(Purpose::Disable("a.test".to_owned()), Ok(saved(true))));
    assert!(!jobs(model.act(Act::Undo)).is_empty());
    let second = fill(&mut model, "/srv/blog");
    model.act(Act::Submit);
    model.report(Report::Edited(Purpose::Undo, Ok(saved(false))));
    model.report(Report::Edited(Purpose::Add(second), Err(ApiError::new(422, "no"))));
    assert!(model.draft.as_ref().is_some_and(crate::model::Draft::has_input));
}

#[test]
fn a_form_that_is_saved_late_does_not_close_the_next_one() {
    let mut model = editing();
    type_root(&mut model, "/new");
    assert_eq!(jobs(model.act(Act::Submit)).len(), 1);
    model.act(Act::Cancel);
    model.act(Act::Discard);
    model.act(Act::Select("b.test".to_owned()));
    model.act(Act::EditSite);
    model.report(Report::Edited(Purpose::Change("a.test".to_owned()), Ok(saved(true))));
    assert_eq!(
        (model.page, &model.site_edit),
        (PageName::EditWebsite, &Fetched::Loading)
    );
    let other = rocknet_control::site_form::SiteForm {
        name: "b.test".to_owned(),
        ..form("r1", "/srv")
    };
    model.report(Report::SiteForm("b.test".to_owned(), Ok(Box::new(other))));
    assert!(matches!(model.site_edit, Fetched::Loaded(_)));
}

#[test]
fn a_check_that_failed_without_a_server_is_repeated() {
    let mut model = editing();
    type_root(&mut model, "/new");
    let [Job::Check(number, _)] = jobs(model.act(Act::LeaveField(FieldId::Site(0))))[..] else {
        panic!("no check")
    };
    model.report(Report::Checked(number, Err(ApiError::new(503, "gone"))));
    model.report(Report::Absent(Absence::Stopped(true)));
    let asked = jobs(model.report(Report::Connected("/run/control.sock".into())));
    assert!(asked.iter().any(|job| matches!(job, Job::Check(..))), "{asked:?}");
}

#[test]
fn the_check_of_an_earlier_folder_is_not_shown() {
    let mut model = online(&[]);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Folder, "/srv/shop".to_owned()));
    let asked = jobs(model.report(Report::Inspected("/srv/shop".into(), readable(true))));
    let [Job::Check(number, _)] = asked[..] else {
        panic!("no check")
    };
    model.act(Act::SetField(FieldId::Folder, "/srv/none".to_owned()));
    let checked = Checked {
        is_valid: true,
        findings: Vec::new(),
    };
    model.report(Report::Checked(number, Ok(checked)));
    assert_eq!(model.draft.as_ref().unwrap().checked, None);
}

#[test]
fn a_place_that_is_not_valid_leaves_the_server_of_this_computer() {
    let mut model = Model::new(Settings::default());
    model.report(Report::Place(crate::elsewhere::Elsewhere {
        place: crate::elsewhere::ServerPlace::Socket,
        socket: "relative".to_owned(),
        ..crate::elsewhere::Elsewhere::default()
    }));
    assert!(!model.is_elsewhere() && model.has_new_place());
}
