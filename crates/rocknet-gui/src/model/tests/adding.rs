//! Websites that are added, here and on a server elsewhere.

use super::*;
use crate::act::Fix;
use crate::job::{FolderTrouble, Trouble};

/// Returns a model whose server is on another computer.
pub(super) fn elsewhere() -> Model {
    let mut model = Model::new(Settings::default());
    model.report(Report::Place(crate::elsewhere::Elsewhere {
        place: crate::elsewhere::ServerPlace::Socket,
        socket: "/s".to_owned(),
        ..crate::elsewhere::Elsewhere::default()
    }));
    model.report(Report::Connected("/s".into()));
    model.report(polled(1, &[]));
    model
}

#[test]
fn a_website_of_a_server_elsewhere_needs_nothing_of_this_computer() {
    let mut model = elsewhere();
    assert!(!model.act(Act::AddSite).contains(&Effect::Job(Job::FindServers)));
    assert_eq!(model.act(Act::ChooseFolder), []);
    assert_eq!(
        model.act(Act::SetField(FieldId::Name, "www.example.com".to_owned())),
        []
    );
    // Only the server can look into the folder, so it is checked at once.
    assert_eq!(model.act(Act::SetField(FieldId::Folder, "srv".to_owned())), []);
    let asked = jobs(model.act(Act::SetField(FieldId::Folder, "/only/there".to_owned())));
    assert!(matches!(asked[..], [Job::Check(..)]), "{asked:?}");
    let draft = model.draft.as_ref().unwrap();
    assert_eq!(
        (draft.name.as_str(), draft.lacks_start_page()),
        ("www.example.com", false)
    );
    model.act(Act::SetField(FieldId::Kind, "laravel".to_owned()));
    let [Job::Edit(Purpose::Add(_), edits)] = &jobs(model.act(Act::Submit))[..] else {
        panic!("no edit")
    };
    let root = "/only/there/public".to_owned();
    let name = "www.example.com".to_owned();
    assert_eq!(
        edits.edits[0],
        Edit::AddSite {
            name: name.clone(),
            root
        }
    );
    assert_eq!(model.act(Act::Repair(Fix::CreateStartPage)), []);
    model.report(polled(2, &["www.example.com"]));
    let asked = jobs(model.report(Report::Edited(Purpose::Add(name), Ok(saved(true)))));
    assert!(!asked.iter().any(Job::is_of_this_computer), "{asked:?}");
    assert_eq!(model.act(Act::Repair(Fix::TrustCertificates)), []);
}

#[test]
fn a_key_that_is_pressed_twice_changes_a_website_once() {
    let mut model = online(&["a.test", "b.test"]);
    for (act, purpose) in [
        (Act::RemoveSite, Purpose::Remove("a.test".to_owned())),
        (Act::ToggleSite, Purpose::Disable("a.test".to_owned())),
        (
            Act::DuplicateSite,
            Purpose::Duplicate("a-2.test".to_owned(), "a.test".to_owned()),
        ),
    ] {
        model.act(Act::Select("a.test".to_owned()));
        assert_eq!(jobs(model.act(act.clone())).len(), 1, "{act:?}");
        for again in [Act::RemoveSite, Act::ToggleSite, Act::DuplicateSite] {
            assert_eq!(model.act(again.clone()), [], "{act:?} {again:?}");
        }
        // Another website is not concerned.
        model.act(Act::Select("b.test".to_owned()));
        assert_eq!(jobs(model.act(Act::ToggleSite)).len(), 1);
        model.report(Report::Edited(Purpose::Disable("b.test".to_owned()), Ok(saved(true))));
        model.report(Report::Edited(purpose, Err(ApiError::new(503, "gone"))));
    }
    model.act(Act::Select("a.test".to_owned()));
    assert_eq!(jobs(model.act(Act::RemoveSite)).len(), 1);
}

#[test]
fn a_website_without_a_url_is_not_opened() {
    let mut model = online(&[]);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    model.act(Act::SetField(FieldId::Address, "http://127.0.0.1:3000".to_owned()));
    model.act(Act::SetField(FieldId::Name, "*.a.test".to_owned()));
    model.act(Act::Submit);
    model.report(Report::Edited(Purpose::Add("*.a.test".to_owned()), Ok(saved(true))));
    let visit = Visit {
        site: "*.a.test".to_owned(),
        url: String::new(),
        reply: Ok(200),
        name_resolves: true,
    };
    assert_eq!(model.report(Report::Visited(visit)), []);
}

