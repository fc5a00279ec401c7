//! One connection of a random scenario and its peer. Both send bytes that reveal their position.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker, ready};

use super::Totals;
use crate::io_uring::simulated::SeededRng;
use crate::io_uring::{Driver, UringStream};
use crate::link::{Link, Received};
use crate::pipe::PipePool;
use crate::queue::SendQueue;

/// Returns the `length` bytes that one side sends from position `from` on. `length` may be up to 2 MB. The peer uses
/// the seed of the link plus 100, so that the two directions carry different bytes. The bytes repeat after 251
/// positions. That number is prime, so a shift by the size of a buffer is noticed.
fn bytes(seed: usize, from: usize, length: usize) -> &'static [u8] {
    static ALL: LazyLock<Vec<u8>> = LazyLock::new(|| (0..2_097_152).map(|at| (at % 251) as u8).collect());
    let from = (seed + from) % 251;
    &ALL[from..from + length]
}

/// Flag that is set when a task is woken.
#[derive(Default)]
pub struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Flag {
    /// Returns whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns whether the flag is set, and clears it.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Record of a link's traffic, stored outside of the link so that it outlives the link.
#[derive(Default)]
pub struct LinkRecord {
    /// Number of bytes received by the link.
    received: usize,
    /// Number of bytes passed to the link.
    sent: usize,
    /// True once the link has received the end of the stream.
    received_end: bool,
    /// True once everything was sent and, if the link has shut down its sending side, the end of the stream was
    /// received.
    finished: bool,
    /// Error that ended the task of the link.
    error: Option<io::Error>,
}

/// Connection that uses its link as protocols do: returned unsent bytes are sent before all others.
struct TestConnection {
    link: UringStream,
    /// Bytes that the link has not accepted.
    backlog: SendQueue,
    pipes: PipePool,
    /// Seed of the bytes that the link sends; see [`bytes()`].
    seed: usize,
    record: Rc<RefCell<LinkRecord>>,
}

impl TestConnection {
    /// Sends the backlog, after the bytes that a batched write could not send.
    fn poll_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(unsent) = self.link.take_unsent() {
            self.backlog.put_back(unsent);
        }
        match self.backlog.is_empty() {
            true => Poll::Ready(Ok(())),
            false => self.link.poll_send(context, &mut self.backlog),
        }
    }

    /// Receives once, into a buffer of `offered` bytes. If `by_pipe` is true, tries to receive through a pipe first.
    async fn receive(&mut self, offered: usize, by_pipe: bool) -> io::Result<()> {
        let mut buffer = vec![0; offered];
        poll_fn(|context| {
            ready!(self.poll_backlog(context))?;
            let mut pipe = self.pipes.pipe();
            let moved = match by_pipe {
                true => self.link.fill_pipe(context, &mut pipe)?,
                false => 0,
            };
            let received = if moved == 0 {
                ready!(self.link.poll_recv(context, &mut buffer))?
            } else {
                let mut bytes = vec![0; moved];
                assert_eq!(pipe.read(&mut bytes)?, moved);
                Received::Owned(bytes.into())
            };
            let mut record = self.record.borrow_mut();
            assert!(!record.received_end || received.is_empty(), "bytes after the end");
            let expected = bytes(self.seed + 100, record.received, received.len());
            assert!(
                *received == *expected,
                "received bytes differ from those sent, from position {}",
                record.received
            );
            record.received += received.len();
            record.received_end = received.is_empty();
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Sends the next `length` bytes. If `batched` is true, tries to add them to the write batch first.
    async fn send(&mut self, length: usize, batched: bool) -> io::Result<()> {
        poll_fn(|context| self.poll_backlog(context)).await?;
        let mut queue = SendQueue::default();
        let from = self.record.borrow().sent;
        queue.buffer().extend(bytes(self.seed, from, length));
        self.record.borrow_mut().sent += length;
        if batched && poll_fn(|context| Poll::Ready(self.link.send_batched(context, &mut queue))).await {
            return Ok(());
        }
        self.backlog = queue;
        poll_fn(|context| self.poll_backlog(context)).await
    }

    /// Waits until everything was sent.
    async fn finish(&mut self) -> io::Result<()> {
        poll_fn(|context| {
            loop {
                ready!(self.poll_backlog(context))?;
                self.link.flush();
                // Returns the error of a send that failed.
                ready!(self.link.poll_send(context, &mut self.backlog))?;
                match self.link.take_unsent() {
                    Some(unsent) => self.backlog.put_back(unsent),
                    None => return Poll::Ready(Ok(())),
                }
            }
        })
        .await
    }

    /// Performs random operations, then either drops the link at once or sends everything. After sending everything,
    /// may also shut down the sending side and receive until the end.
    async fn run(mut self, mut rng: SeededRng) -> io::Result<()> {
        for _ in 0..rng.below(14) {
            match rng.below(12) {
                0..5 => {
                    let offered = [1, 100, 4096, 8192, 65_536][rng.below(5)];
                    self.receive(offered, rng.chance(50)).await?;
                }
                5..9 => self.send([1, 200, 5000, 8192, 20_000][rng.below(5)], true).await?,
                9 => self.send(rng.below(40_000), false).await?,
                // Yields a few times.
                10 => {
                    let mut polls = rng.below(6);
                    poll_fn(|context| {
                        context.waker().wake_by_ref();
                        polls = polls.saturating_sub(1);
                        if polls == 0 { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                }
                _ => self.link.flush(),
            }
        }
        if rng.chance(20) {
            // Drops the link while operations are in flight.
            return Ok(());
        }
        self.finish().await?;
        if rng.chance(50) {
            self.link.shut_down()?;
            while !self.record.borrow().received_end {
                self.receive(10_000, true).await?;
            }
        }
        self.record.borrow_mut().finished = true;
        Ok(())
    }
}

/// One connection and its peer.
pub struct Pair {
    /// Task of the link; `None` once it has ended or was dropped.
    pub task: Option<Pin<Box<dyn Future<Output = io::Result<()>>>>>,
    /// Set at first, and whenever the task is woken; cleared before a poll.
    pub woken: Arc<Flag>,
    pub record: Rc<RefCell<LinkRecord>>,
    /// Seed of the bytes that the link sends; see [`bytes()`].
    seed: usize,
    /// Inode of the link's socket.
    pub inode: u64,
    /// `None` once the peer has closed.
    pub peer: Option<UnixStream>,
    /// Number of bytes that the peer has written.
    wrote: usize,
    /// Number of bytes that the peer has read.
    read: usize,
    /// True once the peer has read the end of the stream or a reset.
    pub saw_end: bool,
    /// True if the peer has closed, possibly with unread data.
    pub peer_left: bool,
}

impl Pair {
    /// Creates a connection on `driver`, whose task has not been polled, and its peer.
    pub fn new(driver: &Rc<Driver>, rng: &mut SeededRng) -> Pair {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        for socket in [&ours, &theirs] {
            // A small buffer is soon full, and a large one has room for large receives.
            let room = [4096, 4096, 128 * 1024][rng.below(3)];
            rustix::net::sockopt::set_socket_send_buffer_size(socket, room).expect("an option");
        }
        ours.set_nonblocking(true).expect("an option");
        theirs.set_nonblocking(true).expect("an option");
        let (record, seed) = (Rc::<RefCell<LinkRecord>>::default(), rng.below(251));
        let inode = rustix::fs::fstat(&ours).expect("open").st_ino;
        let connection = TestConnection {
            link: UringStream::new(Rc::clone(driver), ours.into()),
            backlog: SendQueue::default(),
            pipes: PipePool::default(),
            seed,
            record: Rc::clone(&record),
        };
        let woken = Arc::new(Flag::default());
        woken.wake_by_ref();
        Pair {
            task: Some(Box::pin(connection.run(SeededRng::new(rng.below(1 << 30) as u64)))),
            woken,
            record,
            seed,
            inode,
            peer: Some(theirs),
            wrote: 0,
            read: 0,
            saw_end: false,
            peer_left: false,
        }
    }

    /// Polls the task.
    pub fn poll(&mut self) {
        let Some(task) = &mut self.task else { return };
        let waker = Waker::from(Arc::clone(&self.woken));
        if let Poll::Ready(result) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.task = None;
            self.record.borrow_mut().error = result.err();
        }
    }

    /// Makes the peer write up to `length` bytes.
    pub fn write(&mut self, length: usize) {
        let Some(peer) = &mut self.peer else { return };
        if let Ok(wrote) = peer.write(bytes(self.seed + 100, self.wrote, length)) {
            self.wrote += wrote;
        }
    }

    /// Makes the peer read up to `length` bytes, and checks them.
    pub fn read(&mut self, length: usize) {
        let mut buffer = vec![0; length];
        let Some(peer) = &mut self.peer else { return };
        match peer.read(&mut buffer) {
            Ok(0) => self.saw_end = true,
            Ok(got) => {
                let expected = bytes(self.seed, self.read, got);
                assert!(
                    buffer[..got] == *expected,
                    "the peer received wrong bytes, from position {}",
                    self.read
                );
                self.read += got;
            }
            Err(error) => self.saw_end |= error.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Makes the peer shut down its sending side.
    pub fn stop_writing(&mut self) {
        if let Some(peer) = &self.peer {
            let _ = peer.shutdown(Shutdown::Write);
        }
    }

    /// Returns whether the task has ended, and the peer has read the end or has closed.
    pub fn is_over(&self) -> bool {
        self.task.is_none() && (self.saw_end || self.peer.is_none())
    }

    /// Checks that all data has arrived, or that something excuses its loss. Adds the connection to `total`. `lost` is
    /// true if the simulated kernel has broken the connection, and `broken` if the ring has failed permanently.
    pub fn check(&self, lost: bool, broken: bool, total: &mut Totals) {
        let record = self.record.borrow();
        assert!(self.read <= record.sent, "the peer read more than was sent");
        match &record.error {
            Some(error) => assert!(lost || broken || self.peer_left, "unexpected error: {error}"),
            None if record.finished && !self.peer_left && !lost => {
                assert_eq!(self.read, record.sent, "not everything sent has arrived");
            }
            None => {}
        }
        if record.received_end && !lost {
            assert_eq!(record.received, self.wrote, "not everything was received");
        }
        total.received += record.received;
        total.sent += self.read;
        total.lost += usize::from(lost);
        total.failures += usize::from(record.error.is_some());
        total.finished += usize::from(record.finished);
        total.abandoned += usize::from(!record.finished && record.error.is_none());
    }
}
