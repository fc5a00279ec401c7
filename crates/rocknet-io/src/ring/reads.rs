//! Reading ahead: stretches of files that are brought into the kernel's memory, so that sending them waits for no disk.
//!
//! What is read is thrown away: all reads write to one sink, and nobody ever looks at it.

use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

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

/// Ends when all of it is in memory, or cannot be brought there: what went wrong shows again when it is sent.
pub struct ReadAhead {
    driver: Rc<Driver>,
    file: Arc<File>,
    offset: u64,
    left: u64,
    stretch: Option<Errand>,
}

/// Reads ahead on this thread's ring. `None`: there is none, or it has enough to do.
pub fn read_ahead(file: &Arc<File>, offset: u64, length: u64) -> Option<ReadAhead> {
    read_ahead_on(current()?, file, offset, length)
}

pub(super) fn read_ahead_on(driver: Rc<Driver>, file: &Arc<File>, offset: u64, length: u64) -> Option<ReadAhead> {
    Some(ReadAhead {
        stretch: Some(begin(&driver, file, offset, length)?),
        driver,
        file: Arc::clone(file),
        offset,
        left: length,
    })
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

impl Future for ReadAhead {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        while let Some(stretch) = &mut self.stretch {
            let result = ready!(stretch.poll(context));
            self.stretch = None;
            let read = u64::try_from(result).unwrap_or(0).min(self.left);
            self.offset += read;
            self.left -= read;
            // Nothing read: the file has ended, or failed.
            if read > 0 && self.left > 0 {
                self.stretch = begin(&self.driver, &self.file, self.offset, self.left);
            }
        }
        Poll::Ready(())
    }
}
