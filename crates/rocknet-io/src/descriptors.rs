//! How many files and sockets the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of open descriptors before and after it was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    pub before: u64,
    pub now: u64,
}

/// How many descriptors the process may have open now; `u64::MAX` for no limit.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit as far as it goes without special rights. Where the system refuses, the limit stays as it was.
pub fn raise() -> DescriptorLimit {
    let before = limit();
    let maximum = getrlimit(Resource::Nofile).maximum;
    // "No limit" is a hard limit that some systems report and yet refuse as a soft one.
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

/// Enough for a million connections: the most that Linux allows without a change of `fs.nr_open`.
const FALLBACK_LIMIT: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolated_test::in_own_process;

    /// Runs in a process of its own, because the limit is the whole process's.
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
        assert_eq!(
            raise(),
            DescriptorLimit {
                before: raised.now,
                now: raised.now
            }
        );
    }
}
