//! Pages about services: other servers, PHP, databases, and trust.

use rocknet_control::{PhpPoolSummary, PhpState, UpstreamState, UpstreamSummary};

use super::*;
use crate::act::{CertificateView, Fix, ServiceSwitch};
use crate::job::{
    Database, DatabaseKind, DatabaseReport, DatabaseState, PhpReport, Query, ServiceJob, SiteUse, Trust, TrustStore,
    UnitAction, UpstreamReport,
};

fn show(page: PageName) -> Model {
    let mut model = online(1);
    model.act(Act::Show(page));
    model
}

#[test]
fn other_servers_are_shown_with_their_users() {
    let mut model = show(PageName::Upstreams);
    assert_eq!(message(&model).mark, Mark::Busy);
    model.report(Report::Upstreams(Err("no".to_owned())));
    assert_eq!(message(&model).text, "no");
    model.report(Report::Upstreams(Ok(UpstreamReport::default())));
    assert_eq!(message(&model).actions[0].act, Act::AddSite);
    let upstream = |number: u16, state| UpstreamSummary {
        address: format!("http://10.0.0.{number}:80"),
        state,
        in_flight: 1_234,
    };
    let states = [
        UpstreamState::Up,
        UpstreamState::Down,
        UpstreamState::Paused,
        UpstreamState::Drained,
        UpstreamState::Other,
    ];
    model.report(Report::Upstreams(Ok(UpstreamReport {
        list: (1..)
            .zip(states)
            .map(|(number, state)| upstream(number, state))
            .collect(),
        ..UpstreamReport::default()
    })));
    model.report(Report::Uses(Ok(vec![SiteUse {
        site: "shop.test".to_owned(),
        servers: vec!["http://10.0.0.2".to_owned()],
        ..SiteUse::default()
    }])));
    let rows = table(&model).rows;
    let marks: Vec<_> = rows.iter().map(|row| row.cells[1].mark.unwrap()).collect();
    assert_eq!(marks, [Mark::Good, Mark::Bad, Mark::Fair, Mark::Off, Mark::Off]);
    assert_eq!(
        (&*rows[1].cells[0].detail, &*rows[1].cells[2].text),
        ("shop.test", "1,234")
    );
    let words = model.words();
    assert_eq!(labels(&model), [words.check_again]);
    model.act(Act::Select("http://10.0.0.1:80".to_owned()));
    assert_eq!(switch(&model), (words.drain.to_owned(), ServiceSwitch::Drain));
    model.act(Act::Select("http://10.0.0.4:80".to_owned()));
    assert_eq!(switch(&model), (words.undrain.to_owned(), ServiceSwitch::Enable));
    assert_eq!(table(&model).selected, Some(3));
    // The last values stay while the server does not reply, without buttons.
    model.report(Report::Absent(Absence::Failed("x".to_owned())));
    assert_eq!((labels(&model).len(), table(&model).rows.len()), (0, 5));
}

#[test]
fn php_is_shown_with_what_is_missing() {
    let mut model = show(PageName::Php);
    let pool = |name: &str, state, fault: Option<&str>| PhpPoolSummary {
        name: name.to_owned(),
        state,
        fault: fault.map(str::to_owned),
        ..PhpPoolSummary::default()
    };
    model.report(Report::Php(Ok(PhpReport::default())));
    assert!(screen(&model).subtitle.contains("php-fpm"));
    assert_eq!(message(&model).title, model.words().no_php_title);
    model.report(Report::Php(Ok(PhpReport {
        pools: vec![
            pool("8.2", PhpState::Ready, None),
            pool("8.1", PhpState::Failed, Some("it\nended")),
            pool("8.0", PhpState::Stopped, Some("by request")),
        ],
        installed: vec!["8.2".to_owned()],
        missing: Some(vec![
            "php = \"7.4\" is missing; install it (`apt install php7.4-fpm`)".to_owned(),
        ]),
    })));
    let shown = screen(&model);
    let banner = shown.banner.unwrap();
    assert!(banner.text.contains("7.4") && banner.action.unwrap().act == Act::CopyService);
    assert!(shown.subtitle.contains("8.2"));
    assert_eq!(table(&model).rows[1].cells[1].detail, "it?ended");
    model.act(Act::Select("8.2".to_owned()));
    let words = model.words();
    assert_eq!(
        switch(&model),
        (words.restart_php.to_owned(), ServiceSwitch::RestartPhp)
    );
    let stop = |model: &Model| {
        screen(model)
            .actions
            .iter()
            .any(|button| button.act == Act::StopService && button.enabled)
    };
    assert!(stop(&model));
    model.act(Act::Select("8.1".to_owned()));
    assert_eq!(switch(&model), (words.start_php.to_owned(), ServiceSwitch::StartPhp));
    // The repeated starts of a pool that fails can be ended.
    assert!(stop(&model));
    model.act(Act::Select("8.0".to_owned()));
    assert_eq!(switch(&model), (words.start_php.to_owned(), ServiceSwitch::StartPhp));
    assert!(!stop(&model));
    assert_eq!(table(&model).rows[2].cells[1].text, model.words().stopped);
}

