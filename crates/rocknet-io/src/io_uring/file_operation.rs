//! One operation on a file, from its begin to its end or to the moment when nobody waits for it.

use std::rc::Rc;
use std::task::{Context, Poll};

use super::Driver;
use super::file_operations::Subject;
use super::user_data::{OperationKind, encode};

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
            let (number, operation) = state.errands.insert(subject)?;
            if !state.push(operation, encode(OperationKind::FileOperation, number)) {
                state.errands.withdraw(number);
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
