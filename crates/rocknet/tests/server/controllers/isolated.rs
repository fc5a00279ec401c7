//! Isolated libraries: their processes die, hang, are restarted, and hold no descriptor of the server.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use super::{eventually, marked, marks, site_below};
use crate::support::client::request;
use crate::support::{Client, DEADLINE, Folder, Running, library};

const NAMES: &[&str] = &["hello", "die", "count", "give", "echo"];

fn start(more: &str) -> Running {
    start_in(Folder::with(&[("www/index.html", "a page")]), more)
}

fn start_in(folder: Folder, more: &str) -> Running {
    if !folder.path("l.so").exists() {
        library::put(&folder, "l.so", &[]);
    }
    let server = "[server]\nworkers = 2\nblocking_threads = 2\nevents = { wait = \"20ms\", connections = 16 }\n";
    Running::start(folder, &format!("{server}{more}{}", site_below(&["/i"], "l.so", NAMES)))
}

/// Process that serves requests now.
fn pid(server: &Running) -> u32 {
    let text = server.get("/i/die/").text();
    let (pid, parent) = text.split_once(' ').expect("two numbers");
    assert_eq!(parent, std::process::id().to_string(), "it is a child of the server");
    pid.parse().expect("a number")
}

#[track_caller]
fn has_gone(pid: u32) {
    let started = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(started.elapsed() < DEADLINE, "{pid} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn a_process_that_dies_gives_502_and_is_restarted() {
    for way in ["abort", "segfault", "kill", "exit"] {
        let server = start("");
        let mut other = server.connect();
        let before = pid(&server);
        let response = server.get(&format!("/i/die/?{way}"));
        response.expect(way, 502, &["Content-Type: text/html; charset=utf-8"]);
        // No request has to be lost until the next attempt: the process exists or is waited for.
        assert_eq!(other.get("/i/hello/").text(), "hello from one", "after {way}");
        assert_ne!(pid(&server), before, "after {way}");
        has_gone(before);
        assert_eq!(other.get("/").text(), "a page");
    }
}

#[test]
fn requests_in_progress_are_cut_and_later_ones_succeed() {
    let server = start("");
    let mut slow = server.connect();
    slow.send(request("GET /i/give/?9000000000", &[]));
    slow.head();
    let mut takes = server.connect();
    takes.send(request("POST /i/count/", &["Content-Length: 5"]) + "12");
    let file = server.folder.path("go");
    let mut waits = server.connect();
    waits.send(request(&format!("GET /i/die/?wait={}", file.display()), &[]));
    let before = pid(&server);
    assert_eq!(server.get("/i/die/?abort").status, 502);
    // A response that has begun is cut, and the client does not take it for whole.
    let rest = slow.rest();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{} bytes", rest.len());
    assert_eq!(waits.response().status, 502);
    takes.send("345");
    assert_eq!(takes.response().status, 502);
    assert_ne!(pid(&server), before);
}

#[test]
fn restarts_of_a_crashing_process_are_delayed() {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    marked(&folder, "l.so", "m", &[]);
    let server = start_in(folder, "");
    let started = Instant::now();
    let mut failed = 0;
    while failed < 6 {
        assert!(started.elapsed() < DEADLINE, "{failed}");
        failed += usize::from(server.get("/i/die/?abort").status == 502);
    }
    let begun = fs::read_to_string(server.folder.path("marks"))
        .expect("marks")
        .lines()
        .count();
    assert!((2..6).contains(&begun), "{begun} processes for {failed} requests");
    eventually("hello from m", || server.get("/i/hello/").text());
}

#[test]
fn concurrent_calls_are_bounded_and_others_wait() {
    /// More clients than threads for calls.
    const CLIENTS: usize = 80;
    let server = start("");
    let files: Vec<_> = (0..CLIENTS)
        .map(|number| server.folder.path(&format!("go{number}")))
        .collect();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (client, file) in clients.iter_mut().zip(&files) {
        client.send(request(&format!("GET /i/die/?wait={}", file.display()), &[]));
    }
    for file in &files {
        fs::write(file, "").expect("a file");
    }
    let pids: HashSet<String> = clients.iter_mut().map(|client| client.response().text()).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn a_call_that_never_returns_times_out_and_its_process_is_replaced() {
    let server = start("[limits]\nanswer_timeout = \"1s\"\n");
    let before = pid(&server);
    let mut slow = server.connect();
    slow.send(request("GET /i/give/?300000", &[]));
    slow.head();
    assert_eq!(server.get("/i/die/?loop").status, 503);
    // Other requests are served by the same process, then by another, and none of them fails.
    let started = Instant::now();
    while pid(&server) == before {
        assert!(started.elapsed() < DEADLINE, "it is not replaced");
    }
    assert_eq!(slow.rest_of_chunks(), 300_006, "started before");
    has_gone(before);
}

#[test]
fn a_library_that_crashes_at_start_is_refused_and_the_server_survives() {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    library::put(&folder, "crashes.so", &["CRASHES"]);
    let server = start_in(folder, "");
    let text = site_below(&["/i"], "crashes.so", &["hello"]);
    let error = server.reload(&text).expect_err("a reload");
    assert!(
        error.contains("its process ended while it was loaded (signal: 6 (SIGABRT)"),
        "{error}"
    );
    assert_eq!(server.get("/i/hello/").text(), "hello from one");
    let folder = Folder::with(&[]);
    library::put(&folder, "crashes.so", &["CRASHES"]);
    assert!(Running::try_start(folder, &text, Vec::new()).is_err());
}

#[test]
fn it_holds_no_descriptor_of_the_server_and_ends_with_it() {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    marked(&folder, "l.so", "m", &[]);
    let server = start_in(folder, "");
    let client = server.connect();
    let pid = pid(&server);
    let sockets = |pid: &str| -> HashSet<u64> {
        let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors");
        let state = |entry: std::io::Result<fs::DirEntry>| fs::metadata(entry.ok()?.path()).ok();
        // Devices, such as /dev/null, are shared by all processes.
        all.filter_map(state)
            .filter(|state| state.rdev() == 0)
            .map(|state| state.ino())
            .collect()
    };
    let common: Vec<u64> = sockets(&pid.to_string())
        .intersection(&sockets("self"))
        .copied()
        .collect();
    // The private copy of its library, until it is no longer loaded.
    assert!(common.len() <= 1, "{common:?}");
    drop(client);
    let folder = server.take();
    folder.0.stop();
    // Its `drop` was called before the server had stopped.
    let text = fs::read_to_string(folder.1.path("marks")).expect("marks");
    assert_eq!(text, "init m\ndrop m\n");
    has_gone(pid);
    marks(&folder.1, &["init m", "drop m"]);
}
