//! Times of renewals and of retries after failures: pure arithmetic, with jitter as an argument.

use std::time::{Duration, SystemTime};

use super::random::Fraction;

/// Validity period of a certificate.
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

/// Returns the time of renewal: within the window that the CA suggests (RFC 9773), or, if the CA suggests no window,
/// after about two thirds of the validity period. Jitter prevents certificates that were issued together from being
/// renewed together. The time is never in the last tenth of the validity period, which is kept for retries after
/// failures.
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

/// Returns the delay after a number of consecutive failures. The delay grows with each failure up to `MAX_DELAY` and
/// varies by a fifth with `jitter`. It is at least the CA's `Retry-After`, which is limited to `MAX_RETRY_AFTER`.
pub fn retry_delay(failures: u32, retry_after: Option<Duration>, jitter: Fraction) -> Duration {
    let grown = FIRST_DELAY.saturating_mul(DELAY_FACTOR.saturating_pow(failures.saturating_sub(1)));
    let own = grown.min(MAX_DELAY).mul_f64(0.8 + 0.4 * jitter);
    own.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
}

/// The last part of the validity period is kept for retries. Its length is the period divided by this number: nine days
/// of ninety, about half a day of six days.
const RESERVE_DIVISOR: u32 = 10;

/// Renewals are moved earlier or later by at most the validity period divided by this number: about two days of ninety.
const JITTER_DIVISOR: u32 = 40;

/// Delay after the first failure. A DNS name or firewall rule that was just added is worth an early retry.
const FIRST_DELAY: Duration = Duration::from_secs(60);

/// Growth of the delay with each failure. Four attempts are made in the first hour; public CAs allow five failures of a
/// name per hour.
const DELAY_FACTOR: u32 = 4;

/// Maximum delay before jitter, so that a corrected DNS record takes effect within about a day.
const MAX_DELAY: Duration = Duration::from_secs(86_400);

/// Maximum `Retry-After` that is honoured: eight days, because the longest rate limits of public CAs apply to a week.
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
    fn renewal_happens_after_two_thirds_or_in_the_suggested_window_and_never_at_the_end() {
        let validity = |days: u32| Validity {
            not_before: day(1000),
            not_after: day(1000 + days),
        };
        // All columns except the jitter are in days. Windows and expected times are relative to `not_before`.
        for (days, suggested, jitter, earliest, latest) in [
            (90, None, 0.0, 57.7, 57.8),
            (90, None, 0.5, 59.99, 60.01),
            (90, None, 0.999, 62.2, 62.3),
            (6, None, 0.5, 3.99, 4.01),
            (90, Some((10, 12)), 0.0, 10.0, 10.0),
            (90, Some((10, 12)), 0.5, 11.0, 11.0),
            // A window in the past means immediate renewal.
            (90, Some((0, 0)), 0.9, 0.0, 0.0),
            // Windows that are too late or reversed.
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
        // A reversed validity period does not panic.
        let backwards = Validity {
            not_before: day(5),
            not_after: day(3),
        };
        assert!(renew_at(backwards, None, 0.5) <= day(3));
    }

    #[test]
    fn delays_grow_to_a_day_and_respect_retry_after() {
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
