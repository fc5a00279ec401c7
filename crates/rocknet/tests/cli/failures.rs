//! Failures of the machine around a server: full disks, jumps of the clock, SIGKILL during a save, a control socket and
//! a state folder that are in use, too little memory, and clients that do not read.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rocknet_testing::{Need, skip};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};

use crate::program::{ProgramFolder, Server};

const SITE: &str = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

/// Time limit of any wait.
const TIMEOUT: Duration = Duration::from_secs(30);

fn folder(server: &str, site: &str) -> ProgramFolder {
    let config = format!("[server]\nworkers = 1\nstate = \"state\"\n{server}\n{SITE}{site}\n");
    ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", &config)])
}

fn is_root(why: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(Need::Root, why);
    }
    is_root
}

#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

/// Sends a request to the control API and returns the response. `head`: method and path.
fn request(socket: &Path, head: &str, body: &str) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let length = body.len();
    write!(
        stream,
        "{head} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

#[test]
fn a_full_disk_of_logs_and_state_stops_no_request() {
    if !is_root("only root can mount a small disk") {
        return;
    }
    let sites = "[site.\"a.localhost\"]\nlisten = \"https://127.0.0.2:0\"\nroot = \"www\"\n\
                 tls = \"local\"\n";
    let dir = folder("[log]\naccess = \"disk/access.log\"", sites);
    let config = dir
        .read("rocknet.toml")
        .replace("state = \"state\"", "state = \"disk/state\"");
    dir.write("rocknet.toml", &config);
    fs::create_dir(dir.path().join("disk")).expect("a folder");
    let mounted = "mount -t tmpfs -o size=256k none disk && exec \"$@\"";
    let server = dir.serve_by(
        &["unshare", "--mount", "sh", "-c", mounted, "sh"],
        &["run", "-c", "rocknet.toml"],
    );
    // This path leads into the server's mount namespace.
    let root = format!("/proc/{}/root", server.id());
    let disk = PathBuf::from(format!("{root}{}", dir.path().join("disk").display()));
    wait_until("a certificate", || disk.join("state/local/ca.key").exists());
    assert!(server.get("/").contains("home"));
    wait_until("a log", || {
        fs::metadata(disk.join("access.log")).is_ok_and(|log| log.len() > 0)
    });
    let filler = disk.join("filler");
    let mut fill = fs::File::create(&filler).expect("a file");
    while fill.write_all(&[0; 4096]).is_ok() {}
    drop(fill);

    let target = format!("/?{}", "x".repeat(2000));
    for _ in 0..200 {
        assert!(server.get(&target).starts_with("HTTP/1.1 200 "));
    }
    server.logged("access.log");
    // A reload needs no room in the state folder, and a site that is added gets its certificate all the same.
    let added =
        format!("{config}[site.\"b.localhost\"]\nlisten = \"https://127.0.0.2:0\"\nroot = \"www\"\ntls = \"local\"\n");
    dir.write("rocknet.toml", &added);
    let reloaded = dir.run(&["reload", "-c", "rocknet.toml"]);
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    // The history of the configuration has no room. The change is made, and the reason is logged.
    let set = dir.run(&["config", "set", "limits.connections", "500", "-c", "rocknet.toml"]);
    assert_eq!(set.code, Some(0), "{set:?}");
    server.logged("the change cannot be undone");
    assert!(server.get("/").contains("home"));

    fs::remove_file(&filler).expect("a file");
    let before = fs::metadata(disk.join("access.log")).expect("a log").len();
    wait_until("the log is written again", || {
        server.get("/again");
        fs::metadata(disk.join("access.log")).is_ok_and(|log| log.len() > before)
    });
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn sigkill_during_a_save_leaves_the_old_or_the_new_file() {
    let dir = folder("", "");
    let base = dir.read("rocknet.toml");
    // The text is long, so that a kill would interrupt a save that wrote the file in place.
    let text = |mark: &str| format!("{base}# {}\n", mark.repeat(200_000));
    let texts = [text("a"), text("b")];
    dir.write("rocknet.toml", &texts[0]);
    let socket = dir.path().join("control.sock");
    let mut saved = 0;
    for round in 0..12u64 {
        let server = dir.serve(&["run", "-c", "rocknet.toml"]);
        let (replaced, has_replaced) = std::sync::mpsc::channel();
        let writer = {
            let (socket, texts) = (socket.clone(), texts.clone());
            thread::spawn(move || {
                for text in texts.iter().rev().cycle() {
                    let config = request(&socket, "GET /api/config", "").ok();
                    let config = config.and_then(|config| Some(config.split_once("\r\n\r\n")?.1.to_owned()));
                    let Some(config) = config else { return };
                    let Ok(config) = serde_json::from_str::<serde_json::Value>(&config) else {
                        return;
                    };
                    let body = serde_json::json!({ "text": text, "revision": config["revision"] });
                    let Ok(response) = request(&socket, "PUT /api/config", &body.to_string()) else {
                        return;
                    };
                    if !response.starts_with("HTTP/1.1 200 ") || replaced.send(()).is_err() {
                        return;
                    }
                }
            })
        };
        has_replaced.recv_timeout(TIMEOUT).expect("a first change");
        // The moment of the kill differs from round to round.
        let moment = Instant::now() + Duration::from_millis(round * 3);
        wait_until("the moment of the kill", || Instant::now() >= moment);
        server.signal(Signal::KILL);
        server.wait();
        writer.join().expect("a writer");
        saved += 1 + has_replaced.try_iter().count();
        let found = dir.read("rocknet.toml");
        assert!(
            texts.contains(&found),
            "round {round}: {} bytes, neither old nor new",
            found.len()
        );
    }
    assert!(saved >= 12, "{saved}");
    // Files left over from the killed servers, such as the one that a server was writing, do not prevent a start.
    let _server = dir.serve(&["run", "-c", "rocknet.toml"]);
}

#[test]
fn a_second_server_with_the_same_state_serves_and_takes_over_the_control_socket() {
    let tls = "[site.\"a.localhost\"]\nlisten = \"https://127.0.0.2:0\"\nroot = \"www\"\ntls = \"local\"\n";
    let dir = folder("", tls);
    let first = dir.serve(&["run", "-c", "rocknet.toml"]);
    let second = dir.serve(&["run", "-c", "rocknet.toml"]);
    let warning = second.logged("the control API is not available");
    assert!(
        warning.contains("control.sock") && warning.contains("tried again"),
        "{warning}"
    );
    for server in [&first, &second] {
        assert!(server.get("/").contains("home"));
    }
    let process = |dir: &ProgramFolder| {
        let status = dir.run(&["status", "--json", "-c", "rocknet.toml"]).out;
        serde_json::from_str::<serde_json::Value>(&status).map_or(0, |status| status["pid"].as_u64().unwrap_or(0))
    };
    assert_eq!(process(&dir), u64::from(first.id()));
    first.signal(Signal::TERM);
    assert_eq!(first.wait(), Some(0));
    second.logged("the control API is available");
    assert_eq!(process(&dir), u64::from(second.id()));
    // The local CA, which both servers use, is still in the state folder.
    assert!(dir.path().join("state/local/ca.pem").exists());
    assert!(second.get("/").contains("home"));
    second.signal(Signal::TERM);
    assert_eq!(second.wait(), Some(0));
}

#[test]
fn without_descriptors_a_reload_and_a_script_fail_and_the_server_goes_on() {
    let dir = folder("", "cgi = \"/cgi-bin\"");
    let script = dir.write(
        "www/cgi-bin/hello",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello'\n",
    );
    for path in [
        dir.path(),
        &dir.path().join("www"),
        &dir.path().join("www/cgi-bin"),
        &script,
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    // This connection stays open, because a server without descriptors cannot accept another one.
    let mut kept = server.connect();
    let mut fetch = |path: &str| {
        kept.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
            .expect("a request");
        let mut buffer = [0; 16_384];
        let count = kept.read(&mut buffer).expect("a response");
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    };
    assert!(fetch("/").starts_with("HTTP/1.1 200 "));
    let pid = Pid::from_raw(i32::try_from(server.id()).expect("a small number")).expect("a process");
    let before = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        maximum: before.maximum,
    };
    // At its start, the server has raised its own limit to `raised`.
    let raised = prlimit(Some(pid), Resource::Nofile, none).expect("the right to limit a child");
    dir.write("www/new.txt", "new");
    server.signal(Signal::HUP);
    server.logged("is not reloaded, nothing has changed");
    assert!(fetch("/new.txt").starts_with("HTTP/1.1 503 "));
    let response = fetch("/cgi-bin/hello");
    assert!(response.starts_with("HTTP/1.1 5"), "{response}");

    prlimit(Some(pid), Resource::Nofile, raised).expect("the right to limit a child");
    server.signal(Signal::HUP);
    server.logged("is reloaded");
    assert!(server.get("/new.txt").contains("new"));
    assert!(server.get("/cgi-bin/hello").contains("hello"));
    assert_eq!(dir.run(&["status", "-c", "rocknet.toml"]).code, Some(0));
}

#[test]
fn a_start_with_too_few_descriptors_is_refused() {
    let dir = folder("", "");
    let program = env!("CARGO_BIN_EXE_rocknet");
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 16; exec \"$0\" run -c rocknet.toml", program])
        .current_dir(dir.path())
        .output()
        .expect("a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("may open only 16 files"), "{errors}");
}

/// C source of a library for `LD_PRELOAD` that shifts the wall clock of a process by the seconds in a file.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile long *offset;

__attribute__((constructor)) static void map(void)
{
    int file = open(getenv("CLOCK_OFFSET"), O_RDONLY | O_CLOEXEC);
    void *page = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    offset = page == MAP_FAILED ? NULL : page;
    unsetenv("LD_PRELOAD");
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (result == 0 && offset && clock == CLOCK_REALTIME)
        time->tv_sec += *offset;
    return result;
}
"#;

#[test]
fn jumps_of_the_clock_change_dates_and_nothing_else() {
    let dir = folder("events = { wait = \"20ms\" }\n[log]\naccess = \"access.log\"", "");
    let source = dir.write("clock.c", CLOCK);
    let library = dir.path().join("clock.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl");
    assert!(compiler.status().expect("cc").success());
    let offset = dir.path().join("offset");
    fs::write(&offset, 0i64.to_ne_bytes()).expect("a file");
    let preload = format!("LD_PRELOAD={}", library.display());
    let variable = format!("CLOCK_OFFSET={}", offset.display());
    let server = dir.serve_by(&["env", &preload, &variable], &["run", "-c", "rocknet.toml"]);
    let mut idle = server.connect();
    idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("a request");
    let mut buffer = [0; 4096];
    assert!(idle.read(&mut buffer).expect("a response") > 0);
    let used_before = cpu_ticks(server.id());
    let began = Instant::now();
    // A day ahead, a day back, before 1970, and the real time again. The date before 1970 is not checked.
    for (seconds, is_plausible) in [(86_400, true), (-86_400, true), (-3_000_000_000, false), (0, true)] {
        let file = fs::OpenOptions::new().write(true).open(&offset).expect("a file");
        std::os::unix::fs::FileExt::write_all_at(&file, &i64::to_ne_bytes(seconds), 0).expect("an offset");
        let expected = date_header(seconds);
        if is_plausible {
            wait_until("the date follows the clock", || {
                server
                    .get("/")
                    .lines()
                    .any(|line| line.starts_with("Date: ") && line.contains(&expected))
            });
        } else {
            assert!(server.get("/").contains("home"));
        }
        assert_eq!(dir.run(&["reload", "-c", "rocknet.toml"]).code, Some(0));
        // The idle connection outlives every jump, because timeouts follow the monotonic clock.
        idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("a request");
        assert!(idle.read(&mut buffer).expect("a response") > 0);
    }
    // The server does not spin after a jump. A thread that never waits uses 100 ticks of CPU time per second, and the
    // server used less.
    let used = cpu_ticks(server.id()) - used_before;
    let passed = began.elapsed().as_secs_f64().max(1.0) * 100.0;
    assert!((used as f64) < passed, "{used} ticks of CPU in {passed} ticks");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}

/// Returns the day and month of the time in `seconds` from now, as the `Date` field writes them.
fn date_header(seconds: i64) -> String {
    let date = Command::new("date")
        .args(["--utc", "--date", &format!("{seconds} seconds"), "+%d %b %Y"])
        .env("LC_ALL", "C")
        .output()
        .expect("date");
    String::from_utf8(date.stdout).expect("a date").trim().to_owned()
}

/// Returns the CPU time of a process in hundredths of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    fields[11..13]
        .iter()
        .map(|field| field.parse::<u64>().expect("ticks"))
        .sum()
}

