//! Freshness in a form that is valid in another process: with the time of day in place of the uptime.

use super::Terms;

/// Maximum time in milliseconds by which the time of receipt may be in the future, because clocks are adjusted.
const MAX_SKEW_MS: u64 = 5_000;

/// One moment, by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Uptime in milliseconds.
    pub uptime_ms: u64,
    /// Time in milliseconds since 1970.
    pub unix_ms: u64,
}

/// Freshness of a response on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PersistentTerms {
    /// Time in milliseconds since 1970 when the response was received, or last validated.
    pub received_unix_ms: u64,
    /// Age, lifetime, and the times of `stale-while-revalidate` and `stale-if-error`, in milliseconds.
    pub times_ms: [u64; 4],
    /// `must_validate`, `ignores_max_stale` and `is_shared` of [`Terms`].
    pub flags: [bool; 3],
}

impl Terms {
    /// Returns the terms for another process.
    pub fn to_persistent(self, now: Moment) -> PersistentTerms {
        PersistentTerms {
            received_unix_ms: now
                .unix_ms
                .saturating_sub(now.uptime_ms.saturating_sub(self.received_ms)),
            times_ms: [
                self.initial_age_ms,
                self.lifetime_ms,
                self.stale_while_revalidate_ms,
                self.stale_if_error_ms,
            ],
            flags: [self.must_validate, self.ignores_max_stale, self.is_shared],
        }
    }

    /// Returns the terms of a response that another process may have stored. Its age continues. Returns `None` if it
    /// was received in the future, because then its age is not known.
    pub fn from_persistent(persistent: &PersistentTerms, now: Moment) -> Option<Terms> {
        if persistent.received_unix_ms > now.unix_ms + MAX_SKEW_MS {
            return None;
        }
        let [
            initial_age_ms,
            lifetime_ms,
            stale_while_revalidate_ms,
            stale_if_error_ms,
        ] = persistent.times_ms;
        let [must_validate, ignores_max_stale, is_shared] = persistent.flags;
        let resident_ms = now.unix_ms.saturating_sub(persistent.received_unix_ms);
        Some(Terms {
            received_ms: now.uptime_ms,
            initial_age_ms: initial_age_ms.saturating_add(resident_ms),
            lifetime_ms,
            stale_while_revalidate_ms,
            stale_if_error_ms,
            must_validate,
            ignores_max_stale,
            is_shared,
        })
    }
}

impl PersistentTerms {
    /// Returns the time in seconds since 1970 after which the response is neither fresh nor may be sent stale.
    pub fn useful_until(&self) -> u64 {
        let [age, lifetime, while_revalidate, if_error] = self.times_ms;
        let rest_ms = (lifetime.saturating_add(while_revalidate.max(if_error))).saturating_sub(age);
        self.received_unix_ms.saturating_add(rest_ms) / 1000
    }

    /// Returns the rest of the freshness lifetime in milliseconds when the response was received.
    pub fn fresh_ms(&self) -> u64 {
        self.times_ms[1].saturating_sub(self.times_ms[0])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Use;
    use super::*;

    #[test]
    fn the_age_continues_in_another_process() {
        let terms = Terms {
            received_ms: 70_000,
            initial_age_ms: 1_000,
            lifetime_ms: 60_000,
            stale_while_revalidate_ms: 10_000,
            stale_if_error_ms: 0,
            must_validate: false,
            ignores_max_stale: false,
            is_shared: true,
        };
        let moment = |uptime_ms, unix_ms| Moment { uptime_ms, unix_ms };
        let persistent = terms.to_persistent(moment(75_000, 1_000_000));
        assert_eq!(persistent.received_unix_ms, 995_000);
        assert_eq!(persistent.useful_until(), 995 + 69);
        for (unix_ms, expected) in [
            (1_000_000, Some((6_000, Use::Fresh))),
            (1_053_999, Some((59_999, Use::Fresh))),
            (1_054_000, Some((60_000, Use::StaleWhileRevalidate))),
            (1_064_000, Some((70_000, Use::AfterValidation))),
            // A clock that was set back by little does not make the response younger than when it was received.
            (990_000, Some((1_000, Use::Fresh))),
            (989_999, None),
        ] {
            let found = Terms::from_persistent(&persistent, moment(500, unix_ms));
            let found = found.map(|terms| (terms.age_ms(500), terms.permitted(500, None)));
            assert_eq!(found, expected, "{unix_ms}");
            assert!(Terms::from_persistent(&persistent, moment(500, unix_ms)).is_none_or(|terms| terms.is_shared()));
        }
    }
}
