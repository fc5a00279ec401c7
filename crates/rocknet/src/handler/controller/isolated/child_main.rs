//! The main function of the process of an isolated library: loads it, and calls it on one thread per connection.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

use rocknet_controller::host::frame::{
    self, FrameReader, InvalidFrame, ProcessMessage, ReceivedRequest, ServerMessage,
};
use rocknet_controller::host::{self, CallError, LoadedLibrary, Progress, RequestState, ResponseWriter};
use rocknet_controller::{Level, Refused};
use rocknet_io::fd_channel::FdChannel;

use super::control::{self, ChildCommand, ChildReport, ControllerEntry};
use crate::handler::controller::call::MAX_PIECE;
use crate::handler::controller::error::ControllerError;
use crate::handler::controller::private_copy;
use crate::handler::controller::response_builder::ResponseBuilder;

/// Maximum bytes of a log line. The server truncates lines to the same length.
const MAX_LOG_LINE: usize = 2 * 1024;
/// Maximum number of threads, one for each connection: twice the sum of the server's limits for calls and idle
/// connections. The factor covers threads whose connection the server has closed, but which have not ended yet.
const MAX_THREADS: usize = 256;

/// Name of the process in lists of processes.
const PROCESS_NAME: &str = "rocknet-library";

/// Control channel to the server. It is static so that `log`, a function without state, can send log lines that
/// belong to no request.
static CONTROL: OnceLock<FdChannel> = OnceLock::new();

/// Loads the library that the server sends, and serves requests until the server closes the channel.
pub fn run() -> ExitCode {
    let Ok(control) = FdChannel::from_stdin() else {
        eprintln!("error: this command is internal: RockNet starts it for isolated controllers");
        return ExitCode::from(2);
    };
    // Sets the name for lists of processes, because the process was started as `/proc/self/exe`.
    let _ = fs::write("/proc/self/comm", PROCESS_NAME);
    let control = CONTROL.get_or_init(|| control);
    let Ok(Some(ChildCommand::Load(image, name))) = control::command(control) else {
        return ExitCode::FAILURE;
    };
    let library = match private_copy::library(&File::from(image), &name, log) {
        Ok(library) => Arc::new(library),
        Err(error) => {
            let _ = ChildReport::Refused(error.to_string()).send(control);
            return ExitCode::FAILURE;
        }
    };
    let controllers = Arc::new(find_controllers(&library));
    if report_controllers(control, &controllers).is_err() {
        return ExitCode::FAILURE;
    }
    let threads = Arc::new(ThreadCount::default());
    while let Ok(Some(command)) = control::command(control) {
        if let ChildCommand::Serve(connection) = command
            && let Some(permit) = threads.acquire()
        {
            let controllers = Arc::clone(&controllers);
            let serve = move || {
                // An error here means that the server has closed the connection or violated the protocol.
                let _ = ChildConnection::new(connection).serve(&controllers);
                // The permit is dropped last, so that `ThreadCount::wait` returns only once this thread no longer uses
                // the library.
                drop(controllers);
                drop(permit);
            };
            // If the thread cannot be started, the connection closes, which the server detects. The same happens
            // above once the maximum number of threads is reached.
            let _ = thread::Builder::new().name("controller".to_owned()).spawn(serve);
        }
    }
    threads.wait();
    // With the last reference, the function `drop` that the library exports is called, after the last request.
    drop(controllers);
    drop(library);
    ExitCode::SUCCESS
}

/// Sends a log line that belongs to no request.
fn log(level: Level, line: &[u8]) {
    if let Some(control) = CONTROL.get() {
        let line = line[..line.len().min(MAX_LOG_LINE)].to_vec();
        let _ = ChildReport::Log(level, line).send(control);
    }
}

fn find_controllers(library: &Arc<LoadedLibrary>) -> Vec<host::LoadedController> {
    let names = library.names();
    names
        .filter_map(|name| host::LoadedController::find(library, name))
        .collect()
}

fn report_controllers(control: &FdChannel, controllers: &[host::LoadedController]) -> io::Result<()> {
    for controller in controllers {
        let entry = ControllerEntry {
            name: controller.name().to_owned(),
            takes: controller.takes(),
            gives: controller.gives(),
        };
        ChildReport::Controller(entry).send(control)?;
    }
    ChildReport::Ready.send(control)
}

/// Number of threads that serve connections.
#[derive(Default)]
struct ThreadCount {
    count: Mutex<usize>,
    changed: Condvar,
}

/// Counts one thread until it is dropped.
struct ThreadPermit(Arc<ThreadCount>);

impl ThreadCount {
    /// Counts one more thread; `None` if the maximum is reached.
    fn acquire(self: &Arc<ThreadCount>) -> Option<ThreadPermit> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        (*count < MAX_THREADS).then(|| {
            *count += 1;
            ThreadPermit(Arc::clone(self))
        })
    }

    /// Waits until no thread is counted.
    fn wait(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = self.changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        *self.0.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.changed.notify_all();
    }
}

/// One connection of the server, which carries requests one after another.
struct ChildConnection {
    /// Shared with the response under construction, which sends log lines.
    stream: Arc<UnixStream>,
    /// Received bytes that are not parsed yet.
    inbox: FrameReader,
    /// Buffer in which messages are encoded before they are sent.
    outbox: Vec<u8>,
}

impl ChildConnection {
    fn new(socket: OwnedFd) -> ChildConnection {
        ChildConnection {
            stream: Arc::new(socket.into()),
            inbox: FrameReader::default(),
            outbox: Vec::new(),
        }
    }

