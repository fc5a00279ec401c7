//! Tests of the events that the manager sends to the supervisor thread.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::super::installed::{Installed, Sapi};
use super::super::report::PoolProgress;
use super::*;

/// Creates a manager with pool 1, whose process runs, and the receiver of the events for a supervisor that is busy.
fn manager(folder: &std::path::Path) -> (PhpManager, PathBuf, Receiver<PhpEvent>) {
    let manager = PhpManager::new(folder.to_owned());
    let (events, receiver) = channel();
    let mut state = lock(&manager.state);
    let socket = pool::socket(&state.folder().unwrap(), 1);
    state.running.as_mut().unwrap().events = events;
    let program = PhpProgram::Found(Installed {
        major: 8,
        minor: 2,
        sapi: Sapi::Fpm,
        program: folder.join("php-fpm8.2"),
    });
    let pool = Pool {
        program,
        user: None,
        settings: rocknet_config::model::PhpSettings::default(),
        dev: false,
        body_size: 1,
        drain_timeout: Duration::ZERO,
    };
    state.pools = vec![(1, pool)];
    drop(state);
    (manager, socket, receiver)
}

#[test]
fn a_start_after_a_halt_that_waits_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (manager, socket, events) = manager(folder.path());
    // The halt is not handled yet, so the process still runs when the start arrives.
    manager.sockets.set_progress(
        &socket,
        PoolProgress {
            pid: Some(1),
            is_ready: true,
            is_stopped: false,
            starts: 1,
        },
    );
    assert_eq!(
        (manager.halt("8.2"), manager.start("8.2"), manager.start("8.1")),
        (1, 1, 0)
    );
    assert!(matches!(events.try_recv(), Ok(PhpEvent::Halt(1))));
    assert!(matches!(events.try_recv(), Ok(PhpEvent::Start(1))));
    assert!(events.try_recv().is_err());
}

#[test]
fn requests_wait_from_the_start_of_a_halted_pool() {
    let folder = tempfile::tempdir().unwrap();
    let (manager, socket, events) = manager(folder.path());
    manager.sockets.set_progress(
        &socket,
        PoolProgress {
            pid: None,
            is_ready: false,
            is_stopped: true,
            starts: 1,
        },
    );
    manager.sockets.set_failure(&socket, Some("stopped".to_owned()));
    assert_eq!(manager.start("8.2"), 1);
    assert_eq!(manager.sockets.failure(&socket), None);
    assert!(matches!(events.try_recv(), Ok(PhpEvent::Start(1))));
}

/// Returns a configuration in which each of these sites has a PHP of its own with this number of processes. Its version
/// is not installed anywhere, so no process is started.
fn config(root: &std::path::Path, sites: &[(&str, u32)]) -> Config {
    let site = |(name, workers): &(&str, u32)| {
        let root = root.display();
        format!(
            "[site.\"{name}\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"{root}\"\nphp = {{ version = \"5.1\", workers = {workers} }}\n"
        )
    };
    let text: String = sites.iter().map(site).collect();
    let loaded = rocknet_config::parse(&text, &root.join("rocknet.toml"), &rocknet_config::ProcessEnvironment);
    loaded.unwrap_or_else(|report| panic!("{report}")).config
}

#[test]
fn a_plan_that_is_not_applied_changes_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let manager = PhpManager::new(folder.path().to_owned());
    let names = || manager.report().into_iter().map(|pool| pool.name).collect::<Vec<_>>();
    let plan = |sites: &[(&str, u32)]| manager.plan(&mut config(folder.path(), sites)).unwrap();
    manager.apply(plan(&[("a.test", 2)])).unwrap();
    assert_eq!(names(), ["5.1/a.test"]);
    let socket = |number| pool::socket(lock(&manager.state).folder().unwrap().as_path(), number);
    // The pool stays, under the name of another site, and there is a second one.
    let rejected = plan(&[("b.test", 2), ("c.test", 3)]);
    assert_eq!(manager.sockets.name(&socket(2)).as_deref(), Some("5.1/c.test"));
    assert_eq!(names(), ["5.1/a.test"]);
    drop(rejected);
    assert_eq!(names(), ["5.1/a.test"]);
    assert_eq!(manager.sockets.name(&socket(2)), None);
    manager.apply(plan(&[("b.test", 2), ("c.test", 3)])).unwrap();
    assert_eq!(names(), ["5.1/b.test", "5.1/c.test"]);
}