#[test]
fn a_server_at_its_memory_limit_goes_on() {
    const MEMORY: &str = "/sys/fs/cgroup/memory";
    // Limit of the group in bytes. It is several times the size of the cache, because files that are being loaded, the
    // reserves of the allocator and the program need memory too. All files together exceed it in the page cache.
    const LIMIT: u64 = 80 << 20;
    if !is_root("only root can create a control group") {
        return;
    }
    if !Path::new(MEMORY).join("memory.limit_in_bytes").exists() {
        return skip(
            Need::Root,
            "the control groups of this machine have no memory controller of version 1",
        );
    }
    let group = format!("{MEMORY}/rocknet-test-{}", std::process::id());
    fs::create_dir(&group).expect("a control group");
    fs::write(format!("{group}/memory.limit_in_bytes"), LIMIT.to_string()).expect("a limit");
    let dir = folder("", "");
    let config = format!(
        "{}[cache]\nmemory = \"16MiB\"\nmax_file = \"1MiB\"\n",
        dir.read("rocknet.toml")
    );
    dir.write("rocknet.toml", &config);
    let large = vec![b'x'; 900_000];
    for number in 0..100 {
        let mut file = fs::File::create(dir.path().join(format!("www/{number}.txt"))).expect("a file");
        file.write_all(&large).and_then(|()| file.sync_all()).expect("contents");
        // The control group of the server is charged for the pages that the server reads from the disk.
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
    }
    let script = format!("echo $$ > {group}/cgroup.procs && exec \"$@\"");
    let server = dir.serve_by(&["sh", "-c", &script, "sh"], &["run", "-c", "rocknet.toml"]);
    for round in 0..2 {
        for number in 0..100 {
            let response = server.get(&format!("/{number}.txt"));
            assert!(
                response.starts_with("HTTP/1.1 200 ") && response.len() > large.len(),
                "round {round}, file {number}"
            );
        }
    }
    // Clients that do not read the responses that they have requested.
    let mut held: Vec<_> = (0..300).map(|_| server.connect()).collect();
    for stream in &mut held {
        stream
            .write_all(b"GET /1.txt HTTP/1.1\r\nHost: x\r\n\r\n")
            .expect("a request");
    }
    assert!(server.get("/").contains("home"));
    let limit_hits = fs::read_to_string(format!("{group}/memory.failcnt")).expect("a counter");
    drop(held);
    assert!(server.get("/").contains("home"));
    if limit_hits.trim() == "0" {
        skip(
            Need::EvictableFiles,
            "the pages of the files were not read by the server",
        );
    }
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    wait_until("the control group is empty", || fs::remove_dir(&group).is_ok());
}

