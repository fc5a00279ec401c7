//! Waits for the end of a process through a descriptor of the process (`pidfd`).

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;

/// Descriptor of a process, not yet registered with an event loop.
pub struct ProcessDescriptor(OwnedFd);

/// Registered descriptor of a process, which becomes readable when the process ends.
pub struct ProcessEnd(AsyncFd<OwnedFd>);

impl ProcessDescriptor {
    /// Opens the descriptor of the process with this ID, which need not be a child of this process. Returns `None` if
    /// there is no such process, or if the kernel is older than 5.3. Call it before the process can be reaped, because
    /// another process may get its ID after that.
    pub fn open(id: u32) -> Option<ProcessDescriptor> {
        let pid = Pid::from_raw(i32::try_from(id).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(ProcessDescriptor)
    }
}

impl ProcessEnd {
    /// Registers the descriptor with the current event loop.
    ///
    /// # Errors
    ///
    /// Returns the error of the registration.
    ///
    /// # Panics
    ///
    /// Panics outside of a runtime.
    pub fn new(process: ProcessDescriptor) -> io::Result<ProcessEnd> {
        Ok(ProcessEnd(crate::epoll::register(process.0)?))
    }

    /// Ready once the process has ended. An ended process that was not reaped counts as ended.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        // The readiness is never cleared, because an ended process remains ended. An error is returned only while the
        // event loop ends.
        match self.0.poll_read_ready(context) {
            Poll::Ready(Ok(_)) => Poll::Ready(()),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}
