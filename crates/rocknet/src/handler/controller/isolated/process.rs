//! One process that runs a library: starts and ends it, logs its output, and keeps the connections to it.

use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rocknet_controller::host::frame::ServerMessage;
use rocknet_io::child::{bind_to_thread, signal_group};
use rocknet_io::fd_channel::{self, FdChannel};
use rustix::process::Signal;

use super::control::{self, ChildReport};
use super::lock::lock;
use super::permits::{CallPermit, MAX_CALLS};
use super::program::{RUN_LIBRARY_ARGUMENT, program};
use crate::handler::controller::response_builder;

/// Maximum number of idle connections, each with a waiting thread of the process. It equals the maximum number of
/// calls. With fewer idle connections, each further request creates a connection and a thread, which costs more than
/// the rest of the request.
const MAX_IDLE: usize = MAX_CALLS;
/// Maximum bytes of a line of the process's output. The rest of a longer line is dropped.
const MAX_LOG_LINE: usize = 2 * 1024;
/// Maximum number of lines of output per second: a library that prints for every request must not fill the disk.
const MAX_LINES_PER_SECOND: u32 = 100;
/// Maximum bytes of output per read.
const READ_SIZE: usize = 4 * 1024;
/// Time for a process to exit after it has closed its socket. The process is then killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval at which the exit of a process is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time after a lost connection within which a dying process exits. A process that is still alive afterwards had
/// another reason to close the connection.
const SUSPECT_TIMEOUT: Duration = Duration::from_millis(200);

/// A process, from the point of view of requests.
pub struct ProcessHandle {
    /// Control channel to the process.
    control: FdChannel,
    /// Connections that no request uses, kept for further requests.
    idle: Mutex<Vec<UnixStream>>,
    /// Abandoned calls that have not returned.
    abandoned: Mutex<Vec<AbandonedCall>>,
    /// True once the process accepts no more requests.
    is_closed: AtomicBool,
    /// True after a connection was lost: the process is probably about to exit, so new requests wait until the
    /// supervisor has checked it.
    is_suspect: AtomicBool,
}

/// A call whose request was abandoned.
pub struct AbandonedCall {
    /// Connection of the call, which the process closes when the call returns.
    pub connection: UnixStream,
    /// Time when the request was abandoned.
    pub since: Instant,
    /// Held until the call returns, because it occupies a thread of the process.
    _permit: CallPermit,
}

impl ProcessHandle {
    /// Returns an idle connection, or a new one.
    ///
    /// # Errors
    ///
    /// Fails with `NotConnected` if the process accepts no more requests, and with `WouldBlock` if the control channel
    /// is full. Other errors mean that no connection could be created.
    pub fn connection(&self) -> io::Result<UnixStream> {
        if self.is_closed() {
            return Err(ErrorKind::NotConnected.into());
        }
        loop {
            let Some(kept) = lock(&self.idle).pop() else { break };
            // `WouldBlock` means that the connection is open. Any other result means that it was closed, because the
            // process has ended.
            if matches!((&kept).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock) {
                return Ok(kept);
            }
        }
        let (server_end, child_end) = fd_channel::stream_pair()?;
        server_end.set_nonblocking(true)?;
        control::serve(&self.control, child_end.as_fd())?;
        Ok(server_end)
    }

    /// Keeps the connection of a finished request for the next one.
    pub fn keep(&self, connection: UnixStream) {
        let mut idle = lock(&self.idle);
        if idle.len() < MAX_IDLE && !self.is_closed() {
            idle.push(connection);
        }
    }

    /// Abandons the call on this connection.
    pub fn abandon(&self, connection: UnixStream, permit: CallPermit) {
        // Shuts down the receiving side, so that the reply of the process fails. The process then closes the
        // connection, which shows that the call has returned.
        let _ = connection.shutdown(std::net::Shutdown::Read);
        // A reply that was sent before the shutdown does not fail, and the process then waits for the next message.
        // `Give`, the request for a piece of the response body, ends this wait. If the process waits for another
        // message, `Give` is a protocol error, and the process closes the connection. If it waits for `Give`, the
        // controller produces one more piece, and sending the piece fails. Other messages could be accepted instead:
        // `Begin` could start another call, and `End` could make a partial request body look complete.
        let mut frame = Vec::new();
        if ServerMessage::Give.write(&mut frame).is_ok() {
            let _ = (&connection).write(&frame);
        }
        let since = Instant::now();
        lock(&self.abandoned).push(AbandonedCall {
            connection,
            since,
            _permit: permit,
        });
    }