#[test]
fn a_follower_that_does_not_read_costs_little_memory_and_delays_nothing() {
    let dir = folder("[log]\naccess = \"access.log\"", "");
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let mut followers: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut stream = UnixStream::connect(dir.path().join("control.sock")).expect("the control socket");
            stream
                .write_all(b"GET /api/logs?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .expect("a request");
            stream
        })
        .collect();
    // The stream has begun.
    let mut byte = [0];
    for follower in &mut followers {
        follower.read_exact(&mut byte).expect("a response");
    }
    let before = resident_bytes(&server);
    // 10 MB of lines for each follower. Each request is one write, because Nagle's algorithm would delay the second of
    // two writes until an ACK.
    let long = format!("GET /?{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(4000));
    let mut client = server.connect();
    let mut buffer = vec![0; 65_536];
    for _ in 0..2500 {
        client.write_all(long.as_bytes()).expect("a request");
        assert!(client.read(&mut buffer).expect("a response") > 0);
    }
    let grown = resident_bytes(&server).saturating_sub(before);
    assert!(grown < 40 << 20, "{grown} bytes for followers that do not read");
    assert_eq!(dir.run(&["status", "-c", "rocknet.toml"]).code, Some(0));
    // A follower that reads again learns how many lines it has lost.
    let mut follower = followers.remove(0);
    follower.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut received = String::new();
    let deadline = Instant::now() + TIMEOUT;
    while !received.contains("\"lost\":") {
        assert!(Instant::now() < deadline, "no lost lines were reported");
        // New lines carry the number of those lost before.
        server.get("/");
        let count = follower.read(&mut buffer).expect("an event");
        received = String::from_utf8_lossy(&buffer[..count]).into_owned();
    }
    drop(followers);
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}

fn resident_bytes(server: &Server) -> usize {
    let statm = fs::read_to_string(format!("/proc/{}/statm", server.id())).expect("a process");
    let pages: usize = statm.split(' ').nth(1).expect("a field").parse().expect("a number");
    pages * 4096
}
