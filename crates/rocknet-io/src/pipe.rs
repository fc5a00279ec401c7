//! Pool of kernel pipes, through which bytes move from socket to socket without entering the memory of this process
//! (`splice(2)`).
//!
//! A transfer takes a pipe when there are bytes to move, and returns it as soon as the pipe is empty. The tunnels of a
//! worker move data one after the other, so one pipe is mostly enough for all of them. A pipe that still contains bytes
//! is never reused.

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

/// Default maximum number of pipes of one worker. A second pipe is needed only while a receiver does not accept the
/// bytes in the first. Without a free pipe, bytes are copied.
pub const MAX_PIPES: usize = 16;
/// Capacity in bytes that is requested for a pipe, and the maximum number of bytes in it. On loopback, moving a MiB
/// through pipes of 64 KiB cost 0.49 times as much as copying it. The factor was 0.44 with 256 KiB and 0.43 with
/// 1 MiB.
pub const PIPE_BYTES: usize = 256 * 1024;

/// Pool of the pipes of one worker.
pub struct PipePool(Rc<PoolInner>);

/// State of a pool, which its pipes share.
struct PoolInner {
    max_pipes: usize,
    /// Empty pipes that are not in use.
    free: RefCell<Vec<PipeEnds>>,
    /// Number of open pipes, including those in use.
    count: Cell<usize>,
    /// True if a pipe was requested since the last [`PipePool::tick`], even if the request failed.
    was_used: Cell<bool>,
    /// True if the system refused to create a pipe since the last [`PipePool::tick`]. Trying again for every transfer
    /// would cost more than copying.
    creation_failed: Cell<bool>,
}

/// A pipe of the pool, taken or opened when bytes are first put into it. On drop it returns to the pool if it is empty,
/// and is closed otherwise.
pub struct Pipe {
    /// `None` until bytes are first put into the pipe.
    ends: Option<PipeEnds>,
    /// Number of bytes in the pipe.
    buffered: u64,
    pool: Rc<PoolInner>,
}

impl Default for PipePool {
    fn default() -> PipePool {
        PipePool::new(MAX_PIPES)
    }
}

impl PipePool {
    /// Creates a pool of at most `max_pipes` pipes, which are opened on demand.
    pub fn new(max_pipes: usize) -> PipePool {
        PipePool(Rc::new(PoolInner {
            max_pipes,
            free: RefCell::default(),
            count: Cell::new(0),
            was_used: Cell::new(false),
            creation_failed: Cell::new(false),
        }))
    }

    /// Returns a pipe for one transfer. If all pipes are in use or the system refuses to create one, filling the
    /// returned pipe moves 0 bytes, and the caller has to copy.
    pub fn pipe(&self) -> Pipe {
        Pipe {
            ends: None,
            buffered: 0,
            pool: Rc::clone(&self.0),
        }
    }

    /// Closes the free pipes if no pipe was requested since the last call. If the system refused to create a pipe,
    /// allows a new attempt. To be called periodically.
    pub fn tick(&self) {
        self.0.creation_failed.set(false);
        if !self.0.was_used.replace(false) {
            self.close_idle();
        }
    }

    /// Closes all pipes that are not in use.
    pub fn close_idle(&self) {
        let PipePool(pool) = self;
        let closed = std::mem::take(&mut *pool.free.borrow_mut());
        pool.count.set(pool.count.get() - closed.len());
    }

    /// Returns the number of open pipes.
    pub fn count(&self) -> usize {
        self.0.count.get()
    }
}

impl PoolInner {
    /// Returns a free pipe, or opens one. Returns `None` if neither is possible.
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
    /// Returns the number of bytes in the pipe.
    pub fn buffered(&self) -> u64 {
        self.buffered
    }

