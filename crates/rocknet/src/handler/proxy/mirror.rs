//! Copies of requests, sent to another server by a thread of their own; what that answers is thrown away.
//!
//! A copy is written down while the request itself is passed on, and goes to the thread when its content has come whole.
//! Nobody waits for anything of this: where the other server is slow, or gone, copies are left out.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use rocknet_config::model;
use rocknet_proto::h1::{Answered, ClientConnection};
use rocknet_proto::limits::Limits;
use rocknet_proto::response::ResponseIndex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tracing::Level;

use super::race::{self, HEAD_START};
use super::request::Sent;
use super::upstream::{Upstream, Way};
use crate::exchange::{RequestContent, Witness};
use crate::handler::exhausted::{self, is_exhausted};
use crate::log::throttle::Cause;

/// Copies that are on their way or wait, of all places. More say that the other server does not keep up.
const MAX_COPIES: usize = 1024;
/// Their bytes, with those of copies that are being written: clients decide how long that takes.
const MAX_BYTES: usize = 16 << 20;
/// Copies on their way at once: a server that takes its time gets no more connections than that.
const MAX_AT_ONCE: usize = 64;
/// For a copy, from its connection to the end of what is answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where copies of the requests of one place go.
pub struct Mirror {
    upstream: Arc<Upstream>,
    share: u64,
    most: usize,
}

impl Mirror {
    pub fn new(model: &model::Mirror, resolve: model::Resolve) -> Mirror {
        Mirror {
            upstream: Upstream::of(&model.to, None, resolve, None),
            share: model.share.into(),
            most: model.content,
        }
    }

    /// Begins a copy of a request, if the dice say so. It leaves when its content has passed by.
    pub(super) fn copy(&self, sent: &Sent<'_>, content: &mut RequestContent, dice: u64) {
        let is_drawn = dice % u64::from(model::Mirror::ALL) < self.share;
        // A tunnel has no copy, and too much content is known beforehand mostly.
        if !is_drawn || sent.wish().is_some() || sent.length().is_some_and(|length| length > self.most as u64) {
            return;
        }
        let mut copy = Copy {
            upstream: Arc::clone(&self.upstream),
            engine: ClientConnection::new(),
            bytes: Vec::new(),
            room: Some(self.most),
            counted: Counted(0),
        };
        if sent.encode(&mut copy.engine, &self.upstream, &mut copy.bytes).is_err() {
            return;
        }
        if !copy.count() {
            return left_out();
        }
        match sent.has_content() {
            true => content.show(Box::new(copy)),
            false => copy.leave(),
        }
    }
}

/// A request as it is written down.
struct Copy {
    upstream: Arc<Upstream>,
    engine: ClientConnection,
    bytes: Vec<u8>,
    /// Bytes of content that it may still have; `None`: it has had too many.
    room: Option<usize>,
    counted: Counted,
}

impl Witness for Copy {
    fn chunk(&mut self, chunk: &Bytes) {
        self.room = self.room.and_then(|room| room.checked_sub(chunk.len()));
        if self.room.is_none() {
            self.drop_bytes();
            return;
        }
        if chunk.is_empty() {
            return;
        }
        match self.engine.begin_data(chunk.len() as u64, &mut self.bytes) {
            Ok(()) => {
                self.bytes.extend_from_slice(chunk);
                self.bytes.extend_from_slice(self.engine.data_end());
                if !self.count() {
                    self.room = None;
                    self.drop_bytes();
                    left_out();
                }
            }
            Err(_) => self.room = None,
        }
    }

    fn end(mut self: Box<Self>) {
        if self.room.is_some() && matches!(self.engine.finish([], &mut self.bytes), Ok(true)) {
            self.leave();
        }
    }
}

impl Copy {
    /// Counts the bytes as they are now; false if all copies have too many.
    fn count(&mut self) -> bool {
        self.counted.grow_to(self.bytes.capacity())
    }

    fn drop_bytes(&mut self) {
        self.bytes = Vec::new();
        self.counted = Counted(0);
    }

    /// To the thread, if it has room.
    fn leave(self) {
        static THREAD: OnceLock<Option<UnboundedSender<Load>>> = OnceLock::new();
        let sender = THREAD.get_or_init(start).as_ref();
        let load = Load::new(self);
        let is_taken = match (sender, load) {
            (Some(sender), Some(load)) => sender.send(load).is_ok(),
            _ => false,
        };
        if !is_taken {
            left_out();
        }
    }
}

static COPIES: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes of one copy, counted while it is there.
struct Counted(usize);

impl Counted {
    fn grow_to(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(self.0);
        let before = BYTES.fetch_add(more, Ordering::Relaxed);
        // Given back by the drop where there is no room.
        self.0 += more;
        before + more <= MAX_BYTES
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// A copy that waits or is on its way.
struct Load {
    copy: Copy,
}

impl Load {
    fn new(copy: Copy) -> Option<Load> {
        let copies = COPIES.fetch_add(1, Ordering::Relaxed);
        // Given back by the drop where there is none.
        let load = Load { copy };
        (copies < MAX_COPIES).then_some(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        COPIES.fetch_sub(1, Ordering::Relaxed);
    }
}

fn left_out() {
    let cause = Cause {
        level: Level::WARN,
        what: "a copy of a request was left out",
        site: "",
        subject: "",
    };
    if cause.may_be_logged() {
        tracing::warn!(
            "a copy of a request was left out: the server that gets them does not keep up, or too much content is on its way"
        );
    }
}

fn start() -> Option<UnboundedSender<Load>> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| tracing::error!("requests cannot be copied: {error}"))
        .ok()?;
    let (sender, receiver) = unbounded_channel();
    let run = move || runtime.block_on(send_all(receiver));
    let started = std::thread::Builder::new().name("rn-mirror".to_owned()).spawn(run);
    started.map(|_| sender).ok()
}

async fn send_all(mut loads: UnboundedReceiver<Load>) {
    let places = Arc::new(Semaphore::new(MAX_AT_ONCE));
    while let Some(load) = loads.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        drop(tokio::spawn(async move {
            let _place = place;
            send(load).await;
        }));
    }
}

