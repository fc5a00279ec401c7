//! A CGI program that was started for one request, with its pipes.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rocknet_io::process_end::ProcessDescriptor;
use rocknet_io::queue::SendQueue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::program_end::ProgramEnd;

/// The process of a CGI program.
pub trait ProgramProcess {
    /// Returns true if the reaper has killed the program, for example at its time limit.
    fn was_killed(&self) -> bool;

    /// Called when the response is complete. The program is then not killed immediately, but may end by itself.
    fn release(&mut self);
}

/// A program with its pipes, registered with the event loop of a worker. Dropping it kills the program, unless it was
/// released.
pub struct CgiProgram {
    /// The process.
    pub process: Box<dyn ProgramProcess>,
    /// `None` once the whole request body is written.
    pub stdin: Option<Sender>,
    /// Standard output: the response.
    pub stdout: Receiver,
    /// Detects the end of the process while another process keeps standard output open.
    pub end: ProgramEnd,
    /// Standard error; `None` once it is closed or has failed.
    stderr: Option<Receiver>,
}

impl CgiProgram {
    /// Registers the server's ends of the pipes of `process` with the current event loop. `end`: descriptor of
    /// the process, if the system has such descriptors.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if a pipe cannot be registered.
    pub fn new(
        process: Box<dyn ProgramProcess>,
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
        end: Option<ProcessDescriptor>,
    ) -> io::Result<CgiProgram> {
        Ok(CgiProgram {
            process,
            stdin: Some(Sender::from_owned_fd(stdin)?),
            stdout: Receiver::from_owned_fd(stdout)?,
            end: ProgramEnd::new(end),
            stderr: Some(Receiver::from_owned_fd(stderr)?),
        })
    }

    /// Writes the bytes of the queue to standard input. Ready when the queue is empty. The queue must not contain files
    /// or pipes.
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

    /// Reads from standard error into `buffer` and returns the number of bytes; 0 once it is closed or has failed.
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
