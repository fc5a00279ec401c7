//! Servers that were killed, have failed, or were stopped in an orderly way.

use std::fs;
use std::sync::mpsc::Receiver;

use super::*;
use crate::job::{Absence, Report};
use crate::ways::UnitKind;
use crate::worker::Options;
use crate::worker::fake_programs::script;

/// Returns a worker whose configuration is in a folder.
fn worker(folder: &Path) -> (Worker, Receiver<Report>) {
    let options = Options {
        socket: Some(folder.join("control.sock")),
        config: Some(folder.join("rocknet.toml")),
        search_path: Some(folder.into()),
        ..Options::default()
    };
    let (sender, reports) = std::sync::mpsc::channel();
    (Worker::new(options, move |report| drop(sender.send(report))), reports)
}

#[test]
fn the_signal_and_the_exit_code_of_a_child_are_reported_with_its_last_lines() {
    for (text, expected) in [
        ("kill -9 $$", Some(EndingCause::Signal(9))),
        ("exit 101", Some(EndingCause::Code(101))),
        ("exit 0", None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (mut worker, reports) = worker(folder.path());
        script(folder.path(), "server", text);
        fs::write(
            output_path(&folder.path().join("rocknet.toml")),
            "1\n2\n\n3\n4\n  \n5\n6 \u{fffd}\n",
        )
        .unwrap();
        let child = std::process::Command::new(folder.path().join("server"))
            .spawn()
            .unwrap();
        worker.launcher.adopt(child);
        // The connection is lost before the process has ended.
        worker.lose(&rocknet_control::ClientError::Invalid("cut".to_owned()));
        let mut reports: Vec<_> = reports.try_iter().collect();
        assert_eq!(reports.pop(), Some(Report::Absent(Absence::Stopped(false))), "{text}");
        let lines = ["2", "3", "4", "5", "6 \u{fffd}"].map(str::to_owned).to_vec();
        let ended = expected.map(|cause| Report::Ended(Ending { cause, lines }));
        assert_eq!(reports.pop(), ended, "{text}");
        // The end is reported once.
        worker.poll(false);
        assert!(!reports.iter().any(|report| matches!(report, Report::Ended(_))));
    }
}

#[test]
fn the_result_of_a_unit_is_reported_with_its_journal() {
    let show = |result: &str, code: i32, status: i32| {
        format!("echo MainPID=0; echo Result={result}; echo ExecMainCode={code}; echo ExecMainStatus={status}")
    };
    for (shown, expected) in [
        (show("oom-kill", 2, 9), Some(EndingCause::OutOfMemory)),
        (show("signal", 2, 11), Some(EndingCause::Signal(11))),
        (show("exit-code", 1, 70), Some(EndingCause::Code(70))),
        (
            show("start-limit-hit", 0, 0),
            Some(EndingCause::Result("start-limit-hit".to_owned())),
        ),
        (show("success", 1, 0), None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        script(folder.path(), "systemctl", &shown);
        script(folder.path(), "journalctl", "echo 'out of memory'");
        let (mut worker, _reports) = worker(folder.path());
        worker.ways.running_unit = Some(UnitKind::System);
        let lines = vec!["out of memory".to_owned()];
        assert_eq!(
            worker.ending(),
            expected.map(|cause| Ending { cause, lines }),
            "{shown}"
        );
    }
}

#[test]
fn a_server_of_an_earlier_window_is_explained_by_its_output() {
    let folder = tempfile::tempdir().unwrap();
    let (mut worker, _reports) = worker(folder.path());
    worker.ways.serves_own_config = true;
    let output = output_path(&folder.path().join("rocknet.toml"));
    fs::write(&output, "thread panicked\n").unwrap();
    let expected = Ending {
        cause: EndingCause::Unknown,
        lines: vec!["thread panicked".to_owned()],
    };
    assert_eq!(worker.ending(), Some(expected.clone()));
    worker.last_start = Some(SystemTime::now());
    assert_eq!(worker.ending(), Some(expected));
    // The output is that of a server before it.
    worker.last_start = Some(SystemTime::now() + Duration::from_secs(60));
    let lines = worker.ending().map(|ending| ending.lines);
    assert_eq!(lines, Some(Vec::new()));
    worker.last_start = None;
    fs::write(&output, "2026-11-29 INFO stopping\n2026-11-29 INFO last request\n").unwrap();
    assert_eq!(worker.ending(), None);
    // The server of another computer has its output there.
    worker
        .places
        .use_server(Some(rocknet_control::ServerAddress::Socket("/nonexistent/s".into())));
    fs::write(&output, "x\n").unwrap();
    assert_eq!(worker.ending(), None);
}
