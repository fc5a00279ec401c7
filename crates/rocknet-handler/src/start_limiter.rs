//! Limits how many TLS handshakes or upstream connections start in one iteration of the event loop, so that new
//! connections do not delay established ones.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use rocknet_io::runtime::{drain_events, spawn};

/// Maximum number of handshakes started in one iteration. A handshake takes from 0.2 ms (ECDSA) to 1 ms (RSA). Four
/// delay a response by at most a few milliseconds. They still cost far more than the iteration itself, so the limit
/// hardly lowers the throughput.
pub const MAX_HANDSHAKES: u32 = 4;

/// Maximum number of connections to back ends started in one iteration. A `connect` costs 20 to 100 µs, so 16 take
/// about a millisecond. A worker with little other work starts the next 16 immediately.
pub const MAX_CONNECTS: u32 = 16;

/// Admits a fixed number of callers in each iteration of the event loop. Belongs to one worker; clones share the limit.
#[derive(Clone)]
pub struct StartLimiter(Rc<LimiterState>);

struct LimiterState {
    per_iteration: u32,
    /// Number of callers admitted in this iteration.
    started: Cell<u32>,
    /// Waiting callers, the first to be woken at the front.
    waiters: RefCell<VecDeque<Rc<Waiter>>>,
    /// True while a task is scheduled that resets the count in the next iteration.
    is_scheduled: Cell<bool>,
}

/// One waiting caller. It has one entry however often it is polled. An HTTP/2 connection polls all its streams whenever
/// data arrives, so with an entry for each poll, clients could exhaust the memory.
struct Waiter {
    waker: RefCell<Waker>,
    /// True once the caller was woken and its entry was removed from the queue.
    is_woken: Cell<bool>,
}

impl StartLimiter {
    /// Creates a limiter that admits `per_iteration` callers in each iteration.
    pub fn new(per_iteration: u32) -> StartLimiter {
        StartLimiter(Rc::new(LimiterState {
            per_iteration,
            started: Cell::default(),
            waiters: RefCell::default(),
            is_scheduled: Cell::default(),
        }))
    }

    /// Waits for an iteration that admits one more caller. Waiting callers are woken in order of arrival. A new caller
    /// may be admitted before a woken one, which then waits again.
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
            match waiter.as_ref().filter(|waiter| !waiter.is_woken.get()) {
                Some(waiter) => waiter.waker.borrow_mut().clone_from(context.waker()),
                None => {
                    let new = Rc::new(Waiter {
                        waker: RefCell::new(context.waker().clone()),
                        is_woken: Cell::new(false),
                    });
                    state.waiters.borrow_mut().push_back(Rc::clone(&new));
                    waiter = Some(new);
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// Resets the count in the next iteration, after the event loop has polled its events.
    async fn start_iteration(self) {
        drain_events().await;
        self.0.is_scheduled.set(false);
        self.0.started.set(0);
        for _ in 0..self.0.per_iteration {
            let next = self.0.waiters.borrow_mut().pop_front();
            let Some(waiter) = next else { break };
            waiter.is_woken.set(true);
            waiter.waker.borrow().wake_by_ref();
        }
        // Schedules the next iteration here, because the woken callers may have been dropped or admitted already. The
        // callers after them would otherwise wait forever.
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
    fn a_caller_that_is_polled_often_has_one_entry() {
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
    fn each_iteration_admits_a_limited_number_and_all_callers_are_admitted_eventually() {
        let passed = Rc::new(Cell::new(0));
        let most = Rc::new(Cell::new(0));
        Runtime::new(16).unwrap().block_on(async {
            let limiter = StartLimiter::new(MAX_HANDSHAKES);
            for number in 0..41 {
                let (limiter, passed) = (limiter.clone(), Rc::clone(&passed));
                spawn(async move {
                    // Some callers are dropped while they wait.
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
        // 41 callers, of which 4 were dropped.
        assert_eq!(passed.get(), 37);
        // The count may be reset once between two turns of the measuring task.
        assert!(most.get() <= 2 * MAX_HANDSHAKES, "{} in one iteration", most.get());
    }
}
