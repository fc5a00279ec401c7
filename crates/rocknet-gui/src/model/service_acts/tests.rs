//! Services as users and the worker drive them.

use std::time::Duration;

use rocknet_control::{PhpPoolSummary, UpstreamState, UpstreamSummary};

use super::*;
use crate::act::Act;
use crate::job::{Absence, DatabaseKind, DatabaseReport, PhpReport, ResponseTimes, SiteUse, UpstreamReport};
use crate::model::Settings;

fn online() -> Model {
    let mut model = Model::new(Settings::default());
    model.report(Report::Connected("/run/control.sock".into()));
    model.report(Report::Polled(Box::default()));
    model
}

fn jobs(effects: Vec<Effect>) -> Vec<Job> {
    let job = |effect| match effect {
        Effect::Job(job) => Some(job),
        _ => None,
    };
    effects.into_iter().filter_map(job).collect()
}

fn upstreams(second: u64, state: UpstreamState, count: u64, seconds: f64) -> Report {
    Report::Upstreams(Ok(UpstreamReport {
        at: Duration::from_secs(second),
        list: vec![UpstreamSummary {
            address: "http://a:80".to_owned(),
            state,
            in_flight: 1,
        }],
        times: [("http://a:80".to_owned(), ResponseTimes { count, seconds })].into(),
    }))
}

#[test]
fn a_server_is_drained_and_enabled_whatever_its_state_is_by_then() {
    let mut model = online();
    let asked = jobs(model.act(Act::Show(PageName::Upstreams)));
    assert!(asked.contains(&Job::Watch(Some(Query::Upstreams))) && asked.contains(&Job::Query(Query::Uses)));
    let [drain, enable] = [ServiceSwitch::Drain, ServiceSwitch::Enable].map(Act::SwitchService);
    assert_eq!(model.act(drain.clone()), [], "no server is selected");
    model.report(upstreams(1, UpstreamState::Up, 0, 0.0));
    model.act(Act::Select("http://a:80".to_owned()));
    let job = |drains| [Job::Service(ServiceJob::Drain("http://a:80".to_owned(), drains))];
    // Another administrator may change the state before the press of the button is handled.
    for state in [UpstreamState::Up, UpstreamState::Drained] {
        model.report(upstreams(2, state, 0, 0.0));
        assert_eq!(jobs(model.act(drain.clone())), job(true), "{state:?}");
        assert_eq!(jobs(model.act(enable.clone())), job(false), "{state:?}");
    }
    model.report(Report::Served(
        ServiceJob::Drain("http://a:80".to_owned(), true),
        Err("no".to_owned().into()),
    ));
    assert!(model.notice.as_ref().unwrap().is_failure);
    model.report(Report::Absent(Absence::Stopped(true)));
    assert_eq!(model.act(drain), []);
    // The queries end with the page.
    assert!(jobs(model.act(Act::Show(PageName::Activity))).contains(&Job::Watch(None)));
}

#[test]
fn response_times_are_those_since_the_measurement_before() {
    let mut model = online();
    let time = |model: &Model| {
        let upstream = model.upstream("http://a:80").unwrap();
        (upstream.responses, upstream.response_us)
    };
    model.report(upstreams(1, UpstreamState::Up, 0, 0.0));
    assert_eq!(time(&model), (0, None));
    model.report(upstreams(2, UpstreamState::Up, 10, 1.0));
    assert_eq!(time(&model), (10, Some(100_000)));
    model.report(upstreams(3, UpstreamState::Up, 12, 1.5));
    assert_eq!(time(&model), (12, Some(250_000)));
    // Without a response, the mean of all is shown.
    model.report(upstreams(4, UpstreamState::Up, 12, 1.5));
    assert_eq!(time(&model), (12, Some(125_000)));
    // Another server begins again.
    model.report(upstreams(5, UpstreamState::Up, 1, 0.002));
    assert_eq!(time(&model), (1, Some(2_000)));
}

