//! Settings for a server elsewhere, and the states of its connection.

use super::*;
use crate::act::Act;
use crate::elsewhere::{Elsewhere, ServerPlace};
use crate::screen::{Field, FieldInput};

fn elsewhere() -> Model {
    let mut model = model();
    model.report(Report::Place(Elsewhere {
        place: ServerPlace::Address,
        address: "localhost:7625".to_owned(),
        token: "abc".to_owned(),
        ..Elsewhere::default()
    }));
    model
}

fn field(model: &Model, id: FieldId) -> Field {
    let fields = form(model).fields;
    fields.into_iter().find(|field| field.id == id).unwrap()
}

#[test]
fn the_place_has_its_own_fields_and_problems() {
    let mut model = online(1);
    model.act(Act::Show(PageName::Settings));
    let count = form(&model).fields.len();
    assert!(form(&model).actions.is_empty());
    let set = |model: &mut Model, id, text: &str| drop(model.act(Act::SetField(id, text.to_owned())));
    set(&mut model, FieldId::ServerPlace, "socket");
    assert_eq!(
        (form(&model).fields.len(), form(&model).actions[0].enabled),
        (count + 1, false)
    );
    // Nothing is wrong with an empty field yet.
    assert_eq!(field(&model, FieldId::ServerSocket).problem, "");
    set(&mut model, FieldId::ServerSocket, "rocknet.sock");
    assert_eq!(field(&model, FieldId::ServerSocket).problem, model.words().not_a_path);
    set(&mut model, FieldId::ServerPlace, "address");
    set(&mut model, FieldId::ServerAddress, "10.0.0.1:7625");
    assert_eq!(field(&model, FieldId::ServerAddress).problem, model.words().not_local);
    set(&mut model, FieldId::ServerAddress, "somewhere");
    assert_eq!(
        field(&model, FieldId::ServerAddress).problem,
        model.words().not_an_address
    );
    set(&mut model, FieldId::ServerAddress, "localhost");
    set(&mut model, FieldId::ServerToken, "a b");
    let token = field(&model, FieldId::ServerToken);
    assert_eq!(
        (token.input, token.problem.as_str()),
        (FieldInput::Secret, model.words().not_a_token)
    );
    set(&mut model, FieldId::ServerToken, "abc");
    assert!(form(&model).actions[0].enabled);
    set(&mut model, FieldId::ServerPlace, "here");
    set(&mut model, FieldId::ServerAddress, "");
    set(&mut model, FieldId::ServerToken, "");
    set(&mut model, FieldId::ServerSocket, "");
    assert!(form(&model).actions.is_empty());
}

#[test]
fn the_settings_show_the_state_of_the_connection() {
    let mut model = elsewhere();
    model.act(Act::Show(PageName::Settings));
    let mark = |model: &Model| form(model).checks[0].mark;
    assert_eq!(mark(&model), Mark::Busy);
    for absence in [
        Absence::WrongToken("127.0.0.1:7625".to_owned()),
        Absence::Unreachable("127.0.0.1:7625".to_owned()),
        Absence::NoAccess("/s".into()),
        Absence::Failed("x".to_owned()),
    ] {
        model.report(Report::Absent(absence.clone()));
        let check = form(&model).checks.remove(0);
        let again = check.fix.map(|fix| fix.act);
        assert_eq!((check.mark, again), (Mark::Bad, Some(Act::ConnectAgain)), "{absence:?}");
    }
    model.report(Report::Connected("127.0.0.1:7625".into()));
    assert_eq!(mark(&model), Mark::Good);
    assert!(form(&model).checks[0].text.contains("127.0.0.1:7625"));
}

#[test]
fn a_server_elsewhere_is_never_started_here() {
    let mut model = elsewhere();
    for absence in [
        Absence::WrongToken("127.0.0.1:7625".to_owned()),
        Absence::Unreachable("127.0.0.1:7625".to_owned()),
        Absence::Failed("x".to_owned()),
    ] {
        model.report(Report::Absent(absence));
        let acts: Vec<_> = message(&model).actions.into_iter().map(|button| button.act).collect();
        assert_eq!(acts, [Act::ConnectAgain, Act::Show(PageName::Settings)]);
        assert!(server_state(&model).action.is_none());
    }
    model.report(Report::Connected("127.0.0.1:7625".into()));
    model.report(Report::Polled(Box::default()));
    model.act(Act::Show(PageName::Server));
    let restart = screen(&model)
        .actions
        .into_iter()
        .find(|button| button.act == Act::RestartServer);
    assert!(!restart.unwrap().enabled);
    model.act(Act::Show(PageName::Certificates));
    model.act(Act::ShowCertificates(crate::act::CertificateView::Browsers));
    model.report(Report::Trust(Ok(Vec::new())));
    assert_eq!(message(&model).title, model.words().stores_elsewhere_title);
}

#[test]
fn a_website_of_a_server_elsewhere_is_added_by_a_path() {
    let mut model = elsewhere();
    model.report(Report::Connected("127.0.0.1:7625".into()));
    model.report(Report::Polled(Box::default()));
    model.act(Act::AddSite);
    assert_eq!(field(&model, FieldId::Folder).input, FieldInput::Text);
    model.act(Act::SetField(FieldId::Folder, "srv/shop".to_owned()));
    model.act(Act::LeaveField(FieldId::Folder));
    assert_eq!(field(&model, FieldId::Folder).problem, model.words().not_a_path);
    model.act(Act::SetField(FieldId::Folder, "/srv/shop".to_owned()));
    model.act(Act::SetField(FieldId::Name, "shop.example.com".to_owned()));
    assert!(form(&model).actions[0].enabled && field(&model, FieldId::Folder).problem.is_empty());
    model.act(Act::Submit);
    let purpose = crate::job::Purpose::Add("shop.example.com".to_owned());
    model.report(Report::Edited(purpose, Ok(saved())));
    // The remaining checks and repairs are about this computer.
    assert_eq!(form(&model).checks.len(), 1);
    model.act(Act::Show(PageName::CheckUp));
    model.report(not_trusted());
    assert_eq!(screen(&model).actions.len(), 1);
}
