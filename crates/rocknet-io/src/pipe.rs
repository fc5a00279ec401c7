//! Pipes: where bytes stay in the kernel on their way from one socket to another, and the few that a worker has for it.
//!
//! A pipe is taken when there is something to move, and is back as soon as that has left: with one worker's tunnels moving
//! one after the other, mostly the same pipe serves all of them. One with bytes in it is never used for anything else.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::rc::Rc;

#[cfg(target_os = "linux")]
#[path = "pipe/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "pipe/portable.rs"]
mod system;

use system::PipeEnds;

/// Most pipes of one worker. More than one is only needed where a side does not take what was moved; beyond, bytes are
/// copied.
pub const MAX_PIPES: usize = 16;
/// Most bytes moved into a pipe at once, and so held by it. On loopback a MiB cost 0.49 of copying through 64 KiB, 0.44 through
/// so much, and 0.43 through 1 MiB.
pub const PIPE_BYTES: usize = 256 * 1024;

/// The pipes of one worker.
pub struct PipePool(Rc<PoolInner>);

struct PoolInner {
    max_pipes: usize,
    /// Those with nothing in them that nobody uses.
    free: RefCell<Vec<PipeEnds>>,
    /// Those there are, with those in use.
    count: Cell<usize>,
    /// One was wanted since the last tick.
    was_used: Cell<bool>,
    /// The system has refused one since the last tick: to ask it for every piece would cost more than copying.
    creation_failed: Cell<bool>,
}

/// A pipe, as soon as something is put into it. It goes back when dropped, or is closed if there is still something in it.
pub struct Pipe {
    ends: Option<PipeEnds>,
    buffered: u64,
    pool: Rc<PoolInner>,
}

impl Default for PipePool {
    fn default() -> PipePool {
        PipePool::new(MAX_PIPES)
    }
}

impl PipePool {
    pub fn new(max_pipes: usize) -> PipePool {
        PipePool(Rc::new(PoolInner {
            max_pipes,
            free: RefCell::default(),
            count: Cell::new(0),
            was_used: Cell::new(false),
            creation_failed: Cell::new(false),
        }))
    }

    /// For one thing to be moved. Where all are in use, or the system has none to give, nothing can be put into it, and what
    /// is to be moved has to be copied.
    pub fn pipe(&self) -> Pipe {
        Pipe {
            ends: None,
            buffered: 0,
            pool: Rc::clone(&self.0),
        }
    }

    /// Closes what nobody has used since the last call, and asks the system again if it has refused.
    pub fn tick(&self) {
        self.0.creation_failed.set(false);
        if !self.0.was_used.replace(false) {
            self.close_idle();
        }
    }

    /// Closes all that nobody uses.
    pub fn close_idle(&self) {
        let PipePool(pool) = self;
        let closed = std::mem::take(&mut *pool.free.borrow_mut());
        pool.count.set(pool.count.get() - closed.len());
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.0.count.get()
    }
}

impl PoolInner {
    fn take(&self) -> Option<PipeEnds> {
        self.was_used.set(true);
        if let Some(ends) = self.free.borrow_mut().pop() {
            return Some(ends);
        }
        if self.count.get() >= self.max_pipes || self.creation_failed.get() {
            return None;
        }
        let opened = system::open(PIPE_BYTES);
        self.creation_failed.set(opened.is_err());
        let ends = opened.ok()?;
        self.count.set(self.count.get() + 1);
        Some(ends)
    }
}

impl Pipe {
    /// Bytes in it.
    pub fn buffered(&self) -> u64 {
        self.buffered
    }

