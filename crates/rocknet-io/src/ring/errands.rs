//! Operations on files that somebody waits for. Each ends with one completion; what it names stays as it is until then.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use io_uring::types::OpenHow;
use slab::Slab;

use super::Driver;
use super::kernel::Operation;
use super::number::{Kind, tag};
use crate::beneath::Root;

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
    pub root: Arc<Root>,
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
                directory: names.root.as_fd().as_raw_fd(),
                path: names.path.as_ptr(),
                how: &raw const names.how,
            },
        }
    }
}

impl Errands {
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

    fn poll(&mut self, context: &Context<'_>, number: usize) -> Poll<i32> {
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

    fn leave(&mut self, number: usize) {
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

/// One operation, until it has ended or nobody waits for it.
pub(super) struct Errand {
    driver: Rc<Driver>,
    /// `None` once it has ended, when it may be another's.
    number: Option<usize>,
}

impl Errand {
    /// `None`: the ring has failed, or has enough to do.
    pub fn begin(driver: &Rc<Driver>, subject: Subject) -> Option<Errand> {
        if driver.has_failed() {
            return None;
        }
        let number = driver.with_state(|state| {
            if state.errands.under_way.len() >= MOST {
                return None;
            }
            let number = state.errands.under_way.insert(UnderWay {
                subject,
                waker: None,
                result: None,
                gone: false,
            });
            let operation = state.errands.under_way[number].subject.operation();
            if !state.push(operation, tag(Kind::Errand, number)) {
                state.errands.under_way.remove(number);
                return None;
            }
            state.operations += 1;
            Some(number)
        })?;
        Some(Errand {
            driver: Rc::clone(driver),
            number: Some(number),
        })
    }

    /// What the kernel said.
    pub fn poll(&mut self, context: &Context<'_>) -> Poll<i32> {
        let Some(number) = self.number else {
            return Poll::Ready(-libc::ECANCELED);
        };
        let polled = self.driver.with_state(|state| state.errands.poll(context, number));
        if polled.is_ready() {
            self.number = None;
        }
        polled
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.driver.with_state(|state| state.errands.leave(number));
        }
    }
}