#[test]
fn a_folder_that_is_looked_into_is_shown_as_such() {
    let mut model = online(&[]);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Folder, "/net/shop".to_owned()));
    let shown = |model: &Model| match crate::pages::screen(model).body {
        crate::screen::Body::Form(form) => (form.checks, form.fields[0].problem.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(shown(&model).0[0].text, model.words().check_folder_busy);
    model.act(Act::LeaveField(FieldId::Folder));
    let slow = Inspection {
        is_slow: true,
        ..Inspection::default()
    };
    model.report(Report::Inspected("/net/shop".into(), slow));
    assert_eq!(shown(&model).1, model.words().folder_not_tried);
}

#[test]
fn a_development_server_that_is_started_later_is_found() {
    let mut model = online(&[]);
    model.act(Act::AddSite);
    assert_eq!(model.report(polled(2, &[])), []);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    assert_eq!(jobs(model.report(polled(3, &[]))), [Job::FindServers]);
    let found = || Report::FoundServers(vec!["http://[::1]:5173".to_owned()]);
    assert!(matches!(jobs(model.report(found()))[..], [Job::Check(..)]));
    let draft = model.draft.as_ref().unwrap();
    assert_eq!(
        (draft.address.as_str(), draft.name.as_str()),
        ("http://[::1]:5173", "app-5173.localhost")
    );
    // The same servers need no further check.
    assert_eq!(model.report(found()), []);
}

#[test]
fn a_website_whose_port_is_taken_is_added_at_a_free_one() {
    let mut model = online(&[]);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    model.act(Act::SetField(FieldId::Address, "http://127.0.0.1:3000".to_owned()));
    let refuse = |model: &mut Model, name: &str, taken: u16, free: u16| {
        model.report(Report::PortTaken(name.to_owned(), taken, free));
        let error = ApiError::new(422, format!("port {taken} is in use by nginx (pid 7)"));
        model.report(Report::Edited(Purpose::Add(name.to_owned()), Err(error)));
        let crate::screen::Body::Form(form) = crate::pages::screen(model).body else {
            panic!("no form")
        };
        let fix = form.checks.last().unwrap().fix.clone().unwrap();
        assert!(fix.label.contains(&free.to_string()), "{fix:?}");
        let [Job::Edit(Purpose::Add(name), edits)] = &jobs(model.act(fix.act))[..] else {
            panic!("no edit")
        };
        let listen = edits.edits.iter().find_map(|edit| match edit {
            Edit::Set { path, value } if path[2] == "listen" => Some(value.clone()),
            _ => None,
        });
        (name.clone(), listen.unwrap_or_default())
    };
    model.act(Act::Submit);
    let name = "app-3000.localhost";
    let (_, listen) = refuse(&mut model, name, 8080, 8082);
    assert_eq!(listen, "[\"http://8082\", 8443]");
    let (_, listen) = refuse(&mut model, name, 8443, 8444);
    assert_eq!(listen, "[\"http://8082\", 8444]");
    // A port in the name is that of the website.
    let mut model = online(&[]);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    model.act(Act::SetField(FieldId::Address, "http://127.0.0.1:3000".to_owned()));
    model.act(Act::SetField(FieldId::Name, ":9000".to_owned()));
    model.act(Act::Submit);
    assert_eq!(
        refuse(&mut model, ":9000", 9000, 9001),
        (":9001".to_owned(), String::new())
    );
}

#[test]
fn a_start_page_that_waits_for_its_folder_is_no_failure_yet() {
    let mut model = online(&[]);
    let waits = |trouble| Report::Failed(Trouble::Folder("/net/shop".into(), trouble));
    model.report(waits(FolderTrouble::Waiting));
    let notice = model.notice.clone().unwrap();
    assert!(
        !notice.is_failure && notice.text.starts_with("/net/shop: "),
        "{notice:?}"
    );
    model.report(waits(FolderTrouble::NotTried));
    assert!(model.notice.is_some_and(|notice| notice.is_failure));
}