    /// Returns the abandoned calls that have not returned.
    pub fn abandoned(&self) -> &Mutex<Vec<AbandonedCall>> {
        &self.abandoned
    }

    /// Returns true if the process accepts no more requests.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Returns true if a connection was lost and the process may be about to exit.
    pub fn is_suspect(&self) -> bool {
        self.is_suspect.load(Ordering::Acquire)
    }

    /// Marks the process as about to exit, or as alive.
    pub fn set_suspect(&self, is_suspect: bool) {
        self.is_suspect.store(is_suspect, Ordering::Release);
    }

    /// Rejects new requests. The process exits after its requests have finished.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.control.shut_down();
        lock(&self.idle).clear();
    }
}

/// A process, from the point of view of its supervisor.
pub struct ChildProcess {
    child: Child,
    /// Standard output and standard error, until they are closed.
    output: Option<PipeReader>,
    output_log: OutputLog,
    /// True once the process was waited for and what was left of its process group was killed.
    has_ended: bool,
    /// Time of the start.
    pub since: Instant,
    /// State shared with requests.
    pub process: Arc<ProcessHandle>,
}

impl ChildProcess {
    /// Starts a process that loads `library`, the private copy of a library file. `name` is the configured path of that
    /// file, for logs and error messages. The calling thread must outlive the process, because the process is killed
    /// when the thread ends.
    pub fn start(library: impl AsFd, name: &Path) -> io::Result<ChildProcess> {
        let program =
            program().ok_or_else(|| io::Error::new(ErrorKind::NotFound, "this program cannot run libraries"))?;
        let (control, input) = FdChannel::pair()?;
        let (output, writer) = io::pipe()?;
        let mut command = Command::new(program);
        // The last argument shows the library in lists of processes.
        command.arg0("rocknet").arg(RUN_LIBRARY_ARGUMENT).arg(name);
        command
            .stdin(input)
            .stdout(writer.try_clone()?)
            .stderr(OwnedFd::from(writer));
        // `None`: the process runs as the user of the server.
        bind_to_thread(&mut command, None, Signal::KILL);
        let child = command.spawn()?;
        // Closes the child's ends of the control channel and of the output pipe in this process.
        drop(command);
        let running = ChildProcess {
            child,
            output: Some(output),
            output_log: OutputLog::new(name),
            has_ended: false,
            since: Instant::now(),
            process: Arc::new(ProcessHandle {
                control,
                idle: Mutex::default(),
                abandoned: Mutex::default(),
                is_closed: AtomicBool::new(false),
                is_suspect: AtomicBool::new(false),
            }),
        };
        // An error is ignored: it means that the process has already exited, which the supervisor detects.
        let _ = control::load(&running.process.control, library.as_fd(), &name.to_string_lossy());
        Ok(running)
    }

    /// Returns the control channel to the process.
    pub fn control(&self) -> &FdChannel {
        &self.process.control
    }

    /// Returns the pipe with the output of the process; `None` once the process has closed it.
    pub fn output(&self) -> Option<&PipeReader> {
        self.output.as_ref()
    }

    /// Returns the next event without blocking; `None` if the process has closed the channel or sent an invalid
    /// message. Log lines are logged here.
    pub fn next_event(&mut self) -> Option<ProcessEvent> {
        match ChildReport::recv(&self.process.control) {
            Ok(Some(ChildReport::Log(level, line))) => {
                response_builder::log(level, &line);
                Some(ProcessEvent::Logged)
            }
            Ok(Some(report)) => Some(ProcessEvent::Report(report)),
            Ok(None) => None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Some(ProcessEvent::Idle),
            Err(_) => None,
        }
    }

    /// Logs the available output. Must be called only if output or its end is ready, because it blocks otherwise.
    pub fn forward_output(&mut self) {
        let mut buffer = [0; READ_SIZE];
        match self.output.as_mut().map(|output| output.read(&mut buffer)) {
            Some(Ok(read)) if read > 0 => self.output_log.add(&buffer[..read]),
            Some(_) => self.output = None,
            None => {}
        }
    }

    /// Blocks until the process exits, at most for `SUSPECT_TIMEOUT`. Returns true if it is still alive then.
    pub fn stays_alive(&mut self) -> bool {
        self.wait_for_exit(SUSPECT_TIMEOUT);
        self.is_alive()
    }

