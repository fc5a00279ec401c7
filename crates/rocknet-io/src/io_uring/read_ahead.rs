//! Read-ahead: brings ranges of files into the page cache, so that sending them does not wait for a disk.
//!
//! The bytes are discarded: all reads write to the same memory, the sink.

use std::fs::File;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use super::file_operation::FileOperation;
use super::file_operations::FileCommand;
use super::sink::READ_BYTES;
use super::{Driver, current};

/// Reads ahead on this thread's ring, as [`crate::read_ahead`] describes. Returns `None` if there is no ring, or if the
/// ring has too many operations.
pub fn read_ahead(file: &Arc<File>, offset: u64, length: u64) -> Option<impl Future<Output = bool> + use<>> {
    read_ahead_on(current()?, file, offset, length)
}

/// Reads ahead on the given ring, like [`read_ahead`].
pub(super) fn read_ahead_on(
    driver: Rc<Driver>,
    file: &Arc<File>,
    offset: u64,
    length: u64,
) -> Option<impl Future<Output = bool> + use<>> {
    // The first read starts now, before the future is polled.
    let first = start_read(&driver, file, offset, length)?;
    Some(read_rest(driver, Arc::clone(file), offset, length, first))
}

/// Waits for the read `first`, which began at `offset`, and continues until `remaining` bytes have been read. Resolves
/// to false if the ring has failed or has too many operations, and otherwise to true, even after a read error.
async fn read_rest(
    driver: Rc<Driver>,
    file: Arc<File>,
    mut offset: u64,
    mut remaining: u64,
    first: FileOperation,
) -> bool {
    let mut operation = first;
    loop {
        let result = poll_fn(|context| operation.poll(context)).await;
        if result == -libc::ECANCELED {
            return false;
        }
        let read = u64::try_from(result).unwrap_or(0).min(remaining);
        offset += read;
        remaining -= read;
        // If nothing was read, the file has ended, or the read has failed.
        if read == 0 || remaining == 0 {
            return true;
        }
        match start_read(&driver, &file, offset, remaining) {
            Some(next) => operation = next,
            None => return false,
        }
    }
}

/// Starts reading the next chunk, at most `length` bytes. Returns `None` if the ring has failed or has too many
/// operations.
fn start_read(driver: &Rc<Driver>, file: &Arc<File>, offset: u64, length: u64) -> Option<FileOperation> {
    let into = driver.with_state(|state| state.sink.memory());
    let command = FileCommand::Read {
        file: Arc::clone(file),
        into,
        length: length.min(READ_BYTES as u64) as u32,
        offset,
    };
    FileOperation::start(driver, command)
}
