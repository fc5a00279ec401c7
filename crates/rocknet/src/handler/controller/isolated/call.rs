//! One request with the process that answers it: said, heard, and given up in a way that the process notices.

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

/// What the process has said, and is no line for the log.
pub enum CallReply {
    Continue,
    /// The draft has it; so many bytes of the body follow.
    Head(usize),
    Body(Bytes),
}

/// A connection with a process, for one request.
pub struct IsolatedCall {
    /// Gone once it was given back, or given up.
    connection: Option<(UnixStream, CallPermit)>,
    process: Arc<ProcessHandle>,
    library: Arc<IsolatedLibrary>,
    inbox: FrameReader,
    outbox: Vec<u8>,
    /// A controller is being called, or about to.
    is_calling: bool,
}

impl IsolatedCall {
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

    pub fn begin(&mut self, number: u16, request: &[u8], content: &[u8]) -> Result<(), ControllerError> {
        self.queue(&ServerMessage::Begin(number, request))?;
        self.queue(&ServerMessage::Content(content))
    }

    /// Queues a message, which the next call sends.
    pub fn queue(&mut self, ask: &ServerMessage<'_>) -> Result<(), ControllerError> {
        ask.write(&mut self.outbox)
            .map_err(|InvalidFrame| ControllerError::TooLarge)
    }

    /// Has the controller called with what was said, and hears what comes of it.
    pub async fn call(&mut self, response: &mut ResponseBuilder) -> Result<CallReply, ControllerError> {
        self.is_calling = true;
        self.receive(response).await
    }

    pub async fn receive(&mut self, response: &mut ResponseBuilder) -> Result<CallReply, ControllerError> {
        let reply = match self.flush().await {
            Ok(()) => self.read_reply(response).await,
            Err(error) => Err(error),
        };
        self.is_calling = false;
        if let Err(ControllerError::ProcessExited) = reply {
            self.process.set_suspect(true);
            self.library.supervised.wake();
        }
        reply
    }

    async fn flush(&mut self) -> Result<(), ControllerError> {
        let stream = &mut self.connection.as_mut().ok_or(ControllerError::ProcessExited)?.0;
        stream.write_all(&self.outbox).await.map_err(read_error)?;
        self.outbox.clear();
        Ok(())
    }

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
                    // Validated here too, because a library can corrupt what its own process has validated.
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
            match stream.read(self.inbox.spare()).await.map_err(read_error)? {
                0 => return Err(ControllerError::ProcessExited),
                read => self.inbox.advance(read),
            }
        }
    }

    /// The client takes what there is: room is not needed meanwhile.
    pub fn release_buffers(&mut self) {
        self.inbox.shrink();
    }

    /// The request is over, and the next may have the connection.
    pub fn finish(mut self) {
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
        // Who has not been told all of it has not begun, and the end of the connection is enough.
        if self.is_calling
            && self.outbox.is_empty()
            && let Ok(connection) = stream.into_std()
        {
            self.process.abandon(connection, permit);
            self.library.supervised.wake();
        }
    }
}

async fn connect(
    library: &IsolatedLibrary,
    deadline: &Deadline,
) -> Result<(Arc<ProcessHandle>, std::os::unix::net::UnixStream), ControllerError> {
    let supervised = &library.supervised;
    let mut changes = None;
    loop {
        match supervised.state() {
            ProcessState::Running(process) if process.is_suspect() => {}
            ProcessState::Running(process) => match process.connection() {
                Ok(connection) => return Ok((process, connection)),
                // It has just ended, or was replaced; the next state tells.
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
        // What changed between the look above and now is seen at once by who hears of changes from before.
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

/// Nothing can be said to it or heard from it.
fn read_error(error: io::Error) -> ControllerError {
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
