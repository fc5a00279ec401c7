//! Upgrades of a running server: a new process takes over its sockets, or the old one continues.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use rocknet_testing::{Need, skip};
use rustix::process::{Pid, Signal, kill_process};

use crate::load::{Load, TIMEOUT, connect};
use crate::program::{ProgramFolder, Server};

/// Size of the file that is downloaded slowly. It is larger than the socket buffers.
const LARGE: u64 = 64 << 20;

/// A server whose successors end with the test.
struct Upgradable {
    dir: ProgramFolder,
    server: Server,
}

impl Upgradable {
    fn start(backend: &str) -> Upgradable {
        Upgradable::start_with(backend, &["run"])
    }

    fn start_with(backend: &str, arguments: &[&str]) -> Upgradable {
        let text = format!(
            "[server]\nworkers = 2\nbackend = \"{backend}\"\nstate = \"state\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n"
        );
        let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", &text)]);
        let large = fs::File::create(dir.path().join("www/large.bin")).expect("a file");
        large.set_len(LARGE).expect("a sparse file");
        let server = dir.serve(arguments);
        Upgradable { dir, server }
    }

    /// Process ID that the control API reports.
    fn process(&self) -> u32 {
        let status = self.dir.run(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.out).expect("a status");
        u32::try_from(status["pid"].as_u64().expect("a number")).expect("a process ID")
    }

    /// Runs an upgrade that succeeds, and returns the ID of the new process.
    #[track_caller]
    fn upgrade(&self) -> u32 {
        let before = self.process();
        let output = self.dir.run(&["upgrade"]);
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
        let now = self.process();
        assert_eq!(
            output.out,
            format!("process {now} has taken over from process {before}\n")
        );
        assert_ne!(now, before);
        now
    }

    /// Runs an upgrade that fails, and returns the reason.
    #[track_caller]
    fn failed_upgrade(&self, arguments: &[&str]) -> String {
        let before = self.process();
        let output = self.dir.run(&[&["upgrade"], arguments].concat());
        assert_eq!((output.code, output.out.as_str()), (Some(1), ""), "{output:?}");
        assert!(
            output
                .err
                .contains("the upgrade failed, and the server continues unchanged"),
            "{output:?}"
        );
        assert_eq!(self.process(), before);
        assert!(self.server.get("/").ends_with("home"));
        output.err
    }
}

impl Drop for Upgradable {
    fn drop(&mut self) {
        drop(KillAtEnd(&self.dir));
    }
}

/// Kills the process that serves `rocknet.toml` of a folder when dropped, because no [`Server`] does so after an
/// upgrade.
pub struct KillAtEnd<'a>(pub &'a ProgramFolder);

impl Drop for KillAtEnd<'_> {
    fn drop(&mut self) {
        let status = self.0.run(&["status", "--json"]);
        let status = serde_json::from_str::<serde_json::Value>(&status.out).ok();
        let process = status.and_then(|status| i32::try_from(status["pid"].as_i64()?).ok());
        if let Some(process) = process.and_then(Pid::from_raw) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Upgrades the server of `rocknet.toml` in a folder, and returns the ID of the new process.
#[track_caller]
pub fn upgrade(dir: &ProgramFolder, arguments: &[&str]) -> u32 {
    let output = dir.run(&[&["upgrade"], arguments].concat());
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
    let process = output
        .out
        .strip_prefix("process ")
        .and_then(|rest| rest.split(' ').next());
    process
        .and_then(|process| process.parse().ok())
        .unwrap_or_else(|| panic!("{output:?}"))
}

/// Waits until a process has ended.
#[track_caller]
pub fn wait_for_end(process: u32) {
    let deadline = Instant::now() + TIMEOUT;
    let stat = format!("/proc/{process}/stat");
    // A zombie has ended too: its parent is the test.
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < deadline, "process {process} did not end");
        thread::yield_now();
    }
}

