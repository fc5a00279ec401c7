//! A Link over a stream socket (TCP or Unix) on the runtime's readiness events.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::epoll::write_batch::{BatchSender, SEND_FLAGS};
use crate::file::sendfile;
use crate::link::{Link, Received};
use crate::pipe::Pipe;
use crate::queue::{MAX_SLICES, SendQueue};
use crate::socket::{
    AcceptErrorKind, Keepalive, Listener, PeerAddress, accept, accept_error_kind, cork, keepalive, notsent_lowat,
};

mod connect;
mod parked;

pub use parked::ParkedConnection;

/// Most bytes of files sent before other connections get their turn: what was measured to cost least or nearly so for 1 to 64
/// connections, whatever the size of the file (decision 7).
pub(crate) const FILE_BUDGET: u64 = 512 << 10;

/// What a receive counts among the steps after which what lies ready leaves, and what a send does, of up to half a megabyte of a
/// file.
const RECEIVE_STEPS: u32 = 1;
const SEND_STEPS: u32 = 8;

/// A connected, non-blocking stream socket.
pub struct EpollStream {
    /// By which small things leave. Stands before the socket, because fields are dropped in their order.
    sender: BatchSender,
    socket: AsyncFd<OwnedFd>,
    /// The first receive is tried at once: with the accept, the request has mostly arrived.
    fresh: bool,
}

impl EpollStream {
    /// Takes over an accepted socket; it must be non-blocking.
    pub fn new(socket: OwnedFd) -> io::Result<EpollStream> {
        Ok(EpollStream {
            sender: BatchSender::for_current_thread(),
            socket: register(socket)?,
            fresh: true,
        })
    }

    /// The first receive waits for an event, as all others do.
    pub(crate) fn expect_nothing(&mut self) {
        self.fresh = false;
    }
}

impl AsFd for EpollStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

/// A listening socket on the events of this thread's runtime.
pub struct Acceptor(AsyncFd<Listener>);

impl Acceptor {
    pub fn new(listener: Listener) -> io::Result<Acceptor> {
        Ok(Acceptor(register(listener)?))
    }

    /// The next connection. Pending when there is none, never an error of kind `WouldBlock`.
    pub fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(OwnedFd, PeerAddress)>> {
        loop {
            let mut readiness = ready!(self.0.poll_read_ready(context))?;
            match accept(readiness.get_inner()) {
                Err(error) if accept_error_kind(&error) == AcceptErrorKind::WouldBlock => readiness.clear_ready(),
                result => return Poll::Ready(result),
            }
        }
    }
}

#[allow(unsafe_code)]
pub(crate) fn register<S: AsFd + AsRawFd>(socket: S) -> io::Result<AsyncFd<S>> {
    // SAFETY: `OwnedFd` and `Listener` own their descriptor, name the same one for as long as they live, and close it
    // only when dropped; `AsyncFd` deregisters before it drops them, and nothing here takes them out or swaps them.
    Ok(unsafe { AsyncFd::register(socket) }?)
}

