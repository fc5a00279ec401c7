//! Whether a connection brings so much that it is received for by calls, and not by an operation of the ring that stays.

use super::provided_buffers::BUFFER;

/// Bytes that came in a turn, or at once, from which on a call costs less than buffers and copies.
pub(super) const MUCH: usize = 2 * BUFFER;
/// Receives of less than a buffer, one after the other, after which the operation that stays is the cheaper one again.
/// Ends of answers and of uploads come alone.
const LITTLE_IN_A_ROW: u8 = 8;

/// Whether a connection is received for in bulk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bulk {
    on: bool,
    /// The last call took all there was: the next thing is to wait.
    empty: bool,
    /// How many receives in a row brought little.
    little: u8,
}

impl Bulk {
    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn begin(&mut self) {
        *self = Bulk {
            on: true,
            ..Bulk::default()
        };
    }

    /// Whether the last call took all there was.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// A call found nothing.
    pub fn has_nothing(&mut self) {
        self.empty = true;
    }

    /// There is something, or an end.
    pub fn has_something(&mut self) {
        self.empty = false;
    }

    /// A call brought so much of what was asked for.
    pub fn brought(&mut self, got: usize, asked: usize) {
        self.empty = got < asked;
        self.count(got, asked);
    }

    /// A call moved so much into a pipe; how much there is beyond nobody knows.
    pub fn moved(&mut self, got: usize) {
        self.count(got, BUFFER);
    }

    fn count(&mut self, got: usize, asked: usize) {
        if got >= BUFFER.min(asked) {
            self.little = 0;
            return;
        }
        self.little += 1;
        self.on = self.little < LITTLE_IN_A_ROW;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_little_comes_again_and_again() {
        let mut bulk = Bulk::default();
        assert!(!bulk.is_on());
        bulk.begin();
        for _ in 0..3 {
            for _ in 1..LITTLE_IN_A_ROW {
                bulk.brought(10, 65_536);
            }
            // The end of one answer, and then another.
            bulk.brought(BUFFER, 65_536);
            // Who offers little is not brought little.
            bulk.brought(1, 1);
        }
        for _ in 1..LITTLE_IN_A_ROW {
            bulk.brought(10, 65_536);
            assert!(bulk.is_on());
        }
        bulk.brought(10, 65_536);
        assert!(!bulk.is_on());
    }

    #[test]
    fn it_waits_when_all_was_taken() {
        let mut bulk = Bulk::default();
        bulk.begin();
        assert!(!bulk.empty);
        bulk.brought(100, 100);
        assert!(!bulk.empty);
        bulk.brought(99, 100);
        assert!(bulk.empty);
        bulk.has_something();
        assert!(!bulk.empty);
    }
}
