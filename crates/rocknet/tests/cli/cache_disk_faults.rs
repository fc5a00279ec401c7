//! Stored responses on a disk that is full at start, loses data, reports errors or hangs. Each request gets its
//! response from the upstream, and the log has few lines.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_testing::{Need, skip};
use rustix::process::Signal;

use crate::cache_disk::{Upstream, folder, serve, wait_for_record};
use crate::program::{ProgramFolder, Server};

/// Keys of `[cache]` in all tests. The memory holds few of the responses.
const CACHE: &str = "responses = \"1MiB\"\nresponses_disk = \"16MiB\"\nresponses_folder = \"disk\"";

/// Number of responses of a test.
const COUNT: usize = 40;

/// Time for which a system call hangs, longer than any request may take.
const HANG: Duration = Duration::from_secs(20);

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(Need::Root, "only root can mount a small disk and trace another process");
    }
    is_root
}

/// Requests all targets, and asserts their bodies. Returns the number of those that were sent from disk.
#[track_caller]
fn get_all(server: &Server) -> usize {
    let response = |number: usize| {
        let target = format!("/{number}");
        let response = server.get_from("localhost", &target);
        assert!(response.starts_with("HTTP/1.1 200 "), "{response:.200}");
        assert!(response.contains(&format!("\r\n\r\n{target}x")), "{response:.200}");
        response
    };
    (0..COUNT)
        .filter(|number| response(*number).contains("detail=disk"))
        .count()
}

/// Stops a server, and returns those lines of its log about responses on disk that were not read yet.
fn lines_until_stop(server: Server) -> Vec<String> {
    server.signal(Signal::TERM);
    let lines = server.rest_of_log();
    assert!(!lines.iter().any(|line| line.contains("panic")), "{lines:?}");
    let about_disk = |line: &String| line.contains("response cache on disk");
    lines.into_iter().filter(about_disk).collect()
}

/// Stores all responses on disk, and stops the server.
fn fill(dir: &ProgramFolder) {
    let server = serve(dir);
    get_all(&server);
    wait_for_record(&dir.path().join("disk/responses"), &format!("/{}x", COUNT - 1));
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}

/// Starts the server with a file system of `size` in the folder `disk`. `prepare`: shell command that is run there
/// before the rest of the file system is filled.
fn serve_on_full_disk(dir: &ProgramFolder, size: &str, prepare: &str) -> Server {
    let script = format!(
        "mount -t tmpfs -o size={size},mode=700 none disk && {prepare} && \
         {{ head -c {size} /dev/zero > disk/filler 2>/dev/null; exec \"$@\"; }}"
    );
    dir.serve_by(
        &["unshare", "--mount", "sh", "-c", &script, "sh"],
        &["run", "-c", "rocknet.toml"],
    )
}

#[test]
fn a_disk_that_is_full_at_start_is_reported_once() {
    if !is_root() {
        return;
    }
    let upstream = Upstream::start(1000);
    let dir = folder(&upstream, CACHE);
    fs::create_dir(dir.path().join("disk")).expect("a folder");
    let server = serve_on_full_disk(&dir, "1m", "true");
    let line = server.logged("response cache on disk");
    assert!(
        line.contains("No space left on device") && line.contains("the next attempt is in 60 seconds"),
        "{line}"
    );
    assert_eq!(get_all(&server), 0);
    // They are in memory.
    assert!(server.get_from("localhost", "/1").contains("RockNet; hit"));
    assert_eq!(upstream.requests(), COUNT);
    // The responses are newer than those that an earlier process may have left there.
    let others = lines_until_stop(server);
    assert!(
        others.len() == 1 && others[0].contains("before the server stopped"),
        "{others:?}"
    );
}

/// The oldest responses make room for the files that the start needs.
#[test]
fn the_responses_of_a_disk_that_is_full_at_start_are_used() {
    if !is_root() {
        return;
    }
    let upstream = Upstream::start(100_000);
    let dir = folder(&upstream, CACHE);
    fs::create_dir(dir.path().join("disk")).expect("a folder");
    fill(&dir);
    fs::rename(dir.path().join("disk/responses"), dir.path().join("saved")).expect("a folder");
    let server = serve_on_full_disk(&dir, "8m", "cp -a saved disk/responses");
    server.logged("can be used");
    let from_disk = get_all(&server);
    // A segment of 1 MiB has 10 responses.
    assert!((1..COUNT).contains(&from_disk), "{from_disk}");
    let from_upstream = upstream.requests() - COUNT;
    assert!(from_disk + from_upstream >= COUNT, "{from_disk} {from_upstream}");
    let lines = lines_until_stop(server);
    assert!(lines.len() <= 6, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("the disk is full")), "{lines:?}");
}