    /// Blocks until the process exits, at most for `timeout`.
    fn wait_for_exit(&mut self, timeout: Duration) {
        let until = Instant::now() + timeout;
        while self.is_alive() && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns true if the process is alive.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits up to `timeout` for the process to exit, then kills what is left of its process group. Returns the exit
    /// status, or a successful status if it cannot be determined.
    pub fn end(&mut self, timeout: Duration) -> ExitStatus {
        self.wait_for_exit(timeout);
        let _ = signal_group(self.child.id(), Signal::KILL);
        let status = self.child.wait();
        self.has_ended = true;
        self.process.close();
        lock(&self.process.abandoned).clear();
        self.forward_remaining_output();
        status.unwrap_or_default()
    }

    /// Waits up to `EXIT_TIMEOUT` for the exit of a process that has closed its socket, then kills what is left of its
    /// process group. Returns the exit status.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        self.end(EXIT_TIMEOUT)
    }

    /// Logs the remaining output in the pipe. Does not wait for the end of the pipe, because another process may keep
    /// its other end open.
    fn forward_remaining_output(&mut self) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        /// Enough reads for a full pipe, which holds 64 KiB by default.
        const MAX_READS: usize = 16;
        for _ in 0..MAX_READS {
            let Some(output) = &self.output else { return };
            let mut poll_fds = [PollFd::new(output, PollFlags::IN)];
            if !matches!(poll(&mut poll_fds, Some(&Timespec::default())), Ok(ready) if ready > 0) {
                return;
            }
            self.forward_output();
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // A process that has exited by itself may have left members of its group and output.
        if !self.has_ended {
            self.end(Duration::ZERO);
        }
    }
}

/// An event of a process.
pub enum ProcessEvent {
    /// Nothing was received.
    Idle,
    /// A line was received and logged.
    Logged,
    /// A report was received.
    Report(ChildReport),
}

/// Writes the output of the process to the log, line by line.
struct OutputLog {
    /// Configured path of the library.
    library: String,
    /// Bytes of the current line.
    line: Vec<u8>,
    /// Start of the current second.
    second: Instant,
    /// Number of lines in the current second.
    count: u32,
}

impl OutputLog {
    fn new(name: &Path) -> OutputLog {
        OutputLog {
            library: name.display().to_string(),
            line: Vec::new(),
            second: Instant::now(),
            count: 0,
        }
    }

    /// Adds output, and logs each line that is complete.
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => self.log_line(),
                _ if self.line.len() < MAX_LOG_LINE => self.line.push(byte),
                _ => {}
            }
        }
    }

    /// Logs the current line, up to a maximum number of lines per second. Above the maximum, logs once per second
    /// that lines are dropped.
    fn log_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.second.elapsed() >= Duration::from_secs(1) {
            (self.second, self.count) = (Instant::now(), 0);
        }
        self.count = self.count.saturating_add(1);
        let library = &self.library;
        match self.count {
            ..=MAX_LINES_PER_SECOND => tracing::warn!(%library, "{}", String::from_utf8_lossy(line.trim_ascii())),
            count if count == MAX_LINES_PER_SECOND + 1 => {
                tracing::warn!(%library, "the process prints more than {MAX_LINES_PER_SECOND} lines per second; further lines are dropped");
            }
            _ => {}
        }
    }
}

impl Drop for OutputLog {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.log_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use rocknet_io::child::group_has_members;

    use super::*;

    #[test]
    fn the_drop_of_a_process_that_has_exited_kills_its_group_and_reads_its_output() {
        let (output, writer) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 >/dev/null 2>&1 & echo printed"]);
        command.stdin(std::process::Stdio::null()).stdout(writer);
        bind_to_thread(&mut command, None, Signal::KILL);
        let child = command.spawn().unwrap();
        drop(command);
        let copy = output.try_clone().unwrap();
        let mut running = ChildProcess {
            child,
            output: Some(output),
            output_log: OutputLog::new(Path::new("l.so")),
            has_ended: false,
            since: Instant::now(),
            process: Arc::new(ProcessHandle {
                control: FdChannel::pair().unwrap().0,
                idle: Mutex::default(),
                abandoned: Mutex::default(),
                is_closed: AtomicBool::new(false),
                is_suspect: AtomicBool::new(false),
            }),
        };
        running.wait_for_exit(Duration::from_secs(30));
        let group = running.child.id();
        assert!(!running.is_alive() && group_has_members(group));
        drop(running);
        let until = Instant::now() + Duration::from_secs(30);
        while group_has_members(group) {
            assert!(Instant::now() < until, "the group has members");
            std::thread::yield_now();
        }
        // Nothing is left in the pipe, whose writers have ended.
        assert_eq!((&copy).read(&mut [0; 1]).unwrap(), 0);
    }
}
