//! Queue of mirrored requests and the thread that sends them. Their responses are discarded.
//!
//! A request never waits for its copy. Copies are dropped if the mirror is slow or unreachable.

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

use crate::happy_eyeballs::{self, ATTEMPT_DELAY};
use crate::upstream::{ConnectTarget, Upstream};
use rocknet_handler::background::Background;
use rocknet_handler::exchange::BodyTee;
use rocknet_handler::port_exhaustion::{self, is_exhausted};
use rocknet_log::throttle::Cause;

/// Maximum number of copies of all routes that are queued or in flight. A larger number means that a mirror does not
/// keep up.
const MAX_COPIES: usize = 1024;
/// Maximum size of all copies in bytes. It includes copies that are still being recorded, because clients decide how
/// long that takes.
const MAX_BYTES: usize = 16 << 20;
/// Maximum number of copies in flight, which limits the connections to a slow mirror.
const MAX_CONCURRENT: usize = 64;
/// Number of blocking threads of the runtime. The minimum suffices, because names are resolved on another thread.
const MAX_BLOCKING: usize = 1;
/// Timeout of one copy, from connecting to the end of its response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Copy of a request.
pub struct MirroredRequest {
    upstream: Arc<Upstream>,
    /// Engine that encodes the request and later parses the response.
    pub engine: ClientConnection,
    /// Encoded request, or the part of it that was recorded so far.
    pub bytes: Vec<u8>,
    /// Number of bytes that the request body may still have. `None` once the body has exceeded a limit or its
    /// announced length, and once the copy was sent; further chunks are then ignored.
    remaining: Option<usize>,
    /// Number of bytes of the announced request body that were not recorded yet; `None` if no length was announced.
    missing: Option<u64>,
    counted: ByteCount,
}

impl BodyTee for MirroredRequest {
    fn chunk(&mut self, chunk: &Bytes) {
        self.remaining = self.remaining.and_then(|remaining| remaining.checked_sub(chunk.len()));
        if self.remaining.is_none() {
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
                if !self.count_bytes() {
                    self.remaining = None;
                    self.drop_bytes();
                    log_dropped();
                    return;
                }
                self.missing = self.missing.map(|missing| missing.saturating_sub(chunk.len() as u64));
                if self.missing == Some(0) {
                    self.send_early();
                }
            }
            // The body is longer than announced. The recorded bytes are freed when the copy is dropped.
            Err(_) => self.remaining = None,
        }
    }

    fn end(mut self: Box<Self>) {
        // Trailer fields are not copied. `Ok(true)`: the body is not shorter than announced.
        if self.remaining.is_some() && matches!(self.engine.finish([], &mut self.bytes), Ok(true)) {
            self.send();
        }
    }
}

impl MirroredRequest {
    /// Returns an empty copy whose request body may have up to `max_body` bytes. `announced`: its length, if it is
    /// known in advance.
    pub fn new(
        upstream: &Arc<Upstream>,
        max_body: usize,
        announced: Option<u64>,
        copies: &Arc<MirrorQueue>,
    ) -> MirroredRequest {
        MirroredRequest {
            missing: announced,
            upstream: Arc::clone(upstream),
            engine: ClientConnection::new(),
            bytes: Vec::new(),
            remaining: Some(max_body),
            counted: ByteCount::new(copies),
        }
    }

    /// Counts the recorded bytes. Returns false if all copies together exceed [`MAX_BYTES`].
    pub fn count_bytes(&mut self) -> bool {
        self.counted.grow_to(self.bytes.capacity())
    }

    /// Sends the copy, whose body has its announced length. The end of the request body is not waited for: the proxied
    /// upstream may respond before it, and the copy would be dropped with the exchange.
    fn send_early(&mut self) {
        let rest = MirroredRequest {
            remaining: None,
            ..MirroredRequest::new(&self.upstream, 0, None, &self.counted.copies)
        };
        let mut copy = std::mem::replace(self, rest);
        if matches!(copy.engine.finish([], &mut copy.bytes), Ok(true)) {
            copy.send();
        }
    }

    fn drop_bytes(&mut self) {
        self.bytes = Vec::new();
        self.counted.clear();
    }

    /// Passes the copy to the thread, which sends it. Drops the copy if the queue is full.
    pub fn send(self) {
        let copies = Arc::clone(&self.counted.copies);
        let is_accepted = QueuedCopy::new(self).is_some_and(|queued| copies.thread.send(queued));
        if !is_accepted {
            log_dropped();
        }
    }
}

