//! Which operation a completion is of: the number that goes to the kernel and comes back.

/// In the lower bits of the number; above them the place, or the number of an errand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Receive = 0,
    Write = 1,
    Epoll = 2,
    /// Ends the receiving operation of a place.
    CancelReceive = 3,
    CancelWrite = 4,
    Send = 5,
    Errand = 6,
}

const ALL: [Kind; 7] = [
    Kind::Receive,
    Kind::Write,
    Kind::Epoll,
    Kind::CancelReceive,
    Kind::CancelWrite,
    Kind::Send,
    Kind::Errand,
];
const KIND_BITS: u32 = 3;

pub(super) fn tag(kind: Kind, index: usize) -> u64 {
    (index as u64) << KIND_BITS | kind as u64
}

/// `None`: nothing of ours.
pub(super) fn untag(number: u64) -> Option<(Kind, usize)> {
    let kind = ALL.get((number & ((1 << KIND_BITS) - 1)) as usize)?;
    Some((*kind, (number >> KIND_BITS) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_went() {
        for kind in ALL {
            for index in [0, 1, 100_000] {
                assert_eq!(untag(tag(kind, index)), Some((kind, index)));
            }
        }
        assert_eq!(untag(7), None);
    }
}
