//! The gate: how many handshakes, or connections to other servers, are begun in one turn of a worker's loop, so that those
//! who are served already are not kept waiting by those who come.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use rocknet_io::runtime::{drain_events, spawn};

/// Handshakes begun in a turn. Each takes from 0.2 ms (ECDSA) to 1 ms (RSA): with four, an answer is late by a few
/// milliseconds at worst, and the turn's own cost is still nothing beside them.
pub const MAX_HANDSHAKES: u32 = 4;

/// Connections to other servers begun in a turn. A `connect` costs 20 to 100 µs, so 16 take about a millisecond; a worker
/// with little else to do begins the next 16 at once.
pub const MAX_CONNECTS: u32 = 16;

#[derive(Clone)]
pub struct StartLimiter(Rc<LimiterState>);

struct LimiterState {
    per_iteration: u32,
    started: Cell<u32>,
    waiters: RefCell<VecDeque<Rc<Waiter>>>,
    /// Somebody counts anew when the next turn comes.
    is_scheduled: Cell<bool>,
}

/// The place of one who waits: one, however often he looks. A connection in HTTP/2 looks for all its streams whenever
/// anything comes, so a place for each look would be memory that clients may have at will.
struct Waiter {
    waker: RefCell<Waker>,
    is_admitted: Cell<bool>,
}

impl StartLimiter {
    /// Lets `per_iteration` callers pass in each turn.
    pub fn new(per_iteration: u32) -> StartLimiter {
        StartLimiter(Rc::new(LimiterState {
            per_iteration,
            started: Cell::default(),
            waiters: RefCell::default(),
            is_scheduled: Cell::default(),
        }))
    }

    /// Waits for a turn in which another one may begin.
    pub async fn acquire(&self) {
        let mut waiter: Option<Rc<Waiter>> = None;
        poll_fn(|context| {
            let state = &self.0;
            if !state.is_scheduled.replace(true) {
                spawn(StartLimiter::start_iteration(self.clone()));
            }
            if state.started.get() < state.per_iteration {
                state.started.set(state.started.get() + 1);
                return Poll::Ready(());
            }
            match waiter.as_ref().filter(|waiter| !waiter.is_admitted.get()) {
                Some(waiter) => waiter.waker.borrow_mut().clone_from(context.waker()),
                None => {
                    let new = Rc::new(Waiter {
                        waker: RefCell::new(context.waker().clone()),
                        is_admitted: Cell::new(false),
                    });
                    state.waiters.borrow_mut().push_back(Rc::clone(&new));
                    waiter = Some(new);
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// The loop looks at its events before it goes on behind a yield.
    async fn start_iteration(self) {
        drain_events().await;
        self.0.is_scheduled.set(false);
        self.0.started.set(0);
        for _ in 0..self.0.per_iteration {
            let next = self.0.waiters.borrow_mut().pop_front();
            let Some(waiter) = next else { break };
            waiter.is_admitted.set(true);
            waiter.waker.borrow().wake_by_ref();
        }
        // Whoever was woken may be gone, or have passed already: those behind must not wait for them.
        if !self.0.waiters.borrow().is_empty() && !self.0.is_scheduled.replace(true) {
            spawn(StartLimiter::start_iteration(self));
        }
    }
}

#[cfg(test)]
mod tests {
    use rocknet_io::runtime::Runtime;

    use super::*;

    #[test]
    fn who_looks_often_waits_once() {
        Runtime::new(16).unwrap().block_on(async {
            let limiter = StartLimiter::new(MAX_HANDSHAKES);
            limiter.0.started.set(MAX_HANDSHAKES);
            let mut acquire = std::pin::pin!(limiter.acquire());
            poll_fn(|context| {
                for _ in 0..100 {
                    assert!(acquire.as_mut().poll(context).is_pending());
                }
                Poll::Ready(())
            })
            .await;
            assert_eq!(limiter.0.waiters.borrow().len(), 1);
            acquire.await;
            assert!(limiter.0.waiters.borrow().is_empty());
        });
    }

    #[test]
    fn so_many_pass_in_a_turn_and_all_in_the_end() {
        let passed = Rc::new(Cell::new(0));
        let most = Rc::new(Cell::new(0));
        Runtime::new(16).unwrap().block_on(async {
            let limiter = StartLimiter::new(MAX_HANDSHAKES);
            for number in 0..41 {
                let (limiter, passed) = (limiter.clone(), Rc::clone(&passed));
                spawn(async move {
                    // Some go away while they wait.
                    let acquire = limiter.acquire();
                    if number % 10 == 9 {
                        let mut acquire = std::pin::pin!(acquire);
                        poll_fn(|context| {
                            let _ = acquire.as_mut().poll(context);
                            Poll::Ready(())
                        })
                        .await;
                        return;
                    }
                    acquire.await;
                    passed.set(passed.get() + 1);
                });
            }
            let mut before = 0;
            for _ in 0..1000 {
                tokio::task::yield_now().await;
                most.set(most.get().max(passed.get() - before));
                before = passed.get();
            }
        });
        assert_eq!(passed.get(), 37);
        assert!(most.get() <= 2 * MAX_HANDSHAKES, "{} in a turn", most.get());
    }
}