/// Queued copies of one server, and the thread that sends them.
pub struct MirrorQueue {
    /// Number of copies that are queued or in flight.
    count: AtomicUsize,
    /// Size of all copies in bytes, including those that are being recorded.
    bytes: AtomicUsize,
    thread: Background<QueuedCopy>,
}

impl Default for MirrorQueue {
    fn default() -> MirrorQueue {
        MirrorQueue {
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            thread: Background::new("rn-mirror", MAX_BLOCKING, |queue| Box::pin(send_all(queue))),
        }
    }
}

impl MirrorQueue {
    /// Drops all copies and ends the thread. Returns true if the thread ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.thread.stop(deadline)
    }
}

/// Counts the bytes of one copy until it is dropped.
struct ByteCount {
    copies: Arc<MirrorQueue>,
    /// Number of bytes of the copy that are counted in `copies`.
    bytes: usize,
}

impl ByteCount {
    fn new(copies: &Arc<MirrorQueue>) -> ByteCount {
        ByteCount {
            copies: Arc::clone(copies),
            bytes: 0,
        }
    }

    /// Counts the bytes of a copy that now has `size` bytes. Returns false if all copies together exceed [`MAX_BYTES`].
    fn grow_to(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(self.bytes);
        let before = self.copies.bytes.fetch_add(more, Ordering::Relaxed);
        // Counted even if the limit is exceeded, because dropping the copy subtracts these bytes.
        self.bytes += more;
        before + more <= MAX_BYTES
    }

    fn clear(&mut self) {
        self.copies.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }
}

