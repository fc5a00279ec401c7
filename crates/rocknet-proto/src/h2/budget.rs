//! Counts what a client may do too much of: each kind of frame that costs us more than it costs the client has an account.

/// Milliseconds, from any beginning.
pub(crate) type Milliseconds = u64;

/// One row a kind: what it is, what may come at once, and what is forgiven each second.
macro_rules! floods {
    ($($(#[$doc:meta])* $name:ident $burst:literal $per_second:literal $reason:literal;)*) => {
        /// A kind of flood.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        pub enum Flood {
            $($(#[$doc])* $name),*
        }

        impl Flood {
            /// Every kind, in the order of its numbers.
            pub const ALL: &'static [Flood] = &[$(Flood::$name),*];

            /// How many may come at once.
            pub const fn burst(self) -> u32 {
                match self {
                    $(Self::$name => $burst),*
                }
            }

            /// How many are forgiven each second.
            pub const fn per_second(self) -> u32 {
                match self {
                    $(Self::$name => $per_second),*
                }
            }

            pub const fn reason(self) -> &'static str {
                match self {
                    $(Self::$name => $reason),*
                }
            }
        }
    };
}

floods! {
    /// Streams reset by the client after they cost us a request (rapid reset, CVE-2023-44487), and by us because of what it
    /// sent (CVE-2025-8671): either way the work is ours and the stream no longer counts. A browser that leaves a page
    /// resets all its streams, so twice our limit of them at once is use.
    Resets 256 32 "a flood of streams that are reset";
    /// PING, each of which is answered (CVE-2019-9512). Keep-alives come every few seconds, measurements some times more often.
    Pings 64 8 "a flood of PING";
    /// SETTINGS, each of which is acknowledged and may change every stream (CVE-2019-9515). In use there are one or two.
    Settings 32 1 "a flood of SETTINGS";
    /// PRIORITY and PRIORITY_UPDATE (CVE-2019-9513). Browsers send a few a stream.
    Priorities 512 128 "a flood of priorities";
    /// DATA without data that does not end its stream (CVE-2019-9518).
    EmptyData 64 8 "a flood of empty DATA";
    /// WINDOW_UPDATE. Each frame of data we send pays for two of them, one for its stream and one for the connection.
    WindowUpdates 1024 128 "a flood of WINDOW_UPDATE";
    /// Frames on streams that are closed: what was under way when we reset them, a window of data at most.
    Stale 512 64 "a flood of frames on closed streams";
    /// Frames of unknown types, which must be passed over (RFC 9113 §5.5); some clients send a few to keep servers honest.
    Unknown 128 16 "a flood of unknown frames";
}

const KINDS: usize = Flood::ALL.len();

/// The accounts of one connection.
#[derive(Debug)]
pub(crate) struct Budget {
    spent: [u16; KINDS],
    /// Up to when the accounts have been forgiven.
    since: Milliseconds,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self {
            spent: [0; KINDS],
            since: 0,
        }
    }

    /// The connection begins now: nothing is forgiven for the time before.
    pub(crate) fn start(&mut self, now: Milliseconds) {
        self.since = now;
    }

    /// Books one. Time is looked at only when an account is used up.
    #[inline]
    pub(crate) fn spend(&mut self, kind: Flood, now: Milliseconds) -> Result<(), Flood> {
        let spent = &mut self.spent[kind as usize];
        *spent += 1;
        if u32::from(*spent) <= kind.burst() {
            return Ok(());
        }
        self.replenish(now);
        if u32::from(self.spent[kind as usize]) <= kind.burst() {
            Ok(())
        } else {
            self.spent[kind as usize] = kind.burst() as u16;
            Err(kind)
        }
    }

    /// Takes some back, for what the client did of use.
    #[inline]
    pub(crate) fn refund(&mut self, kind: Flood, count: u16) {
        let spent = &mut self.spent[kind as usize];
        *spent = spent.saturating_sub(count);
    }

    fn replenish(&mut self, now: Milliseconds) {
        let seconds = now.saturating_sub(self.since) / 1000;
        self.since += seconds * 1000;
        for (spent, kind) in self.spent.iter_mut().zip(Flood::ALL) {
            let replenished = seconds.saturating_mul(u64::from(kind.per_second()));
            *spent = u64::from(*spent).saturating_sub(replenished) as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_burst_and_a_rate() {
        for &kind in Flood::ALL {
            assert!(kind.burst() < u32::from(u16::MAX), "{kind:?}");
            let mut budget = Budget::new();
            let start = 5_000;
            let spend = |budget: &mut Budget, now, count| (0..count).try_for_each(|_| budget.spend(kind, now));
            budget.start(start);
            assert_eq!(spend(&mut budget, start, kind.burst()), Ok(()), "{kind:?}");
            assert_eq!(budget.spend(kind, start + 999), Err(kind), "{kind:?}");
            assert_eq!(spend(&mut budget, start + 1000, kind.per_second()), Ok(()), "{kind:?}");
            assert_eq!(budget.spend(kind, start + 1000), Err(kind), "{kind:?}");
            for &other in Flood::ALL.iter().filter(|&&other| other != kind) {
                assert_eq!(budget.spend(other, start + 1000), Ok(()), "{kind:?} {other:?}");
            }
        }
    }

    #[test]
    fn refunds_can_be_spent() {
        let mut budget = Budget::new();
        budget.spent[Flood::WindowUpdates as usize] = 1024;
        budget.refund(Flood::WindowUpdates, 2);
        for expected in [Ok(()), Ok(()), Err(Flood::WindowUpdates)] {
            assert_eq!(budget.spend(Flood::WindowUpdates, 0), expected);
        }
        budget.refund(Flood::Pings, 100);
        assert_eq!(budget.spent[Flood::Pings as usize], 0);
    }
}
