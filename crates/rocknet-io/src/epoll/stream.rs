//! [`Link`] over a TCP or Unix stream socket that the runtime polls for readiness.

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

/// Maximum bytes of files that one connection sends before other connections are served. Of the sizes measured, this
/// one costs least or nearly least for 1 to 64 connections and files of any size (docs/decisions/0007-large-files.md).
pub(crate) const FILE_BUDGET: u64 = 512 << 10;

/// Work of one receive, in the steps that
/// [`WriteBatch::count_steps`](super::write_batch::WriteBatch::count_steps) counts.
const RECEIVE_STEPS: u32 = 1;
/// Work of one send, in the same steps: more than a receive, because one send may send half a megabyte of a file.
const SEND_STEPS: u32 = 8;

/// Connected, non-blocking stream socket.
pub struct EpollStream {
    /// Sends small writes in batches. Declared before the socket, because fields are dropped in order of declaration,
    /// and dropping the sender sends its write on the socket.
    sender: BatchSender,
    socket: AsyncFd<OwnedFd>,
    /// True until the first receive, which is tried without waiting for an event, because the request has usually
    /// arrived by then.
    fresh: bool,
}

impl EpollStream {
    /// Takes ownership of an accepted, non-blocking socket, and registers it with the event loop of this thread.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be registered.
    ///
    /// # Panics
    ///
    /// Panics outside of a runtime.
    pub fn new(socket: OwnedFd) -> io::Result<EpollStream> {
        Ok(EpollStream {
            sender: BatchSender::for_current_thread(),
            socket: register(socket)?,
            fresh: true,
        })
    }

    /// Makes the first receive wait for an event, like every later one.
    pub(crate) fn wait_for_first_receive(&mut self) {
        self.fresh = false;
    }
}

impl AsFd for EpollStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

/// Listening socket registered with the event loop of this thread.
pub struct Acceptor(AsyncFd<Listener>);

impl Acceptor {
    /// Registers a listening socket.
    ///
    /// # Errors
    ///
    /// Returns the error of the registration.
    ///
    /// # Panics
    ///
    /// Panics outside of a runtime.
    pub fn new(listener: Listener) -> io::Result<Acceptor> {
        Ok(Acceptor(register(listener)?))
    }

    /// Accepts the next connection. Pending while no connection is waiting.
    ///
    /// # Errors
    ///
    /// Returns an error of `accept(2)` other than `WouldBlock`, or an error of the event loop.
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

/// Registers a socket, a timer or the descriptor of a process with the event loop of this thread. Panics outside of a
/// runtime.
#[allow(unsafe_code)]
pub(crate) fn register<S: AsFd + AsRawFd>(socket: S) -> io::Result<AsyncFd<S>> {
    // SAFETY: callers pass only `OwnedFd` and `Listener`. These own their descriptor, keep it for as long as they live,
    // and close it only when dropped. `AsyncFd` deregisters them before it drops or returns them, and no code
    // replaces the value inside an `AsyncFd`.
    Ok(unsafe { AsyncFd::register(socket) }?)
}

impl Link for EpollStream {
    #[inline]
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        let room = buffer.len();
        self.sender.count_steps(RECEIVE_STEPS);
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
                    // Events are edge-triggered. A short read means that the socket is empty. Clearing its readiness
                    // saves the next call a system call that would return EAGAIN. At the end of the stream the socket
                    // stays marked as readable, because no further event follows.
                    if got > 0 && got < room {
                        readiness.clear_ready();
                    }
                    // The caller may drop the link after the end of the stream, so batched writes must be sent first.
                    // If the socket does not accept them, the task is polled again and takes the unsent bytes back.
                    if got == 0 && !self.sender.flush_and_check() {
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
        // The receive may discard a byte. That is harmless, because a connection that has received anything is not
        // reused. `try_io` stores no waker, so the next receive does not have to replace one.
        let received = self.socket.try_io(Interest::READABLE, |socket| {
            receive(socket.as_fd(), &mut [0]).map_err(io::Error::from)
        });
        received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    #[inline]
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        // Batched writes are sent first, to keep the order. If the socket does not accept them, the task is polled
        // again and takes the unsent bytes back.
        if !self.sender.flush_and_check() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.sender.count_steps(SEND_STEPS);
        // Tries to write before it polls for readiness, because the socket nearly always has room.
        let mut file_budget = FILE_BUDGET;
        loop {
            match send_queue(self.socket.get_ref().as_fd(), queue, &mut file_budget) {
                Ok(true) => return Poll::Ready(Ok(())),
                // The connection has sent its share of file bytes, so other tasks run before it continues.
                Ok(false) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Readiness that is still set may be older than the failed send. After clearing it, the loop tries
                    // again before it waits, because the socket may have room by now.
                    ready!(self.socket.poll_write_ready(context))?.clear_ready();
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        match self.socket.poll_read_ready(context)? {
            Poll::Ready(readiness) => pipe.fill(readiness.get_inner().as_fd()),
            // Nothing was moved. The caller then calls `poll_recv`, which waits for data.
            Poll::Pending => Ok(0),
        }
    }

    #[inline]
    fn send_batched(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        let Some(bytes) = queue.contiguous() else {
            return false;
        };
        let length = bytes.len();
        let taken = self.sender.push(self.socket.get_ref().as_fd(), context.waker(), bytes);
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
        // A write that is still batched could not be sent after the shutdown.
        self.flush();
        shut_down(self.socket.get_ref().as_fd())
    }

    fn reset(&mut self) {
        reset(self.socket.get_ref().as_fd());
    }

    fn enable_tcp_keepalive(&mut self) {
        enable_tcp_keepalive(self.socket.get_ref().as_fd());
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        limit_unsent(self.socket.get_ref().as_fd(), bytes);
    }

    fn in_flight(&self) -> u64 {
        in_flight(self.socket.get_ref().as_fd())
    }

    fn is_zero_copy(&self) -> bool {
        true
    }
}

/// Shuts down the sending side of the connection.
pub(crate) fn shut_down(socket: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::net::shutdown(socket, Shutdown::Write)?)
}

/// Makes closing the socket send a reset.
pub(crate) fn reset(socket: BorrowedFd<'_>) {
    // If the option cannot be set, the socket is closed without a reset. A Unix socket has no reset anyway.
    let _ = socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO));
}

