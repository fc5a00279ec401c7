//! The queue before the owner: how many questions may wait, and that nobody waits for room.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

#[test]
fn a_full_queue_refuses_at_once_and_takes_more_when_there_is_room() {
    let (owner, messages) = sync_channel(MAX_QUESTIONS);
    let cache = Cache {
        owner,
        status: Arc::default(),
    };
    let scope = Arc::new(Scope::empty());
    let is_taken = || match pin!(cache.look_up(&scope, "/")).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => true,
        Poll::Ready(answer) => {
            assert!(answer.is_none(), "an answer though nobody owns the cache");
            false
        }
    };
    for number in 0..MAX_QUESTIONS {
        assert!(is_taken(), "number {number}");
    }
    assert!(!is_taken(), "one more than may wait");
    drop(messages.recv());
    assert!(is_taken() && !is_taken(), "there was room for one");
}
