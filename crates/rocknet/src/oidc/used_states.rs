//! Values of the parameter `state` in callbacks that have arrived, so that no callback is processed twice.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Maximum number of states that are remembered. A state is valid for ten minutes.
const MAX_STATES: usize = 8_192;

/// States of the last callbacks. A second callback with a state that was dropped for newer ones is not recognized. Then
/// only the provider refuses its authorization code, which is valid once.
#[derive(Default)]
pub struct UsedStates(Mutex<StateTable>);

#[derive(Default)]
struct StateTable {
    all: HashSet<String>,
    /// The states in the order of their arrival.
    order: VecDeque<String>,
}

impl UsedStates {
    /// Records a state. Returns false if it was recorded before.
    #[must_use]
    pub fn record(&self, state: &str) -> bool {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.all.insert(state.to_owned()) {
            return false;
        }
        table.order.push_back(state.to_owned());
        if table.order.len() > MAX_STATES
            && let Some(oldest) = table.order.pop_front()
        {
            table.all.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_used_once_and_the_number_is_bounded() {
        let states = UsedStates::default();
        assert!(states.record("first") && !states.record("first"));
        for number in 0..MAX_STATES {
            assert!(states.record(&number.to_string()));
        }
        assert!(
            !states.record("0") && states.record("first"),
            "the oldest is not the one that was dropped"
        );
        let table = states.0.lock().expect("not poisoned");
        assert!(table.all.len() == MAX_STATES && table.order.len() == MAX_STATES);
    }
}
