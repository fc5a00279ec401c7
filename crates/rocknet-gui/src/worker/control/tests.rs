//! Servers that refuse to stop, or take long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::worker::fake_server::{FakeServer, empty};

#[test]
fn a_refused_stop_is_reported_at_once() {
    for (status, expected) in [
        (403, Report::NotPermitted),
        (500, Report::Failed("no".to_owned().into())),
    ] {
        let server = FakeServer::start(move |request| match request.split(' ').nth(1) {
            Some("/api/status") => Some((200, "{}".to_owned())),
            Some("/api/stop") => Some((status, "{\"error\":\"no\"}".to_owned())),
            _ => empty(request),
        });
        let (mut worker, reports) = server.worker();
        worker.poll(false);
        reports.try_iter().for_each(drop);
        let began = Instant::now();
        assert!(!worker.stop());
        // The wait for the end of a server takes longer.
        assert!(began.elapsed() < Duration::from_secs(10));
        let reports: Vec<_> = reports.try_iter().collect();
        assert!(matches!(reports[0], Report::Connected(_)), "{reports:?}");
        assert_eq!(reports.last(), Some(&expected));
    }
}

#[test]
fn a_server_that_still_completes_requests_is_reported() {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let server = FakeServer::start({
        let is_stopped = Arc::clone(&is_stopped);
        move |request| match request.split(' ').nth(1) {
            Some("/api/status") => Some((200, "{\"connections_open\":7}".to_owned())),
            Some("/api/stop") => {
                is_stopped.store(true, Ordering::Relaxed);
                Some((200, "{\"message\":\"\"}".to_owned()))
            }
            _ => empty(request),
        }
    });
    let (mut worker, reports) = server.worker();
    worker.launcher.stop_timeout = Duration::from_millis(200);
    worker.poll(false);
    assert!(!worker.stop());
    assert!(is_stopped.load(Ordering::Relaxed));
    assert!(worker.server.is_some());
    assert_eq!(reports.try_iter().last(), Some(Report::StillStopping(7)));
}

#[test]
fn a_taken_port_of_an_old_configuration_is_replaced_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let held = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = held.local_addr().unwrap().port();
    let config = folder.path().join("rocknet.toml");
    std::fs::create_dir(folder.path().join("www")).unwrap();
    let text = format!("# mine\n[server]\nmode = \"dev\"\n\n[site.\":{port}\"]\nroot = \"www\"\n");
    std::fs::write(&config, &text).unwrap();
    let refusal = format!("echo 'error: cannot start: port {port} is in use by nginx (pid 7)' >&2; exit 1");
    crate::worker::fake_programs::script(folder.path(), "rocknet", &refusal);
    let (sender, reports) = std::sync::mpsc::channel();
    let options = crate::worker::Options {
        socket: Some(folder.path().join("control.sock")),
        config: Some(config.clone()),
        program: Some(folder.path().join("rocknet")),
        place: None,
        search_path: Some(folder.path().into()),
        ..crate::worker::Options::default()
    };
    let mut worker = Worker::new(options, move |report| drop(sender.send(report)));
    worker.start(Starter::Program);
    let Some(Report::StartFailed(failure)) = reports.try_iter().last() else {
        panic!("no failure");
    };
    let (taken, free) = failure.port.unwrap();
    assert!(taken == port && free > port);
    // The file is changed only on request.
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
    worker.start_at(taken, free);
    let new = std::fs::read_to_string(&config).unwrap();
    assert_eq!(new, text.replace(&format!(":{port}"), &format!(":{free}")));
    // The program of the test still names the old port, which the file no longer uses.
    let Some(Report::StartFailed(failure)) = reports.try_iter().last() else {
        panic!("no failure");
    };
    assert_eq!(failure.port, None);
}

#[test]
fn a_port_that_stops_a_unit_of_the_account_is_moved_and_the_unit_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let held = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = held.local_addr().unwrap().port();
    let (config, log) = (folder.path().join("rocknet.toml"), folder.path().join("log"));
    std::fs::create_dir(folder.path().join("www")).unwrap();
    let text = format!("[server]\nmode = \"dev\"\n\n[site.\":{port}\"]\nroot = \"www\"\n");
    std::fs::write(&config, &text).unwrap();
    let script = crate::worker::fake_programs::script;
    let start = format!("echo \"$@\" >> {}; echo 'Job failed.' >&2; exit 1", log.display());
    script(folder.path(), "systemctl", &start);
    let error = format!("echo 'error: cannot start: port {port} is in use by nginx (pid 7)'");
    script(folder.path(), "journalctl", &error);
    let (sender, reports) = std::sync::mpsc::channel();
    let options = crate::worker::Options {
        socket: Some(folder.path().join("control.sock")),
        config: Some(config.clone()),
        program: Some(folder.path().join("rocknet")),
        search_path: Some(folder.path().into()),
        ..crate::worker::Options::default()
    };
    let mut worker = Worker::new(options, move |report| drop(sender.send(report)));
    let failure = || match reports.try_iter().last() {
        Some(Report::StartFailed(failure)) => failure,
        other => panic!("{other:?}"),
    };
    worker.start(Starter::Unit(UnitKind::User));
    let failed = failure();
    assert!(failed.reason.message().contains("nginx"), "{failed:?}");
    let (taken, free) = failed.port.unwrap();
    assert_eq!(taken, port);
    worker.start_at(taken, free);
    let new = std::fs::read_to_string(&config).unwrap();
    assert_eq!(new, text.replace(&format!(":{port}"), &format!(":{free}")));
    let started = "--user start rocknet.service\n".repeat(2);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), started);
    // An account that cannot read the journal learns the port.
    script(folder.path(), "journalctl", "");
    std::fs::write(&config, &text).unwrap();
    worker.start(Starter::Unit(UnitKind::User));
    assert_eq!(failure().reason, crate::job::Trouble::PortHeld(port));
    script(folder.path(), "journalctl", &error);
    // The configuration of the unit of the computer belongs to root.
    std::fs::write(&config, &text).unwrap();
    worker.start(Starter::Unit(UnitKind::System));
    assert_eq!(failure().port, None);
}