impl Link for EpollStream {
    #[inline]
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        let room = buffer.len();
        self.sender.step(RECEIVE_STEPS);
        if self.fresh {
            self.fresh = false;
            match receive(self.socket.get_ref().as_fd(), buffer) {
                Ok(got) => return Poll::Ready(Ok(Received::Borrowed(&buffer[..got]))),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        loop {
            let mut readiness = ready!(self.socket.poll_read_ready(context))?;
            match receive(readiness.get_inner().as_fd(), buffer) {
                Ok(got) => {
                    // Edge-triggered: fewer bytes than asked for means that the socket is empty, so that
                    // the next call need not ask the kernel only to hear EAGAIN.
                    if got > 0 && got < room {
                        readiness.clear_ready();
                    }
                    // The end may be the last that is asked for.
                    if got == 0 && !self.sender.flush_completely() {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    return Poll::Ready(Ok(Received::Borrowed(&buffer[..got])));
                }
                Err(Errno::AGAIN) => readiness.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    fn is_idle(&mut self) -> bool {
        // No waker is left behind, which whoever receives next would have to replace.
        let received = self.socket.try_io(Interest::READABLE, |socket| {
            receive(socket.as_fd(), &mut [0]).map_err(io::Error::from)
        });
        received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    #[inline]
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        // In order: what was taken before leaves first.
        if !self.sender.flush_completely() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.sender.step(SEND_STEPS);
        // A write is tried before readiness is asked: the socket nearly always has room.
        let mut file_budget = FILE_BUDGET;
        loop {
            match send_queue(self.socket.get_ref().as_fd(), queue, &mut file_budget) {
                Ok(true) => return Poll::Ready(Ok(())),
                Ok(false) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.socket.poll_write_ready(context))?.clear_ready();
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        match self.socket.poll_read_ready(context)? {
            Poll::Ready(readiness) => pipe.fill(readiness.get_inner().as_fd()),
            Poll::Pending => Ok(0),
        }
    }

    #[inline]
    fn send_batched(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        let Some(plain) = queue.plain() else { return false };
        let length = plain.len();
        let taken = self.sender.push(self.socket.get_ref().as_fd(), context.waker(), plain);
        if taken {
            queue.advance(length);
        }
        taken
    }

    #[inline]
    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        self.sender.take_unsent()
    }

    #[inline]
    fn flush(&mut self) {
        self.sender.flush();
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.flush();
        shut_down(self.socket.get_ref().as_fd())
    }

    fn reset(&mut self) {
        reset(self.socket.get_ref().as_fd());
    }

    fn keep_alive(&mut self) {
        keep_alive(self.socket.get_ref().as_fd());
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        limit_unsent(self.socket.get_ref().as_fd(), bytes);
    }

    fn in_flight(&self) -> u64 {
        in_flight(self.socket.get_ref().as_fd())
    }

    fn sends_files(&self) -> bool {
        true
    }
}

pub(crate) fn shut_down(socket: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::net::shutdown(socket, Shutdown::Write)?)
}

pub(crate) fn reset(socket: BorrowedFd<'_>) {
    // A socket that cannot linger is closed as it is; a Unix socket has no other way.
    let _ = socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO));
}

/// When a peer that may be silent is asked whether it is there: one that has vanished is given up two minutes after its
/// last word, and one that is there is asked once a minute.
const KEEPALIVE: Keepalive = Keepalive {
    idle: Duration::from_secs(60),
    interval: Duration::from_secs(15),
    count: 4,
};

pub(crate) fn keep_alive(socket: BorrowedFd<'_>) {
    // Who cannot be asked, as over a Unix socket, cannot vanish without a word either.
    let _ = keepalive(socket, KEEPALIVE);
}

pub(crate) fn limit_unsent(socket: BorrowedFd<'_>, bytes: Option<u32>) {
    // 0 stands for the system's default. A Unix socket has no such option, and its buffer is small.
    let _ = notsent_lowat(socket, bytes.unwrap_or(0));
}

#[cfg(target_os = "linux")]
pub(crate) fn in_flight(socket: BorrowedFd<'_>) -> u64 {
    /// `SIOCOUTQ`: what waits in the send queue of a socket, unacknowledged.
    const SEND_QUEUE: rustix::ioctl::Opcode = 0x5411;
    #[allow(unsafe_code)]
    // SAFETY: this request writes one int, which is what the getter makes room for, and nothing else.
    let bytes = unsafe {
        let getter = rustix::ioctl::Getter::<SEND_QUEUE, core::ffi::c_int>::new();
        rustix::ioctl::ioctl(socket, getter)
    };
    let bytes = u64::try_from(bytes.unwrap_or(0)).unwrap_or(0);
    // The kernel goes on counting what a peer that has reset its connection will never acknowledge.
    if bytes > 0 && is_closed(socket) { 0 } else { bytes }
}

/// Whether the connection has ended for the kernel, by a reset in most cases. False for sockets other than TCP's.
#[cfg(target_os = "linux")]
fn is_closed(socket: BorrowedFd<'_>) -> bool {
    /// `TCP_CLOSE` of `<netinet/tcp.h>`.
    const CLOSED: u8 = 7;
    let mut state = 0_u8;
    let mut length: libc::socklen_t = 1;
    #[allow(unsafe_code)]
    // SAFETY: the kernel writes at most `length` bytes, one, to `state`, and the length that it wrote to `length`. The first byte of
    // `struct tcp_info` is the state.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &raw mut length,
        )
    };
    result == 0 && length == 1 && state == CLOSED
}

#[cfg(not(target_os = "linux"))]
fn in_flight(_: BorrowedFd<'_>) -> u64 {
    0
}

/// What follows at once may share a packet.
#[cfg(target_os = "linux")]
const SEND_MORE_FLAGS: SendFlags = SEND_FLAGS.union(SendFlags::MORE);
#[cfg(not(target_os = "linux"))]
const SEND_MORE_FLAGS: SendFlags = SEND_FLAGS;

#[inline]
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(got, _)| got)
}

/// Sends as much as the socket takes. True when the queue is empty, false when that is all of files for this turn.
#[inline]
pub(crate) fn send_queue(socket: BorrowedFd<'_>, queue: &mut SendQueue, file_budget: &mut u64) -> io::Result<bool> {
    // Frames around stretches of a file: each call would send a packet of its own, with what that costs on both sides.
    let corked = queue.has_data_after_file();
    if corked {
        cork(socket, true);
    }
    let sent = loop {
        match send_front(socket, queue, file_budget) {
            Ok(true) => break Ok(true),
            Ok(false) if *file_budget == 0 => break Ok(false),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    if corked {
        cork(socket, false);
    }
    sent
}

/// One system call's worth of the queue. True when the queue is empty.
#[inline]
fn send_front(socket: BorrowedFd<'_>, queue: &mut SendQueue, file_budget: &mut u64) -> io::Result<bool> {
    let sent = if let Some(plain) = queue.plain() {
        if plain.is_empty() {
            return Ok(true);
        }
        rustix::net::send(socket, plain, SEND_FLAGS)?
    } else if let Some((file, offset, length)) = queue.file() {
        let mut at = *offset;
        let sent = sendfile(socket, file, &mut at, (*length).min(*file_budget))?;
        *file_budget -= sent as u64;
        sent
    } else if let Some(pipe) = queue.pipe() {
        pipe.drain(socket)?
    } else {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let (count, more) = queue.slices(&mut slices);
        let flags = if more { SEND_MORE_FLAGS } else { SEND_FLAGS };
        rustix::net::sendmsg(socket, &slices[..count], &mut SendAncillaryBuffer::default(), flags)?
    };
    queue.advance(sent);
    Ok(queue.is_empty())
}

#[cfg(test)]
mod tests;
