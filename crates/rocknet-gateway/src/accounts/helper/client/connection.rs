//! Connection to the helper: sends a request and receives its reply, or an overdue reply.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_io::fd_channel::{Blocking, FdChannel};
use rustix::process::Signal;

use super::super::protocol::{self, HelperReply, HelperRequest, MESSAGE_SIZE};

/// Connection to the helper.
pub(super) struct HelperConnection {
    pub(super) channel: FdChannel,
    /// Number of the last request.
    pub(super) sequence: u32,
    /// Request whose reply is overdue, if there is one.
    pub(super) late: Option<LateReply>,
    /// Programs whose start was reported after the timeout. They are killed, because the caller has already received
    /// an error.
    pub(super) abandoned: Vec<u64>,
}

/// A request whose reply did not arrive in time.
pub(super) struct LateReply {
    sequence: u32,
    /// True if the request starts a program.
    is_start: bool,
}

/// Error of a request to the helper.
pub(super) enum HelperError {
    /// The helper replied with an error number of the system.
    Refused(i32),
    /// The request could not be sent, or the helper did not send a valid reply in time.
    Unavailable(io::Error),
}

impl HelperConnection {
    /// Sends a request with descriptors, and returns the number in the reply.
    pub(super) fn call(
        &mut self,
        request: HelperRequest,
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<u64, HelperError> {
        // While an earlier reply is overdue, the call fails without waiting.
        self.receive_late_reply(Duration::ZERO)?;
        self.sequence = self.sequence.wrapping_add(1);
        self.channel
            .send_with_fds(&request.write(self.sequence), fds, Blocking::No)
            .map_err(HelperError::Unavailable)?;
        let reply = self.receive_reply(timeout);
        if matches!(&reply, Err(HelperError::Unavailable(error)) if error.kind() == io::ErrorKind::TimedOut) {
            self.late = Some(LateReply {
                sequence: self.sequence,
                is_start: matches!(request, HelperRequest::Start { .. }),
            });
        }
        let (replied, reply) = reply?;
        if replied != self.sequence {
            return Err(HelperError::Unavailable(io::ErrorKind::InvalidData.into()));
        }
        reply.map_err(HelperError::Refused)
    }

    /// Receives the overdue reply, if there is one. Fails if the reply does not arrive within `timeout`.
    fn receive_late_reply(&mut self, timeout: Duration) -> Result<(), HelperError> {
        let Some(late) = &self.late else {
            return Ok(());
        };
        let (sequence, is_start) = (late.sequence, late.is_start);
        let (replied, reply) = self.receive_reply(timeout)?;
        if replied != sequence {
            return Err(HelperError::Unavailable(io::ErrorKind::InvalidData.into()));
        }
        self.late = None;
        if is_start {
            self.abandoned.extend(reply);
        }
        Ok(())
    }

    /// Receives a reply within `timeout`. Returns the sequence number of its request, and the reply.
    fn receive_reply(&self, timeout: Duration) -> Result<(u32, HelperReply), HelperError> {
        if !self.channel.wait_readable(timeout) {
            return Err(HelperError::Unavailable(io::ErrorKind::TimedOut.into()));
        }
        // One byte more than a message, so that a longer message is recognized as invalid.
        let mut buffer = [0; MESSAGE_SIZE + 1];
        let received = self
            .channel
            .recv_with_fds(&mut buffer)
            .map_err(HelperError::Unavailable)?;
        let Some((size, _)) = received else {
            return Err(HelperError::Unavailable(io::ErrorKind::BrokenPipe.into()));
        };
        let read = protocol::read_reply(&buffer[..size]);
        read.ok_or_else(|| HelperError::Unavailable(io::ErrorKind::InvalidData.into()))
    }

    /// Kills abandoned programs and sends the outstanding `Forget` requests. Requests without a reply are sent again by
    /// the next call.
    pub(super) fn clean_up(&mut self, to_forget: &Mutex<Vec<u64>>, timeout: Duration) {
        while let Some(&number) = self.abandoned.last() {
            let kill = HelperRequest::Signal {
                number,
                signal: Signal::KILL,
                to_group: true,
            };
            if let Err(HelperError::Unavailable(_)) = self.call(kill, &[], timeout) {
                return;
            }
            self.abandoned.pop();
            lock(to_forget).push(number);
        }
        loop {
            let Some(number) = lock(to_forget).pop() else {
                return;
            };
            if let Err(HelperError::Unavailable(_)) = self.call(HelperRequest::Forget(number), &[], timeout) {
                lock(to_forget).push(number);
                return;
            }
        }
    }
}

pub(super) fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
