//! One request with the process that answers it: said, heard, and given up in a way that the process notices.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use bytes::Bytes;
use rocknet_controller::host::frame::{FrameReader, InvalidFrame, ProcessMessage, ServerMessage};
use rocknet_controller::host::{CallError, ResponseWriter};
use rocknet_io::wheel::Deadline;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::library::Isolated;
use super::place::Place;
use super::process::Process;
use super::supervisor::State;
use crate::handler::controller::draft::Draft;
use crate::handler::controller::trouble::Trouble;

/// What the process has said, and is no line for the log.
pub enum Heard {
    On,
    /// The draft has it; so many bytes of the body follow.
    Head(usize),
    Body(Bytes),
}

/// A connection with a process, for one request.
pub struct Conversation {
    /// Gone once it was given back, or given up.
    held: Option<(UnixStream, Place)>,
    process: Arc<Process>,
    library: Arc<Isolated>,
    inbox: FrameReader,
    outbox: Vec<u8>,
    /// A controller is being called, or about to.
    is_calling: bool,
}

impl Conversation {
    pub async fn open(library: &Arc<Isolated>, place: Place, deadline: &Deadline) -> Result<Conversation, Trouble> {
        let (process, connection) = connect(library, deadline).await?;
        let stream = UnixStream::from_std(connection).map_err(Trouble::Process)?;
        Ok(Conversation {
            held: Some((stream, place)),
            process,
            library: Arc::clone(library),
            inbox: FrameReader::default(),
            outbox: Vec::new(),
            is_calling: false,
        })
    }

    pub fn begin(&mut self, number: u16, request: &[u8], content: &[u8]) -> Result<(), Trouble> {
        self.say(&ServerMessage::Begin(number, request))?;
        self.say(&ServerMessage::Content(content))
    }

    /// To be sent with the next call.
    pub fn say(&mut self, ask: &ServerMessage<'_>) -> Result<(), Trouble> {
        ask.write(&mut self.outbox).map_err(|InvalidFrame| Trouble::TooLarge)
    }

    /// Has the controller called with what was said, and hears what comes of it.
    pub async fn call(&mut self, draft: &mut Draft) -> Result<Heard, Trouble> {
        self.is_calling = true;
        self.hear(draft).await
    }

    pub async fn hear(&mut self, draft: &mut Draft) -> Result<Heard, Trouble> {
        let heard = match self.speak().await {
            Ok(()) => self.listen(draft).await,
            Err(trouble) => Err(trouble),
        };
        self.is_calling = false;
        if let Err(Trouble::Died) = heard {
            self.process.doubt(true);
            self.library.supervised.ring();
        }
        heard
    }

    async fn speak(&mut self) -> Result<(), Trouble> {
        let stream = &mut self.held.as_mut().ok_or(Trouble::Died)?.0;
        stream.write_all(&self.outbox).await.map_err(gone)?;
        self.outbox.clear();
        Ok(())
    }

    async fn listen(&mut self, draft: &mut Draft) -> Result<Heard, Trouble> {
        let stream = &mut self.held.as_mut().ok_or(Trouble::Died)?.0;
        loop {
            match self
                .inbox
                .next_process_message()
                .map_err(|InvalidFrame| Trouble::Nonsense)?
            {
                Some(ProcessMessage::Log(level, line)) => {
                    draft.log(level, line);
                    continue;
                }
                Some(ProcessMessage::Continue) => return Ok(Heard::On),
                Some(ProcessMessage::Head(head)) => {
                    // It is checked as any other: a library may write over what its process has checked.
                    let _ = draft.set_status(head.status);
                    for field in head.fields() {
                        let (name, value) = field.map_err(|InvalidFrame| Trouble::Nonsense)?;
                        let _ = draft.add_field(name, value);
                    }
                    return Ok(Heard::Head(head.size as usize));
                }
                Some(ProcessMessage::Body(bytes)) => return Ok(Heard::Body(Bytes::copy_from_slice(bytes))),
                Some(ProcessMessage::Failed(code)) => return Err(Trouble::Failed(CallError(code))),
                Some(ProcessMessage::NoStatus) => return Err(Trouble::NoStatus),
                Some(ProcessMessage::Refused(why)) => return Err(Trouble::Refused(why)),
                None => {}
            }
            match stream.read(self.inbox.spare()).await.map_err(gone)? {
                0 => return Err(Trouble::Died),
                read => self.inbox.advance(read),
            }
        }
    }

    /// The client takes what there is: room is not needed meanwhile.
    pub fn rest(&mut self) {
        self.inbox.shrink();
    }

    /// The request is over, and the next may have the connection.
    pub fn end(mut self) {
        if let Some((stream, _place)) = self.held.take()
            && self.inbox.is_empty()
            && let Ok(connection) = stream.into_std()
        {
            self.process.keep(connection);
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let Some((stream, place)) = self.held.take() else {
            return;
        };
        // Who has not been told all of it has not begun, and the end of the connection is enough.
        if self.is_calling
            && self.outbox.is_empty()
            && let Ok(connection) = stream.into_std()
        {
            self.process.abandon(connection, place);
            self.library.supervised.ring();
        }
    }
}

async fn connect(
    library: &Isolated,
    deadline: &Deadline,
) -> Result<(Arc<Process>, std::os::unix::net::UnixStream), Trouble> {
    let supervised = &library.supervised;
    let mut changes = None;
    loop {
        match supervised.state() {
            State::Up(process) if process.is_doubted() => {}
            State::Up(process) => match process.connection() {
                Ok(connection) => return Ok((process, connection)),
                // It has just ended, or was replaced; the next state tells.
                Err(error) if is_gone(&error) => {
                    process.close();
                    supervised.ring();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(Trouble::Full),
                Err(error) => return Err(Trouble::Process(error)),
            },
            State::Starting => {}
            State::Down(why) => return Err(Trouble::Absent(why)),
        }
        // What changed between the look above and now is seen at once by who hears of changes from before.
        let Some(changes) = &mut changes else {
            changes = Some(supervised.changes());
            continue;
        };
        match deadline.within(changes.changed()).await {
            Some(Ok(())) => {}
            _ => return Err(Trouble::Absent("it is being started".into())),
        }
    }
}

/// Nothing can be said to it or heard from it.
fn gone(error: io::Error) -> Trouble {
    match is_gone(&error) {
        true => Trouble::Died,
        false => Trouble::Process(error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected
    )
}