    /// Serves the requests of the connection. Returns an error once the connection has ended.
    fn serve(mut self, controllers: &[host::LoadedController]) -> io::Result<()> {
        loop {
            // `number`: position of the controller in the list that this process has reported.
            let (number, request) = self.receive(|message| match message {
                ServerMessage::Begin(number, request) => Some((number, ReceivedRequest::read(request))),
                _ => None,
            })?;
            // The whole request body; empty for a controller that takes it in pieces.
            let body = self.receive(|message| match message {
                ServerMessage::Content(body) => Some(body.to_vec()),
                _ => None,
            })?;
            let request = request.map_err(invalid_data)?.with_content(&body);
            let controller = controllers
                .get(usize::from(number))
                .ok_or_else(|| invalid_data(InvalidFrame))?;
            self.answer(controller, &request)?;
            self.inbox.shrink();
            self.outbox.shrink_to(MAX_KEPT_BUFFER);
        }
    }

    /// Handles one request.
    fn answer(&mut self, controller: &host::LoadedController, request: &ReceivedRequest) -> io::Result<()> {
        let mut builder = ChildResponse {
            // The name of the controller is for log lines, which the server writes.
            builder: ResponseBuilder::new("".into()),
            stream: Arc::clone(&self.stream),
        };
        let mut state = RequestState::default();
        let mut progress = controller.answer(request, &mut builder, &mut state);
        // A controller that does not receive the request body in pieces has received all of it with the request.
        let mut is_at_end = !controller.takes();
        while !is_at_end && progress == Ok(Progress::Continue) {
            self.send(&ProcessMessage::Continue)?;
            let piece = self.receive(|message| match message {
                ServerMessage::Piece(piece) => Some(Some(piece.to_vec())),
                ServerMessage::End => Some(None),
                _ => None,
            })?;
            is_at_end = piece.is_none();
            progress = controller.take(request, &mut builder, &mut state, piece.as_deref());
        }
        let built = progress
            .map_err(ControllerError::Failed)
            .and_then(|_| builder.builder.finish_head());
        let (response, written) = match built {
            Ok(built) => built,
            Err(error) => {
                return self.send(&match error {
                    ControllerError::Failed(CallError(code)) => ProcessMessage::Failed(code),
                    ControllerError::Refused(refused) => ProcessMessage::Refused(refused),
                    // Apart from `Refused`, `finish_head` returns only the error `NoStatus`.
                    _ => ProcessMessage::NoStatus,
                });
            }
        };
        let fields = response.fields.iter();
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let size = u32::try_from(written.len()).unwrap_or(u32::MAX);
        self.outbox.clear();
        frame::write_head(&mut self.outbox, response.status.code().into(), size, fields).map_err(invalid_data)?;
        for piece in written.chunks(frame::MAX_BODY) {
            ProcessMessage::Body(piece)
                .write(&mut self.outbox)
                .map_err(invalid_data)?;
        }
        (&*self.stream).write_all(&self.outbox)?;
        // The controller produces the rest of the response body in pieces.
        if controller.gives() {
            self.give(controller, request, &mut builder, &mut state)?;
        }
        Ok(())
    }

    /// Sends the rest of a response body, one piece for each `Give` of the server.
    fn give(
        &mut self,
        controller: &host::LoadedController,
        request: &ReceivedRequest,
        builder: &mut ChildResponse,
        state: &mut RequestState,
    ) -> io::Result<()> {
        let mut piece = vec![0; MAX_PIECE];
        loop {
            self.receive(|message| (message == ServerMessage::Give).then_some(()))?;
            match controller.give(request, builder, state, &mut piece) {
                Ok(length) => {
                    self.send(&ProcessMessage::Body(&piece[..length]))?;
                    if length == 0 {
                        return Ok(());
                    }
                }
                Err(CallError(code)) => return self.send(&ProcessMessage::Failed(code)),
            }
        }
    }

    fn send(&mut self, message: &ProcessMessage<'_>) -> io::Result<()> {
        self.outbox.clear();
        message.write(&mut self.outbox).map_err(invalid_data)?;
        (&*self.stream).write_all(&self.outbox)
    }

    /// Receives the next message of the server, and returns the part of it that `expected` selects. Fails if `expected`
    /// returns `None`, because the protocol does not permit this message now, or if the connection has ended.
    fn receive<T>(&mut self, mut expected: impl FnMut(ServerMessage<'_>) -> Option<T>) -> io::Result<T> {
        loop {
            if let Some(message) = self.inbox.next_server_message().map_err(invalid_data)? {
                return expected(message).ok_or_else(|| invalid_data(InvalidFrame));
            }
            let read = (&*self.stream).read(self.inbox.spare())?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.inbox.advance(read);
        }
    }
}

/// Maximum bytes of the send buffer that a connection keeps for its next request.
const MAX_KEPT_BUFFER: usize = 64 * 1024;

fn invalid_data(_: InvalidFrame) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// The response under construction in this process. It sends log lines to the server.
struct ChildResponse {
    builder: ResponseBuilder,
    stream: Arc<UnixStream>,
}

impl ResponseWriter for ChildResponse {
    fn set_status(&mut self, status: u32) -> Result<(), Refused> {
        self.builder.set_status(status)
    }

    fn add_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refused> {
        self.builder.add_field(name, value)
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Refused> {
        self.builder.write(data)
    }

    fn mark_invalid(&mut self) {
        self.builder.mark_invalid();
    }

    fn log(&self, level: Level, line: &[u8]) {
        let mut frame = Vec::new();
        let line = &line[..line.len().min(MAX_LOG_LINE)];
        if ProcessMessage::Log(level, line).write(&mut frame).is_ok() {
            let _ = (&*self.stream).write_all(&frame);
        }
    }
}