/// Keepalive probes. An idle peer that still responds gets one probe per minute. The connection to a peer that has
/// vanished fails two minutes after its last segment.
const KEEPALIVE: Keepalive = Keepalive {
    idle: Duration::from_secs(60),
    interval: Duration::from_secs(15),
    count: 4,
};

/// Turns on the probes that [`KEEPALIVE`] describes.
pub(crate) fn enable_tcp_keepalive(socket: BorrowedFd<'_>) {
    // Errors are ignored, because a socket without keepalive, such as a Unix socket, is always notified when its peer
    // closes.
    let _ = keepalive(socket, KEEPALIVE);
}

/// Sets how many unsent bytes the kernel holds before the socket counts as full; `None` restores the system's
/// default.
pub(crate) fn limit_unsent(socket: BorrowedFd<'_>, bytes: Option<u32>) {
    // 0 selects the system's default. A Unix socket has no such option, and its buffer is small.
    let _ = notsent_lowat(socket, bytes.unwrap_or(0));
}

/// Returns the number of bytes passed to the kernel that the peer has not acknowledged; 0 if the number is unknown.
#[cfg(target_os = "linux")]
pub(crate) fn in_flight(socket: BorrowedFd<'_>) -> u64 {
    /// `SIOCOUTQ`: unacknowledged bytes in the send queue of a socket.
    const SEND_QUEUE: rustix::ioctl::Opcode = 0x5411;
    #[allow(unsafe_code)]
    // SAFETY: this request writes one int and nothing else, and the getter reserves room for one int.
    let bytes = unsafe {
        let getter = rustix::ioctl::Getter::<SEND_QUEUE, core::ffi::c_int>::new();
        rustix::ioctl::ioctl(socket, getter)
    };
    let bytes = u64::try_from(bytes.unwrap_or(0)).unwrap_or(0);
    // After a reset by the peer, the kernel still counts bytes that will never be acknowledged.
    if bytes > 0 && is_closed(socket) { 0 } else { bytes }
}

/// Returns whether the kernel has closed the connection, usually because of a reset. False for sockets other than TCP.
#[cfg(target_os = "linux")]
fn is_closed(socket: BorrowedFd<'_>) -> bool {
    /// `TCP_CLOSE` of `<netinet/tcp.h>`.
    const CLOSED: u8 = 7;
    let mut state = 0_u8;
    let mut length: libc::socklen_t = 1;
    #[allow(unsafe_code)]
    // SAFETY: the kernel writes at most `length` bytes, which is 1, to `state`, and the length that it wrote to
    // `length`. The first byte of `struct tcp_info` is the state.
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

/// Returns 0, because the number of unacknowledged bytes is unknown on this system.
#[cfg(not(target_os = "linux"))]
fn in_flight(_: BorrowedFd<'_>) -> u64 {
    0
}

/// Flags of a send that is immediately followed by another, so that both can share a packet.
#[cfg(target_os = "linux")]
const SEND_MORE_FLAGS: SendFlags = SEND_FLAGS.union(SendFlags::MORE);
#[cfg(not(target_os = "linux"))]
const SEND_MORE_FLAGS: SendFlags = SEND_FLAGS;

/// Receives once. Returns the number of bytes received; 0 at the end of the stream.
#[inline]
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(got, _)| got)
}

/// Sends as much as the socket accepts. `file_budget` is the maximum number of bytes of files, and is reduced by those
/// sent. Returns true if the queue is empty, false if the budget is used up, and the error `WouldBlock` if the socket
/// is full.
#[inline]
pub(crate) fn send_queue(socket: BorrowedFd<'_>, queue: &mut SendQueue, file_budget: &mut u64) -> io::Result<bool> {
    // HTTP/2 frames are sent between ranges of files. Without a cork, each call would send its own packet, which
    // costs both this machine and the peer.
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

/// Makes one system call for the front of the queue. Returns true if the queue is then empty.
#[inline]
fn send_front(socket: BorrowedFd<'_>, queue: &mut SendQueue, file_budget: &mut u64) -> io::Result<bool> {
    let sent = if let Some(bytes) = queue.contiguous() {
        if bytes.is_empty() {
            return Ok(true);
        }
        rustix::net::send(socket, bytes, SEND_FLAGS)?
    } else if let Some((file, offset, length)) = queue.file() {
        // `advance` below updates the offset in the queue.
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
