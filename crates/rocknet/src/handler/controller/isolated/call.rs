//! The server's side of one request to an isolated controller: sends calls to the process, receives replies, and
//! abandons calls so that the process notices.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use bytes::Bytes;
use rocknet_controller::host::frame::{FrameReader, InvalidFrame, ProcessMessage, ServerMessage};
use rocknet_controller::host::{CallError, ResponseWriter};
use rocknet_io::wheel::Deadline;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::library::IsolatedLibrary;
use super::permits::CallPermit;
use super::process::ProcessHandle;
use super::supervisor::ProcessState;
use crate::handler::controller::error::ControllerError;
use crate::handler::controller::response_builder::ResponseBuilder;

/// Reply of the process to a call. Log lines are logged when they arrive, and are not replies.
pub enum CallReply {
    /// The call has returned without a response; the controller needs the next piece of the request body.
    Continue,
    /// The head, which was stored in the response builder, with the number of body bytes that follow.
    Head(usize),
    /// A piece of the response body; empty at the end.
    Body(Bytes),
}

/// A connection to a process, for one request.
pub struct IsolatedCall {
    /// `None` once the connection was returned or abandoned.
    connection: Option<(UnixStream, CallPermit)>,
    process: Arc<ProcessHandle>,
    library: Arc<IsolatedLibrary>,
    /// Received bytes that are not parsed yet.
    inbox: FrameReader,
    /// Queued messages that have not been sent.
    outbox: Vec<u8>,
    /// True from [`IsolatedCall::call`] until its reply.
    is_calling: bool,
}

impl IsolatedCall {
    /// Connects to the process of a library, and waits for a restart of the process until `deadline`.
    pub async fn open(
        library: &Arc<IsolatedLibrary>,
        permit: CallPermit,
        deadline: &Deadline,
    ) -> Result<IsolatedCall, ControllerError> {
        let (process, connection) = connect(library, deadline).await?;
        let stream = UnixStream::from_std(connection).map_err(ControllerError::Process)?;
        Ok(IsolatedCall {
            connection: Some((stream, permit)),
            process,
            library: Arc::clone(library),
            inbox: FrameReader::default(),
            outbox: Vec::new(),
            is_calling: false,
        })
    }

    /// Queues the request and its buffered body. `number` is the position of the controller in the list that the
    /// process has reported.
    pub fn begin(&mut self, number: u16, request: &[u8], body: &[u8]) -> Result<(), ControllerError> {
        self.queue(&ServerMessage::Begin(number, request))?;
        self.queue(&ServerMessage::Content(body))
    }

    /// Queues a message. The next call sends it.
    pub fn queue(&mut self, message: &ServerMessage<'_>) -> Result<(), ControllerError> {
        message
            .write(&mut self.outbox)
            .map_err(|InvalidFrame| ControllerError::TooLarge)
    }

    /// Sends the queued messages, which call the controller, and returns the reply.
    pub async fn call(&mut self, response: &mut ResponseBuilder) -> Result<CallReply, ControllerError> {
        self.is_calling = true;
        self.receive(response).await
    }

    /// Sends the messages that are still queued, and returns the next reply of the process.
    pub async fn receive(&mut self, response: &mut ResponseBuilder) -> Result<CallReply, ControllerError> {
        let reply = match self.flush().await {
            Ok(()) => self.read_reply(response).await,
            Err(error) => Err(error),
        };
        self.is_calling = false;
        // The connection was lost, so the process is probably about to exit. The supervisor checks it.
        if let Err(ControllerError::ProcessExited) = reply {
            self.process.set_suspect(true);
            self.library.supervised.wake();
        }
        reply
    }

    async fn flush(&mut self) -> Result<(), ControllerError> {
        let stream = &mut self.connection.as_mut().ok_or(ControllerError::ProcessExited)?.0;
        stream.write_all(&self.outbox).await.map_err(connection_error)?;
        self.outbox.clear();
        Ok(())
    }

