//! One operation on a file, from its begin to its end or to the moment when nobody waits for it.

use std::rc::Rc;
use std::task::{Context, Poll};

use super::Driver;
use super::file_operations::FileCommand;
use super::user_data::{OperationKind, encode};

/// One operation, until it has ended or nobody waits for it.
pub(super) struct FileOperation {
    driver: Rc<Driver>,
    /// `None` once it has ended, when it may be another's.
    index: Option<usize>,
}

impl FileOperation {
    /// `None`: the ring has failed, or has enough to do.
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

    /// What the kernel said.
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
