//! Table of file operations: reads, and path prefetches, which load the names of a path into the kernel's cache.
//!
//! Each operation ends with one completion, unless the ring fails. Until then, the table owns the files and paths that
//! the operation refers to.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use io_uring::types::OpenHow;
use slab::Slab;

use super::kernel::Operation;

/// Maximum number of operations in the table. It keeps their number from growing without limit while a disk hangs.
/// Further operations are refused. Their callers load the data in the blocking pool, which has a limit of its own.
const MAX_OPERATIONS: usize = 1024;

/// Operations that are in flight, or whose result has not been read.
#[derive(Default)]
pub(super) struct FileOperations {
    operations: Slab<StoredOperation>,
}

/// Operation with its result, once there is one.
struct StoredOperation {
    command: FileCommand,
    /// Waker of the task that waits for the result.
    waker: Option<Waker>,
    /// Result of the system call, once it has ended.
    result: Option<i32>,
    /// True once the handle of the operation was dropped.
    is_abandoned: bool,
}

/// Command of a file operation. It keeps the descriptors open to which the operation refers.
pub(super) enum FileCommand {
    /// Reads into memory that outlives the operation.
    Read {
        file: Arc<File>,
        /// Address of at least `length` bytes.
        into: *mut u8,
        length: u32,
        offset: u64,
    },
    /// Opens a path so that the kernel's cache has its names. Boxed, so that `how` keeps its address until
    /// the kernel has read it.
    Lookup(Box<PathLookup>),
}

/// Lookup of a path through directories.
pub(super) struct PathLookup {
    /// Directory at which the lookup begins.
    pub directory: Arc<dyn AsFd>,
    pub path: CString,
    /// Flags of the open, and restrictions of the lookup.
    pub how: OpenHow,
}

impl FileCommand {
    /// Returns the operation of the ring that executes this command.
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
    /// Stores a command until its operation has ended. Returns its index and the operation to submit, or `None` if the
    /// table is full.
    pub fn insert(&mut self, command: FileCommand) -> Option<(usize, Operation)> {
        if self.operations.len() >= MAX_OPERATIONS {
            return None;
        }
        let index = self.operations.insert(StoredOperation {
            command,
            waker: None,
            result: None,
            is_abandoned: false,
        });
        Some((index, self.operations[index].command.operation()))
    }

    /// Removes an operation that was not submitted.
    pub fn withdraw(&mut self, index: usize) {
        self.operations.remove(index);
    }

    /// Stores the result, or removes the operation if it was abandoned. The descriptor that a lookup opened is closed:
    /// only the sign of its result is used later. Returns the waker of the task that waits for the result, if any.
    pub fn complete(&mut self, index: usize, result: i32) -> Option<Waker> {
        let operation = self.operations.get_mut(index)?;
        if let FileCommand::Lookup(_) = operation.command {
            close_opened(result);
        }
        if operation.is_abandoned {
            self.operations.remove(index);
            return None;
        }
        operation.result = Some(result);
        operation.waker.take()
    }

    /// Returns whether any operation has not completed.
    pub fn any_in_flight(&self) -> bool {
        self.operations.iter().any(|(_, operation)| operation.result.is_none())
    }

    /// Ends all unfinished operations with `-ECANCELED`, because a failed ring delivers no more completions. Abandoned
    /// ones remain in the table, because no completion removes them any more. Returns the wakers of the tasks.
    pub fn cancel_all(&mut self) -> Vec<Waker> {
        let cancel = |(_, operation): (usize, &mut StoredOperation)| {
            operation.result.get_or_insert(-libc::ECANCELED);
            operation.waker.take()
        };
        self.operations.iter_mut().filter_map(cancel).collect()
    }

    /// Returns the result once the operation has ended, and removes the operation from the table.
    pub fn poll(&mut self, context: &Context<'_>, index: usize) -> Poll<i32> {
        match self.operations.get_mut(index) {
            // The operation is no longer in the table, so it gets no result any more.
            None => Poll::Ready(-libc::ECANCELED),
            Some(StoredOperation {
                result: Some(result), ..
            }) => {
                let result = *result;
                self.operations.remove(index);
                Poll::Ready(result)
            }
            Some(operation) => {
                operation.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Abandons the operation. Its completion removes it from the table; if it has ended already, it is removed here.
    pub fn abandon(&mut self, index: usize) {
        if let Some(operation) = self.operations.get_mut(index) {
            operation.is_abandoned = true;
            if operation.result.is_some() {
                self.operations.remove(index);
            }
        }
    }
}

/// Closes the descriptor that a lookup opened. The lookup served only to load the names of the path into the kernel's
/// cache.
#[allow(unsafe_code)]
fn close_opened(result: i32) {
    if result >= 0 {
        // SAFETY: the kernel has just created this descriptor for the operation, and nothing else owns it.
        drop(unsafe { OwnedFd::from_raw_fd(result) });
    }
}
