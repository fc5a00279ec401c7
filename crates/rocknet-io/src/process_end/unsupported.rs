//! Systems without descriptors of processes: the end of a process is not reported.

use std::convert::Infallible;
use std::io;
use std::task::{Context, Poll};

/// Descriptor of a process. None exists on this system.
pub struct ProcessDescriptor(Infallible);

/// End of a process. None exists on this system.
pub struct ProcessEnd(Infallible);

impl ProcessDescriptor {
    /// Returns `None`.
    pub fn open(_id: u32) -> Option<ProcessDescriptor> {
        None
    }
}

impl ProcessEnd {
    /// Never called, because there is no descriptor.
    ///
    /// # Errors
    ///
    /// Returns none.
    pub fn new(process: ProcessDescriptor) -> io::Result<ProcessEnd> {
        Ok(ProcessEnd(process.0))
    }

    /// Never called, because there is no end.
    pub fn poll(&self, _context: &mut Context<'_>) -> Poll<()> {
        match self.0 {}
    }
}
