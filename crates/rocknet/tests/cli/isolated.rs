//! Isolated controllers of the built program: their log lines, and the exit of their process with the server.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::program::ProgramFolder;

const SITE: &str = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
    [site.default.route.\"/die\"]\ncontroller = \"l.so:die\"\nisolate = true\n";

fn dir() -> ProgramFolder {
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", SITE)]);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("cc")
        .args(["-std=c99", "-fPIC", "-shared", "-o"])
        .arg(dir.path().join("l.so"))
        .arg("-I")
        .arg(here.join("../rocknet-controller/include"))
        .arg(here.join("tests/server/controllers/library.c"))
        .status()
        .unwrap();
    assert!(built.success());
    dir
}

fn last_line(response: &str) -> &str {
    response.lines().last().unwrap()
}

#[test]
fn output_and_exit_of_the_process_are_logged() {
    let dir = dir();
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    assert!(server.get("/die?print").starts_with("HTTP/1.1 200 "));
    // Log calls and standard output reach the log through different pipes, so the two lines come in any order.
    let mut both = [server.logged("for a request"), server.logged("for a request")];
    both.sort_by_key(|line| line.contains("printed"));
    assert!(
        both[0].contains("logged for a request") && both[0].contains("l.so:die"),
        "{both:?}"
    );
    assert!(
        both[1].contains("printed for a request") && both[1].contains("l.so"),
        "{both:?}"
    );
    assert!(server.get("/die?abort").starts_with("HTTP/1.1 502 "));
    let mut lines = [false; 2];
    while lines != [true; 2] {
        let line = server.logged("process");
        lines[0] |=
            line.contains("a controller failed: its process ended during the call") && line.contains("l.so:die");
        lines[1] |= line.contains("process of the library does not run: it ended (signal: 6 (SIGABRT)")
            && line.contains("l.so");
    }
    server.logged("was restarted");
    assert!(server.get("/die").starts_with("HTTP/1.1 200 "));
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn the_process_exits_when_its_server_is_killed() {
    let dir = dir();
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let response = server.get("/die");
    // The controller responds with the IDs of its process and its parent process.
    let (pid, parent) = last_line(&response).split_once(' ').unwrap();
    assert_eq!(parent, server.id().to_string());
    let process = format!("/proc/{pid}/stat");
    server.signal(Signal::KILL);
    server.wait();
    let started = Instant::now();
    // A zombie has exited, but still has an entry in `/proc`.
    let runs = || std::fs::read_to_string(&process).is_ok_and(|state| !state.contains(") Z "));
    while runs() {
        assert!(started.elapsed() < Duration::from_secs(30), "{pid} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn the_process_cannot_be_started_by_hand() {
    let output = ProgramFolder::new(&[]).run(&["run-isolated-library", "l.so"]);
    assert_eq!((output.code, &*output.out), (Some(2), ""));
    assert!(
        output.err.contains("RockNet starts it for isolated controllers"),
        "{}",
        output.err
    );
}
