//! Websites that are added, here and on a server elsewhere.

use super::*;
use crate::act::Fix;

/// Returns a model whose server is on another computer.
fn elsewhere() -> Model {
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
    assert_eq!(model.act(Act::AddSite), []);
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
