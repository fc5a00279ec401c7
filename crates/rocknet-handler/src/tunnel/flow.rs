//! Measures the flow in one direction of a tunnel, to decide between copying and a kernel pipe.

/// Number of pieces in one measurement. There are several, because a single message is not worth a pipe, and because
/// the end of a message often arrives as a small piece of its own.
const PIECES: u8 = 8;
/// Minimum number of bytes in one measurement for the flow to count as bulk data. Copying and a pipe cost the same at
/// about 20 KiB per piece.
const BULK_FROM: usize = PIECES as usize * 24 * 1024;
/// Bytes in one measurement below which bulk mode ends. The distance from `BULK_FROM` prevents oscillation.
const BULK_UNTIL: usize = PIECES as usize * 8 * 1024;

/// Measures the flow in one direction.
#[derive(Debug, Default)]
pub struct FlowMeter {
    is_bulk: bool,
    /// Number of pieces in the measurement in progress.
    pieces: u8,
    /// Number of bytes in the measurement in progress.
    bytes: usize,
}

impl FlowMeter {
    /// Returns true if the flow is bulk data, for which a pipe costs less than copying.
    pub fn is_bulk(&self) -> bool {
        self.is_bulk
    }

    /// Counts bytes that were received and copied. In bulk mode they count as 0, because the pipe could not move them.
    pub fn received(&mut self, size: usize) {
        self.count(if self.is_bulk { 0 } else { size });
    }

    /// Counts bytes that the kernel moved through a pipe.
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
    fn bulk_mode_begins_with_a_stream_and_ends_when_little_is_received() {
        let mut flow = FlowMeter::default();
        for _ in 0..3 {
            times(|| flow.received(SOME - 1));
            assert!(!flow.is_bulk());
            // The end of each message arrives separately.
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
            assert!(!flow.is_bulk(), "bulk mode persists on a socket that cannot move data");
        }
    }
}
