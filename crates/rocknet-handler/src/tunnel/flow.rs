//! How much flows in one direction of a tunnel: whether copying it or leaving it to the kernel costs less.

/// Pieces that are looked at together: a message is not worth a pipe, and ends of messages come alone.
const PIECES: u8 = 8;
/// So much in them is a stream. What costs the same either way is some 20 KiB at once.
const BULK_FROM: usize = PIECES as usize * 24 * 1024;
/// With less than this the stream is over; far enough from the other that nothing goes to and fro.
const BULK_UNTIL: usize = PIECES as usize * 8 * 1024;

#[derive(Debug, Default)]
pub struct FlowMeter {
    is_bulk: bool,
    pieces: u8,
    bytes: usize,
}

impl FlowMeter {
    pub fn is_bulk(&self) -> bool {
        self.is_bulk
    }

    /// So much was received and copied. Where there is much that counts for nothing: it could not be moved.
    pub fn received(&mut self, size: usize) {
        self.count(if self.is_bulk { 0 } else { size });
    }

    /// So much was moved by the kernel.
    pub fn moved(&mut self, size: usize) {
        self.count(size);
    }

    fn count(&mut self, size: usize) {
        self.pieces += 1;
        self.bytes += size;
        if self.pieces == PIECES {
            let enough = if self.is_bulk { BULK_UNTIL } else { BULK_FROM };
            *self = FlowMeter {
                is_bulk: self.bytes >= enough,
                ..FlowMeter::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: usize = BULK_FROM / PIECES as usize;
    const FEW: usize = BULK_UNTIL / PIECES as usize;

    fn times(mut act: impl FnMut()) {
        (0..PIECES).for_each(|_| act());
    }

    #[test]
    fn only_a_stream_is_much_until_little_comes_again_and_again() {
        let mut flow = FlowMeter::default();
        for _ in 0..3 {
            times(|| flow.received(SOME - 1));
            assert!(!flow.is_bulk());
            // The end of each message by itself.
            for at in 0..PIECES {
                assert!(!flow.is_bulk());
                flow.received(if at % 2 == 0 { 2 * SOME } else { 1 });
            }
            assert!(flow.is_bulk());
            times(|| flow.moved(FEW));
            assert!(flow.is_bulk());
            times(|| flow.moved(FEW - 1));
            assert!(!flow.is_bulk());
            times(|| flow.received(SOME));
            assert!(flow.is_bulk());
            times(|| flow.received(SOME));
            assert!(!flow.is_bulk(), "a socket that cannot do it is asked again and again");
        }
    }
}
