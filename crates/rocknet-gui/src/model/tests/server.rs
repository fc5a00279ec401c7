//! The form of the server, and its upgrade.

use rocknet_control::config::Finding;
use rocknet_control::site_form::{FieldInput, SiteField, SiteForm};

use super::*;
use crate::pages;
use crate::screen::Body;

/// Returns the form of a server with this number of threads.
fn form(revision: &str, workers: &str) -> SiteForm {
    let field = |name: &str, input, text: &str| SiteField {
        name: name.to_owned(),
        input,
        text: text.to_owned(),
        ..SiteField::default()
    };
    SiteForm {
        name: String::new(),
        file: "/r.toml".into(),
        line: 1,
        revision: revision.to_owned(),
        fields: vec![
            field("server.mode", FieldInput::Choice, "dev"),
            field("server.workers", FieldInput::Text, workers),
        ],
    }
}

fn take(model: &mut Model, form: SiteForm) -> Vec<Job> {
    jobs(model.report(Report::SiteForm(String::new(), Ok(Box::new(form)))))
}

fn editing() -> Model {
    let mut model = online(&["a.test"]);
    model.act(Act::Show(PageName::Server));
    let asked = jobs(model.act(Act::EditServer));
    assert!(asked.contains(&Job::SiteForm(String::new())));
    take(&mut model, form("r1", "2"));
    model
}

#[test]
fn the_server_is_edited_and_saved() {
    let mut model = editing();
    let chosen = pages::navigation(&model).into_iter().find(|entry| entry.is_chosen);
    assert_eq!(chosen.map(|entry| entry.page), Some(PageName::Server));
    let screen = pages::screen(&model);
    assert_eq!(screen.title, model.words().edit_server);
    let Body::Form(shown) = screen.body else {
        panic!("no form")
    };
    // There is neither a name nor a kind.
    let ids: Vec<FieldId> = shown.fields.iter().map(|field| field.id).collect();
    assert!(ids.contains(&FieldId::Site(1)) && !ids.contains(&FieldId::SiteName) && !ids.contains(&FieldId::SiteKind));
    assert_eq!(model.act(Act::Submit), []);
    model.act(Act::SetField(FieldId::Site(1), "many".to_owned()));
    let checks = jobs(model.act(Act::LeaveField(FieldId::Site(1))));
    let [Job::Check(number, edits)] = &checks[..] else {
        panic!("no check")
    };
    let set = |text: &str| Edit::SetServerField {
        field: "server.workers".to_owned(),
        text: text.to_owned(),
    };
    assert_eq!(
        (&edits.edits[..], edits.file.as_deref()),
        (&[set("many")][..], Some("/r.toml".as_ref()))
    );
    let mut finding = Finding::warning("invalid", "write a number");
    finding.is_error = true;
    finding.key = vec!["server".to_owned(), "workers".to_owned()];
    model.report(Report::Checked(
        *number,
        Ok(Checked {
            is_valid: false,
            findings: vec![finding],
        }),
    ));
    let Body::Form(shown) = pages::screen(&model).body else {
        panic!("no form")
    };
    let field = shown.fields.iter().find(|field| field.id == FieldId::Site(1)).unwrap();
    assert_eq!(field.problem, "write a number");
    model.act(Act::SetField(FieldId::Site(1), "4".to_owned()));
    let saving = jobs(model.act(Act::Submit));
    let [Job::Edit(Purpose::Change(name), edits)] = &saving[..] else {
        panic!("no edit")
    };
    assert_eq!(
        (name.as_str(), &edits.edits[..], edits.revision.as_deref()),
        ("", &[set("4")][..], Some("r1"))
    );
    let mut done = saved(true);
    done.findings = vec![Finding::warning(
        "needs-restart",
        "a restart is needed for server.backend",
    )];
    model.report(Report::Edited(Purpose::Change(String::new()), Ok(done)));
    assert_eq!(model.page, PageName::Server);
    assert!(notice(&model).contains("a restart is needed"), "{}", notice(&model));
    assert!(model.can_undo());
}

#[test]
fn other_edits_of_the_server_are_merged_or_asked_about() {
    let mut model = editing();
    assert!(take(&mut model, form("r2", "3")).is_empty() || model.question().is_none());
    model.act(Act::SetField(FieldId::Site(1), "8".to_owned()));
    take(&mut model, form("r3", "5"));
    assert_eq!(model.question(), Some(Question::Conflict));
    model.act(Act::KeepInput);
    // Leaving asks, and goes to the page of the server.
    model.act(Act::Cancel);
    assert_eq!(model.question(), Some(Question::Leave));
    model.act(Act::Discard);
    assert_eq!(model.page, PageName::Server);
}

#[test]
fn an_upgrade_says_what_has_happened() {
    let mut model = online(&["a.test"]);
    model.act(Act::Show(PageName::Server));
    assert_eq!(jobs(model.act(Act::UpgradeServer)), [Job::Upgrade]);
    assert_eq!(pages::screen(&model).subtitle, model.words().upgrading);
    // A second press does nothing until the first upgrade has ended.
    assert_eq!(model.act(Act::UpgradeServer), []);
    model.report(Report::Upgraded(Ok("0.2.0".to_owned())));
    assert!(notice(&model).contains("0.2.0"));
    assert_eq!(jobs(model.act(Act::UpgradeServer)), [Job::Upgrade]);
    model.report(Report::Upgraded(Err("cannot start /usr/bin/rocknet".to_owned().into())));
    assert!(notice(&model).contains("cannot start /usr/bin/rocknet"));
    assert!(!model.is_upgrading);
}