    /// Moves in what a socket has, as far as there is room. 0: nothing, the end, or no pipe; receiving tells which.
    #[cfg(unix)]
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let room = PIPE_BYTES.saturating_sub(self.buffered as usize);
        self.write_with(|ends| system::fill(ends, socket, room))
    }

    /// Moves out what a socket takes.
    #[cfg(unix)]
    pub(crate) fn drain(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let buffered = self.buffered as usize;
        self.read_with(|ends| system::drain(ends, socket, buffered))
    }

    /// Copies in what there is room for: for links that have no socket.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_with(|ends| system::write(ends, bytes))
    }

    /// Copies out what is in front: for links that have to see what they send.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.read_with(|ends| system::read(ends, room))
    }

    fn write_with(&mut self, write: impl FnOnce(&PipeEnds) -> io::Result<usize>) -> io::Result<usize> {
        if self.ends.is_none() {
            self.ends = self.pool.take();
        }
        let Some(ends) = &self.ends else { return Ok(0) };
        let moved = write(ends)?;
        self.buffered += moved as u64;
        Ok(moved)
    }

    fn read_with(&mut self, read: impl FnOnce(&PipeEnds) -> io::Result<usize>) -> io::Result<usize> {
        let ends = self.ends.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        match read(ends)? {
            // We hold the other end, and there is something in it.
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            moved => {
                self.buffered -= moved as u64;
                Ok(moved)
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take() else { return };
        match self.buffered {
            0 => self.pool.free.borrow_mut().push(ends),
            // What is left in it is nobody else's.
            _ => self.pool.count.set(self.pool.count.get() - 1),
        }
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe")
            .field("buffered", &self.buffered)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;
    use crate::isolated_test::in_own_process;

    /// One end for us, one for a test.
    fn tcp() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        (ours, theirs)
    }

    fn unix() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        (ours, theirs)
    }

    /// Until there is something to receive, or an end.
    fn wait(socket: &TcpStream) {
        let mut polled = [PollFd::new(socket, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 30, tv_nsec: 0 };
        assert_eq!(poll(&mut polled, Some(&timeout)).unwrap(), 1);
    }

    /// What one peer says is moved to the other, whatever leaves at once.
    fn check(from: &impl AsFd, says: &mut impl Write, to: &impl AsFd, hears: &mut impl Read) {
        let pipes = PipePool::new(1);
        let said: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
        let (mut heard, mut room) = (Vec::new(), vec![0; 30_000]);
        for _ in 0..20 {
            says.write_all(&said).unwrap();
            let mut left = said.len();
            while left > 0 {
                let mut pipe = pipes.pipe();
                let filled = pipe.fill(from.as_fd()).unwrap();
                assert_eq!(pipe.buffered(), filled as u64);
                left -= filled;
                while pipe.buffered() > 0 {
                    match pipe.drain(to.as_fd()) {
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            let read = hears.read(&mut room).unwrap();
                            heard.extend_from_slice(&room[..read]);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
        while heard.len() < 20 * said.len() {
            let read = hears.read(&mut room).unwrap();
            assert!(read > 0, "it ends after {}", heard.len());
            heard.extend_from_slice(&room[..read]);
        }
        assert!(heard == said.repeat(20), "changed on its way");
    }

    #[test]
    fn what_sockets_bring_leaves_by_others() {
        let ((from, mut says), (to, mut hears)) = (tcp(), tcp());
        check(&from, &mut says, &to, &mut hears);
        let ((from, mut says), (to, mut hears)) = (unix(), tcp());
        check(&from, &mut says, &to, &mut hears);
        let ((from, mut says), (to, mut hears)) = (tcp(), unix());
        check(&from, &mut says, &to, &mut hears);
    }

    #[test]
    fn nothing_and_an_end_look_alike_and_a_reset_does_not() {
        let (pipes, (ours, theirs)) = (PipePool::new(1), tcp());
        let mut pipe = pipes.pipe();
        assert_eq!(pipe.fill(ours.as_fd()).unwrap(), 0);
        theirs.shutdown(Shutdown::Write).unwrap();
        wait(&ours);
        assert_eq!(pipe.fill(ours.as_fd()).unwrap(), 0);
        let (ours, theirs) = tcp();
        socket2::SockRef::from(&theirs)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(theirs);
        wait(&ours);
        let error = pipe.fill(ours.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn pipes_are_used_again_if_nothing_is_in_them_and_closed_if_nobody_uses_them() {
        let pipes = PipePool::new(2);
        let (mut one, mut two, mut three) = (pipes.pipe(), pipes.pipe(), pipes.pipe());
        assert_eq!(pipes.count(), 0, "one that nobody needs");
        assert_eq!(one.write(b"not for others").unwrap(), 14);
        assert_eq!(two.write(b"").unwrap(), 0);
        assert_eq!(
            (three.write(b"x").unwrap(), pipes.count()),
            (0, 2),
            "more than there may be"
        );
        drop((one, two));
        assert_eq!(pipes.count(), 1);
        assert_eq!(three.write(b"all of it").unwrap(), 9);
        assert_eq!((pipes.count(), three.buffered()), (1, 9));
        let mut read = [0; 20];
        assert_eq!(three.read(&mut read).unwrap(), 9);
        assert_eq!(read[..9], *b"all of it");
        drop(three);
        pipes.tick();
        assert_eq!(pipes.count(), 1);
        pipes.tick();
        assert_eq!(pipes.count(), 0);
        // One that is in use stays, whatever becomes of the others.
        let mut used = pipes.pipe();
        used.write(b"x").unwrap();
        pipes.close_idle();
        assert_eq!(pipes.count(), 1);
        drop(pipes);
        assert_eq!(used.read(&mut read).unwrap(), 1);
    }

    /// Runs in a process of its own, because the limit is the whole process's.
    #[test]
    fn without_descriptors_there_is_none_until_there_are_some_again() {
        if !in_own_process("pipe::tests::without_descriptors_there_is_none_until_there_are_some_again") {
            return;
        }
        let maximum = getrlimit(Resource::Nofile).maximum;
        let limit = |current| setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        let (pipes, before) = (PipePool::new(2), getrlimit(Resource::Nofile).current);
        limit(Some(0));
        assert_eq!(pipes.pipe().write(b"x").unwrap(), 0);
        limit(before);
        assert_eq!(pipes.pipe().write(b"x").unwrap(), 0, "it is asked for at every piece");
        pipes.tick();
        assert_eq!(pipes.pipe().write(b"x").unwrap(), 1);
    }
}
