//! Runs the built program as a child process: starts it on a port that the kernel chooses, queries it through its
//! console, and sends it signals.

#![allow(dead_code)] // each test binary uses a part of this module

pub mod client;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub use client::{Client, ReceivedResponse};

/// Time limit of every wait, ample for a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A folder with `www` in it, and the parts of its configuration.
pub struct Setup {
    pub folder: TempDir,
    /// Keys of `[server]`, and tables before the site, such as `[limits]`.
    pub tables: String,
    /// Further keys of the site, and tables after it.
    pub keys: String,
    /// The port to listen on; 0 leaves it to the kernel.
    pub port: u16,
    /// `http` or `https`. The latter needs the key `tls`.
    pub scheme: &'static str,
    /// A program that starts the server, such as strace, with its arguments.
    pub under: Vec<String>,
}

impl Setup {
    pub fn new() -> Setup {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("www")).expect("a folder");
        let setup = Setup {
            folder,
            tables: String::new(),
            keys: String::new(),
            port: 0,
            scheme: "http",
            under: Vec::new(),
        };
        setup.file("small.txt", "Hello, world!");
        setup
    }

    pub fn tables(mut self, tables: &str) -> Setup {
        self.tables = tables.to_owned();
        self
    }

    pub fn keys(mut self, keys: &str) -> Setup {
        self.keys = keys.to_owned();
        self
    }

    pub fn under(mut self, command: &[&str]) -> Setup {
        self.under = command.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Path of a file of the site.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("www").join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file");
    }

    /// Creates a sparse file of this many zeros.
    pub fn sparse(&self, name: &str, size: u64) {
        fs::File::create(self.path(name))
            .and_then(|file| file.set_len(size))
            .expect("a sparse file");
    }

    pub fn start(self) -> Server {
        Server::start(self)
    }
}

/// A running server. It is killed when dropped.
pub struct Server {
    pub setup: Setup,
    process: Child,
    pid: Pid,
    address: SocketAddr,
    input: ChildStdin,
    /// Lines of standard output.
    lines: Receiver<String>,
    /// File that receives standard error.
    errors: PathBuf,
}

/// Figures that `status` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Connections that are open.
    pub open: u64,
    /// Connections since the start.
    pub total: u64,
    /// Records that were lost before they reached the access log.
    pub lost_records: u64,
}

/// The program under test: the one of this build, or the one that `ROCKNET_PROGRAM` names.
fn program() -> PathBuf {
    std::env::var_os("ROCKNET_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_rocknet").into(), PathBuf::from)
}

