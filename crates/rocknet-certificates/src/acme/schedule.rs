//! When a certificate is renewed, and when a failure is tried again: arithmetic on times, with chance as an argument.

use std::time::{Duration, SystemTime};

use super::random::Fraction;

/// From when until when a certificate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub not_before: SystemTime,
    pub not_after: SystemTime,
}

impl Validity {
    fn length(&self) -> Duration {
        self.not_after.duration_since(self.not_before).unwrap_or_default()
    }
}

/// After two thirds of its life, give or take a little, so that certificates had at once are not renewed at once; or in
/// the window that its CA suggests (RFC 9773), when it has one. Never so late that no time is left for failures.
pub fn renew_at(validity: Validity, suggested: Option<(SystemTime, SystemTime)>, jitter: Fraction) -> SystemTime {
    let latest = validity.not_after - validity.length() / RESERVE_DIVISOR;
    let preferred = match suggested {
        Some((start, end)) => start + end.duration_since(start).unwrap_or_default().mul_f64(jitter),
        None => {
            let spread = validity.length() / JITTER_DIVISOR;
            validity.not_before + validity.length() / 3 * 2 - spread + spread.mul_f64(2.0 * jitter)
        }
    };
    preferred.min(latest)
}

/// How long to wait after so many failures in a row: longer each time, and at least as long as the CA said.
pub fn retry_delay(failures: u32, retry_after: Option<Duration>, jitter: Fraction) -> Duration {
    let doubled = FIRST_DELAY.saturating_mul(DELAY_FACTOR.saturating_pow(failures.saturating_sub(1)));
    let own = doubled.min(MAX_DELAY).mul_f64(0.8 + 0.4 * jitter);
    own.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
}

/// The first part of a life's end that is kept for failures: nine days of ninety, and half a day of six.
const RESERVE_DIVISOR: u32 = 10;

/// Renewals are spread by this part of a life to both sides of two thirds.
const JITTER_DIVISOR: u32 = 40;

/// A name that was not yet there, a firewall that was just opened: both are worth a look soon.
const FIRST_DELAY: Duration = Duration::from_secs(60);

/// With it four tries fall into the first hour: public CAs allow five failures of one name.
const DELAY_FACTOR: u32 = 4;

/// Whoever mends his DNS is not to wait longer than a day.
const MAX_DELAY: Duration = Duration::from_secs(86_400);

/// Rate limits are counted in weeks at most; whatever asks for more is wrong.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(8 * 86_400);

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn day(number: u32) -> SystemTime {
        UNIX_EPOCH + DAY * number
    }

    #[test]
    fn renewal_comes_at_two_thirds_or_when_the_ca_says_and_never_at_the_end() {
        let validity = |days: u32| Validity {
            not_before: day(1000),
            not_after: day(1000 + days),
        };
        for (days, suggested, jitter, earliest, latest) in [
            (90, None, 0.0, 57.7, 57.8),
            (90, None, 0.5, 59.99, 60.01),
            (90, None, 0.999, 62.2, 62.3),
            (6, None, 0.5, 3.99, 4.01),
            (90, Some((10, 12)), 0.0, 10.0, 10.0),
            (90, Some((10, 12)), 0.5, 11.0, 11.0),
            // A window in the past: at once.
            (90, Some((0, 0)), 0.9, 0.0, 0.0),
            // One that is too late, or turned round.
            (90, Some((89, 90)), 0.9, 81.0, 81.0),
            (90, Some((12, 10)), 0.9, 12.0, 12.0),
        ] {
            let window = suggested.map(|(start, end)| (day(1000 + start), day(1000 + end)));
            let at = renew_at(validity(days), window, jitter);
            let after = at.duration_since(day(1000)).unwrap().as_secs_f64() / DAY.as_secs_f64();
            assert!(
                (earliest..=latest).contains(&after),
                "{days} {suggested:?} {jitter}: {after}"
            );
        }
        // Clocks that make no sense make no panic.
        let backwards = Validity {
            not_before: day(5),
            not_after: day(3),
        };
        assert!(renew_at(backwards, None, 0.5) <= day(3));
    }

    #[test]
    fn pauses_grow_to_a_day_and_heed_what_the_ca_said() {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
        for (failures, retry_after, jitter, seconds) in [
            (1, None, 0.5, 60),
            (1, None, 0.0, 48),
            (2, None, 0.5, 240),
            (3, None, 0.5, 960),
            (9, None, 0.5, 86_400),
            (u32::MAX, None, 0.5, 86_400),
            (0, None, 0.5, 60),
            (1, hours(3), 0.5, 10_800),
            (9, hours(3), 0.5, 86_400),
            (1, hours(24 * 365), 0.5, 8 * 86_400),
        ] {
            assert_eq!(
                retry_delay(failures, retry_after, jitter).as_secs(),
                seconds,
                "{failures} {retry_after:?}"
            );
        }
    }
}
