//! Operations on files that somebody waits for. Each ends with one completion; what it names stays as it is until then.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use io_uring::types::OpenHow;
use slab::Slab;

use super::kernel::Operation;

/// Operations at once, so that a disk that hangs does not hold them without end. Beyond, the pool waits for the disk, which
/// has a bound of its own.
const MAX_OPERATIONS: usize = 1024;

/// Operations that the kernel has, or that nobody has asked about since they ended.
#[derive(Default)]
pub(super) struct FileOperations {
    in_flight: Slab<InFlight>,
}

struct InFlight {
    command: FileCommand,
    waker: Option<Waker>,
    /// What the kernel said.
    result: Option<i32>,
    /// Nobody waits for it any more.
    is_abandoned: bool,
}

/// What an operation is about. Descriptors are open at least until it was handed over.
pub(super) enum FileCommand {
    /// To be read into memory that outlives the operation.
    Read {
        file: Arc<File>,
        into: *mut u8,
        length: u32,
        offset: u64,
    },
    /// In a box: the kernel is told where it lies.
    Lookup(Box<PathLookup>),
}

/// A way through directories.
pub(super) struct PathLookup {
    /// Where it begins: kept open by its owner.
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
    /// Keeps what an operation is about until the operation has ended. `None`: there are enough.
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

    /// Removes an operation that the kernel did not get.
    pub fn withdraw(&mut self, index: usize) {
        self.in_flight.remove(index);
    }

    /// Who waits for it, if anybody does.
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

    /// Whether the kernel has some of them.
    pub fn any_in_flight(&self) -> bool {
        self.in_flight.iter().any(|(_, operation)| operation.result.is_none())
    }

    /// None of them will end: all who wait are told so.
    pub fn cancel_all(&mut self) -> Vec<Waker> {
        let cancel = |(_, operation): (usize, &mut InFlight)| {
            operation.result.get_or_insert(-libc::ECANCELED);
            operation.waker.take()
        };
        self.in_flight.iter_mut().filter_map(cancel).collect()
    }

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

    pub fn abandon(&mut self, index: usize) {
        if let Some(operation) = self.in_flight.get_mut(index) {
            operation.is_abandoned = true;
            if operation.result.is_some() {
                self.in_flight.remove(index);
            }
        }
    }
}

/// What was opened was wanted for the way to it alone.
#[allow(unsafe_code)]
fn close(result: i32) {
    if result >= 0 {
        // SAFETY: the kernel has just made this descriptor for the operation, and nobody else knows its number.
        drop(unsafe { OwnedFd::from_raw_fd(result) });
    }
}
