//! A program that runs for one request: started with its own environment, three pipes, and nothing else of ours.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rocknet_io::queue::SendQueue;
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::reaper::Watched;
use super::{Permit, Processes};
use crate::accounts::{Account, Launch, pipe};

/// What to start. No shell is involved: the kernel reads the first line of a script.
pub struct Start {
    pub file: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    /// Whom it runs as, where the site says so.
    pub user: Option<Box<str>>,
    /// For which it may run.
    pub time: Duration,
    /// Among those that run.
    pub place: Permit,
    /// Those of the server.
    pub processes: Arc<Processes>,
}

/// A program with the other ends of its pipes.
pub struct Started {
    process: Watched,
    input: OwnedFd,
    output: OwnedFd,
    errors: OwnedFd,
}

impl Start {
    /// Forks, which takes a while. The thread it is called on has to stay: the program is killed when it ends.
    pub fn start(self) -> io::Result<Started> {
        let account = Account::of_scripts(self.user.as_deref())?;
        let (their_input, input) = pipe()?;
        let (output, their_output) = pipe()?;
        let (errors, their_errors) = pipe()?;
        let launch = Launch {
            account,
            folder: self.file.parent().map_or_else(|| "/".into(), PathBuf::from),
            program: self.file,
            name: OsString::new(),
            arguments: Vec::new(),
            environment: self.environment,
            input: their_input.into(),
            output: their_output.into(),
            errors: their_errors.into(),
            file: None,
            listener: None,
            last_word: Signal::KILL,
        };
        let process = self
            .processes
            .reaper
            .watch(launch.start()?, self.time, Box::new(self.place))?;
        Ok(Started {
            process,
            input: input.into(),
            output: output.into(),
            errors: errors.into(),
        })
    }
}

/// The same on the loop of the worker that speaks with it. It is killed when this is dropped, unless it was left.
pub struct Program {
    pub process: Watched,
    /// Gone once all was written.
    pub input: Option<Sender>,
    pub output: Receiver,
    errors: Option<Receiver>,
}

impl Program {
    pub fn new(started: Started) -> io::Result<Program> {
        Ok(Program {
            process: started.process,
            input: Some(Sender::from_owned_fd(started.input)?),
            output: Receiver::from_owned_fd(started.output)?,
            errors: Some(Receiver::from_owned_fd(started.errors)?),
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
