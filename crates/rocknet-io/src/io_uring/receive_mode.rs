//! Whether a connection brings so much that it is received for by calls, and not by an operation of the ring that stays.

use super::provided_buffers::BUFFER_BYTES;

/// Bytes that came in a turn, or at once, from which on a call costs less than buffers and copies.
pub(super) const LARGE_RECEIVE_BYTES: usize = 2 * BUFFER_BYTES;
/// Receives of less than a buffer, one after the other, after which the operation that stays is the cheaper one again.
/// Ends of answers and of uploads come alone.
const SMALL_RECEIVES_TO_LEAVE: u8 = 8;

/// Whether a connection is received for in bulk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveMode {
    is_large: bool,
    /// The last call took all there was: the next thing is to wait.
    is_drained: bool,
    /// How many receives in a row brought little.
    small_receives: u8,
}

impl ReceiveMode {
    pub fn is_large(&self) -> bool {
        self.is_large
    }

    pub fn enter_large(&mut self) {
        *self = ReceiveMode {
            is_large: true,
            ..ReceiveMode::default()
        };
    }

    /// Whether the last call took all there was.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// A call found nothing.
    pub fn set_drained(&mut self) {
        self.is_drained = true;
    }

    /// There is something, or an end.
    pub fn set_readable(&mut self) {
        self.is_drained = false;
    }

    /// A call brought so much of what was asked for.
    pub fn record(&mut self, got: usize, asked: usize) {
        self.is_drained = got < asked;
        self.count_small(got, asked);
    }

    /// A call moved so much into a pipe; how much there is beyond nobody knows.
    pub fn record_spliced(&mut self, got: usize) {
        self.count_small(got, BUFFER_BYTES);
    }

    fn count_small(&mut self, got: usize, asked: usize) {
        if got >= BUFFER_BYTES.min(asked) {
            self.small_receives = 0;
            return;
        }
        self.small_receives += 1;
        self.is_large = self.small_receives < SMALL_RECEIVES_TO_LEAVE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_receives_end_after_several_small_ones() {
        let mut mode = ReceiveMode::default();
        assert!(!mode.is_large());
        mode.enter_large();
        for _ in 0..3 {
            for _ in 1..SMALL_RECEIVES_TO_LEAVE {
                mode.record(10, 65_536);
            }
            // The end of one answer, and then another.
            mode.record(BUFFER_BYTES, 65_536);
            // Who offers little is not brought little.
            mode.record(1, 1);
        }
        for _ in 1..SMALL_RECEIVES_TO_LEAVE {
            mode.record(10, 65_536);
            assert!(mode.is_large());
        }
        mode.record(10, 65_536);
        assert!(!mode.is_large());
    }

    #[test]
    fn a_short_receive_drains_the_socket() {
        let mut mode = ReceiveMode::default();
        mode.enter_large();
        assert!(!mode.is_drained);
        mode.record(100, 100);
        assert!(!mode.is_drained);
        mode.record(99, 100);
        assert!(mode.is_drained);
        mode.set_readable();
        assert!(!mode.is_drained);
    }
}
