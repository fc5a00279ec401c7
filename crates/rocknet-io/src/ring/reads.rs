//! Reading ahead: stretches of files that are brought into the kernel's memory, so that sending them waits for no disk.
//!
//! What is read is thrown away: all reads write to one sink, and nobody ever looks at it.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use rustix::mm::munmap;

use super::buffers::map;
use super::errands::{Errand, Subject};
use super::{Driver, current};

/// Bytes of one operation, one after the other, so that the kernel sees a file that is read from its start and reads ahead
/// of us by itself. From 128 KiB on, more than the pages that the kernel gathers at once, it gives the rest of a read that
/// had to wait to a thread: a megabyte then cost 800 µs of CPU time, by 64 KiB 280 and by 32 KiB 230.
const STRETCH: usize = 32 * 1024;

/// Where all reads go.
pub(super) struct Sink {
    memory: NonNull<u8>,
}

#[allow(unsafe_code)]
impl Sink {
    pub fn new() -> io::Result<Sink> {
        Ok(Sink { memory: map(STRETCH)? })
    }
}

#[allow(unsafe_code)]
impl Drop for Sink {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nothing borrows from it.
        unsafe {
            let _ = munmap(self.memory.as_ptr().cast(), STRETCH);
        }
    }
}

/// Reads ahead on this thread's ring, as [`crate::ahead`] has it. `None`: there is none, or it has enough to do.
pub fn read_ahead(file: &Arc<File>, offset: u64, length: u64) -> Option<impl Future<Output = bool> + use<>> {
    read_ahead_on(current()?, file, offset, length)
}

pub(super) fn read_ahead_on(
    driver: Rc<Driver>,
    file: &Arc<File>,
    offset: u64,
    length: u64,
) -> Option<impl Future<Output = bool> + use<>> {
    // Under way from here on.
    let first = begin(&driver, file, offset, length)?;
    Some(read(driver, Arc::clone(file), offset, length, first))
}

async fn read(driver: Rc<Driver>, file: Arc<File>, mut offset: u64, mut left: u64, first: Errand) -> bool {
    let mut stretch = first;
    loop {
        let result = poll_fn(|context| stretch.poll(context)).await;
        if result == -libc::ECANCELED {
            return false;
        }
        let read = u64::try_from(result).unwrap_or(0).min(left);
        offset += read;
        left -= read;
        // Nothing read: the file has ended, or failed.
        if read == 0 || left == 0 {
            return true;
        }
        match begin(&driver, &file, offset, left) {
            Some(next) => stretch = next,
            None => return false,
        }
    }
}

/// The operation for the next stretch.
fn begin(driver: &Rc<Driver>, file: &Arc<File>, offset: u64, length: u64) -> Option<Errand> {
    let into = driver.with_state(|state| state.sink.memory.as_ptr());
    let stretch = Subject::Stretch {
        file: Arc::clone(file),
        into,
        length: length.min(STRETCH as u64) as u32,
        offset,
    };
    Errand::begin(driver, stretch)
}
