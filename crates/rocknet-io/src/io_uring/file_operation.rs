//! Handle of one file operation in a ring.

use std::rc::Rc;
use std::task::{Context, Poll};

use super::Driver;
use super::file_operations::FileCommand;
use super::user_data::{OperationKind, encode};

/// File operation that is abandoned when this handle is dropped.
pub(super) struct FileOperation {
    driver: Rc<Driver>,
    /// Index of the operation; `None` once it has ended, because another operation may then have the same index.
    index: Option<usize>,
}

impl FileOperation {
    /// Starts an operation. Returns `None` if the ring has failed or has too many operations.
    pub fn start(driver: &Rc<Driver>, command: FileCommand) -> Option<FileOperation> {
        if driver.has_failed() {
            return None;
        }
        let index = driver.with_state(|state| {
            let (index, operation) = state.file_operations.insert(command)?;
            if !state.push(operation, encode(OperationKind::FileOperation, index)) {
                state.file_operations.withdraw(index);
                return None;
            }
            state.operations += 1;
            Some(index)
        })?;
        Some(FileOperation {
            driver: Rc::clone(driver),
            index: Some(index),
        })
    }

    /// Returns the result of the system call: a negative number is an error, and `-ECANCELED` means that the ring has
    /// failed. Must not be called again after it has returned a result.
    pub fn poll(&mut self, context: &Context<'_>) -> Poll<i32> {
        let Some(index) = self.index else {
            return Poll::Ready(-libc::ECANCELED);
        };
        let polled = self
            .driver
            .with_state(|state| state.file_operations.poll(context, index));
        if polled.is_ready() {
            self.index = None;
        }
        polled
    }
}

impl Drop for FileOperation {
    fn drop(&mut self) {
        if let Some(index) = self.index {
            self.driver.with_state(|state| state.file_operations.abandon(index));
        }
    }
}