impl Server {
    fn start(setup: Setup) -> Server {
        let folder = setup.folder.path();
        let text = format!(
            "[server]\nworkers = 1\nblocking_threads = 2\n{}\n[site.default]\nlisten = \"{}://127.0.0.1:{}\"\nroot = \"www\"\n{}\n",
            setup.tables, setup.scheme, setup.port, setup.keys
        );
        fs::write(folder.join("rocknet.toml"), text).expect("a configuration");
        let errors = folder.join("errors.txt");
        let program = program();
        let mut command = match setup.under.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&program);
                command
            }
            None => Command::new(&program),
        };
        command
            .args(["run", "--console", "-c"])
            .arg(folder.join("rocknet.toml"));
        command
            .env("ROCKNET_SOCKET", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&errors).expect("a file"));
        let mut process = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let input = process.stdin.take().expect("a pipe");
        let output = process.stdout.take().expect("a pipe");
        let (line, lines) = channel();
        thread::spawn(move || {
            for read in BufReader::new(output).lines().map_while(Result::ok) {
                if line.send(read).is_err() {
                    return;
                }
            }
        });
        let pid = Pid::from_child(&process);
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut server = Server {
            setup,
            process,
            pid,
            address: nowhere,
            input,
            lines,
            errors,
        };
        let line = server.line_with("://");
        let port = line.split_once("://").and_then(|(_, rest)| {
            let digits: String = rest
                .split_once(':')?
                .1
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse().ok()
        });
        let port = port.unwrap_or_else(|| panic!("no port in {line:?}"));
        server.address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if !server.setup.under.is_empty() {
            server.pid = server.server_pid();
        }
        server
    }

    /// Reads lines of standard output until one contains `part`, and returns it.
    pub fn line_with(&self, part: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no line with {part:?} was printed; standard error: {}", self.errors())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("exited before {part:?} was printed; standard error: {}", self.errors())
                }
            }
        }
    }

    /// Returns all that the server has written to standard error.
    pub fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// Waits until standard error contains `part`, and returns all of standard error. The log is written by a separate
    /// thread, so a line can appear after the response that it belongs to.
    pub fn error_with(&self, part: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let message = self.errors();
            if message.contains(part) {
                return message;
            }
            assert!(
                Instant::now() < deadline,
                "no error with {part:?} was logged: {message}"
            );
            std::thread::yield_now();
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn connect(&self) -> Client {
        Client::to(self.address)
    }

    pub fn get(&self, path: &str) -> ReceivedResponse {
        self.connect().get(path)
    }

    /// Runs the console command `status`.
    pub fn status(&mut self) -> Status {
        // An unknown command is echoed in the reply, which marks the end of the output.
        self.input
            .write_all(b"status\nzzz\n")
            .expect("a server that reads commands");
        let mut status = Status {
            open: 0,
            total: 0,
            lost_records: 0,
        };
        loop {
            let line = self.line_with("");
            if line.starts_with("connections") {
                let mut numbers = line.split(", ").map(number);
                (status.open, status.total) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
            } else if line.contains("records lost") {
                status.lost_records = number(&line);
            } else if line.contains("zzz") {
                return status;
            }
        }
    }

    /// Polls `status` until `is_met` returns true. `what` describes the condition in the failure message.
    pub fn wait_for(&mut self, what: &str, is_met: impl Fn(Status) -> bool) -> Status {
        self.wait_for_within(DEADLINE, what, is_met)
    }

    /// Polls `status` as [`wait_for`](Self::wait_for) does, for at most `limit`.
    pub fn wait_for_within(&mut self, limit: Duration, what: &str, is_met: impl Fn(Status) -> bool) -> Status {
        let deadline = Instant::now() + limit;
        loop {
            let status = self.status();
            if is_met(status) {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "{what}: still {status:?}; errors: {}",
                self.errors()
            );
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("a process to signal");
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Stops all threads of the server while `act` runs. Everything that `act` sends is in the socket buffers when the
    /// server continues.
    pub fn stopped(&self, act: impl FnOnce()) {
        self.signal(Signal::STOP);
        let deadline = Instant::now() + DEADLINE;
        while !self.is_stopped() {
            assert!(Instant::now() < deadline, "the server did not stop on SIGSTOP");
            std::thread::yield_now();
        }
        act();
        self.signal(Signal::CONT);
    }

    /// Returns true if each thread of the server is stopped, by a signal or, under strace, by its tracer.
    fn is_stopped(&self) -> bool {
        let tasks = format!("/proc/{}/task", self.pid.as_raw_nonzero());
        let tasks = fs::read_dir(tasks).expect("the threads of a process");
        // A thread that has just exited has no `stat` file and is ignored.
        let mut states = tasks
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
        states.all(|stat| {
            let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
            state.is_some_and(|state| state.starts_with(['T', 't']))
        })
    }

    /// Resident memory in KiB.
    pub fn memory(&self) -> u64 {
        self.status_line("VmRSS:")
    }

    /// Peak of the resident memory in KiB.
    pub fn peak(&self) -> u64 {
        self.status_line("VmHWM:")
    }

    /// Returns the number in a line of `/proc/PID/status`. `name`: start of the line.
    fn status_line(&self, name: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find(|line| line.starts_with(name));
        number(line.expect("the memory of a process"))
    }

    fn proc(&self, name: &str) -> String {
        let path = format!("/proc/{}/{name}", self.pid.as_raw_nonzero());
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Number of open descriptors.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid.as_raw_nonzero()))
            .expect("the descriptors of a process")
            .count()
    }

    /// Returns the process of the server: this child or, if a program such as strace started the server, its only
    /// child.
    fn server_pid(&self) -> Pid {
        let name = program();
        let own = self.pid.as_raw_nonzero();
        if fs::read_link(format!("/proc/{own}/exe")).is_ok_and(|exe| exe == name) {
            return self.pid;
        }
        let children = self.proc(&format!("task/{own}/children"));
        let child = children
            .split_whitespace()
            .next()
            .and_then(|child| child.parse().ok())
            .and_then(Pid::from_raw);
        child.expect("the process of the server")
    }

    /// Waits until the server exits.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        // The pipe of standard output is closed when the process exits.
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the server did not exit; standard error: {}", self.errors()),
            }
        }
        self.process.wait().expect("a process to wait for")
    }

    /// Stops the server gracefully. Returns its exit status and all of standard error.
    pub fn stop(self) -> (ExitStatus, String) {
        let (_, status, errors) = self.end();
        (status, errors)
    }

    /// Stops the server gracefully and also returns its folder, so that the test can inspect the files.
    pub fn end(mut self) -> (Setup, ExitStatus, String) {
        self.signal(Signal::TERM);
        let status = self.wait();
        let errors = self.errors();
        // The setup is replaced, because no field can be moved out of a type that implements `Drop`.
        (std::mem::replace(&mut self.setup, Setup::new()), status, errors)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Parses the first number of a line, ignoring separators between its digits.
fn number(line: &str) -> u64 {
    let from = line.find(|c: char| c.is_ascii_digit()).unwrap_or(line.len());
    let digits = line[from..]
        .chars()
        .take_while(|c| !c.is_ascii_alphabetic() && *c != ' ');
    digits
        .filter(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap_or_default()
}
