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
pub struct Courier(OwnedFd);

/// A message: its bytes are in the buffer that was given.
pub struct Message {
    pub size: usize,
    pub brings: Option<OwnedFd>,
}

/// Whether a call may wait until the other side has taken what was said, or said something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    Wait,
    Now,
}

impl Courier {
    /// Two ends: ours, and one to be the input of a program.
    pub fn pair() -> io::Result<(Courier, OwnedFd)> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Courier(ours), theirs))
    }

    /// The end that was the input of this program, which has none from now on. Fails where the input is something else.
    pub fn from_input() -> io::Result<Courier> {
        let input = io::stdin();
        if rustix::net::sockopt::socket_type(&input)? != SocketType::SEQPACKET {
            return Err(Errno::NOTSOCK.into());
        }
        let courier = Courier(fcntl_dupfd_cloexec(&input, FIRST_FREE)?);
        replace_input(&File::open("/dev/null")?)?;
        Ok(courier)
    }

    /// Sends a message that is not empty.
    pub fn send(&self, message: &[u8], with: Option<BorrowedFd<'_>>, patience: Patience) -> io::Result<()> {
        let mut flags = SendFlags::NOSIGNAL;
        if patience == Patience::Now {
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
    pub fn recv(&self, buffer: &mut [u8], patience: Patience) -> io::Result<Option<Message>> {
        let mut flags = RecvFlags::CMSG_CLOEXEC;
        if patience == Patience::Now {
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
        let mut brings = None;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                brings = descriptors.last();
            }
        }
        let size = received.bytes;
        Ok((size > 0).then_some(Message { size, brings }))
    }

    /// Sends a message that is not empty, with up to [`MOST`] descriptors.
    pub fn send_all(&self, message: &[u8], with: &[BorrowedFd<'_>], patience: Patience) -> io::Result<()> {
        if with.len() > MOST {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !with.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(with));
        }
        let mut flags = SendFlags::NOSIGNAL;
        if patience == Patience::Now {
            flags |= SendFlags::DONTWAIT;
        }
        rustix::io::retry_on_intr(|| sendmsg(&self.0, &[IoSlice::new(message)], &mut ancillary, flags))?;
        Ok(())
    }

    /// Waits for the next message, and returns its size and its descriptors, in their order. `None`: the other side has ended.
    pub fn recv_all(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
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
        let mut brought = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                brought.extend(descriptors);
            }
        }
        Ok((received.bytes > 0).then_some((received.bytes, brought)))
    }

    /// Waits until there is something to receive, up to `patience`.
    pub fn is_readable_within(&self, patience: Duration) -> bool {
        let patience = Timespec::try_from(patience).unwrap_or_default();
        let mut look = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(rustix::io::retry_on_intr(|| poll(&mut look, Some(&patience))), Ok(ready) if ready > 0)
    }

    /// Nothing more is said or heard, by either side.
    pub fn end(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

impl From<OwnedFd> for Courier {
    fn from(socket: OwnedFd) -> Courier {
        Courier(socket)
    }
}

impl AsFd for Courier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[allow(unsafe_code)]
fn replace_input(by: &File) -> io::Result<()> {
    // SAFETY: only descriptor 0 is closed, which nobody owns: all who use it borrow it as the standard input.
    match unsafe { libc::dup2(by.as_raw_fd(), libc::STDIN_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A stream of bytes with two ends, one of which is for the other process.
pub fn stream() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}

/// Most descriptors of one message.
pub const MOST: usize = 6;

/// The three that are common stay what they are.
const FIRST_FREE: i32 = 3;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn messages_come_whole_and_bring_what_was_given_along() {
        let (ours, theirs) = Courier::pair().unwrap();
        let theirs = Courier(theirs);
        let mut buffer = [0; 16];
        assert_eq!(
            theirs.recv(&mut buffer, Patience::Now).err().map(|error| error.kind()),
            Some(io::ErrorKind::WouldBlock)
        );
        let (mut near, far) = stream().unwrap();
        ours.send(b"one", None, Patience::Now).unwrap();
        ours.send(b"two", Some(far.as_fd()), Patience::Wait).unwrap();
        drop(far);
        let one = theirs.recv(&mut buffer, Patience::Wait).unwrap().unwrap();
        assert!(one.brings.is_none() && buffer[..one.size] == *b"one");
        let two = theirs.recv(&mut buffer, Patience::Wait).unwrap().unwrap();
        assert_eq!(buffer[..two.size], *b"two");
        let mut far = UnixStream::from(two.brings.unwrap());
        far.write_all(b"hello").unwrap();
        drop(far);
        let mut heard = String::new();
        near.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
        ours.end();
        assert!(theirs.recv(&mut buffer, Patience::Wait).unwrap().is_none());
        assert!(theirs.send(b"x", None, Patience::Wait).is_err());
    }

    #[test]
    fn descriptors_come_in_their_order_and_no_more_than_fit() {
        let (ours, theirs) = Courier::pair().unwrap();
        let theirs = Courier(theirs);
        assert!(!theirs.is_readable_within(Duration::ZERO));
        let pipes: Vec<_> = (0..=MOST).map(|_| io::pipe().unwrap()).collect();
        let all: Vec<BorrowedFd<'_>> = pipes.iter().map(|(_, writer)| writer.as_fd()).collect();
        ours.send_all(b"x", &all[..MOST], Patience::Now).unwrap();
        assert!(ours.send_all(b"x", &all, Patience::Now).is_err());
        assert!(theirs.is_readable_within(Duration::from_secs(10)));
        let (size, brought) = theirs.recv_all(&mut [0; 4]).unwrap().unwrap();
        assert_eq!((size, brought.len()), (1, MOST));
        for (number, end) in brought.into_iter().enumerate() {
            let byte = [u8::try_from(number).unwrap()];
            File::from(end).write_all(&byte).unwrap();
            let mut read = [0];
            (&pipes[number].0).read_exact(&mut read).unwrap();
            assert_eq!(read, byte);
        }
        drop(ours);
        assert!(theirs.recv_all(&mut [0; 4]).unwrap().is_none());
    }

    #[test]
    fn who_does_not_listen_is_not_waited_for() {
        let (ours, _theirs) = Courier::pair().unwrap();
        let full = (0..100_000).find_map(|_| ours.send(&[0; 100], None, Patience::Now).err());
        assert_eq!(full.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }

    #[test]
    fn an_input_that_is_something_else_is_left_alone() {
        if crate::isolated_test::in_own_process("courier::tests::an_input_that_is_something_else_is_left_alone") {
            assert!(Courier::from_input().is_err());
        }
    }
}
