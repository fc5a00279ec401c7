//! Futures limited by a deadline.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::Deadline;

impl Deadline {
    /// Returns the output of `future`, or `None` if the deadline expires first. If both are ready at the same time, the
    /// output is returned.
    pub async fn within<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.poll_past(context.waker()) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Waits until the deadline expires; forever if it is never set.
    pub async fn past(&self) {
        poll_fn(|context| match self.poll_past(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};
    use std::time::Duration;

    use super::super::Wheel;
    use super::*;

    #[test]
    fn within_returns_the_output_before_the_deadline_or_none() {
        let wheel = Wheel::new(Duration::from_millis(10), 4);
        let (deadline, pause) = (wheel.deadline(), wheel.deadline());
        let mut context = Context::from_waker(Waker::noop());
        deadline.set(2);
        pause.set(1);
        assert_eq!(pin!(deadline.within(ready(7))).poll(&mut context), Poll::Ready(Some(7)));
        let mut never = pin!(deadline.within(pending::<()>()));
        let mut paused = pin!(deadline.within(pause.past()));
        assert!(never.as_mut().poll(&mut context).is_pending());
        assert!(paused.as_mut().poll(&mut context).is_pending());
        wheel.advance();
        assert!(never.as_mut().poll(&mut context).is_pending());
        assert_eq!(paused.as_mut().poll(&mut context), Poll::Ready(Some(())));
        wheel.advance();
        assert_eq!(never.as_mut().poll(&mut context), Poll::Ready(None));
        // Both are ready at the same time.
        assert_eq!(pin!(deadline.within(ready(8))).poll(&mut context), Poll::Ready(Some(8)));
    }
}
