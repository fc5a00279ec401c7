//! A program that was started for one request, as a peer to speak with.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rocknet_io::queue::SendQueue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

/// The process of a program.
pub trait Child {
    /// Returns whether it has not been killed for taking too long.
    fn ends_itself(&self) -> bool;

    /// Lets it end by itself: its answer is complete.
    fn leave(&mut self);
}

/// The program as the loop of a worker speaks with it. It is killed when this is dropped, unless it was left.
pub struct Program {
    pub process: Box<dyn Child>,
    /// Gone once all was written.
    pub input: Option<Sender>,
    pub output: Receiver,
    errors: Option<Receiver>,
}

impl Program {
    /// `input`, `output`, `errors`: our ends of the pipes of `process`.
    pub fn new(process: Box<dyn Child>, input: OwnedFd, output: OwnedFd, errors: OwnedFd) -> io::Result<Program> {
        Ok(Program {
            process,
            input: Some(Sender::from_owned_fd(input)?),
            output: Receiver::from_owned_fd(output)?,
            errors: Some(Receiver::from_owned_fd(errors)?),
        })
    }

    /// Writes from the front of the queue, which holds nothing but memory. Ready when it is empty.
    pub fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        while let Some(front) = queue.front() {
            let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            let written = ready!(Pin::new(input).poll_write(context, front))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            queue.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    pub fn poll_complaint(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let Some(errors) = &mut self.errors else {
            return Poll::Ready(Ok(0));
        };
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(errors).poll_read(context, &mut buffer) {
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => Poll::Ready(Ok(buffer.filled().len())),
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => {
                self.errors = None;
                Poll::Ready(Ok(0))
            }
        }
    }
}