    /// Reads messages until the reply. Log lines before the reply are logged.
    async fn read_reply(&mut self, response: &mut ResponseBuilder) -> Result<CallReply, ControllerError> {
        let stream = &mut self.connection.as_mut().ok_or(ControllerError::ProcessExited)?.0;
        loop {
            match self
                .inbox
                .next_process_message()
                .map_err(|InvalidFrame| ControllerError::Protocol)?
            {
                Some(ProcessMessage::Log(level, line)) => {
                    response.log(level, line);
                    continue;
                }
                Some(ProcessMessage::Continue) => return Ok(CallReply::Continue),
                Some(ProcessMessage::Head(head)) => {
                    // Validates the head again, because a library can corrupt data that its own process has
                    // validated. The builder records the first error, and `ResponseBuilder::finish_head` returns it.
                    let _ = response.set_status(head.status);
                    for field in head.fields() {
                        let (name, value) = field.map_err(|InvalidFrame| ControllerError::Protocol)?;
                        let _ = response.add_field(name, value);
                    }
                    return Ok(CallReply::Head(head.size as usize));
                }
                Some(ProcessMessage::Body(bytes)) => return Ok(CallReply::Body(Bytes::copy_from_slice(bytes))),
                Some(ProcessMessage::Failed(code)) => return Err(ControllerError::Failed(CallError(code))),
                Some(ProcessMessage::NoStatus) => return Err(ControllerError::NoStatus),
                Some(ProcessMessage::Refused(why)) => return Err(ControllerError::Refused(why)),
                None => {}
            }
            match stream.read(self.inbox.spare()).await.map_err(connection_error)? {
                0 => return Err(ControllerError::ProcessExited),
                read => self.inbox.advance(read),
            }
        }
    }

    /// Releases the receive buffer while the client receives a piece of the body.
    pub fn release_buffers(&mut self) {
        self.inbox.shrink();
    }

    /// Ends the request and returns the connection for the next one.
    pub fn finish(mut self) {
        // Unread bytes would be taken for a reply to the next request, so such a connection is closed.
        if let Some((stream, _permit)) = self.connection.take()
            && self.inbox.is_empty()
            && let Ok(connection) = stream.into_std()
        {
            self.process.keep(connection);
        }
    }
}

impl Drop for IsolatedCall {
    fn drop(&mut self) {
        let Some((stream, permit)) = self.connection.take() else {
            return;
        };
        // Outside a call, the controller is not running. If a call was not sent completely, the process has not
        // started it. In both cases it is enough to close the connection.
        if self.is_calling
            && self.outbox.is_empty()
            && let Ok(connection) = stream.into_std()
        {
            self.process.abandon(connection, permit);
            self.library.supervised.wake();
        }
    }
}

/// Returns the running process and a connection to it. While the process is being started or may be about to exit,
/// waits until `deadline` for its next state.
async fn connect(
    library: &IsolatedLibrary,
    deadline: &Deadline,
) -> Result<(Arc<ProcessHandle>, std::os::unix::net::UnixStream), ControllerError> {
    let supervised = &library.supervised;
    let mut changes = None;
    loop {
        match supervised.state() {
            // The supervisor checks whether the process is about to exit, and then publishes its state again.
            ProcessState::Running(process) if process.is_suspect() => {}
            ProcessState::Running(process) => match process.connection() {
                Ok(connection) => return Ok((process, connection)),
                // The process has just ended or was replaced; the next state shows which.
                Err(error) if is_disconnect(&error) => {
                    process.close();
                    supervised.wake();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ControllerError::Full),
                Err(error) => return Err(ControllerError::Process(error)),
            },
            ProcessState::Starting => {}
            ProcessState::Down(why) => return Err(ControllerError::NotRunning(why)),
        }
        // Subscribes, then checks the state once more, so that no change in between is missed.
        let Some(changes) = &mut changes else {
            changes = Some(supervised.changes());
            continue;
        };
        match deadline.within(changes.changed()).await {
            Some(Ok(())) => {}
            _ => return Err(ControllerError::NotRunning("it is being started".into())),
        }
    }
}

/// Converts an I/O error of the connection.
fn connection_error(error: io::Error) -> ControllerError {
    match is_disconnect(&error) {
        true => ControllerError::ProcessExited,
        false => ControllerError::Process(error),
    }
}

fn is_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected
    )
}
