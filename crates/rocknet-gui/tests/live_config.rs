//! The configuration of a real server, edited by hand while the worker of the window looks at it, and an upgrade.

#[path = "machine/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod machine;

use std::fs;
use std::path::PathBuf;
use std::process::Child;

use machine::WorkerLink;
use rocknet_control::Client;
use rocknet_control::api::{Done, Request};
use rocknet_gui::job::{FileConfig, Job, Poll, Report};
use tempfile::TempDir;

/// A server and a worker that is connected to its socket.
struct Machine {
    folder: TempDir,
    server: Child,
    worker: WorkerLink,
}

impl Machine {
    /// Returns `None`, and records a skip, if the server is not built.
    fn start() -> Option<Machine> {
        let program = machine::program()?;
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("rocknet.toml");
        fs::write(&config, text("")).unwrap();
        let server = machine::start_server(&program, &config);
        let worker = WorkerLink::start(machine::options(&program, &config));
        let machine = Machine { folder, server, worker };
        machine.poll("the worker is connected", |_| true);
        Some(machine)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("rocknet.toml")
    }

    fn send(&self, job: Job) {
        self.worker.send(job);
    }

    fn wait<T>(&self, what: &str, find: impl FnMut(&Report) -> Option<T>) -> T {
        self.worker.wait(what, find)
    }

    /// Waits for a state of the server.
    fn poll(&self, what: &str, is_reached: impl Fn(&Poll) -> bool) -> Poll {
        self.wait(what, |report| match report {
            Report::Polled(poll) if is_reached(poll) => Some((**poll).clone()),
            _ => None,
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // After an upgrade, another process serves.
        if let Ok(mut client) = Client::connect(&self.folder.path().join("state/admin/control.sock")) {
            let _ = client.call::<Done>(&Request::Stop);
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Returns a configuration with one website, followed by more text.
fn text(more: &str) -> String {
    format!(
        "[server]\nmode = \"dev\"\nstate = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [site.\"a.localhost\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \".\"\n{more}"
    )
}

/// Returns the text of another website.
fn site(name: &str) -> String {
    format!("[site.\"{name}\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \".\"\n")
}

#[test]
fn an_edit_by_hand_is_noticed_and_loaded() {
    let Some(machine) = Machine::start() else { return };
    machine.poll("all is loaded", |poll| {
        poll.config.as_ref().is_some_and(|state| state.is_loaded)
    });
    fs::write(machine.config(), text(&site("b.localhost"))).unwrap();
    let poll = machine.poll("the new website is noticed", |poll| {
        poll.config.as_ref().is_some_and(|state| !state.is_loaded)
    });
    let state = poll.config.unwrap();
    assert_eq!(
        (state.added, state.errors),
        (vec!["b.localhost".to_owned()], Vec::new())
    );
    fs::write(machine.config(), text("[site.\"c.localhost\"]\nrot = \"x\"\n")).unwrap();
    let poll = machine.poll("the error is noticed", |poll| {
        poll.config.as_ref().is_some_and(|state| !state.errors.is_empty())
    });
    assert_eq!(poll.config.unwrap().errors[0].line, 10);
    fs::write(machine.config(), text(&site("b.localhost"))).unwrap();
    machine.poll("the error is gone", |poll| {
        poll.config.as_ref().is_some_and(|state| state.errors.is_empty())
    });
    machine.send(Job::Reload);
    let poll = machine.poll("the website is loaded", |poll| {
        let sites = poll.sites.as_deref().unwrap_or_default();
        sites.iter().any(|site| site.name == "b.localhost")
    });
    assert!(poll.config.unwrap().is_loaded);
}

#[test]
fn a_stopped_server_leaves_the_websites_of_its_file() {
    let Some(machine) = Machine::start() else { return };
    fs::write(machine.config(), text(&site("b.localhost"))).unwrap();
    machine.send(Job::Stop);
    let read = |report: &Report| match report {
        Report::FileConfig(config) => Some((**config).clone()),
        _ => None,
    };
    let names = |config: &FileConfig| config.sites.iter().map(|site| site.name.clone()).collect::<Vec<_>>();
    let config = machine.wait("the file is read", read);
    assert_eq!(names(&config), ["a.localhost", "b.localhost"]);
    fs::write(machine.config(), text("[site.\"c.localhost\"]\nrot = \"x\"\n")).unwrap();
    let config = machine.wait("the file is read again", read);
    assert_eq!(names(&config), ["a.localhost", "c.localhost"]);
    assert!(
        config
            .findings
            .iter()
            .any(|finding| finding.is_error && finding.place == "rocknet.toml:10")
    );
}

#[test]
fn a_new_process_takes_over() {
    let Some(machine) = Machine::start() else { return };
    let before = machine.poll("the server replies", |_| true).status.pid;
    machine.send(Job::Upgrade);
    let mut after = before;
    let result = machine.wait("the server is upgraded", |report| match report {
        Report::Polled(poll) => {
            after = poll.status.pid;
            None
        }
        Report::Upgraded(result) => Some(result.clone()),
        _ => None,
    });
    assert!(matches!(&result, Ok(version) if !version.is_empty()), "{result:?}");
    assert_ne!(after, before);
}
