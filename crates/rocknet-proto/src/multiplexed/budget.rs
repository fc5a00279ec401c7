//! Flood limits: counters for the kinds of frames that cost the server more than the client. Each counter decreases by
//! a fixed number per second.

/// Milliseconds since an arbitrary start.
pub(crate) type Milliseconds = u64;

/// One row per kind: name, burst, frames forgiven per second, and reason.
macro_rules! floods {
    ($($(#[$doc:meta])* $name:ident $burst:literal $per_second:literal $reason:literal;)*) => {
        /// Kind of frame that a client may not send in excess (RFC 9113 §10.5).
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        pub enum Flood {
            $($(#[$doc])* $name),*
        }

        impl Flood {
            /// Every kind, in the order of its discriminants.
            pub const ALL: &'static [Flood] = &[$(Flood::$name),*];

            /// Returns the number of frames that may arrive in one burst.
            pub const fn burst(self) -> u32 {
                match self {
                    $(Self::$name => $burst),*
                }
            }

            /// Returns the number of frames forgiven per second.
            pub const fn per_second(self) -> u32 {
                match self {
                    $(Self::$name => $per_second),*
                }
            }

            /// Returns a phrase for logs. It contains no bytes from the client.
            pub const fn reason(self) -> &'static str {
                match self {
                    $(Self::$name => $reason),*
                }
            }
        }
    };
}

floods! {
    /// Streams reset by the client after the server started a request (rapid reset, CVE-2023-44487), and streams reset
    /// by the server because of the client's frames (CVE-2025-8671). In both cases the server has done work, but the
    /// stream no longer counts towards the limit of concurrent streams. A browser that leaves a page resets all its
    /// streams, so a burst of twice the stream limit is normal use.
    Resets 256 32 "too many stream resets";
    /// PING, each of which is acknowledged (CVE-2019-9512). Keep-alives arrive every few seconds, latency measurements
    /// a few times as often.
    Pings 64 8 "too many PING frames";
    /// SETTINGS, each of which is acknowledged and may change every stream (CVE-2019-9515). Normal use is one or two.
    Settings 32 1 "too many SETTINGS frames";
    /// PRIORITY and PRIORITY_UPDATE (CVE-2019-9513). Browsers send a few per stream.
    Priorities 512 128 "too many priority frames";
    /// DATA frames that are empty and do not end their stream (CVE-2019-9518).
    EmptyData 64 8 "too many empty DATA frames";
    /// WINDOW_UPDATE. Each DATA frame sent refunds two WINDOW_UPDATE frames, one for its stream and one for the
    /// connection, unless a window made the DATA frame smaller than 32 bytes.
    WindowUpdates 1024 128 "too many WINDOW_UPDATE frames";
    /// Frames on closed streams, and on streams that the final GOAWAY excludes. Legitimate frames of this kind were in
    /// flight when the server reset the stream or sent GOAWAY: at most a window of data, and the heads of refused
    /// requests.
    Stale 512 64 "too many frames on closed streams";
    /// Frames of unknown types, which must be ignored (RFC 9113 §5.5). Some clients send a few to keep servers
    /// tolerant. In HTTP/3, streams of unknown types and control frames without a kind of their own count, too.
    Unknown 128 16 "too many frames or streams of unknown or rarely used types";
    /// Instructions of QPACK, which insert into a table or acknowledge (RFC 9204 §4). A request needs ten at most.
    QpackInstructions 4096 1024 "too many QPACK instructions";
}

/// Number of kinds of floods.
const KINDS: usize = Flood::ALL.len();

/// Counters of one connection, one per [`Flood`].
#[derive(Debug)]
pub(crate) struct Budget {
    /// Frames of each kind that were counted and not forgiven.
    spent: [u16; KINDS],
    /// Time up to which the counters have been replenished.
    since: Milliseconds,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self {
            spent: [0; KINDS],
            since: 0,
        }
    }

    /// Starts the clock: no frames are forgiven for the time before `now`.
    pub(crate) fn start(&mut self, now: Milliseconds) {
        self.since = now;
    }

    /// Counts one frame. The time is used only when the burst is exhausted.
    ///
    /// # Errors
    ///
    /// Returns `kind` if its burst is exhausted and no whole second has passed since the counters were last
    /// replenished.
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
            // The frame above the burst is not counted, so the counter cannot overflow.
            self.spent[kind as usize] = kind.burst() as u16;
            Err(kind)
        }
    }

    /// Subtracts `count` frames from a counter, because the client has requested or permitted useful work.
    #[inline]
    pub(crate) fn refund(&mut self, kind: Flood, count: u16) {
        let spent = &mut self.spent[kind as usize];
        *spent = spent.saturating_sub(count);
    }

    /// Subtracts from each counter the frames forgiven for the whole seconds since the last call.
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
