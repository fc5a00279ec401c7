//! Reading ahead: stretches of files that are brought into the kernel's memory, so that sending them waits for no disk.
//!
//! What is read is thrown away: all reads write to one sink, and nobody ever looks at it.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use rustix::mm::munmap;
use slab::Slab;

use super::buffers::map;
use super::kernel::Operation;
use super::number::{Kind, tag};
use super::{Driver, current};

/// Bytes of one operation, one after the other, so that the kernel sees a file that is read from its start and reads ahead
/// of us by itself. From 128 KiB on, more than the pages that the kernel gathers at once, it gives the rest of a read that
/// had to wait to a thread: a megabyte then cost 800 µs of CPU time, by 64 KiB 280 and by 32 KiB 230.
const STRETCH: usize = 32 * 1024;
/// Reads at once, so that a disk that hangs does not hold operations without end. Beyond, the pool reads, which has a
/// bound of its own.
const MOST: usize = 1024;

/// Reads that the kernel has, or that nobody has asked about since they ended.
pub(super) struct Reads {
    under_way: Slab<Read>,
    sink: NonNull<u8>,
}

struct Read {
    /// Open at least until the operation was handed over.
    file: Arc<File>,
    waker: Option<Waker>,
    /// What the kernel said.
    result: Option<i32>,
    /// Nobody waits for it any more.
    gone: bool,
}

#[allow(unsafe_code)]
impl Reads {
    pub fn new() -> io::Result<Reads> {
        Ok(Reads {
            under_way: Slab::new(),
            sink: map(STRETCH)?,
        })
    }

    /// The operation for the next stretch, and its number. `None`: there are too many.
    fn begin(&mut self, file: &Arc<File>, offset: u64, length: u64) -> Option<(usize, Operation)> {
        if self.under_way.len() >= MOST {
            return None;
        }
        let number = self.under_way.insert(Read {
            file: Arc::clone(file),
            waker: None,
            result: None,
            gone: false,
        });
        let length = length.min(STRETCH as u64) as u32;
        let operation = Operation::Read {
            file: self.under_way[number].file.as_raw_fd(),
            into: self.sink.as_ptr(),
            length,
            offset,
        };
        Some((number, operation))
    }

    /// Who waits for it, if anybody does.
    pub fn ended(&mut self, number: usize, result: i32) -> Option<Waker> {
        let read = self.under_way.get_mut(number)?;
        if read.gone {
            self.under_way.remove(number);
            return None;
        }
        read.result = Some(result);
        read.waker.take()
    }

    /// None of them will end: all who wait are told so.
    pub fn give_up(&mut self) -> Vec<Waker> {
        let tell = |(_, read): (usize, &mut Read)| {
            read.result.get_or_insert(-libc::ECANCELED);
            read.waker.take()
        };
        self.under_way.iter_mut().filter_map(tell).collect()
    }

    fn poll(&mut self, context: &Context<'_>, number: usize) -> Poll<i32> {
        match self.under_way.get_mut(number) {
            None => Poll::Ready(-libc::ECANCELED),
            Some(Read {
                result: Some(result), ..
            }) => {
                let result = *result;
                self.under_way.remove(number);
                Poll::Ready(result)
            }
            Some(read) => {
                read.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn leave(&mut self, number: usize) {
        if let Some(read) = self.under_way.get_mut(number) {
            read.gone = true;
            if read.result.is_some() {
                self.under_way.remove(number);
            }
        }
    }
}

#[allow(unsafe_code)]
impl Drop for Reads {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nothing borrows from it.
        unsafe {
            let _ = munmap(self.sink.as_ptr().cast(), STRETCH);
        }
    }
}

/// Ends when all of it is in memory, or cannot be brought there: what went wrong shows again when it is sent.
pub struct ReadAhead {
    driver: Rc<Driver>,
    file: Arc<File>,
    offset: u64,
    left: u64,
    /// Of the operation under way; `None` once all have ended, when it may be another's.
    number: Option<usize>,
}

/// Reads ahead on this thread's ring. `None`: there is none, or it has enough to do.
pub fn read_ahead(file: &Arc<File>, offset: u64, length: u64) -> Option<ReadAhead> {
    read_ahead_on(current()?, file, offset, length)
}

pub(super) fn read_ahead_on(driver: Rc<Driver>, file: &Arc<File>, offset: u64, length: u64) -> Option<ReadAhead> {
    Some(ReadAhead {
        number: Some(begin(&driver, file, offset, length)?),
        driver,
        file: Arc::clone(file),
        offset,
        left: length,
    })
}

fn begin(driver: &Driver, file: &Arc<File>, offset: u64, length: u64) -> Option<usize> {
    if driver.has_failed() {
        return None;
    }
    driver.with_state(|state| {
        let (number, operation) = state.reads.begin(file, offset, length)?;
        state.operations += 1;
        state.push(operation, tag(Kind::Read, number));
        Some(number)
    })
}

impl Future for ReadAhead {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        while let Some(number) = self.number {
            let result = ready!(self.driver.with_state(|state| state.reads.poll(context, number)));
            self.number = None;
            let read = u64::try_from(result).unwrap_or(0).min(self.left);
            self.offset += read;
            self.left -= read;
            // Nothing read: the file has ended, or failed.
            if read > 0 && self.left > 0 {
                self.number = begin(&self.driver, &self.file, self.offset, self.left);
            }
        }
        Poll::Ready(())
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.driver.with_state(|state| state.reads.leave(number));
        }
    }
}
