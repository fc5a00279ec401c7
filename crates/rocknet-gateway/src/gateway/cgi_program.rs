//! A program that was started for one request, as a peer to speak with.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rocknet_io::queue::SendQueue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

/// The process of a program.
pub trait ProgramProcess {
    /// Returns whether it has not been killed for taking too long.
    fn has_not_been_killed(&self) -> bool;

    /// Lets it end by itself: its answer is complete.
    fn release(&mut self);
}

/// The program as the loop of a worker speaks with it. It is killed when this is dropped, unless it was left.
pub struct CgiProgram {
    pub process: Box<dyn ProgramProcess>,
    /// Gone once all was written.
    pub stdin: Option<Sender>,
    pub stdout: Receiver,
    stderr: Option<Receiver>,
}

impl CgiProgram {
    /// `stdin`, `stdout`, `stderr`: our ends of the pipes of `process`.
    pub fn new(
        process: Box<dyn ProgramProcess>,
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    ) -> io::Result<CgiProgram> {
        Ok(CgiProgram {
            process,
            stdin: Some(Sender::from_owned_fd(stdin)?),
            stdout: Receiver::from_owned_fd(stdout)?,
            stderr: Some(Receiver::from_owned_fd(stderr)?),
        })
    }

    /// Writes from the front of the queue, which holds nothing but memory. Ready when it is empty.
    pub fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        while let Some(front) = queue.front() {
            let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            let written = ready!(Pin::new(stdin).poll_write(context, front))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            queue.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    pub fn poll_stderr(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let Some(stderr) = &mut self.stderr else {
            return Poll::Ready(Ok(0));
        };
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(stderr).poll_read(context, &mut buffer) {
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => Poll::Ready(Ok(buffer.filled().len())),
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => {
                self.stderr = None;
                Poll::Ready(Ok(0))
            }
        }
    }
}
