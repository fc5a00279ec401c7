//! How much flows in one direction of a tunnel: whether copying it or leaving it to the kernel costs less.

/// So much at once is much.
const MUCH: usize = 32 * 1024;
/// How often in a row, before it is taken for a stream: a message is not worth a pipe.
const MUCH_IN_A_ROW: u8 = 4;
/// Less than this at once costs less when it is copied.
const LITTLE: usize = 16 * 1024;
/// How often in a row, before the stream is taken to be over: its end, and what is left when it comes unevenly, come alone.
const LITTLE_IN_A_ROW: u8 = 8;

#[derive(Debug, Default)]
pub struct Flow {
    is_much: bool,
    /// Pieces in a row that speak for the other way.
    against: u8,
}

impl Flow {
    pub fn is_much(&self) -> bool {
        self.is_much
    }

    /// So much was received and copied. Where there is much that speaks against it: there was nothing to be moved.
    pub fn received(&mut self, size: usize) {
        if self.is_much {
            self.moved(0);
        } else {
            self.count(size >= MUCH, MUCH_IN_A_ROW);
        }
    }

    /// So much was moved by the kernel.
    pub fn moved(&mut self, size: usize) {
        self.count(size < LITTLE, LITTLE_IN_A_ROW);
    }

    fn count(&mut self, is_against: bool, enough: u8) {
        self.against = if is_against { self.against + 1 } else { 0 };
        if self.against == enough {
            *self = Flow {
                is_much: !self.is_much,
                against: 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stream_is_much_until_little_comes_again_and_again() {
        let mut flow = Flow::default();
        for _ in 0..3 {
            for _ in 0..3 {
                for _ in 1..MUCH_IN_A_ROW {
                    flow.received(MUCH);
                    assert!(!flow.is_much());
                }
                flow.received(MUCH - 1);
            }
            for _ in 0..MUCH_IN_A_ROW {
                assert!(!flow.is_much());
                flow.received(MUCH);
            }
            for _ in 0..3 {
                for _ in 1..LITTLE_IN_A_ROW {
                    flow.moved(LITTLE - 1);
                }
                flow.moved(LITTLE);
                assert!(flow.is_much());
            }
            for number in 0..LITTLE_IN_A_ROW {
                assert!(flow.is_much());
                match number % 2 {
                    0 => flow.moved(LITTLE - 1),
                    _ => flow.received(MUCH),
                }
            }
            assert!(!flow.is_much());
        }
    }
}
