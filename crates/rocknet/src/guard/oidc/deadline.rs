//! Deadline of a login.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use crate::services::Services;

/// Returns the result of a future; `None` if it takes longer than `time`.
pub(super) async fn within<T>(services: &Rc<Services>, time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let deadline = services.wheel.deadline();
    deadline.set(services.wheel.ticks(time));
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Pending if deadline.poll_past(context.waker()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
        Poll::Ready(result) => Poll::Ready(Some(result)),
    })
    .await
}
