//! The gate: how many handshakes, or connections to other servers, are begun in one turn of a worker's loop, so that those
//! who are served already are not kept waiting by those who come.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use rocknet_io::runtime::{hear, spawn};

/// Handshakes begun in a turn. Each takes from 0.2 ms (ECDSA) to 1 ms (RSA): with four, an answer is late by a few
/// milliseconds at worst, and the turn's own cost is still nothing beside them.
pub const HANDSHAKES: u32 = 4;

/// Connections to other servers begun in a turn. A `connect` costs 20 to 100 µs, so 16 take about a millisecond; a worker
/// with little else to do begins the next 16 at once.
pub const CONNECTS: u32 = 16;

#[derive(Clone)]
pub struct Gate(Rc<State>);

struct State {
    per_turn: u32,
    begun: Cell<u32>,
    waiting: RefCell<VecDeque<Rc<Turn>>>,
    /// Somebody counts anew when the next turn comes.
    counting: Cell<bool>,
}

/// The place of one who waits: one, however often he looks. A connection in HTTP/2 looks for all its streams whenever
/// anything comes, so a place for each look would be memory that clients may have at will.
struct Turn {
    waker: RefCell<Waker>,
    has_come: Cell<bool>,
}

impl Gate {
    /// Lets `per_turn` callers pass in each turn.
    pub fn new(per_turn: u32) -> Gate {
        Gate(Rc::new(State {
            per_turn,
            begun: Cell::default(),
            waiting: RefCell::default(),
            counting: Cell::default(),
        }))
    }

    /// Waits for a turn in which another one may begin.
    pub async fn pass(&self) {
        let mut turn: Option<Rc<Turn>> = None;
        poll_fn(|context| {
            let state = &self.0;
            if !state.counting.replace(true) {
                spawn(Gate::count_anew(self.clone()));
            }
            if state.begun.get() < state.per_turn {
                state.begun.set(state.begun.get() + 1);
                return Poll::Ready(());
            }
            match turn.as_ref().filter(|turn| !turn.has_come.get()) {
                Some(turn) => turn.waker.borrow_mut().clone_from(context.waker()),
                None => {
                    let new = Rc::new(Turn {
                        waker: RefCell::new(context.waker().clone()),
                        has_come: Cell::new(false),
                    });
                    state.waiting.borrow_mut().push_back(Rc::clone(&new));
                    turn = Some(new);
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// The loop looks at its events before it goes on behind a yield.
    async fn count_anew(self) {
        hear().await;
        self.0.counting.set(false);
        self.0.begun.set(0);
        for _ in 0..self.0.per_turn {
            let next = self.0.waiting.borrow_mut().pop_front();
            let Some(turn) = next else { break };
            turn.has_come.set(true);
            turn.waker.borrow().wake_by_ref();
        }
        // Whoever was woken may be gone, or have passed already: those behind must not wait for them.
        if !self.0.waiting.borrow().is_empty() && !self.0.counting.replace(true) {
            spawn(Gate::count_anew(self));
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
            let gate = Gate::new(HANDSHAKES);
            gate.0.begun.set(HANDSHAKES);
            let mut pass = std::pin::pin!(gate.pass());
            poll_fn(|context| {
                for _ in 0..100 {
                    assert!(pass.as_mut().poll(context).is_pending());
                }
                Poll::Ready(())
            })
            .await;
            assert_eq!(gate.0.waiting.borrow().len(), 1);
            pass.await;
            assert!(gate.0.waiting.borrow().is_empty());
        });
    }

    #[test]
    fn so_many_pass_in_a_turn_and_all_in_the_end() {
        let passed = Rc::new(Cell::new(0));
        let most = Rc::new(Cell::new(0));
        Runtime::new(16).unwrap().block_on(async {
            let gate = Gate::new(HANDSHAKES);
            for number in 0..41 {
                let (gate, passed) = (gate.clone(), Rc::clone(&passed));
                spawn(async move {
                    // Some go away while they wait.
                    let pass = gate.pass();
                    if number % 10 == 9 {
                        let mut pass = std::pin::pin!(pass);
                        poll_fn(|context| {
                            let _ = pass.as_mut().poll(context);
                            Poll::Ready(())
                        })
                        .await;
                        return;
                    }
                    pass.await;
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
        assert!(most.get() <= 2 * HANDSHAKES, "{} in a turn", most.get());
    }
}
