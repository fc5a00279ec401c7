//! One connection of a random program and who is at its other end: each says bytes whose place can be told from them.

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

use super::Total;
use crate::io_uring::simulated::Die;
use crate::io_uring::{Driver, UringStream};
use crate::link::{Link, Received};
use crate::pipe::PipePool;
use crate::queue::SendQueue;

/// What one side says from a place on: bytes that tell the place. No more than twice what a pipe holds.
fn bytes(seed: usize, from: usize, length: usize) -> &'static [u8] {
    static ALL: LazyLock<Vec<u8>> = LazyLock::new(|| (0..2_097_152).map(|at| (at % 251) as u8).collect());
    let from = (seed + from) % 251;
    &ALL[from..from + length]
}

#[derive(Default)]
pub struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Flag {
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// What is known of a link from outside.
#[derive(Default)]
pub struct Told {
    heard: usize,
    /// Given to the link to be sent.
    said: usize,
    heard_end: bool,
    finished: bool,
    error: Option<io::Error>,
}

/// A connection, as protocols drive theirs: what came back goes first.
struct Talker {
    link: UringStream,
    backlog: SendQueue,
    pipes: PipePool,
    seed: usize,
    told: Rc<RefCell<Told>>,
}

impl Talker {
    fn poll_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(unsent) = self.link.take_unsent() {
            self.backlog.put_back(unsent);
        }
        match self.backlog.is_empty() {
            true => Poll::Ready(Ok(())),
            false => self.link.poll_send(context, &mut self.backlog),
        }
    }

    async fn hear(&mut self, offered: usize, by_pipe: bool) -> io::Result<()> {
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
            let mut told = self.told.borrow_mut();
            assert!(!told.heard_end || received.is_empty(), "bytes after the end");
            let expected = bytes(self.seed + 100, told.heard, received.len());
            assert!(
                *received == *expected,
                "other bytes than were sent, from {}",
                told.heard
            );
            told.heard += received.len();
            told.heard_end = received.is_empty();
            Poll::Ready(Ok(()))
        })
        .await
    }

    async fn say(&mut self, length: usize, together: bool) -> io::Result<()> {
        poll_fn(|context| self.poll_backlog(context)).await?;
        let mut queue = SendQueue::default();
        let from = self.told.borrow().said;
        queue.buffer().extend(bytes(self.seed, from, length));
        self.told.borrow_mut().said += length;
        if together && poll_fn(|context| Poll::Ready(self.link.send_batched(context, &mut queue))).await {
            return Ok(());
        }
        self.backlog = queue;
        poll_fn(|context| self.poll_backlog(context)).await
    }

    /// All has left.
    async fn finish(&mut self) -> io::Result<()> {
        poll_fn(|context| {
            loop {
                ready!(self.poll_backlog(context))?;
                self.link.flush();
                // Tells if something could not be sent.
                ready!(self.link.poll_send(context, &mut self.backlog))?;
                match self.link.take_unsent() {
                    Some(unsent) => self.backlog.put_back(unsent),
                    None => return Poll::Ready(Ok(())),
                }
            }
        })
        .await
    }

    async fn live(mut self, mut die: Die) -> io::Result<()> {
        for _ in 0..die.throw(14) {
            match die.throw(12) {
                0..5 => {
                    let offered = [1, 100, 4096, 8192, 65_536][die.throw(5)];
                    self.hear(offered, die.falls(50)).await?;
                }
                5..9 => self.say([1, 200, 5000, 8192, 20_000][die.throw(5)], true).await?,
                9 => self.say(die.throw(40_000), false).await?,
                10 => {
                    let mut polls = die.throw(6);
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
        if die.falls(20) {
            // Lets go with whatever is on its way.
            return Ok(());
        }
        self.finish().await?;
        if die.falls(50) {
            self.link.shut_down()?;
            while !self.told.borrow().heard_end {
                self.hear(10_000, true).await?;
            }
        }
        self.told.borrow_mut().finished = true;
        Ok(())
    }
}

/// One connection and who is at its other end.
pub struct Pair {
    pub task: Option<Pin<Box<dyn Future<Output = io::Result<()>>>>>,
    pub woken: Arc<Flag>,
    pub told: Rc<RefCell<Told>>,
    seed: usize,
    pub inode: u64,
    pub peer: Option<UnixStream>,
    wrote: usize,
    read: usize,
    pub saw_end: bool,
    /// The peer went away with something unread.
    pub went_away: bool,
}

impl Pair {
    pub fn new(driver: &Rc<Driver>, die: &mut Die) -> Pair {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        for socket in [&ours, &theirs] {
            // Full soon, or with room for what is received in bulk.
            let room = [4096, 4096, 128 * 1024][die.throw(3)];
            rustix::net::sockopt::set_socket_send_buffer_size(socket, room).expect("an option");
        }
        ours.set_nonblocking(true).expect("an option");
        theirs.set_nonblocking(true).expect("an option");
        let (told, seed) = (Rc::<RefCell<Told>>::default(), die.throw(251));
        let inode = rustix::fs::fstat(&ours).expect("open").st_ino;
        let talker = Talker {
            link: UringStream::new(Rc::clone(driver), ours.into()),
            backlog: SendQueue::default(),
            pipes: PipePool::default(),
            seed,
            told: Rc::clone(&told),
        };
        let woken = Arc::new(Flag::default());
        woken.wake_by_ref();
        Pair {
            task: Some(Box::pin(talker.live(Die::new(die.throw(1 << 30) as u64)))),
            woken,
            told,
            seed,
            inode,
            peer: Some(theirs),
            wrote: 0,
            read: 0,
            saw_end: false,
            went_away: false,
        }
    }

    pub fn poll(&mut self) {
        let Some(task) = &mut self.task else { return };
        let waker = Waker::from(Arc::clone(&self.woken));
        if let Poll::Ready(result) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.task = None;
            self.told.borrow_mut().error = result.err();
        }
    }

    pub fn write(&mut self, length: usize) {
        let Some(peer) = &mut self.peer else { return };
        if let Ok(wrote) = peer.write(bytes(self.seed + 100, self.wrote, length)) {
            self.wrote += wrote;
        }
    }

    pub fn read(&mut self, length: usize) {
        let mut buffer = vec![0; length];
        let Some(peer) = &mut self.peer else { return };
        match peer.read(&mut buffer) {
            Ok(0) => self.saw_end = true,
            Ok(got) => {
                let expected = bytes(self.seed, self.read, got);
                assert!(
                    buffer[..got] == *expected,
                    "the peer reads something else, from {}",
                    self.read
                );
                self.read += got;
            }
            Err(error) => self.saw_end |= error.kind() == ErrorKind::ConnectionReset,
        }
    }

    pub fn stop_writing(&mut self) {
        if let Some(peer) = &self.peer {
            let _ = peer.shutdown(Shutdown::Write);
        }
    }

    pub fn is_over(&self) -> bool {
        self.task.is_none() && (self.saw_end || self.peer.is_none())
    }

    pub fn check(&self, lost: bool, broken: bool, total: &mut Total) {
        let told = self.told.borrow();
        assert!(self.read <= told.said, "the peer read more than was said");
        match &told.error {
            Some(error) => assert!(lost || broken || self.went_away, "out of the blue: {error}"),
            None if told.finished && !self.went_away && !lost => {
                assert_eq!(self.read, told.said, "not all that was said has arrived");
            }
            None => {}
        }
        if told.heard_end && !lost {
            assert_eq!(told.heard, self.wrote, "not all was heard");
        }
        total.heard += told.heard;
        total.said += self.read;
        total.lost += usize::from(lost);
        total.failures += usize::from(told.error.is_some());
        total.finished += usize::from(told.finished);
        total.cut += usize::from(!told.finished && told.error.is_none());
    }
}