#[test]
fn websites_are_found_by_their_servers_and_php() {
    let mut model = online();
    let found = |site: &str, route: &str, php: Option<&str>, user: Option<&str>, servers: &[&str]| SiteUse {
        site: site.to_owned(),
        route: route.to_owned(),
        php: php.map(str::to_owned),
        user: user.map(str::to_owned),
        servers: servers.iter().map(|server| (*server).to_owned()).collect(),
    };
    model.report(Report::Uses(Ok(vec![
        found("a.test", "", Some("auto"), None, &[]),
        found("b.test", "", Some("8"), None, &[]),
        found("c.test", "/api/*", Some("8.2"), None, &["http://x:80", "https://y"]),
        found("d.test", "", Some("8.2"), Some("alice"), &[]),
        found("e.test", "", Some("unix:/run/php.sock"), None, &[]),
        found("shop.test", "", Some("8"), None, &[]),
        found("blog.test", "", Some("7.4"), Some("bob"), &[]),
        found("z.test", "", Some("7"), Some("bob"), &[]),
    ])));
    let services = &model.services;
    assert_eq!(services.users_of_server("http://x"), ["c.test/api/*"]);
    assert_eq!(services.users_of_server("https://y:443"), ["c.test/api/*"]);
    assert_eq!(services.users_of_server("http://y"), [""; 0]);
    let pool = |(name, version, user): (&str, &str, Option<&str>)| PhpPoolSummary {
        name: name.to_owned(),
        version: version.to_owned(),
        user: user.map(str::to_owned),
        ..PhpPoolSummary::default()
    };
    let pools = [
        ("8.2", "8.2", None),
        ("8.10", "8.10", None),
        ("8.2@alice", "8.2", Some("alice")),
        ("9.0", "9.0", None),
        ("8.2/shop.test", "8.2", None),
        ("8.2/shop.test#2", "8.2", None),
        ("7.4@bob/blog.test", "7.4", Some("bob")),
    ]
    .map(pool);
    for (pool, users) in pools.iter().zip([
        &["c.test/api/*"][..],
        &["b.test"],
        &["d.test"],
        &["a.test"],
        &["shop.test"],
        &["shop.test"],
        // The pool is named after the first of the websites that use it.
        &["blog.test", "z.test"],
    ]) {
        assert_eq!(services.users_of_php(pool, &pools), users, "{}", pool.name);
    }
    assert_eq!(services.php_of("e.test"), Some("unix:/run/php.sock"));
    assert_eq!(services.php_of("f.test"), None);
    // A version is that of the configuration until the pools are known.
    assert_eq!(services.php_version("a.test"), Some("auto"));
    model.report(Report::Php(Ok(PhpReport {
        pools: pools.into(),
        ..PhpReport::default()
    })));
    for (site, expected) in [
        ("a.test", Some("9.0")),
        ("b.test", Some("8.10")),
        ("d.test", Some("8.2")),
        ("shop.test", Some("8.2")),
        ("z.test", Some("7.4")),
        ("e.test", Some("unix:/run/php.sock")),
        ("f.test", None),
    ] {
        assert_eq!(model.services.php_version(site), expected, "{site}");
    }
}

#[test]
fn findings_about_php_stay_until_the_next_check() {
    let mut model = online();
    model.act(Act::Show(PageName::Php));
    let report = |missing: Option<&str>| {
        Report::Php(Ok(PhpReport {
            pools: vec![PhpPoolSummary {
                name: "8.2".to_owned(),
                ..PhpPoolSummary::default()
            }],
            installed: Vec::new(),
            missing: missing.map(|finding| vec![finding.to_owned()]),
        }))
    };
    model.report(report(Some("no 8.1: install it (`apt install php8.1-fpm`)")));
    model.report(report(None));
    assert_eq!(
        model.act(Act::CopyService),
        [Effect::Copy("apt install php8.1-fpm".to_owned())]
    );
    // The user pastes the command into a terminal, so only an installation of packages is copied.
    for text in [
        "rm -r x",
        "apt install",
        "apt install a;b",
        "apt install a\nb",
        "apt install -o x",
        "apt install $(x)",
    ] {
        model.report(report(Some(&format!("no 8.1: `{text}`"))));
        let copied = model.act(Act::CopyService);
        assert!(
            !copied.iter().any(|effect| matches!(effect, Effect::Copy(_))),
            "{text:?}"
        );
    }
    model.act(Act::Select("8.2".to_owned()));
    let [start, restart] = [ServiceSwitch::StartPhp, ServiceSwitch::RestartPhp].map(Act::SwitchService);
    let restarts = [Job::Service(ServiceJob::RestartPhp("8.2".to_owned()))];
    let starts = [Job::Service(ServiceJob::StartPhp("8.2".to_owned()))];
    assert_eq!(jobs(model.act(restart.clone())), restarts);
    let stop = ServiceJob::StopPhp("8.2".to_owned());
    assert_eq!(jobs(model.act(Act::StopService)), [Job::Service(stop)]);
    model.report(Report::Php(Ok(PhpReport {
        pools: vec![PhpPoolSummary {
            name: "8.2".to_owned(),
            state: PhpState::Stopped,
            ..PhpPoolSummary::default()
        }],
        ..PhpReport::default()
    })));
    assert_eq!(jobs(model.act(Act::StopService)), []);
    assert_eq!(jobs(model.act(start)), starts);
    assert_eq!(jobs(model.act(restart)), restarts);
}