#[test]
fn segments_that_lose_their_data_cost_no_request() {
    let upstream = Upstream::start(1000);
    let dir = folder(&upstream, CACHE);
    fs::create_dir(dir.path().join("disk")).expect("a folder");
    fill(&dir);
    let server = serve(&dir);
    let segments = dir.path().join("disk/responses");
    let cut = |path: &Path| {
        let file = fs::OpenOptions::new().write(true).open(path).expect("a segment");
        // The first response is left.
        file.set_len(1500).expect("a shorter segment");
    };
    for entry in fs::read_dir(&segments).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "log") {
            cut(&path);
        }
    }
    let from_disk = get_all(&server);
    assert_eq!((from_disk, upstream.requests()), (1, 2 * COUNT - 1));
    // They are stored again.
    assert_eq!((get_all(&server), upstream.requests()), (0, 2 * COUNT - 1));
    wait_for_record(&segments, &format!("/{}x", COUNT - 1));
    let lines = lines_until_stop(server);
    // One for 1, 2, 4, 8, 16 and 32 errors.
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.contains("cannot read a response")),
        "{lines:?}"
    );
    let server = serve(&dir);
    assert!(get_all(&server) > 0);
    assert!(lines_until_stop(server).len() <= 2);
}

/// strace, which injects faults into a running server.
struct Strace(Child);

impl Strace {
    /// Injects a fault into the system calls of a server from now on.
    fn attach(dir: &ProgramFolder, server: &Server, fault: &str) -> Strace {
        let mut child = Command::new("strace")
            .args(["-f", "-o", "calls.txt", "-e", &format!("inject={fault}")])
            .args(["-p", &server.id().to_string()])
            .current_dir(dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("strace is missing: apt-get install strace");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let line = lines.next().expect("a line").expect("a text");
        assert!(line.contains("attached"), "{line}");
        // strace must be able to write further lines.
        thread::spawn(move || lines.for_each(drop));
        Strace(child)
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn reads_that_fail_cost_no_request() {
    if !is_root() {
        return;
    }
    let upstream = Upstream::start(1000);
    let dir = folder(&upstream, CACHE);
    fs::create_dir(dir.path().join("disk")).expect("a folder");
    fill(&dir);
    let server = serve(&dir);
    let strace = Strace::attach(&dir, &server, "pread64:error=EIO");
    assert_eq!(get_all(&server), 0);
    assert_eq!(upstream.requests(), 2 * COUNT);
    drop(strace);
    let lines = lines_until_stop(server);
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.contains("Input/output error")),
        "{lines:?}"
    );
}

#[test]
fn writes_that_fail_turn_the_disk_off() {
    if !is_root() {
        return;
    }
    let upstream = Upstream::start(1000);
    let dir = folder(&upstream, CACHE);
    fs::create_dir(dir.path().join("disk")).expect("a folder");
    let server = serve(&dir);
    let strace = Strace::attach(&dir, &server, "pwrite64:error=EIO");
    get_all(&server);
    let line = server.logged("response cache on disk");
    assert!(
        line.contains("Input/output error") && line.contains("is off for 60 seconds"),
        "{line}"
    );
    assert_eq!(get_all(&server), 0);
    assert_eq!(upstream.requests(), COUNT);
    drop(strace);
    assert!(lines_until_stop(server).is_empty());
}

#[test]
fn a_disk_that_hangs_delays_a_request_by_half_a_second() {
    if !is_root() {
        return;
    }
    let upstream = Upstream::start(1000);
    let dir = folder(&upstream, CACHE);
    fs::create_dir(dir.path().join("disk")).expect("a folder");
    fill(&dir);
    let server = serve(&dir);
    let fault = format!("pread64,pwrite64:delay_enter={}", HANG.as_micros());
    let strace = Strace::attach(&dir, &server, &fault);
    let began = Instant::now();
    thread::scope(|scope| {
        for number in 0..COUNT {
            let mut stream = server.connect();
            scope.spawn(move || {
                let target = format!("/{number}");
                let mut response = String::new();
                write!(
                    stream,
                    "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                .expect("a request");
                stream.read_to_string(&mut response).expect("a response");
                assert!(response.contains("fwd=uri-miss"), "{response:.200}");
                assert!(response.contains(&format!("\r\n\r\n{target}x")), "{response:.200}");
            });
        }
    });
    assert!(began.elapsed() < HANG / 2, "{:?}", began.elapsed());
    assert_eq!(upstream.requests(), 2 * COUNT);
    // Forwarded responses are in memory, and writes wait in the background.
    assert!(server.get_from("localhost", "/1").contains("RockNet; hit"));
    assert!(began.elapsed() < HANG / 2, "{:?}", began.elapsed());
    server.signal(Signal::KILL);
    drop(strace);
    server.wait();
}