async fn send(mut load: Load) {
    let copy = &mut load.copy;
    let result = timeout(PATIENCE, try_send(copy)).await;
    let result = result.unwrap_or_else(|_| Err("it did not answer in time".to_owned()));
    if let Err(error) = result
        && (Cause {
            level: Level::WARN,
            what: "a copy of a request was not taken",
            site: "",
            subject: &copy.upstream.name,
        })
        .may_be_logged()
    {
        tracing::warn!(upstream = %copy.upstream.name, "a copy of a request was not taken: {error}");
    }
}

async fn try_send(copy: &mut Copy) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    let upstream = Arc::clone(&copy.upstream);
    match upstream.way() {
        Way::Unix(path) => converse(UnixStream::connect(path).await.map_err(told)?, copy).await,
        Way::Tcp(addresses) => {
            let pause = async || tokio::time::sleep(HEAD_START).await;
            let connected = race::connect(&addresses, pause).await;
            let stream = connected.map_err(|error| match is_exhausted(&error) {
                true => exhausted::CURE.to_owned(),
                false => error.to_string(),
            })?;
            converse(stream, copy).await
        }
        Way::Unknown => Err("its name is not known yet".to_owned()),
        Way::Nowhere(error) => Err(error.to_string()),
    }
}

/// Says it all, and hears the answer to its end: a server that is cut off would do less than it does for the request itself.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, copy: &mut Copy) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    stream.write_all(&copy.bytes).await.map_err(told)?;
    let mut heard = Hearing::new(std::mem::take(&mut copy.engine));
    let mut room = vec![0; 16 * 1024];
    loop {
        let got = stream.read(&mut room).await.map_err(told)?;
        match heard.take(&room[..got]) {
            Ok(false) if got > 0 => {}
            Ok(_) => return Ok(()),
            Err(fault) => return Err(fault),
        }
    }
}

/// What has come of an answer, as far as it has to be understood to see its end.
struct Hearing {
    engine: ClientConnection,
    unread: Vec<u8>,
    index: ResponseIndex,
}

impl Hearing {
    fn new(engine: ClientConnection) -> Hearing {
        Hearing {
            engine,
            unread: Vec::new(),
            index: ResponseIndex::default(),
        }
    }

    /// `true`: it is over. Nothing: so is the connection.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, String> {
        let told = |fault: rocknet_proto::h1::Fault| fault.reason().to_owned();
        if bytes.is_empty() {
            return self.engine.closed().map(|_| true).map_err(told);
        }
        self.unread.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = &self.unread[at..];
            match self
                .engine
                .receive(&Limits::default(), rest, &mut self.index)
                .map_err(told)?
            {
                Answered::More { consumed } => {
                    at += consumed;
                    break;
                }
                Answered::Interim { consumed } => at += consumed,
                Answered::Response {
                    content: rocknet_proto::h1::ResponseContent::None,
                    ..
                }
                | Answered::End { .. }
                | Answered::Switched { .. } => return Ok(true),
                Answered::Response { consumed, .. } => at += consumed,
                Answered::Data { end, .. } => at += end,
                Answered::Blocked => break,
            }
        }
        self.unread.drain(..at);
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::{Host, Resolve, Upstream as To};

    use super::*;

    #[test]
    fn copies_that_are_being_written_are_bounded_in_bytes() {
        const CONTENT: usize = 64 * 1024;
        let to = To::at(Host::Address([127, 0, 0, 9].into(), 1));
        let upstream = Upstream::of(&to, None, Resolve::Ttl, None);
        let chunk = Bytes::from(vec![b'x'; CONTENT]);
        let mut copies = Vec::new();
        let most = MAX_BYTES / CONTENT;
        loop {
            let mut copy = Copy {
                upstream: Arc::clone(&upstream),
                engine: ClientConnection::new(),
                bytes: Vec::new(),
                room: Some(CONTENT),
                counted: Counted(0),
            };
            copy.bytes.extend_from_slice(&chunk);
            if !copy.count() {
                break;
            }
            copies.push(copy);
            assert!(copies.len() <= most, "more than {MAX_BYTES} bytes");
        }
        assert!(BYTES.load(Ordering::Relaxed) <= MAX_BYTES);
        assert_eq!(copies.len(), most);
        // One that is given up while it is written makes room for another.
        let mut last = copies.pop().expect("a copy");
        last.room = Some(0);
        last.chunk(&chunk);
        assert_eq!((last.room, last.bytes.capacity()), (None, 0));
        assert!(Counted(0).grow_to(CONTENT));
        drop((last, copies));
        assert_eq!(BYTES.load(Ordering::Relaxed), 0);
    }
}