    /// Moves bytes from a socket into the pipe, at most as many as the pipe has room for, and returns their number.
    /// Returns 0 if the socket has no data, is at its end or does not support `splice`. Also returns 0 if the pipe is
    /// full, the pool has no pipe, or a signal interrupts the call. To distinguish these cases, the caller receives
    /// from the socket.
    #[cfg(unix)]
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let room = PIPE_BYTES.saturating_sub(self.buffered as usize);
        self.write_with(|ends| system::fill(ends, socket, room))
    }

    /// Moves as many bytes from the pipe into a socket as the socket accepts, and returns their number. The pipe must
    /// not be empty. Fails with `WouldBlock` if the socket is full.
    #[cfg(unix)]
    pub(crate) fn drain(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let buffered = self.buffered as usize;
        self.read_with(|ends| system::drain(ends, socket, buffered))
    }

    /// Copies bytes into the pipe, and returns their number: 0 if the pipe is full, or if the pool has no pipe. Used by
    /// links without a socket.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_with(|ends| system::write(ends, bytes))
    }

    /// Takes bytes from the front of the pipe into `room`, and returns their number. The pipe must not be empty. Used
    /// by links that have to process the bytes that they send, such as TLS.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.read_with(|ends| system::read(ends, room))
    }

    /// Calls `write` with the ends of the pipe, and counts the bytes that it moves into the pipe. If there are no
    /// ends yet, takes a pipe from the pool first, and returns 0 if the pool has none.
    fn write_with(&mut self, write: impl FnOnce(&PipeEnds) -> io::Result<usize>) -> io::Result<usize> {
        if self.ends.is_none() {
            self.ends = self.pool.take();
        }
        let Some(ends) = &self.ends else { return Ok(0) };
        let moved = write(ends)?;
        self.buffered += moved as u64;
        Ok(moved)
    }

    /// Calls `read` with the ends of the pipe, and counts the bytes that it moves out of the pipe.
    fn read_with(&mut self, read: impl FnOnce(&PipeEnds) -> io::Result<usize>) -> io::Result<usize> {
        let ends = self.ends.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        match read(ends)? {
            // Unexpected, because the writing end is open and callers read only from a pipe that is not empty.
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
            // Bytes of one transfer must not reach another.
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

    /// Returns a connected pair: the non-blocking end under test, and the peer.
    fn tcp() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        (ours, theirs)
    }

    /// Returns a connected pair like [`tcp`], of Unix sockets.
    fn unix() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        (ours, theirs)
    }

    /// Waits until the socket is readable or at its end.
    fn wait(socket: &TcpStream) {
        let mut polled = [PollFd::new(socket, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 30, tv_nsec: 0 };
        assert_eq!(poll(&mut polled, Some(&timeout)).unwrap(), 1);
    }

    /// Checks that all bytes of `sender`, the peer of `from`, pass through a pipe to `receiver`, the peer of `to`, in
    /// order.
    fn check(from: &impl AsFd, sender: &mut impl Write, to: &impl AsFd, receiver: &mut impl Read) {
        let pipes = PipePool::new(1);
        let sent: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
        let (mut received, mut room) = (Vec::new(), vec![0; 30_000]);
        for _ in 0..20 {
            sender.write_all(&sent).unwrap();
            let mut remaining = sent.len();
            while remaining > 0 {
                let mut pipe = pipes.pipe();
                let filled = pipe.fill(from.as_fd()).unwrap();
                assert_eq!(pipe.buffered(), filled as u64);
                remaining -= filled;
                while pipe.buffered() > 0 {
                    match pipe.drain(to.as_fd()) {
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            let read = receiver.read(&mut room).unwrap();
                            received.extend_from_slice(&room[..read]);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
        while received.len() < 20 * sent.len() {
            let read = receiver.read(&mut room).unwrap();
            assert!(read > 0, "the stream ends after {} bytes", received.len());
            received.extend_from_slice(&room[..read]);
        }
        assert!(received == sent.repeat(20), "bytes changed on the way");
    }

    #[test]
    fn bytes_move_between_sockets_of_every_kind() {
        let ((from, mut sender), (to, mut receiver)) = (tcp(), tcp());
        check(&from, &mut sender, &to, &mut receiver);
        let ((from, mut sender), (to, mut receiver)) = (unix(), tcp());
        check(&from, &mut sender, &to, &mut receiver);
        let ((from, mut sender), (to, mut receiver)) = (tcp(), unix());
        check(&from, &mut sender, &to, &mut receiver);
    }

    #[test]
    fn no_data_and_the_end_return_zero_and_a_reset_an_error() {
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
    fn empty_pipes_are_reused_and_idle_pipes_closed() {
        let pipes = PipePool::new(2);
        let (mut one, mut two, mut three) = (pipes.pipe(), pipes.pipe(), pipes.pipe());
        assert_eq!(pipes.count(), 0, "an unused pipe is open");
        assert_eq!(one.write(b"not for others").unwrap(), 14);
        // Takes the second pipe and leaves it empty.
        assert_eq!(two.write(b"").unwrap(), 0);
        assert_eq!(
            (three.write(b"x").unwrap(), pipes.count()),
            (0, 2),
            "more pipes than allowed"
        );
        drop((one, two));
        assert_eq!(pipes.count(), 1);
        assert_eq!(three.write(b"all of it").unwrap(), 9);
        assert_eq!((pipes.count(), three.buffered()), (1, 9));
        let mut read = [0; 20];
        assert_eq!(three.read(&mut read).unwrap(), 9);
        assert_eq!(read[..9], *b"all of it");
        drop(three);
        // The first tick closes no pipe, because pipes were requested before it.
        pipes.tick();
        assert_eq!(pipes.count(), 1);
        pipes.tick();
        assert_eq!(pipes.count(), 0);
        // A pipe in use stays open.
        let mut used = pipes.pipe();
        used.write(b"x").unwrap();
        pipes.close_idle();
        assert_eq!(pipes.count(), 1);
        drop(pipes);
        assert_eq!(used.read(&mut read).unwrap(), 1);
    }

    /// Runs in its own process, because the limit applies to the whole process.
    #[test]
    fn without_descriptors_no_pipe_opens_until_the_next_tick() {
        if !in_own_process("pipe::tests::without_descriptors_no_pipe_opens_until_the_next_tick") {
            return;
        }
        let maximum = getrlimit(Resource::Nofile).maximum;
        let limit = |current| setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        let (pipes, before) = (PipePool::new(2), getrlimit(Resource::Nofile).current);
        limit(Some(0));
        assert_eq!(pipes.pipe().write(b"x").unwrap(), 0);
        limit(before);
        assert_eq!(
            pipes.pipe().write(b"x").unwrap(),
            0,
            "a pipe was requested again before the tick"
        );
        pipes.tick();
        assert_eq!(pipes.pipe().write(b"x").unwrap(), 1);
    }
}
