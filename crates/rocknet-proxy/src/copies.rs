//! Copies of requests on their way to another server, by a thread of their own; its responses are discarded.
//!
//! Nothing waits for a copy: where the other server is slow, or gone, copies are left out.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rocknet_proto::h1::{ClientConnection, ClientEvent};
use rocknet_proto::limits::Limits;
use rocknet_proto::response::ResponseIndex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;
use tracing::Level;

use crate::race::{self, HEAD_START};
use crate::upstream::{Upstream, Way};
use rocknet_handler::background::Background;
use rocknet_handler::exchange::BodyTee;
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_log::throttle::Cause;

/// Copies that are on their way or wait, of all places. More say that the other server does not keep up.
const MAX_COPIES: usize = 1024;
/// Their bytes, with those of copies that are being written: clients decide how long that takes.
const MAX_BYTES: usize = 16 << 20;
/// Copies on their way at once: a server that takes its time gets no more connections than that.
const MAX_AT_ONCE: usize = 64;
/// Nothing on the thread blocks: names are looked up elsewhere.
const MAX_BLOCKING: usize = 1;
/// For a copy, from its connection to the end of what is answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request as it is written down.
pub struct Copy {
    upstream: Arc<Upstream>,
    pub engine: ClientConnection,
    pub bytes: Vec<u8>,
    /// Bytes of content that it may still have; `None`: it has had too many.
    room: Option<usize>,
    counted: Counted,
}

impl BodyTee for Copy {
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
    /// `most`: bytes of content that it may have.
    pub fn new(upstream: &Arc<Upstream>, most: usize, copies: &Arc<Copies>) -> Copy {
        Copy {
            upstream: Arc::clone(upstream),
            engine: ClientConnection::new(),
            bytes: Vec::new(),
            room: Some(most),
            counted: Counted::new(copies),
        }
    }

    /// Counts the bytes as they are now; false if all copies have too many.
    pub fn count(&mut self) -> bool {
        self.counted.grow_to(self.bytes.capacity())
    }

    fn drop_bytes(&mut self) {
        self.bytes = Vec::new();
        self.counted.clear();
    }

    /// To the thread, if it has room.
    pub fn leave(self) {
        let copies = Arc::clone(&self.counted.copies);
        let is_taken = Load::new(self).is_some_and(|load| copies.thread.send(load));
        if !is_taken {
            left_out();
        }
    }
}

/// The copies of one server, and the thread that sends them.
pub struct Copies {
    /// On their way or waiting.
    count: AtomicUsize,
    bytes: AtomicUsize,
    thread: Background<Load>,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies {
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            thread: Background::new("rn-mirror", MAX_BLOCKING, |loads| Box::pin(send_all(loads))),
        }
    }
}

impl Copies {
    /// Drops all copies. Returns whether the thread had ended at `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.thread.stop(deadline)
    }
}

/// Bytes of one copy, counted while it is there.
struct Counted {
    copies: Arc<Copies>,
    bytes: usize,
}

impl Counted {
    fn new(copies: &Arc<Copies>) -> Counted {
        Counted {
            copies: Arc::clone(copies),
            bytes: 0,
        }
    }

    fn grow_to(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(self.bytes);
        let before = self.copies.bytes.fetch_add(more, Ordering::Relaxed);
        // Given back by the drop where there is no room.
        self.bytes += more;
        before + more <= MAX_BYTES
    }

    fn clear(&mut self) {
        self.copies.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A copy that waits or is on its way.
struct Load {
    copy: Copy,
}

impl Load {
    fn new(copy: Copy) -> Option<Load> {
        let copies = copy.counted.copies.count.fetch_add(1, Ordering::Relaxed);
        // Given back by the drop where there is none.
        let load = Load { copy };
        (copies < MAX_COPIES).then_some(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.copy.counted.copies.count.fetch_sub(1, Ordering::Relaxed);
    }
}

pub fn left_out() {
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
                true => port_exhaustion::HINT.to_owned(),
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
        let told = |fault: rocknet_proto::h1::ResponseError| fault.reason().to_owned();
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
                ClientEvent::More { consumed } => {
                    at += consumed;
                    break;
                }
                ClientEvent::Interim { consumed } => at += consumed,
                ClientEvent::Response {
                    body: rocknet_proto::h1::ResponseBodyFraming::None,
                    ..
                }
                | ClientEvent::End { .. }
                | ClientEvent::Switched { .. } => return Ok(true),
                ClientEvent::Response { consumed, .. } => at += consumed,
                ClientEvent::Data { end, .. } => at += end,
                ClientEvent::Blocked => break,
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
    use crate::upstreams::Upstreams;

    #[test]
    fn copies_that_are_being_written_are_bounded_in_bytes() {
        const CONTENT: usize = 64 * 1024;
        let to = To::at(Host::Address([127, 0, 0, 9].into(), 1));
        let upstreams = Upstreams::default();
        let upstream = upstreams.of(&to, None, Resolve::Ttl, None);
        let all = &upstreams.copies;
        let chunk = Bytes::from(vec![b'x'; CONTENT]);
        let mut copies = Vec::new();
        let most = MAX_BYTES / CONTENT;
        loop {
            let mut copy = Copy {
                upstream: Arc::clone(&upstream),
                engine: ClientConnection::new(),
                bytes: Vec::new(),
                room: Some(CONTENT),
                counted: Counted::new(all),
            };
            copy.bytes.extend_from_slice(&chunk);
            if !copy.count() {
                break;
            }
            copies.push(copy);
            assert!(copies.len() <= most, "more than {MAX_BYTES} bytes");
        }
        assert!(all.bytes.load(Ordering::Relaxed) <= MAX_BYTES);
        assert_eq!(copies.len(), most);
        // One that is given up while it is written makes room for another.
        let mut last = copies.pop().expect("a copy");
        last.room = Some(0);
        last.chunk(&chunk);
        assert_eq!((last.room, last.bytes.capacity()), (None, 0));
        assert!(Counted::new(all).grow_to(CONTENT));
        drop((last, copies));
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
    }
}