#[test]
fn databases_are_shown_without_a_server() {
    let mut model = model();
    model.report(Report::Absent(Absence::NoAccess("/run/x".into())));
    model.act(Act::Show(PageName::Databases));
    assert_eq!(message(&model).mark, Mark::Busy);
    model.report(Report::Databases(DatabaseReport::default()));
    assert_eq!(message(&model).title, model.words().no_databases_title);
    let database = |unit: &str, state| Database {
        kind: DatabaseKind::PostgreSql,
        unit: unit.to_owned(),
        state,
        socket: None,
        port: (state == DatabaseState::Running).then_some(5432),
    };
    let report = |has_systemd| {
        Report::Databases(DatabaseReport {
            databases: vec![
                database("a.service", DatabaseState::Running),
                database("b.service", DatabaseState::Stopped),
                database("c.service", DatabaseState::Failed),
                database("", DatabaseState::Running),
            ],
            has_systemd,
        })
    };
    model.report(report(true));
    let words = model.words();
    let all = |model: &mut Model, key: &str| {
        model.act(Act::Select(key.to_owned()));
        labels(model)
    };
    assert_eq!(
        all(&mut model, "a.service"),
        [words.database_stop, words.copy_connection, words.check_again]
    );
    assert_eq!(switch(&model).1, ServiceSwitch::StopDatabase);
    assert_eq!(all(&mut model, "b.service"), [words.database_start, words.check_again]);
    assert_eq!(switch(&model).1, ServiceSwitch::StartDatabase);
    assert_eq!(
        all(&mut model, "PostgreSQL 5432"),
        [words.copy_connection, words.check_again]
    );
    assert_eq!(table(&model).rows[3].cells[0].detail, words.no_unit);
    all(&mut model, "c.service");
    model.act(Act::SwitchService(ServiceSwitch::StartDatabase));
    assert_eq!(table(&model).rows[2].cells[1].mark, Some(Mark::Busy));
    assert_eq!(labels(&model), [words.check_again]);
    let start = ServiceJob::Database("c.service".to_owned(), UnitAction::Start);
    model.report(Report::Served(start, Err("no".to_owned().into())));
    model.report(report(false));
    assert_eq!(all(&mut model, "b.service"), [words.check_again]);
    assert_eq!(screen(&model).subtitle, words.databases_help_without_systemd);
}

#[test]
fn each_store_has_its_state_and_repair() {
    let mut model = show(PageName::Certificates);
    let certificate = |source: &str, fault: Option<&str>| CertificateSummary {
        site: "a.test".to_owned(),
        names: vec!["a.test".to_owned()],
        source: source.to_owned(),
        days_left: 3,
        fault: fault.map(str::to_owned),
        ..CertificateSummary::default()
    };
    model.report(Report::Certificates(Ok(vec![
        certificate("local", None),
        certificate("files", None),
        certificate("acme", Some("no route")),
    ])));
    let words = model.words();
    let ways: Vec<_> = table(&model).rows.iter().map(|row| row.cells[2].text.clone()).collect();
    assert_eq!(ways, [words.renewed_by_itself, words.renewed_by_you, words.not_renewed]);
    assert_eq!(screen(&model).banner, None);
    let store = |reader: &str, trust| TrustStore {
        reader: reader.to_owned(),
        path: "/store".into(),
        trust,
        trouble: "certutil is missing".to_owned(),
    };
    let repair = Act::Repair(Fix::TrustCertificates);
    model.act(Act::ShowCertificates(CertificateView::Browsers));
    assert_eq!(message(&model).mark, Mark::Busy);
    model.report(Report::Trust(Ok(Vec::new())));
    assert_eq!(message(&model).actions[0].act, repair);
    model.report(Report::Trust(Ok(vec![
        store("system", Trust::NotYet),
        store("Firefox", Trust::Trusted),
        store("Chromium", Trust::NotYet),
        store("Chromium", Trust::Unknown),
    ])));
    let checks = form(&model).checks;
    let fixes: Vec<_> = checks
        .iter()
        .map(|check| check.fix.as_ref().map(|fix| fix.act.clone()))
        .collect();
    assert_eq!(
        fixes,
        [Some(Act::CopyService), None, Some(repair.clone()), Some(Act::Refresh)]
    );
    assert!(checks[0].text.contains("rocknet trust --config /etc/rocknet.toml") && checks[3].text.contains("certutil"));
    assert_eq!(model.act(Act::CopyService).len(), 1);
    // The list of certificates says so, too.
    model.act(Act::ShowCertificates(CertificateView::Websites));
    assert_eq!(screen(&model).banner.unwrap().action.unwrap().act, repair);
    model.report(Report::Trust(Ok(vec![
        store("Firefox", Trust::Trusted),
        store("system", Trust::NotYet),
    ])));
    assert_eq!(screen(&model).banner, None);
}

#[test]
fn a_token_for_reading_shows_what_it_permits() {
    for (page, query) in [
        (PageName::Upstreams, Query::Upstreams),
        (PageName::Php, Query::Php),
        (PageName::History, Query::History),
    ] {
        let mut model = show(page);
        model.report(Report::Denied(query));
        assert_eq!(message(&model).title, model.words().denied_title, "{page:?}");
    }
    let mut model = show(PageName::Upstreams);
    model.report(Report::Denied(Query::Uses));
    assert_eq!(message(&model).mark, Mark::Busy);
}
