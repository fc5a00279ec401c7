//! Runs the built program in a folder of its own: until it exits, or as a server whose output is read line by line.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit of any step, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Temporary folder with files, in which the program is started.
pub struct ProgramFolder(tempfile::TempDir);

/// Output and exit code of a program that has ended.
#[derive(Debug)]
pub struct ProgramOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl ProgramFolder {
    /// Creates the folder with these files, given as relative path and contents.
    pub fn new(files: &[(&str, &str)]) -> ProgramFolder {
        let dir = ProgramFolder(tempfile::tempdir().unwrap());
        for (name, content) in files {
            dir.write(name, content);
        }
        dir
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocknet"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("ROCKNET_SOCKET", self.path().join("control.sock"))
            .env_remove("SUDO_USER")
            .env_remove("ROCKNET_LOG")
            .env_remove("NO_COLOR");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> ProgramOutput {
        self.run_with(arguments, "")
    }

    /// Like [`ProgramFolder::run`], but starts `program` with the command line as its last arguments.
    pub fn run_by(&self, program: &[&str], arguments: &[&str]) -> ProgramOutput {
        ProgramFolder::finished(self.command_by(program, arguments), "")
    }

    /// Runs the program until it exits, with `input` on standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> ProgramOutput {
        ProgramFolder::finished(self.command(arguments), input)
    }

    fn finished(mut command: Command, input: &str) -> ProgramOutput {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses its input exits before it has read all of the input.
        let written = child.stdin.take().unwrap().write_all(input.as_bytes());
        assert!(
            written.is_ok() || written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe),
            "the input could not be written"
        );
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        ProgramOutput {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Starts a server and waits until it has printed its start-up block, whose last line mentions `Ctrl+C`.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        ProgramFolder::started(self.command(arguments))
    }

    /// Like [`ProgramFolder::serve`], but starts `program` with the command line of the server as its last arguments.
    /// `program` must execute them in place of itself, so that [`Server::id`] is the process of the server.
    pub fn serve_by(&self, program: &[&str], arguments: &[&str]) -> Server {
        ProgramFolder::started(self.command_by(program, arguments))
    }

    fn command_by(&self, program: &[&str], arguments: &[&str]) -> Command {
        let itself = self.command(arguments);
        let mut command = Command::new(program[0]);
        command
            .args(&program[1..])
            .arg(itself.get_program())
            .args(itself.get_args());
        for (name, value) in itself.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(self.path());
        command
    }

    /// Starts a server as the successor of a process at the other end of `channel`. Returns at once, so the server has
    /// no start-up block.
    pub fn serve_after(&self, arguments: &[&str], channel: OwnedFd) -> Server {
        let mut command = self.command(arguments);
        command.env("ROCKNET_TAKEOVER", "1").stdin(channel);
        ProgramFolder::spawned(command)
    }

    fn started(mut command: Command) -> Server {
        command.stdin(Stdio::piped());
        let mut server = ProgramFolder::spawned(command);
        while !server.banner.contains("Ctrl+C") {
            let line = server.out.next(&server.err);
            server.banner.push_str(&line);
            server.banner.push('\n');
        }
        server
    }

    /// Starts a server whose standard input is set.
    fn spawned(mut command: Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        let input = child.stdin.take();
        Server {
            child,
            out,
            err,
            input,
            banner: String::new(),
        }
    }
}

/// Lines of an output stream, which a thread reads as they are printed.
pub struct Lines(Receiver<String>);

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Lines {
        let (sender, lines) = channel();
        thread::spawn(move || {
            BufReader::new(stream)
                .lines()
                .map_while(Result::ok)
                .all(|line| sender.send(line).is_ok())
        });
        Lines(lines)
    }

    /// Waits for the next line. If none is printed in time, the panic message contains the lines of `other`.
    fn next(&self, other: &Lines) -> String {
        let Ok(line) = self.0.recv_timeout(TIMEOUT) else {
            panic!(
                "no line was printed; the other stream printed: {:?}",
                other.0.try_iter().collect::<Vec<_>>()
            );
        };
        line
    }
}

/// A running server. It is killed when dropped.
pub struct Server {
    child: Child,
    out: Lines,
    err: Lines,
    pub input: Option<ChildStdin>,
    /// The start-up block that the server printed.
    pub banner: String,
}

impl Server {
    /// Host and port of the first URL printed.
    pub fn authority(&self) -> &str {
        let (_, rest) = self.banner.split_once("http://").expect(&self.banner);
        rest.split('/').next().unwrap()
    }

    /// Process ID of the server.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn type_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// Reads lines of standard output until one contains `part`, and returns it.
    pub fn line_with(&self, part: &str) -> String {
        loop {
            let line = self.out.next(&self.err);
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Reads lines of the log on standard error until one contains `part`, and returns it.
    pub fn logged(&self, part: &str) -> String {
        loop {
            let line = self.err.next(&self.out);
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Returns everything on standard error up to the line that contains `part`.
    pub fn logged_until(&self, part: &str) -> String {
        let mut all = String::new();
        while !all.contains(part) {
            all.push_str(&self.err.next(&self.out));
            all.push('\n');
        }
        all
    }

    pub fn connect(&self) -> TcpStream {
        // Names below `.test` do not resolve.
        let address = match self.authority().split_once(".test:") {
            Some((_, port)) => format!("127.0.0.1:{port}"),
            None => self.authority().to_owned(),
        };
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends a GET request and returns the whole response.
    pub fn get(&self, path: &str) -> String {
        self.get_from(self.authority(), path)
    }

    /// Like [`Server::get`], with another host name.
    pub fn get_from(&self, host: &str, path: &str) -> String {
        let mut stream = self.connect();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Stops the server, and returns the lines that it has printed on standard output since the last one that was read.
    pub fn printed_until_stop(self) -> Vec<String> {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + TIMEOUT;
        let mut lines = Vec::new();
        loop {
            match self
                .out
                .0
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => return lines,
                Err(RecvTimeoutError::Timeout) => panic!("the server did not exit: {lines:?}"),
            }
        }
    }

    /// Returns the lines of the log that were not read yet, once the server has exited.
    pub fn rest_of_log(self) -> Vec<String> {
        let deadline = Instant::now() + TIMEOUT;
        let next = || {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.err.0.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) => panic!("the server did not exit"),
                line => line.ok(),
            }
        };
        std::iter::from_fn(next).collect()
    }

    /// Waits until the process exits, also if a successor uses its output further, and returns its exit code.
    pub fn wait_for_exit(&mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the server did not exit");
            thread::yield_now();
        }
    }

    /// Waits until the server exits and returns its exit code.
    pub fn wait(mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        // Both streams end when the process exits.
        for lines in [&self.out, &self.err] {
            while lines
                .0
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .is_ok()
            {}
        }
        let status: Option<ExitStatus> = self.child.try_wait().unwrap();
        match status {
            Some(status) => status.code(),
            None if Instant::now() < deadline => self.child.wait().unwrap().code(),
            None => panic!("the server did not exit"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
