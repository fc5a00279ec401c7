//! Stops a server inside a process that continues to run: its threads, child processes and descriptors must be gone.
#![cfg(target_os = "linux")]

#[path = "server/support/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest of this shared module")]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use support::upstream::{Next, Upstream, ok, write_to};
use support::{Client, DEADLINE, Folder, Running, library};

/// Start of a shell script that prints the head of a text response.
const SHELL: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n";

/// Resources of this process.
#[derive(Debug, PartialEq, Eq)]
struct ProcessResources {
    /// Names, sorted.
    threads: Vec<String>,
    /// Contents of `/proc/PID/stat` of each child process.
    children: BTreeSet<String>,
    /// Target of each descriptor, sorted.
    descriptors: Vec<PathBuf>,
}

/// Prefix of the names of the threads that belong to the test itself, such as those of its upstreams.
const TEST_THREAD_PREFIX: &str = "t-";

fn resources() -> ProcessResources {
    let entries = |path: &str| fs::read_dir(path).expect(path).flatten();
    let name = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("comm")).ok();
    let names = entries("/proc/self/task").filter_map(name);
    let names = names.map(|name| name.trim_end().to_owned());
    let mut threads: Vec<String> = names.filter(|name| !name.starts_with(TEST_THREAD_PREFIX)).collect();
    threads.sort();
    let own = format!(" {} ", std::process::id());
    let children = entries("/proc").filter_map(|entry| {
        // The format is `pid (name) state ppid …`. The name can contain spaces and parentheses; the state is a letter.
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let after = stat.rsplit_once(')')?.1;
        let is_ours = format!("{} ", after.get(2..)?).starts_with(&own);
        is_ours.then_some(stat)
    });
    let descriptors = entries("/proc/self/fd").filter_map(|entry| fs::read_link(entry.path()).ok());
    // This function itself has a descriptor of `/proc` open.
    let mut descriptors: Vec<_> = descriptors.filter(|path| !path.starts_with("/proc")).collect();
    descriptors.sort();
    ProcessResources {
        threads,
        children: children.collect(),
        descriptors,
    }
}

fn folder() -> Folder {
    let folder = Folder::with(&[
        ("www/index.html", "a page"),
        ("www/page.php", "<?php echo getmypid();"),
        // This program starts a background process that is still running after the response.
        (
            "www/cgi-bin/pid.sh",
            &format!("{SHELL}sleep 1000 >/dev/null 2>&1 &\necho $!\n"),
        ),
        ("www/cgi-bin/held.sh", &format!("{SHELL}echo $$\nexec sleep 1000\n")),
    ]);
    for path in ["", "www/cgi-bin/pid.sh", "www/cgi-bin/held.sh"] {
        fs::set_permissions(folder.path(path), fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    folder
}

fn pid(text: &str) -> Pid {
    let number = text.trim().parse().ok();
    number
        .and_then(Pid::from_raw)
        .unwrap_or_else(|| panic!("not a process id: {text}"))
}

#[test]
fn a_stopped_server_leaves_no_threads_children_or_descriptors() {
    let (mirrored, copies_received) = mpsc::channel();
    let upstream = Upstream::start(|_, stream| {
        write_to(stream, ok("proxied"));
        Next::Keep
    });
    let copies = Upstream::start(move |_, stream| {
        let _ = mirrored.send(());
        write_to(stream, ok(""));
        Next::Keep
    });
    let library = library::plain().display().to_string();
    let folder = folder();
    // The first Tokio runtime opens a socket pair for signals, which remains open until the process exits.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    drop(runtime.expect("a runtime"));
    let before = wait_for(|_| true);

    let port = upstream
        .url()
        .rsplit_once(':')
        .map(|(_, port)| port.to_owned())
        .expect("a port");
    let text = format!(
        "[server]\nworkers = 2\nblocking_threads = 2\nstate = \"state\"\nevents = {{ wait = \"20ms\", connections = 16 }}\n\
         [log]\nerrors = \"errors.log\"\naccess = \"access.log\"\n[limits]\nshutdown = \"100ms\"\n\
         [site.\"app.localhost\"]\nlisten = \"127.0.0.2:0\"\nroot = \"www\"\ntls = \"local\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"auto\"\ncgi = \"/cgi-bin\"\n\
         [site.default.route.\"/proxy/*\"]\n\
         proxy = {{ to = [\"{url}\", \"http://localhost:{port}\"], balance = \"round_robin\", \
         health = {{ path = \"/\", interval = \"100ms\" }}, mirror = {{ to = \"{copies}\" }} }}\n\
         [site.default.route.\"/hello/*\"]\ncontroller = \"{library}:hello\"\n\
         [site.default.route.\"/isolated/*\"]\ncontroller = \"{library}:hello\"\nisolate = true\n",
        url = upstream.url(),
        copies = copies.url(),
    );
    let server = Running::start(folder, &text);
    let address = server.addresses()[0];
    let mut client = Client::to(address);
    assert_eq!(client.get("/index.html").text(), "a page");
    for _ in 0..4 {
        assert_eq!(client.get("/proxy/x").text(), "proxied");
    }
    copies_received.recv_timeout(DEADLINE).expect("a copy");
    for path in ["/hello/", "/isolated/"] {
        assert_eq!(client.get(path).text(), "hello from one");
    }
    let processes = [
        pid(&client.get("/page.php").text()),
        pid(&client.get("/cgi-bin/pid.sh").text()),
    ];
    // This request is in progress when the server stops, so it is aborted.
    client.send("GET /cgi-bin/held.sh HTTP/1.1\r\nHost: a\r\n\r\n");
    let names = [
        "rn-upstreams",
        "rn-mirror",
        "rn-cgi",
        "rn-isolated",
        "rn-php",
        "rn-certs",
        "rn-cache",
        "rn-log",
    ];
    let has_all = |resources: &ProcessResources| names.iter().all(|name| resources.threads.iter().any(|n| n == name));
    // A new thread has the name of its parent at first.
    let while_running = wait_for(has_all);
    assert!(has_all(&while_running), "{while_running:?}");
    assert!(
        while_running.children.len() > before.children.len(),
        "{while_running:?}"
    );

    let (server, folder) = server.take();
    server.stop();
    drop(client);
    let after = wait_for(|resources| *resources == before);
    assert_eq!(after.threads, before.threads);
    assert_eq!(after.children, before.children);
    assert_eq!(after.descriptors, before.descriptors);
    for process in processes {
        assert!(is_gone(process), "{process:?} still runs");
    }
    drop(folder);
}

/// Polls the resources of the process until the condition holds or the deadline has passed, and returns them. A joined
/// thread and the connections of the test's upstreams disappear from `/proc` with a short delay.
fn wait_for(condition: impl Fn(&ProcessResources) -> bool) -> ProcessResources {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let resources = resources();
        if condition(&resources) || Instant::now() >= deadline {
            return resources;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a process has exited. Returns false at the deadline. The wait is needed because a process that is not a
/// child of this process remains a zombie until its parent reaps it.
fn is_gone(process: Pid) -> bool {
    let deadline = Instant::now() + DEADLINE;
    while test_kill_process(process).is_ok() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    test_kill_process(process).is_err()
}
