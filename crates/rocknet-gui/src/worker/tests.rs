//! The worker without a server.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::job::StartFailure;
use crate::ways::Starter;

/// Maximum wait for a report.
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn absence_is_reported_once_and_jobs_fail_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        socket: Some(folder.path().join("control.sock")),
        config: Some(folder.path().join("rocknet.toml")),
        program: Some(folder.path().join("missing")),
        place: None,
        // There is no systemd and no desktop.
        search_path: Some(folder.path().into()),
        ..Options::default()
    };
    let (sender, reports) = channel();
    let jobs = start(options, move |report| drop(sender.send(report)));
    let next = || reports.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(next(), Report::Desktop(None));
    assert_eq!(next(), Report::Absent(Absence::Stopped(false)));
    // A user who connects again gets the reason again.
    jobs.send(Job::Connect).unwrap();
    assert_eq!(next(), Report::Absent(Absence::Stopped(false)));
    jobs.send(Job::Reload).unwrap();
    assert_eq!(next(), Report::Failed("the server is stopped".to_owned().into()));
    jobs.send(Job::Query(Query::Doctor)).unwrap();
    assert_eq!(next(), Report::Doctor(Err("the server is stopped".to_owned())));
    jobs.send(Job::Inspect(folder.path().to_owned())).unwrap();
    assert!(matches!(next(), Report::Inspected(_, inspection) if inspection.readable));
    // The thread ends with its sender.
    drop(jobs);
    assert!(reports.recv_timeout(TIMEOUT).is_err());
}

#[test]
fn a_program_that_ends_at_once_fails_the_start_with_its_output() {
    let folder = tempfile::tempdir().unwrap();
    // The file is created before, because the first configuration would be written to the folders of the user.
    std::fs::write(folder.path().join("rocknet.toml"), "").unwrap();
    let options = Options {
        socket: Some(folder.path().join("control.sock")),
        config: Some(folder.path().join("rocknet.toml")),
        program: Some("/bin/false".into()),
        place: None,
        search_path: Some(folder.path().into()),
        ..Options::default()
    };
    let (sender, reports) = channel();
    let jobs = start(options, move |report| drop(sender.send(report)));
    jobs.send(Job::Start(Starter::Program)).unwrap();
    let failure = loop {
        if let Report::StartFailed(failure) = reports.recv_timeout(TIMEOUT).unwrap() {
            break failure;
        }
    };
    let expected = StartFailure {
        reason: crate::job::Trouble::ProgramEnded,
        ..StartFailure::default()
    };
    assert_eq!(failure, expected);
}
