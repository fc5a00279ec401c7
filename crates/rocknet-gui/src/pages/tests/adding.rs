//! Pages about a website that is added: its form, its checks, and the check-up of the machine.

use super::*;
use crate::act::Fix;
use crate::job::{Inspection, Purpose, Query, Trust, TrustStore};
use crate::screen::Check;

/// Returns a model with the page of a website that was added, which has HTTPS.
fn added() -> Model {
    let mut model = online(1);
    begin_adding(&mut model, true);
    model.act(Act::SetField(FieldId::Name, "new.test".to_owned()));
    model.act(Act::Submit);
    let site = SiteSummary {
        name: "new.test".to_owned(),
        urls: vec!["https://new.test/".to_owned()],
        ..SiteSummary::default()
    };
    poll(&mut model, vec![site]);
    model.report(Report::Edited(Purpose::Add("new.test".to_owned()), Ok(saved())));
    model
}

/// Begins to add a website with a folder that can be read. `has_index_html`: the folder has a start page.
fn begin_adding(model: &mut Model, has_index_html: bool) {
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Folder, "/srv".to_owned()));
    let inspection = Inspection {
        exists: true,
        readable: true,
        has_index_html,
        ..Inspection::default()
    };
    model.report(Report::Inspected("/srv".into(), inspection));
}

fn poll(model: &mut Model, sites: Vec<SiteSummary>) -> Vec<Effect> {
    model.report(Report::Polled(Box::new(Poll {
        sites: Some(sites).filter(|sites| !sites.is_empty()),
        ..Poll::default()
    })))
}

fn store(reader: &str, trust: Trust) -> TrustStore {
    TrustStore {
        reader: reader.to_owned(),
        path: format!("/{reader}").into(),
        trust,
        trouble: String::new(),
    }
}

/// Returns the checks of the page that begin after those of the settings and of the reply.
fn of_certificate(model: &Model) -> Vec<Check> {
    form(model).checks.split_off(2)
}

#[test]
fn the_trust_in_a_new_website_is_that_of_this_account() {
    let mut model = added();
    // The server looks into the stores of its own account, which may have no browsers.
    model.report(Report::Doctor(Ok(vec![DoctorCheck {
        check: "local CA".to_owned(),
        verdict: DoctorVerdict::Fair,
        found: "not trusted by Firefox (/root/f): type `rocknet trust`".to_owned(),
        ..DoctorCheck::default()
    }])));
    assert_eq!(of_certificate(&model), []);
    let certificate = |names: &[&str]| CertificateSummary {
        site: "new.test".to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        source: "local".to_owned(),
        days_left: 90,
        ..CertificateSummary::default()
    };
    // A certificate that is being issued is queried until it is there.
    model.report(Report::Certificates(Ok(vec![certificate(&[])])));
    assert_eq!(of_certificate(&model)[0].mark, Mark::Busy);
    assert_eq!(
        poll(&mut model, Vec::new()),
        [Effect::Job(Job::Query(Query::Certificates))]
    );
    // The local CA was created for this certificate, so no store was found before. The stores are looked into once
    // more.
    model.report(Report::Trust(Ok(Vec::new())));
    model.report(Report::Certificates(Ok(vec![certificate(&["new.test"])])));
    assert_eq!(poll(&mut model, Vec::new()), [Effect::Job(Job::Query(Query::Trust))]);
    assert_eq!(poll(&mut model, Vec::new()), []);
    model.report(Report::Trust(Ok(vec![
        store("system", Trust::NotYet),
        store("Chromium", Trust::NotYet),
        store("Firefox", Trust::Trusted),
    ])));
    let checks = of_certificate(&model);
    assert_eq!(checks.len(), 1, "{checks:?}");
    assert!(checks[0].text.contains("Chromium"), "{checks:?}");
    let fix = checks[0].fix.clone().map(|fix| fix.act);
    assert_eq!(fix, Some(Act::Repair(Fix::TrustCertificates)));
    // The stores are looked into again after the repair.
    assert_eq!(model.report(Report::Trusted), [Effect::Job(Job::Query(Query::Trust))]);
    model.report(Report::Trust(Ok(vec![
        store("system", Trust::NotYet),
        store("Chromium", Trust::Trusted),
    ])));
    assert_eq!(of_certificate(&model)[0].mark, Mark::Good);
}

#[test]
fn the_check_up_shows_the_stores_of_this_account() {
    let mut model = online(1);
    let effects = model.act(Act::Show(PageName::CheckUp));
    assert!(effects.contains(&Effect::Job(Job::Query(Query::Trust))), "{effects:?}");
    model.report(Report::Doctor(Ok(vec![
        DoctorCheck {
            check: "local CA".to_owned(),
            verdict: DoctorVerdict::Good,
            found: "trusted by system (/etc)".to_owned(),
            ..DoctorCheck::default()
        },
        DoctorCheck {
            check: "port".to_owned(),
            verdict: DoctorVerdict::Good,
            found: "80 is free".to_owned(),
            ..DoctorCheck::default()
        },
    ])));
    assert_eq!((table(&model).rows.len(), screen(&model).actions.len()), (2, 1));
    model.report(Report::Trust(Ok(vec![
        store("Chromium", Trust::NotYet),
        store("Firefox", Trust::Trusted),
    ])));
    let rows = table(&model).rows;
    let keys: Vec<&str> = rows.iter().map(|row| &*row.key).collect();
    assert_eq!(keys, ["/Chromium", "80 is free", "/Firefox"]);
    assert_eq!(screen(&model).actions[1].act, Act::Repair(Fix::TrustCertificates));
}

