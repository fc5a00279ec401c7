//! A real server and a worker of the window that is connected to it, without a window.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rocknet_gui::job::{Job, Report};
use rocknet_gui::worker::{self, Options};
use rocknet_testing::{Need, skip};

/// Maximum wait for a report. A debug build on a busy machine is slow.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the server; `None`, and records a skip, if it is not built.
pub fn program() -> Option<PathBuf> {
    // The test is in the folder `deps` beside the programs.
    let test = std::env::current_exe().unwrap();
    let program = test.parent()?.parent()?.join("rocknet");
    if program.is_file() {
        return Some(program);
    }
    let reason = "the server is not built: cargo build -p rocknet";
    skip(Need::Program("rocknet"), reason);
    None
}

/// Starts a server with a configuration whose folder is the home folder of its account.
pub fn start_server(program: &Path, config: &Path) -> Child {
    Command::new(program)
        .arg("run")
        .arg(config)
        .env("HOME", config.parent().unwrap())
        .env_remove("ROCKNET_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the options of a worker for a server whose state folder is `state` beside its configuration.
pub fn options(program: &Path, config: &Path) -> Options {
    let folder = config.parent().unwrap();
    Options {
        socket: Some(folder.join("state/admin/control.sock")),
        config: Some(config.to_owned()),
        program: Some(program.to_owned()),
        place: Some(folder.join("settings/server.toml")),
        search_path: Some("/nonexistent".into()),
        ..Options::default()
    }
}

/// The worker of the window.
pub struct WorkerLink {
    jobs: Sender<Job>,
    pub reports: Receiver<Report>,
}

impl WorkerLink {
    /// Starts a worker.
    pub fn start(options: Options) -> WorkerLink {
        let (sender, reports) = channel();
        let jobs = worker::start(options, move |report| drop(sender.send(report)));
        WorkerLink { jobs, reports }
    }

    /// Sends a job.
    pub fn send(&self, job: Job) {
        self.jobs.send(job).unwrap();
    }

    /// Returns the first value that `take` returns for a report.
    pub fn wait<T>(&self, what: &str, mut take: impl FnMut(&Report) -> Option<T>) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let report = self.reports.recv_timeout(left);
            let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
            if let Some(value) = take(&report) {
                return value;
            }
        }
    }
}
