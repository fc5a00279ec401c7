//! Messages between this process and one that it has started, each of which may bring a descriptor along.

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

/// One end. What is sent at once is received at once, whole.
pub struct FdChannel(OwnedFd);

/// A message: its bytes are in the buffer that was given.
pub struct Message {
    pub size: usize,
    pub fd: Option<OwnedFd>,
}

/// Whether a call may wait until the other side has taken what was said, or said something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    Yes,
    No,
}

impl FdChannel {
    /// Two ends: ours, and one to be the input of a program.
    pub fn pair() -> io::Result<(FdChannel, OwnedFd)> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((FdChannel(ours), theirs))
    }

    /// The end that was the input of this program, which has none from now on. Fails where the input is something else.
    pub fn from_stdin() -> io::Result<FdChannel> {
        let input = io::stdin();
        if rustix::net::sockopt::socket_type(&input)? != SocketType::SEQPACKET {
            return Err(Errno::NOTSOCK.into());
        }
        let channel = FdChannel(fcntl_dupfd_cloexec(&input, FIRST_NON_STANDARD_FD)?);
        replace_stdin(&File::open("/dev/null")?)?;
        Ok(channel)
    }

    /// Sends a message that is not empty.
    pub fn send(&self, message: &[u8], with: Option<BorrowedFd<'_>>, blocking: Blocking) -> io::Result<()> {
        let mut flags = SendFlags::NOSIGNAL;
        if blocking == Blocking::No {
            flags |= SendFlags::DONTWAIT;
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = with.as_slice();
        if !descriptors.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        rustix::io::retry_on_intr(|| sendmsg(&self.0, &[IoSlice::new(message)], &mut ancillary, flags))?;
        Ok(())
    }

    /// The next message; `None`: the other side has ended, or has gone.
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

    /// Sends a message that is not empty, with up to [`MAX_FDS`] descriptors.
    pub fn send_with_fds(&self, message: &[u8], with: &[BorrowedFd<'_>], blocking: Blocking) -> io::Result<()> {
        if with.len() > MAX_FDS {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !with.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(with));
        }
        let mut flags = SendFlags::NOSIGNAL;
        if blocking == Blocking::No {
            flags |= SendFlags::DONTWAIT;
        }
        rustix::io::retry_on_intr(|| sendmsg(&self.0, &[IoSlice::new(message)], &mut ancillary, flags))?;
        Ok(())
    }

    /// Waits for the next message, and returns its size and its descriptors, in their order. `None`: the other side has ended.
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

    /// Waits until there is something to receive, up to `timeout`.
    pub fn wait_readable(&self, timeout: Duration) -> bool {
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(rustix::io::retry_on_intr(|| poll(&mut polled, Some(&timeout))), Ok(ready) if ready > 0)
    }

    /// Nothing more is said or received, by either side.
    pub fn shut_down(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

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

#[allow(unsafe_code)]
fn replace_stdin(by: &File) -> io::Result<()> {
    // SAFETY: only descriptor 0 is closed, which nobody owns: all who use it borrow it as the standard input.
    match unsafe { libc::dup2(by.as_raw_fd(), libc::STDIN_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A stream of bytes with two ends, one of which is for the other process.
pub fn stream_pair() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}

/// Most descriptors of one message.
pub const MAX_FDS: usize = 6;

/// The three that are common stay what they are.
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
    fn a_non_blocking_send_to_a_full_socket_fails() {
        let (ours, _theirs) = FdChannel::pair().unwrap();
        let full = (0..100_000).find_map(|_| ours.send(&[0; 100], None, Blocking::No).err());
        assert_eq!(full.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }

    #[test]
    fn an_input_of_another_kind_is_left_alone() {
        if crate::isolated_test::in_own_process("fd_channel::tests::an_input_of_another_kind_is_left_alone") {
            assert!(FdChannel::from_stdin().is_err());
        }
    }
}
