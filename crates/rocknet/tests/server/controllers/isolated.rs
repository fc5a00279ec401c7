//! Processes of isolated libraries: crashes, hangs, restarts, concurrent calls, and inherited descriptors.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use super::{build_recording_library, eventually, site_below, wait_for_marks};
use crate::support::client::request;
use crate::support::{Client, DEADLINE, Folder, Running, library};

const NAMES: &[&str] = &["hello", "die", "count", "give", "echo"];

/// Starts a server with a library in an isolated process. `more` has further sections of the configuration.
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

/// Returns the pid of the process that currently serves requests. Without a query, the controller `die` reports its pid
/// and the pid of its parent.
fn pid(server: &Running) -> u32 {
    let text = server.get("/i/die/").text();
    let (pid, parent) = text.split_once(' ').expect("two numbers");
    assert_eq!(
        parent,
        std::process::id().to_string(),
        "the process must be a child of the server"
    );
    pid.parse().expect("a number")
}

#[track_caller]
fn assert_exits(pid: u32) {
    let started = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(started.elapsed() < DEADLINE, "process {pid} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn requests_get_502_when_the_process_dies_and_it_is_restarted() {
    for way in ["abort", "segfault", "kill", "exit"] {
        let server = start("");
        let mut other = server.connect();
        let before = pid(&server);
        let response = server.get(&format!("/i/die/?{way}"));
        response.expect(way, 502, &["Content-Type: text/html; charset=utf-8"]);
        // The next request succeeds: it uses the new process or waits for it.
        assert_eq!(other.get("/i/hello/").text(), "hello from one", "after {way}");
        assert_ne!(pid(&server), before, "after {way}");
        assert_exits(before);
        assert_eq!(other.get("/").text(), "a page");
    }
}

#[test]
fn requests_in_progress_fail_at_a_crash_and_later_ones_succeed() {
    let server = start("");
    let mut slow = server.connect();
    slow.send(request("GET /i/give/?9000000000", &[]));
    slow.head();
    let mut uploading = server.connect();
    uploading.send(request("POST /i/count/", &["Content-Length: 5"]) + "12");
    let file = server.folder.path("go");
    let mut waiting = server.connect();
    waiting.send(request(&format!("GET /i/die/?wait={}", file.display()), &[]));
    let before = pid(&server);
    assert_eq!(server.get("/i/die/?abort").status, 502);
    // A response that has begun is cut in a way that the client can detect.
    let rest = slow.rest();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{} bytes", rest.len());
    assert_eq!(waiting.response().status, 502);
    uploading.send("345");
    assert_eq!(uploading.response().status, 502);
    assert_ne!(pid(&server), before);
}

#[test]
fn restarts_of_a_crashing_process_are_delayed() {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    build_recording_library(&folder, "l.so", "m", &[]);
    let server = start_in(folder, "");
    let started = Instant::now();
    let mut failed = 0;
    while failed < 6 {
        assert!(started.elapsed() < DEADLINE, "{failed}");
        failed += usize::from(server.get("/i/die/?abort").status == 502);
    }
    // Each process writes one mark when it starts. A request in the delay before a restart fails without a new process.
    let begun = fs::read_to_string(server.folder.path("marks"))
        .expect("marks")
        .lines()
        .count();
    assert!((2..6).contains(&begun), "{begun} processes for {failed} requests");
    eventually("hello from m", || server.get("/i/hello/").text());
}

#[test]
fn concurrent_calls_are_bounded_and_others_wait() {
    /// More clients than the process has threads for calls.
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
    // Other requests are served by the old process and then by the new one, and none fails.
    let started = Instant::now();
    while pid(&server) == before {
        assert!(started.elapsed() < DEADLINE, "the process was not replaced");
    }
    // The body is `begin:` and 300,000 bytes.
    assert_eq!(
        slow.rest_of_chunks(),
        300_006,
        "a response that began before the replacement"
    );
    assert_exits(before);
}

#[test]
fn a_library_that_crashes_at_start_is_refused_and_the_server_continues() {
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
fn the_process_has_no_descriptor_of_the_server_and_exits_with_it() {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    build_recording_library(&folder, "l.so", "m", &[]);
    let server = start_in(folder, "");
    let client = server.connect();
    let pid = pid(&server);
    let inodes = |pid: &str| -> HashSet<u64> {
        let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors");
        let state = |entry: std::io::Result<fs::DirEntry>| fs::metadata(entry.ok()?.path()).ok();
        // Devices such as /dev/null are ignored, because all processes share them.
        all.filter_map(state)
            .filter(|state| state.rdev() == 0)
            .map(|state| state.ino())
            .collect()
    };
    let common: Vec<u64> = inodes(&pid.to_string())
        .intersection(&inodes("self"))
        .copied()
        .collect();
    // The private copy of the library may be open in both processes while it is loaded.
    assert!(common.len() <= 1, "{common:?}");
    drop(client);
    let (server, folder) = server.take();
    server.stop();
    // The library was released before the stop of the server returned.
    let text = fs::read_to_string(folder.path("marks")).expect("marks");
    assert_eq!(text, "init m\ndrop m\n");
    assert_exits(pid);
    wait_for_marks(&folder, &["init m", "drop m"]);
}