fn no_request_is_lost(backend: &str) {
    let program = Upgradable::start(backend);
    let first = program.server.id();
    let authority = program.server.authority().to_owned();
    let load = Load::default();
    thread::scope(|scope| {
        let clients = load.start(scope, &authority);
        let mut download = connect(&authority);
        write!(
            download,
            "GET /large.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .expect("a request");
        download.read_exact(&mut [0; 1000]).expect("a part of the response");

        let second = program.upgrade();
        load.wait_for_requests();
        let third = program.upgrade();
        load.wait_for_requests();
        wait_for_end(second);
        assert!(
            Path::new(&format!("/proc/{first}/exe")).exists(),
            "the download is in progress"
        );

        let rest = std::io::copy(&mut download, &mut std::io::sink()).expect("the rest of the response");
        assert!(rest > LARGE - 1000, "{rest}");
        wait_for_end(first);
        assert_eq!(program.process(), third);
        drop(clients);
    });
    let stopped = program.dir.run(&["stop"]);
    assert_eq!(stopped.out, "stopping after the responses in progress\nstopped\n");
    assert!(!program.dir.path().join("control.sock").exists());
    assert!(TcpStream::connect(&authority).is_err());
}

#[test]
fn no_request_is_lost_with_epoll() {
    no_request_is_lost("epoll");
}

#[test]
fn no_request_is_lost_with_the_automatic_backend() {
    no_request_is_lost("auto");
}

#[test]
fn no_request_is_lost_with_io_uring() {
    match rocknet_io::runtime::io_uring_unavailable() {
        None => no_request_is_lost("io_uring"),
        Some(trouble) => skip(Need::IoUring, &trouble),
    }
}

#[test]
fn the_backend_may_change() {
    if let Some(trouble) = rocknet_io::runtime::io_uring_unavailable() {
        return skip(Need::IoUring, &trouble);
    }
    let program = Upgradable::start("epoll");
    let text = program.dir.read("rocknet.toml");
    for backend in ["io_uring", "epoll"] {
        program
            .dir
            .write("rocknet.toml", &text.replace("\"epoll\"", &format!("\"{backend}\"")));
        program.upgrade();
        assert!(program.server.get("/").ends_with("home"));
    }
}

#[test]
fn a_signal_upgrades_the_server() {
    let program = Upgradable::start("auto");
    let first = program.server.id();
    program.server.signal(Signal::USR2);
    program.server.logged("this process ends after its connections");
    wait_for_end(first);
    assert_ne!(program.process(), first);
    assert!(program.server.get("/").ends_with("home"));
}

#[test]
fn the_server_continues_if_the_new_process_fails() {
    let program = Upgradable::start("auto");
    let path = |name: &str| program.dir.path().join(name).to_str().expect("a path").to_owned();
    program.dir.write("text", "no program");

    let missing = program.failed_upgrade(&["--binary", &path("missing")]);
    assert!(missing.contains("No such file"), "{missing}");
    let text = program.failed_upgrade(&["--binary", &path("text")]);
    assert!(text.contains("it is not an executable file"), "{text}");
    let other = program.failed_upgrade(&["--binary", "/bin/false"]);
    assert!(other.contains("ended before it was ready: exit status: 1"), "{other}");

    // The shell gets the arguments of the server. It executes the file that the first one, `run`, names.
    program.dir.write("run", "exec sleep 1000\n");
    let hanging = program.failed_upgrade(&["--binary", "/bin/sh", "--timeout", "1"]);
    assert!(hanging.contains("was not ready within 1 s"), "{hanging}");

    let valid = program.dir.read("rocknet.toml");
    program.dir.write("rocknet.toml", &format!("{valid}rot = 1\n"));
    let invalid = program.failed_upgrade(&[]);
    assert!(invalid.contains("unknown key `rot`"), "{invalid}");
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = format!(
        "[site.other]\nlisten = \"{}\"\nroot = \"www\"\n",
        other.local_addr().expect("an address")
    );
    program.dir.write("rocknet.toml", &format!("{valid}{taken}"));
    let taken = program.failed_upgrade(&[]);
    assert!(taken.contains("in use"), "{taken}");

    program.dir.write("rocknet.toml", &valid);
    program.upgrade();
}

#[test]
fn a_typed_reload_during_an_upgrade_is_refused() {
    let mut program = Upgradable::start_with("auto", &["run", "--console"]);
    // The shell that takes the place of the new process waits for a line in the FIFO.
    program.dir.write("run", "read line <fifo\nexit 1\n");
    let fifo = program.dir.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    let (dir, server) = (&program.dir, &mut program.server);
    thread::scope(|scope| {
        let upgrade = scope.spawn(|| dir.run(&["upgrade", "--binary", "/bin/sh"]));
        server.logged("upgrading to");
        server.type_line("reload");
        server.logged("not reloaded: an upgrade is in progress");
        let undo = dir.run(&["config", "undo"]);
        assert!(undo.err.contains("refused: an upgrade is in progress"), "{undo:?}");
        assert!(!undo.err.contains("--discard-edits"), "{undo:?}");
        fs::write(&fifo, "\n").expect("a reader");
        let output = upgrade.join().expect("an end");
        assert!(output.err.contains("exit status: 1"), "{output:?}");
    });
    server.type_line("reload");
    server.line_with("is reloaded");
}

#[test]
fn a_server_without_a_configuration_is_not_upgraded() {
    let dir = ProgramFolder::new(&[("index.html", "home")]);
    let server = dir.serve(&["serve", "--listen", "0"]);
    let output = dir.run(&["upgrade"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output
            .err
            .contains("only a server with a configuration file can be upgraded"),
        "{output:?}"
    );
    assert!(server.get("/").ends_with("home"));
}

#[test]
fn the_number_of_workers_and_the_addresses_may_change() {
    let program = Upgradable::start("auto");
    let text = program.dir.read("rocknet.toml");
    for workers in [4, 1] {
        let text = text.replace("workers = 2", &format!("workers = {workers}"));
        let socket = format!("[site.socket{workers}]\nlisten = \"unix:{workers}.sock\"\nroot = \"www\"\n");
        program.dir.write("rocknet.toml", &format!("{text}{socket}"));
        program.upgrade();
        assert!(program.server.get("/").ends_with("home"));
        assert!(program.dir.path().join(format!("{workers}.sock")).exists());
    }
    assert!(!program.dir.path().join("4.sock").exists());
}

#[test]
fn followed_logs_go_on_after_an_upgrade() {
    let program = Upgradable::start("auto");
    let mut logs = Command::new(env!("CARGO_BIN_EXE_rocknet"))
        .args(["logs", "-f"])
        .current_dir(program.dir.path())
        .env("ROCKNET_SOCKET", program.dir.path().join("control.sock"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut lines = BufReader::new(logs.stdout.take().expect("a pipe"))
        .lines()
        .map_while(Result::ok);
    success(&program.dir, "reload");
    assert!(lines.any(|line| line.contains("is reloaded")));
    let second = program.upgrade();
    assert!(lines.any(|line| line.contains(&format!("process {second} has taken over"))));
    success(&program.dir, "reload");
    assert!(lines.any(|line| line.contains("is reloaded")));
    success(&program.dir, "stop");
    let output = logs.wait_with_output().expect("the end");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*error),
        (Some(1), "error: the server has stopped\n")
    );
}

#[track_caller]
fn success(dir: &ProgramFolder, command: &str) {
    let output = dir.run(&[command]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
}