#[test]
fn fields_take_no_input_while_they_are_saved() {
    let mut model = online(1);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    model.act(Act::SetField(FieldId::Address, "http://127.0.0.1:3000".to_owned()));
    assert!(!form(&model).is_locked);
    model.act(Act::Submit);
    assert!(form(&model).is_locked && screen(&model).subtitle == model.words().saving);
    let refused = rocknet_control::api::ApiError::new(422, "no");
    model.report(Report::Edited(
        Purpose::Add("app-3000.localhost".to_owned()),
        Err(refused),
    ));
    assert!(!form(&model).is_locked);
}

#[test]
fn https_is_on_unless_it_is_switched_off() {
    let mut model = online(1);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Kind, "proxy".to_owned()));
    model.act(Act::SetField(FieldId::Address, "http://127.0.0.1:3000".to_owned()));
    let https = |model: &Model| {
        let fields = form(model).fields;
        let field = fields.into_iter().find(|field| field.id == FieldId::Https).unwrap();
        (field.text, field.help)
    };
    let edits = |model: &Model| model.draft.as_ref().unwrap().edits().edits.len();
    let words = model.words();
    assert_eq!(https(&model), ("true".to_owned(), words.https_local.to_owned()));
    model.act(Act::SetField(FieldId::Name, "www.example.com".to_owned()));
    assert_eq!((https(&model).1.as_str(), edits(&model)), (words.https_public, 1));
    model.act(Act::SetField(FieldId::Https, "false".to_owned()));
    assert_eq!(https(&model), ("false".to_owned(), words.https_off.to_owned()));
    assert_eq!(edits(&model), 2);
    // In development, every name has a certificate of the machine.
    model.act(Act::SetField(FieldId::Https, "true".to_owned()));
    model.status.as_mut().unwrap().mode = rocknet_control::Mode::Dev;
    assert_eq!(https(&model).1, words.https_local);
}

/// Returns a model with the page of a website that was added, after a visit.
fn visited(name: &str, kind: &str, name_resolves: bool) -> (Model, Vec<Effect>) {
    let mut model = online(0);
    begin_adding(&mut model, false);
    model.act(Act::SetField(FieldId::Kind, kind.to_owned()));
    model.act(Act::SetField(FieldId::Name, name.to_owned()));
    model.act(Act::Submit);
    let effects = model.report(Report::Edited(Purpose::Add(name.to_owned()), Ok(saved())));
    model.report(Report::Visited(crate::job::Visit {
        site: name.to_owned(),
        url: String::new(),
        reply: Ok(200),
        name_resolves,
    }));
    (model, effects)
}

#[test]
fn a_name_that_leads_nowhere_gets_its_line_for_the_hosts_file() {
    let fix = |model: &Model| form(model).checks.into_iter().find_map(|check| check.fix);
    let (mut model, _) = visited("Shop.test:8080", "php", false);
    let check = form(&model).checks.pop().unwrap();
    assert!(
        check.text.ends_with("/etc/hosts: 127.0.0.1 shop.test # RockNet"),
        "{check:?}"
    );
    let copied = model.act(fix(&model).unwrap().act);
    assert_eq!(copied, [Effect::Copy("127.0.0.1 shop.test # RockNet".to_owned())]);
    // The page looks again after the line was added.
    let again = form(&model).actions.remove(1);
    assert!(again.enabled);
    let effects = model.act(again.act);
    assert!(
        effects.contains(&Effect::Job(Job::Visit("Shop.test:8080".to_owned()))),
        "{effects:?}"
    );
    // The file has no wildcards, browsers know names below localhost, and the internet has a DNS.
    for name in ["*.shop.test", "shop.localhost", "www.example.com", "shop.test"] {
        let resolves = name == "shop.test";
        assert_eq!(fix(&visited(name, "php", resolves).0), None, "{name}");
    }
}

#[test]
fn missing_php_is_named_with_its_command() {
    let (mut model, effects) = visited("shop.localhost", "php", true);
    let query = Effect::Job(Job::Query(Query::Php));
    assert!(effects.contains(&query), "{effects:?}");
    let found = "site \"shop.localhost\" needs PHP: type `apt install php-fpm`";
    let report = |missing: &[&str]| {
        Report::Php(Ok(crate::job::PhpReport {
            missing: Some(missing.iter().map(|text| (*text).to_owned()).collect()),
            ..crate::job::PhpReport::default()
        }))
    };
    model.report(report(&[found]));
    let missing = |model: &Model| form(model).checks.into_iter().find(|check| check.text.contains(found));
    let fix = missing(&model).unwrap().fix.unwrap();
    assert_eq!(model.act(fix.act), [Effect::Copy("apt install php-fpm".to_owned())]);
    model.report(report(&[]));
    assert_eq!(missing(&model), None);
    // Websites of files need no PHP.
    let (_, effects) = visited("files.localhost", "files", true);
    assert!(!effects.contains(&query), "{effects:?}");
}
