//! Message channel to another process that can pass file descriptors (`SOCK_SEQPACKET` with `SCM_RIGHTS`).

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown, socketpair,
};

/// One end of a channel. Each send is received as one message. Messages must not be empty, because an empty message is
/// received like the end of the channel.
pub struct FdChannel(OwnedFd);

/// A received message. Its bytes are in the buffer passed to [`FdChannel::recv`].
pub struct Message {
    /// Number of bytes received. A message longer than the buffer is cut.
    pub size: usize,
    /// The descriptor sent with the message. `None` if the message has no descriptor, or if this process had no free
    /// descriptor number for it.
    pub fd: Option<OwnedFd>,
}

/// Behaviour of a call that would have to wait, because the queue is full or because no message has arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// The call blocks.
    Yes,
    /// The call fails with `WouldBlock` instead.
    No,
}

impl FdChannel {
    /// Creates a connected pair: an end for this process, and a socket to be the standard input of a child process.
    ///
    /// # Errors
    ///
    /// Fails if no socket can be created.
    pub fn pair() -> io::Result<(FdChannel, OwnedFd)> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((FdChannel(ours), theirs))
    }

    /// Takes over the standard input of this process as an end, and replaces it by `/dev/null`.
    ///
    /// # Errors
    ///
    /// Fails if the standard input is not a `SOCK_SEQPACKET` socket, or if `/dev/null` or a descriptor is not
    /// available.
    pub fn from_stdin() -> io::Result<FdChannel> {
        let input = io::stdin();
        let channel = FdChannel::from_socket(fcntl_dupfd_cloexec(&input, FIRST_NON_STANDARD_FD)?)?;
        replace_stdin(&File::open("/dev/null")?)?;
        Ok(channel)
    }

    /// Takes a socket of another process as an end.
    ///
    /// # Errors
    ///
    /// Fails if it is not a `SOCK_SEQPACKET` socket.
    pub fn from_socket(socket: OwnedFd) -> io::Result<FdChannel> {
        if rustix::net::sockopt::socket_type(&socket)? != SocketType::SEQPACKET {
            return Err(Errno::NOTSOCK.into());
        }
        Ok(FdChannel(socket))
    }

    /// Sends a message, which must not be empty, with at most one descriptor.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the queue of the other end is full and `blocking` is [`Blocking::No`]; `BrokenPipe` if the other
    /// end is closed.
    pub fn send(&self, message: &[u8], fd: Option<BorrowedFd<'_>>, blocking: Blocking) -> io::Result<()> {
        let mut flags = SendFlags::NOSIGNAL;
        if blocking == Blocking::No {
            flags |= SendFlags::DONTWAIT;
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = fd.as_slice();
        if !descriptors.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        rustix::io::retry_on_intr(|| sendmsg(&self.0, &[IoSlice::new(message)], &mut ancillary, flags))?;
        Ok(())
    }

    /// Receives the next message. Returns `None` once the other end is closed.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no message and `blocking` is [`Blocking::No`].
    pub fn recv(&self, buffer: &mut [u8], blocking: Blocking) -> io::Result<Option<Message>> {
        let mut flags = RecvFlags::CMSG_CLOEXEC;
        if blocking == Blocking::No {
            flags |= RecvFlags::DONTWAIT;
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags) {
                Err(Errno::INTR) => {}
                // The other end was closed before it had received all messages.
                Err(Errno::CONNRESET) => return Ok(None),
                received => break received?,
            }
        };
        let mut fd = None;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                fd = descriptors.last();
            }
        }
        let size = received.bytes;
        Ok((size > 0).then_some(Message { size, fd }))
    }

    /// Sends a message, which must not be empty, with up to [`MAX_FDS`] descriptors.
    ///
    /// # Errors
    ///
    /// As [`FdChannel::send`]; `InvalidInput` for more than [`MAX_FDS`] descriptors.
    pub fn send_with_fds(&self, message: &[u8], fds: &[BorrowedFd<'_>], blocking: Blocking) -> io::Result<()> {
        if fds.len() > MAX_FDS {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        let mut flags = SendFlags::NOSIGNAL;
        if blocking == Blocking::No {
            flags |= SendFlags::DONTWAIT;
        }
        rustix::io::retry_on_intr(|| sendmsg(&self.0, &[IoSlice::new(message)], &mut ancillary, flags))?;
        Ok(())
    }

    /// Blocks until the next message, and returns its size and its descriptors in order. A message longer than the
    /// buffer is cut. Descriptors for which this process has no free number are missing. Returns `None` once the other
    /// end is closed.
    ///
    /// # Errors
    ///
    /// Fails if the system call does.
    pub fn recv_with_fds(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match recvmsg(
                &self.0,
                &mut [IoSliceMut::new(buffer)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                Err(Errno::INTR) => {}
                // The other end closed before it had received all messages.
                Err(Errno::CONNRESET) => return Ok(None),
                received => break received?,
            }
        };
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                fds.extend(descriptors);
            }
        }
        Ok((received.bytes > 0).then_some((received.bytes, fds)))
    }

    /// Blocks until a message arrives, the other end is closed, or `timeout` has passed. A signal restarts the timeout.
    /// Returns false after the timeout and after an error.
    pub fn wait_readable(&self, timeout: Duration) -> bool {
        // Only a duration beyond the range of `Timespec` becomes zero, and no caller passes one.
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(rustix::io::retry_on_intr(|| poll(&mut polled, Some(&timeout))), Ok(ready) if ready > 0)
    }

    /// Blocks until one of the channels has a message or its other end is closed, or `timeout` has passed; without a
    /// timeout, as long as it takes. Returns the positions of the channels with a message or a closed end, in ascending
    /// order; an empty list after the timeout.
    ///
    /// # Errors
    ///
    /// Fails if the system call does.
    pub fn wait_any(channels: &[&FdChannel], timeout: Option<Duration>) -> io::Result<Vec<usize>> {
        let timeout = timeout.map(|timeout| Timespec::try_from(timeout).unwrap_or_default());
        let mut polled: Vec<_> = channels
            .iter()
            .map(|channel| PollFd::new(&channel.0, PollFlags::IN))
            .collect();
        rustix::io::retry_on_intr(|| poll(&mut polled, timeout.as_ref()))?;
        let is_ready = |at: &usize| !polled[*at].revents().is_empty();
        Ok((0..polled.len()).filter(is_ready).collect())
    }

    /// Limits the time that a blocking send may wait for room in the queue of the other end. After this time, the send
    /// fails with `WouldBlock`. A duration below a millisecond counts as one millisecond.
    ///
    /// # Errors
    ///
    /// Fails if the system call does.
    pub fn set_send_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = timeout.max(Duration::from_millis(1));
        socket2::SockRef::from(&self.0).set_write_timeout(Some(timeout))
    }

    /// Closes both directions, so that neither end can send any more. Messages that were already sent can still be
    /// received.
    pub fn shut_down(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

/// Wraps a socket that is known to be an end of a channel, such as the second one of [`FdChannel::pair`]. Does not
/// check the type of the socket, unlike [`FdChannel::from_socket`].
impl From<OwnedFd> for FdChannel {
    fn from(socket: OwnedFd) -> FdChannel {
        FdChannel(socket)
    }
}

impl AsFd for FdChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Replaces descriptor 0 with a duplicate of `by`.
#[allow(unsafe_code)]
fn replace_stdin(by: &File) -> io::Result<()> {
    // SAFETY: only descriptor 0 is closed. It has no owner, because all its users borrow it as the standard input.
    match unsafe { libc::dup2(by.as_raw_fd(), libc::STDIN_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Creates a connected pair of byte-stream sockets. One of them is meant for the other process.
///
/// # Errors
///
/// Fails if no socket can be created.
pub fn stream_pair() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}

/// Maximum number of descriptors in one message. The account helper, the process that starts programs under other
/// accounts, is passed six: a description of a program, the three standard streams of the program, a file whose path
/// becomes an argument, and a listening socket.
pub const MAX_FDS: usize = 6;

/// Lowest number for the duplicate of the standard input, so that the numbers of the standard streams remain free.
const FIRST_NON_STANDARD_FD: i32 = 3;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn messages_arrive_whole_with_their_descriptors() {
        let (ours, theirs) = FdChannel::pair().unwrap();
        let theirs = FdChannel(theirs);
        let mut buffer = [0; 16];
        assert_eq!(
            theirs.recv(&mut buffer, Blocking::No).err().map(|error| error.kind()),
            Some(io::ErrorKind::WouldBlock)
        );
        let (mut near, far) = stream_pair().unwrap();
        ours.send(b"one", None, Blocking::No).unwrap();
        ours.send(b"two", Some(far.as_fd()), Blocking::Yes).unwrap();
        drop(far);
        let one = theirs.recv(&mut buffer, Blocking::Yes).unwrap().unwrap();
        assert!(one.fd.is_none() && buffer[..one.size] == *b"one");
        let two = theirs.recv(&mut buffer, Blocking::Yes).unwrap().unwrap();
        assert_eq!(buffer[..two.size], *b"two");
        let mut far = UnixStream::from(two.fd.unwrap());
        far.write_all(b"hello").unwrap();
        drop(far);
        let mut received = String::new();
        near.read_to_string(&mut received).unwrap();
        assert_eq!(received, "hello");
        ours.shut_down();
        assert!(theirs.recv(&mut buffer, Blocking::Yes).unwrap().is_none());
        assert!(theirs.send(b"x", None, Blocking::Yes).is_err());
    }

    #[test]
    fn descriptors_arrive_in_order_and_are_bounded() {
        let (ours, theirs) = FdChannel::pair().unwrap();
        let theirs = FdChannel(theirs);
        assert!(!theirs.wait_readable(Duration::ZERO));
        let pipes: Vec<_> = (0..=MAX_FDS).map(|_| io::pipe().unwrap()).collect();
        let all: Vec<BorrowedFd<'_>> = pipes.iter().map(|(_, writer)| writer.as_fd()).collect();
        ours.send_with_fds(b"x", &all[..MAX_FDS], Blocking::No).unwrap();
        assert!(ours.send_with_fds(b"x", &all, Blocking::No).is_err());
        assert!(theirs.wait_readable(Duration::from_secs(10)));
        let (size, fds) = theirs.recv_with_fds(&mut [0; 4]).unwrap().unwrap();
        assert_eq!((size, fds.len()), (1, MAX_FDS));
        for (number, end) in fds.into_iter().enumerate() {
            let byte = [u8::try_from(number).unwrap()];
            File::from(end).write_all(&byte).unwrap();
            let mut read = [0];
            (&pipes[number].0).read_exact(&mut read).unwrap();
            assert_eq!(read, byte);
        }
        drop(ours);
        assert!(theirs.recv_with_fds(&mut [0; 4]).unwrap().is_none());
    }

    #[test]
    fn several_channels_are_waited_for() {
        let pairs: Vec<_> = (0..3).map(|_| FdChannel::pair().unwrap()).collect();
        let channels: Vec<&FdChannel> = pairs.iter().map(|(ours, _)| ours).collect();
        assert!(FdChannel::wait_any(&channels, Some(Duration::ZERO)).unwrap().is_empty());
        let mut others = pairs.iter().map(|(_, theirs)| FdChannel(theirs.try_clone().unwrap()));
        others.nth(2).unwrap().send(b"x", None, Blocking::No).unwrap();
        channels[0].shut_down();
        assert_eq!(FdChannel::wait_any(&channels, None).unwrap(), [0, 2]);
        // A byte-stream socket cannot be an end of a channel.
        assert!(FdChannel::from_socket(UnixStream::pair().unwrap().0.into()).is_err());
    }

    #[test]
    fn a_non_blocking_send_to_a_full_socket_fails() {
        let (ours, _theirs) = FdChannel::pair().unwrap();
        let full = (0..100_000).find_map(|_| ours.send(&[0; 100], None, Blocking::No).err());
        assert_eq!(full.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }

    #[test]
    fn from_stdin_fails_without_a_seqpacket_socket() {
        if crate::isolated_test::in_own_process("fd_channel::tests::from_stdin_fails_without_a_seqpacket_socket") {
            assert!(FdChannel::from_stdin().is_err());
        }
    }
}
