//! Table of operations on files. Each ends with one completion and keeps what it refers to until then.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use io_uring::types::OpenHow;
use slab::Slab;

use super::kernel::Operation;

/// Maximum operations at once, so that a disk that hangs does not hold any number of them. Beyond it the blocking pool
/// waits for the disk, which has a bound of its own.
const MAX_OPERATIONS: usize = 1024;

/// Operations that are in flight, or whose result was not taken yet.
#[derive(Default)]
pub(super) struct FileOperations {
    in_flight: Slab<InFlight>,
}

struct InFlight {
    command: FileCommand,
    waker: Option<Waker>,
    /// Result of the system call, once it has ended.
    result: Option<i32>,
    /// Its handle was dropped.
    is_abandoned: bool,
}

/// Command of a file operation. Its descriptors stay open at least until it was submitted.
pub(super) enum FileCommand {
    /// Reads into memory that outlives the operation.
    Read {
        file: Arc<File>,
        into: *mut u8,
        length: u32,
        offset: u64,
    },
    /// Boxed, because the kernel gets its address.
    Lookup(Box<PathLookup>),
}

/// Lookup of a path through directories.
pub(super) struct PathLookup {
    /// Directory at which it begins, kept open by its owner.
    pub directory: Arc<dyn AsFd>,
    pub path: CString,
    pub how: OpenHow,
}

impl FileCommand {
    fn operation(&self) -> Operation {
        match self {
            &FileCommand::Read {
                ref file,
                into,
                length,
                offset,
            } => Operation::Read {
                file: file.as_raw_fd(),
                into,
                length,
                offset,
            },
            FileCommand::Lookup(lookup) => Operation::Open {
                directory: lookup.directory.as_fd().as_raw_fd(),
                path: lookup.path.as_ptr(),
                how: &raw const lookup.how,
            },
        }
    }
}

impl FileOperations {
    /// Keeps a command until its operation has ended. Returns `None` if there are too many.
    pub fn insert(&mut self, command: FileCommand) -> Option<(usize, Operation)> {
        if self.in_flight.len() >= MAX_OPERATIONS {
            return None;
        }
        let index = self.in_flight.insert(InFlight {
            command,
            waker: None,
            result: None,
            is_abandoned: false,
        });
        Some((index, self.in_flight[index].command.operation()))
    }

    /// Removes an operation that was not submitted.
    pub fn withdraw(&mut self, index: usize) {
        self.in_flight.remove(index);
    }

    /// Stores the result. Returns the waker of the task that waits for it, if any.
    pub fn complete(&mut self, index: usize, result: i32) -> Option<Waker> {
        let operation = self.in_flight.get_mut(index)?;
        if let FileCommand::Lookup(_) = operation.command {
            close(result);
        }
        if operation.is_abandoned {
            self.in_flight.remove(index);
            return None;
        }
        operation.result = Some(result);
        operation.waker.take()
    }

    /// Returns whether the kernel has any of them.
    pub fn any_in_flight(&self) -> bool {
        self.in_flight.iter().any(|(_, operation)| operation.result.is_none())
    }

    /// Ends all operations with `-ECANCELED`, because their completions will not come. Returns the wakers of their
    /// tasks.
    pub fn cancel_all(&mut self) -> Vec<Waker> {
        let cancel = |(_, operation): (usize, &mut InFlight)| {
            operation.result.get_or_insert(-libc::ECANCELED);
            operation.waker.take()
        };
        self.in_flight.iter_mut().filter_map(cancel).collect()
    }

    /// Returns the result once it is there, and forgets the operation.
    pub fn poll(&mut self, context: &Context<'_>, index: usize) -> Poll<i32> {
        match self.in_flight.get_mut(index) {
            None => Poll::Ready(-libc::ECANCELED),
            Some(InFlight {
                result: Some(result), ..
            }) => {
                let result = *result;
                self.in_flight.remove(index);
                Poll::Ready(result)
            }
            Some(operation) => {
                operation.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Forgets the operation as soon as it has ended.
    pub fn abandon(&mut self, index: usize) {
        if let Some(operation) = self.in_flight.get_mut(index) {
            operation.is_abandoned = true;
            if operation.result.is_some() {
                self.in_flight.remove(index);
            }
        }
    }
}

/// Closes what a lookup opened, which was only needed for the names on the way.
#[allow(unsafe_code)]
fn close(result: i32) {
    if result >= 0 {
        // SAFETY: the kernel has just made this descriptor for the operation, and its number was given to nothing else.
        drop(unsafe { OwnedFd::from_raw_fd(result) });
    }
}
