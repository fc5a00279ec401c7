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
const MOST: usize = 1024;

/// Operations that the kernel has, or that nobody has asked about since they ended.
#[derive(Default)]
pub(super) struct Errands {
    under_way: Slab<UnderWay>,
}

struct UnderWay {
    subject: Subject,
    waker: Option<Waker>,
    /// What the kernel said.
    result: Option<i32>,
    /// Nobody waits for it any more.
    gone: bool,
}

/// What an operation is about. Descriptors are open at least until it was handed over.
pub(super) enum Subject {
    /// To be read into memory that outlives the operation.
    Stretch {
        file: Arc<File>,
        into: *mut u8,
        length: u32,
        offset: u64,
    },
    /// In a box: the kernel is told where it lies.
    Names(Box<Names>),
}

/// A way through directories.
pub(super) struct Names {
    /// Where it begins: kept open by its owner.
    pub directory: Arc<dyn AsFd>,
    pub path: CString,
    pub how: OpenHow,
}

impl Subject {
    fn operation(&self) -> Operation {
        match self {
            &Subject::Stretch {
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
            Subject::Names(names) => Operation::Open {
                directory: names.directory.as_fd().as_raw_fd(),
                path: names.path.as_ptr(),
                how: &raw const names.how,
            },
        }
    }
}

impl Errands {
    /// Keeps what an operation is about until the operation has ended. `None`: there are enough.
    pub fn insert(&mut self, subject: Subject) -> Option<(usize, Operation)> {
        if self.under_way.len() >= MOST {
            return None;
        }
        let number = self.under_way.insert(UnderWay {
            subject,
            waker: None,
            result: None,
            gone: false,
        });
        Some((number, self.under_way[number].subject.operation()))
    }

    /// Removes an operation that the kernel did not get.
    pub fn withdraw(&mut self, number: usize) {
        self.under_way.remove(number);
    }

    /// Who waits for it, if anybody does.
    pub fn ended(&mut self, number: usize, result: i32) -> Option<Waker> {
        let errand = self.under_way.get_mut(number)?;
        if let Subject::Names(_) = errand.subject {
            close(result);
        }
        if errand.gone {
            self.under_way.remove(number);
            return None;
        }
        errand.result = Some(result);
        errand.waker.take()
    }

    /// Whether the kernel has some of them.
    pub fn are_under_way(&self) -> bool {
        self.under_way.iter().any(|(_, errand)| errand.result.is_none())
    }

    /// None of them will end: all who wait are told so.
    pub fn give_up(&mut self) -> Vec<Waker> {
        let tell = |(_, errand): (usize, &mut UnderWay)| {
            errand.result.get_or_insert(-libc::ECANCELED);
            errand.waker.take()
        };
        self.under_way.iter_mut().filter_map(tell).collect()
    }

    pub fn poll(&mut self, context: &Context<'_>, number: usize) -> Poll<i32> {
        match self.under_way.get_mut(number) {
            None => Poll::Ready(-libc::ECANCELED),
            Some(UnderWay {
                result: Some(result), ..
            }) => {
                let result = *result;
                self.under_way.remove(number);
                Poll::Ready(result)
            }
            Some(errand) => {
                errand.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    pub fn leave(&mut self, number: usize) {
        if let Some(errand) = self.under_way.get_mut(number) {
            errand.gone = true;
            if errand.result.is_some() {
                self.under_way.remove(number);
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
