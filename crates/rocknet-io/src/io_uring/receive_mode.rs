//! Decides whether data is received by `recv(2)` (large receives) or by a multishot operation of the ring.

use super::provided_buffers::BUFFER_BYTES;

/// Number of bytes received in one turn of the ring, or by one call, at which `recv(2)` becomes cheaper than provided
/// buffers, because the contents of provided buffers have to be copied.
pub(super) const LARGE_RECEIVE_BYTES: usize = 2 * BUFFER_BYTES;
/// Number of consecutive receives of less than a provided buffer after which the multishot operation is cheaper again.
/// One is not enough, because a large response or upload also ends with a small receive.
const SMALL_RECEIVES_TO_LEAVE: u8 = 8;

/// Receive mode of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveMode {
    /// True if data is received by `recv(2)`.
    is_large: bool,
    /// True if the last receive emptied the socket, so that the next one has to wait for data.
    is_drained: bool,
    /// Number of consecutive small receives.
    small_receives: u8,
}

impl ReceiveMode {
    /// Returns whether large receives are on.
    pub fn is_large(&self) -> bool {
        self.is_large
    }

    /// Turns large receives on.
    pub fn enter_large(&mut self) {
        *self = ReceiveMode {
            is_large: true,
            ..ReceiveMode::default()
        };
    }

    /// Returns whether the last receive emptied the socket.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Records that a receive found no data.
    pub fn set_drained(&mut self) {
        self.is_drained = true;
    }

    /// Records that data or the end of the stream has arrived.
    pub fn set_readable(&mut self) {
        self.is_drained = false;
    }

    /// Records a receive of `got` bytes into a buffer of `wanted` bytes.
    pub fn record(&mut self, got: usize, wanted: usize) {
        self.is_drained = got < wanted;
        self.count_small(got, wanted);
    }

    /// Records `got` bytes moved into a pipe. The socket does not count as emptied, because it may contain more bytes
    /// than the pipe has room for.
    pub fn record_spliced(&mut self, got: usize) {
        self.count_small(got, BUFFER_BYTES);
    }

    /// Counts a receive of less than a provided buffer, unless it filled a smaller buffer of the caller. Turns large
    /// receives off after [`SMALL_RECEIVES_TO_LEAVE`] of them in a row.
    fn count_small(&mut self, got: usize, wanted: usize) {
        if got >= BUFFER_BYTES.min(wanted) {
            self.small_receives = 0;
            return;
        }
        self.small_receives = self.small_receives.saturating_add(1);
        if self.small_receives >= SMALL_RECEIVES_TO_LEAVE {
            self.is_large = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_receives_end_after_several_small_ones() {
        // The buffer of 65,536 bytes is larger than a provided buffer, so a receive of 10 bytes counts as small.
        let mut mode = ReceiveMode::default();
        assert!(!mode.is_large());
        mode.enter_large();
        for _ in 0..3 {
            for _ in 1..SMALL_RECEIVES_TO_LEAVE {
                mode.record(10, 65_536);
            }
            // A large receive, such as that of the next response, restarts the count.
            mode.record(BUFFER_BYTES, 65_536);
            // A receive that fills a small buffer does not count as small.
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
