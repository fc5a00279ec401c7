//! Servers that hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rocknet_control::api::Done;

use super::*;
use crate::ways::UnitKind;
use crate::worker::fake_programs::script;
use crate::worker::fake_server::{FakeServer, empty};

/// Maximum time until a server that hangs is reported: far less than the timeout of a request, on a busy machine.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_server_that_never_replies_is_not_connected() {
    let server = FakeServer::start(|_| None);
    let (mut worker, reports) = server.worker();
    let began = Instant::now();
    worker.poll(false);
    assert!(began.elapsed() < SOON);
    worker.poll(false);
    // The process that listens is the one of the test. It is known without a reply.
    assert_eq!(worker.last_pid, std::process::id());
    let silent = Report::Absent(Absence::NoReply(server.socket()));
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [silent]);
}

#[test]
fn a_unit_that_hangs_is_found_by_a_click_and_restarted() {
    let hangs = Arc::new(AtomicBool::new(false));
    let server = FakeServer::start({
        let hangs = Arc::clone(&hangs);
        move |request| match request {
            _ if hangs.load(Ordering::Relaxed) => None,
            "GET /api/status HTTP/1.1" => Some((200, format!("{{\"pid\":{}}}", std::process::id()))),
            _ => empty(request),
        }
    });
    let (folder, log) = (server.folder.path(), server.folder.path().join("log"));
    let shown = format!(
        "[ \"$1\" = --user ] && exit 1; if [ \"$1\" = show ]; then echo LoadState=loaded; echo ActiveState=active; echo MainPID={}; else echo $1 >> \
         {}; fi",
        std::process::id(),
        log.display()
    );
    script(folder, "systemctl", &shown);
    script(folder, "id", "echo 'uid=0(root) gid=0(root) groups=0(root)'");
    let (mut worker, reports) = server.worker();
    worker.poll(false);
    let unit = |reports: &std::sync::mpsc::Receiver<Report>| {
        let ways = |report| match report {
            Report::Ways(ways) => Some(ways.running_unit),
            _ => None,
        };
        reports.try_iter().filter_map(ways).last()
    };
    assert_eq!(unit(&reports), Some(Some(UnitKind::System)));

    hangs.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let error = worker.call::<Done>(&Request::Reload).unwrap_err();
    assert!(began.elapsed() < SOON && error.error.contains("in time"), "{error}");
    let silent = Report::Absent(Absence::NoReply(server.socket()));
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [silent]);
    worker.refresh_ways();
    // The unit is still known, so that the window can offer to restart it.
    assert_eq!(unit(&reports), None);

    hangs.store(false, Ordering::Relaxed);
    worker.restart();
    assert_eq!(std::fs::read_to_string(log).unwrap(), "restart\n");
    assert!(reports.try_iter().any(|report| report == Report::Started(None)));
}

#[test]
fn a_server_that_refuses_a_list_stays_connected() {
    let server = FakeServer::start(|request| match request.split(' ').nth(1) {
        Some("/api/status") => Some((200, "{\"pid\":1}".to_owned())),
        Some("/api/sites") => Some((503, "{\"error\":\"busy\"}".to_owned())),
        _ => Some((500, "{\"error\":\"broken\"}".to_owned())),
    });
    let (mut worker, reports) = server.worker();
    worker.watches_traffic = true;
    for _ in 0..3 {
        worker.poll(false);
    }
    let reports: Vec<_> = reports.try_iter().collect();
    let (mut connections, mut polls) = (0, 0);
    for report in &reports {
        match report {
            Report::Connected(_) => connections += 1,
            Report::Polled(poll) => {
                polls += 1;
                assert_eq!(
                    (poll.sites_error.as_deref(), poll.traffic_error.as_deref()),
                    (Some("busy"), Some("broken"))
                );
                assert_eq!(poll.sites, None);
            }
            Report::Absent(absence) => panic!("{absence:?}"),
            _ => {}
        }
    }
    assert_eq!((connections, polls), (1, 3));
}
