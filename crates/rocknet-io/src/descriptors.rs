//! Limit on the number of open files and sockets of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before and after [`raise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit before the call; `u64::MAX` for none.
    pub before: u64,
    /// The limit in force; `u64::MAX` for none.
    pub now: u64,
}

/// Returns the number of descriptors that the process may have open; `u64::MAX` for no limit.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit as far as possible without privileges. If the system refuses, the limit stays unchanged.
pub fn raise() -> DescriptorLimit {
    let before = limit();
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Some systems report no hard limit and yet refuse an unlimited soft limit, so a second value is tried. The
    // loop also ends at a value that is not above the present limit, because there is nothing to raise.
    for requested in [maximum, Some(FALLBACK_LIMIT)] {
        if requested.unwrap_or(u64::MAX) <= before
            || setrlimit(
                Resource::Nofile,
                Rlimit {
                    current: requested,
                    maximum,
                },
            )
            .is_ok()
        {
            break;
        }
    }
    DescriptorLimit { before, now: limit() }
}

/// Limit requested if the hard limit is refused. It is enough for a million connections, and it is the maximum that
/// Linux allows without a change of `fs.nr_open`.
const FALLBACK_LIMIT: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolated_test::in_own_process;

    /// Runs in its own process, because the limit applies to the whole process.
    #[test]
    fn raises_the_soft_limit_to_the_hard_one() {
        if !in_own_process("descriptors::tests::raises_the_soft_limit_to_the_hard_one") {
            return;
        }
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(64),
                maximum,
            },
        )
        .unwrap();
        let raised = raise();
        assert_eq!((raised.before, raised.now), (64, limit()));
        assert!(raised.now == maximum.unwrap_or(u64::MAX) || maximum.is_none() && raised.now == FALLBACK_LIMIT);
        // A second call changes nothing.
        assert_eq!(
            raise(),
            DescriptorLimit {
                before: raised.now,
                now: raised.now
            }
        );
    }
}