impl Drop for ByteCount {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Copy that is queued or in flight.
struct QueuedCopy {
    copy: MirroredRequest,
}

impl QueuedCopy {
    /// Counts a copy as queued. Returns `None` if the queue is full.
    fn new(copy: MirroredRequest) -> Option<QueuedCopy> {
        let before = copy.counted.copies.count.fetch_add(1, Ordering::Relaxed);
        // Created even if the queue is full, because its drop decrements the count.
        let queued = QueuedCopy { copy };
        (before < MAX_COPIES).then_some(queued)
    }
}

impl Drop for QueuedCopy {
    fn drop(&mut self) {
        self.copy.counted.copies.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Logs that a copy was dropped, at most once a second.
pub fn log_dropped() {
    let cause = Cause {
        level: Level::WARN,
        what: "a mirrored request was dropped",
        site: "",
        subject: "",
    };
    if cause.may_be_logged() {
        tracing::warn!(
            "a mirrored request was dropped: the mirror does not keep up, or the request bodies being copied are too \
             large"
        );
    }
}

/// Sends the copies of a queue, at most [`MAX_CONCURRENT`] at a time.
async fn send_all(mut queue: UnboundedReceiver<QueuedCopy>) {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
    while let Some(queued) = queue.recv().await {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        drop(tokio::spawn(async move {
            let _permit = permit;
            send(queued).await;
        }));
    }
}

async fn send(mut queued: QueuedCopy) {
    let copy = &mut queued.copy;
    let result = timeout(TIMEOUT, try_send(copy)).await;
    let result = result.unwrap_or_else(|_| Err("the mirror did not respond in time".to_owned()));
    if let Err(error) = result
        && (Cause {
            level: Level::WARN,
            what: "a mirrored request failed",
            site: "",
            subject: &copy.upstream.name,
        })
        .may_be_logged()
    {
        tracing::warn!(upstream = %copy.upstream.name, "a mirrored request failed: {error}");
    }
}

async fn try_send(copy: &mut MirroredRequest) -> Result<(), String> {
    let to_text = |error: io::Error| error.to_string();
    let upstream = Arc::clone(&copy.upstream);
    match upstream.connect_target() {
        ConnectTarget::Unix(path) => send_and_drain(UnixStream::connect(path).await.map_err(to_text)?, copy).await,
        ConnectTarget::Tcp(addresses) => {
            let pause = async || tokio::time::sleep(ATTEMPT_DELAY).await;
            let connected = happy_eyeballs::connect(&addresses, pause).await;
            let stream = connected.map_err(|error| match is_exhausted(&error) {
                true => port_exhaustion::HINT.to_owned(),
                false => error.to_string(),
            })?;
            send_and_drain(stream, copy).await
        }
        ConnectTarget::Unresolved => Err("the name of the mirror is not resolved yet".to_owned()),
        ConnectTarget::Failed(error) => Err(error.to_string()),
    }
}

/// Sends a copy and reads its response to the end. If the connection were closed early, the mirror would do less work
/// than for the real request.
async fn send_and_drain<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    copy: &mut MirroredRequest,
) -> Result<(), String> {
    let to_text = |error: io::Error| error.to_string();
    stream.write_all(&copy.bytes).await.map_err(to_text)?;
    let mut response = ResponseDrain::new(std::mem::take(&mut copy.engine));
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = stream.read(&mut buffer).await.map_err(to_text)?;
        match response.feed(&buffer[..length]) {
            Ok(false) if length > 0 => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Parser that discards a response and detects its end.
struct ResponseDrain {
    engine: ClientConnection,
    unread: Vec<u8>,
    index: ResponseIndex,
}

impl ResponseDrain {
    fn new(engine: ClientConnection) -> ResponseDrain {
        ResponseDrain {
            engine,
            unread: Vec::new(),
            index: ResponseIndex::default(),
        }
    }

    /// Parses received bytes. An empty slice means that the connection was closed. Returns true if the response is
    /// complete, and the reason as an error if it is invalid or ends early.
    fn feed(&mut self, bytes: &[u8]) -> Result<bool, String> {
        let to_text = |error: rocknet_proto::h1::ResponseError| error.reason().to_owned();
        if bytes.is_empty() {
            return self.engine.closed().map(|_| true).map_err(to_text);
        }
        self.unread.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = &self.unread[at..];
            match self
                .engine
                .receive(&Limits::default(), rest, &mut self.index)
                .map_err(to_text)?
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
                // The engine expects no response. This cannot occur here, because the request is encoded, and the loop
                // returns at the end of its response.
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
    use rocknet_proto::h1::{Length, RequestLine};

    use super::*;
    use crate::upstreams::Upstreams;

    #[test]
    fn a_copy_is_sent_once_its_body_has_the_announced_length() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let upstreams = Upstreams::default();
        let to = To::at(Host::Address(address.ip(), address.port()));
        let upstream = upstreams.get(&to, None, Resolve::Ttl, None);
        let mut copy = MirroredRequest::new(&upstream, 100, Some(5), &upstreams.copies);
        let line = RequestLine {
            method: b"POST",
            target: b"/p",
            host: b"a.test",
            length: Length::Exact(5),
            upgrade: None,
            close: true,
        };
        copy.engine.encode_request(&mut copy.bytes, &line, []).expect("a head");
        copy.chunk(&Bytes::from_static(b"hel"));
        assert!(copy.remaining.is_some() && !copy.bytes.is_empty());
        copy.chunk(&Bytes::from_static(b"lo"));
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut received = Vec::new();
        let mut buffer = [0; 1024];
        while !received.ends_with(b"hello") {
            let length = std::io::Read::read(&mut stream, &mut buffer).expect("a request");
            assert!(length > 0, "{}", String::from_utf8_lossy(&received));
            received.extend_from_slice(&buffer[..length]);
        }
        assert!(received.starts_with(b"POST /p HTTP/1.1\r\n"));
        // The end of the body sends nothing again.
        Box::new(copy).end();
        assert!(upstreams.copies.count.load(Ordering::Relaxed) <= 1);
    }

    #[test]
    fn unfinished_copies_are_bounded_in_bytes() {
        const BODY_SIZE: usize = 64 * 1024;
        let to = To::at(Host::Address([127, 0, 0, 9].into(), 1));
        let upstreams = Upstreams::default();
        let upstream = upstreams.get(&to, None, Resolve::Ttl, None);
        let all = &upstreams.copies;
        let chunk = Bytes::from(vec![b'x'; BODY_SIZE]);
        let mut copies = Vec::new();
        let max_copies = MAX_BYTES / BODY_SIZE;
        loop {
            let mut copy = MirroredRequest {
                upstream: Arc::clone(&upstream),
                engine: ClientConnection::new(),
                bytes: Vec::new(),
                remaining: Some(BODY_SIZE),
                missing: None,
                counted: ByteCount::new(all),
            };
            copy.bytes.extend_from_slice(&chunk);
            if !copy.count_bytes() {
                break;
            }
            copies.push(copy);
            assert!(copies.len() <= max_copies, "more than {MAX_BYTES} bytes");
        }
        assert!(all.bytes.load(Ordering::Relaxed) <= MAX_BYTES);
        assert_eq!(copies.len(), max_copies);
        // A copy that is abandoned while it is recorded frees its bytes for other copies.
        let mut last = copies.pop().expect("a copy");
        last.remaining = Some(0);
        last.chunk(&chunk);
        assert_eq!((last.remaining, last.bytes.capacity()), (None, 0));
        assert!(ByteCount::new(all).grow_to(BODY_SIZE));
        drop((last, copies));
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
    }
}