#[test]
fn the_command_for_the_system_names_the_configuration() {
    let mut model = online();
    assert_eq!(model.system_trust(), "rocknet trust");
    for (file, expected) in [
        (
            "/home/ann/.config/rocknet/rocknet.toml",
            "/home/ann/.config/rocknet/rocknet.toml",
        ),
        ("/a b/it's.toml", r"'/a b/it'\''s.toml'"),
    ] {
        model.status.as_mut().unwrap().config_file = Some(file.into());
        assert_eq!(model.system_trust(), format!("rocknet trust --config {expected}"));
    }
}

#[test]
fn databases_need_no_server() {
    let mut model = Model::new(Settings::default());
    let asked = jobs(model.act(Act::Show(PageName::Databases)));
    assert!(asked.contains(&Job::Query(Query::Databases)));
    let database = Database {
        kind: DatabaseKind::MariaDb,
        unit: "mariadb.service".to_owned(),
        state: DatabaseState::Stopped,
        socket: None,
        port: None,
    };
    let report = |state| {
        Report::Databases(DatabaseReport {
            databases: vec![Database {
                state,
                port: (state == DatabaseState::Running).then_some(3306),
                ..database.clone()
            }],
            has_systemd: true,
        })
    };
    model.report(report(DatabaseState::Stopped));
    model.act(Act::Select("mariadb.service".to_owned()));
    assert_eq!(model.act(Act::CopyService), []);
    let [starts, stops] = [ServiceSwitch::StartDatabase, ServiceSwitch::StopDatabase].map(Act::SwitchService);
    let start = ServiceJob::Database("mariadb.service".to_owned(), UnitAction::Start);
    assert_eq!(jobs(model.act(starts.clone())), [Job::Service(start.clone())]);
    // Nothing is started twice while the user types a password.
    assert_eq!(model.act(starts.clone()), []);
    assert_eq!(model.services.state(&database), DatabaseState::Changing);
    model.report(Report::Served(start.clone(), Ok(String::new())));
    model.report(report(DatabaseState::Running));
    // A start that was pressed before the database ran does not stop it.
    assert_eq!(jobs(model.act(starts)), [Job::Service(start.clone())]);
    model.report(Report::Served(start, Ok(String::new())));
    let copied = "mysql://USER@127.0.0.1:3306/DATABASE".to_owned();
    assert_eq!(model.act(Act::CopyService), [Effect::Copy(copied)]);
    let stop = ServiceJob::Database("mariadb.service".to_owned(), UnitAction::Stop);
    assert_eq!(jobs(model.act(stops)), [Job::Service(stop.clone())]);
    model.report(Report::Served(stop, Err("not authorized".to_owned().into())));
    assert!(model.notice.as_ref().unwrap().text.contains("not authorized"));
    assert_eq!(model.services.state(&database), DatabaseState::Stopped);
    // Databases stay when a server is found.
    model.report(Report::Connected("/run/control.sock".into()));
    model.report(Report::Polled(Box::default()));
    assert!(model.selected_database().is_some());
}
