//! Trouble that every request meets, told once in a while: a client must not be able to fill the log with it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::uptime_ms;

/// Between two lines on the same trouble.
const SILENCE_MS: u64 = 1000;

/// When a kind of trouble was told the last time, in milliseconds of uptime; 0: never.
pub struct Told(AtomicU64);

impl Told {
    pub const fn never() -> Told {
        Told(AtomicU64::new(0))
    }

    /// Whether it is time to tell it again; says so to one thread alone.
    pub fn is_due(&self) -> bool {
        self.is_due_at(uptime_ms())
    }

    fn is_due_at(&self, now_ms: u64) -> bool {
        let (now, told) = (now_ms.max(1), self.0.load(Ordering::Relaxed));
        let due = told == 0 || now.saturating_sub(told) >= SILENCE_MS;
        due && self
            .0
            .compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_told_once_in_a_while() {
        let told = Told::never();
        for (now, due) in [
            (0, true),
            (1, false),
            (1000, false),
            (1001, true),
            (2000, false),
            (9000, true),
        ] {
            assert_eq!(told.is_due_at(now), due, "at {now}");
        }
    }
}
