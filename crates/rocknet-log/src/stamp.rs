//! Time stamps of log lines. The access log formats its time stamp at most once per second, and copies it into every
//! record of that second.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::number;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Current second in the formats of the access log.
pub(super) struct Stamps {
    zone: TimeZone,
    /// Current second since 1970; `None` before the first call of [`Stamps::set`].
    second: Option<i64>,
    /// Common log format: `[10/Oct/2000:13:55:36 -0700]`
    pub(super) clf: [u8; 28],
    /// RFC 3339: `2000-10-10T13:55:36-07:00`
    pub(super) rfc3339: [u8; 25],
}

impl Stamps {
    pub(super) fn new(zone: TimeZone, unix_ms: u64) -> Stamps {
        let mut stamps = Stamps {
            zone,
            second: None,
            clf: [b' '; 28],
            rfc3339: [b' '; 25],
        };
        stamps.set(unix_ms);
        stamps
    }

    /// Updates the stamps to the given time.
    pub(super) fn set(&mut self, unix_ms: u64) {
        let second = (unix_ms / 1000).cast_signed();
        if self.second == Some(second) {
            return;
        }
        self.second = Some(second);
        let (local, offset) = local(&self.zone, unix_ms);
        self.rfc3339 = rfc3339(local, offset);
        let (sign, hours, minutes) = split_offset(offset);
        let clf = &mut self.clf;
        clf[0] = b'[';
        number::two(&mut clf[1..], local.day().unsigned_abs());
        clf[3] = b'/';
        clf[4..7].copy_from_slice(MONTHS[usize::from(local.month().unsigned_abs().clamp(1, 12)) - 1]);
        clf[7] = b'/';
        number::four(&mut clf[8..], local.year().unsigned_abs());
        clf[12] = b':';
        clf[13..21].copy_from_slice(&self.rfc3339[11..19]);
        clf[21] = b' ';
        clf[22] = sign;
        number::two(&mut clf[23..], hours);
        number::two(&mut clf[25..], minutes);
        clf[27] = b']';
    }
}

/// Formats RFC 3339 with milliseconds for the error log: `2000-10-10T13:55:36.789-07:00`.
pub(super) fn rfc3339_millis(zone: &TimeZone, unix_ms: u64) -> [u8; 29] {
    let (local, offset) = local(zone, unix_ms);
    let seconds = rfc3339(local, offset);
    let mut stamp = [0; 29];
    stamp[..19].copy_from_slice(&seconds[..19]);
    stamp[19] = b'.';
    number::three(&mut stamp[20..], (unix_ms % 1000) as u16);
    stamp[23..].copy_from_slice(&seconds[19..]);
    stamp
}

fn rfc3339(local: DateTime, offset: i32) -> [u8; 25] {
    let mut stamp = *b"0000-00-00T00:00:00+00:00";
    let (sign, hours, minutes) = split_offset(offset);
    number::four(&mut stamp, local.year().unsigned_abs());
    for (at, value) in [
        (5, local.month()),
        (8, local.day()),
        (11, local.hour()),
        (14, local.minute()),
        (17, local.second()),
    ] {
        number::two(&mut stamp[at..], value.unsigned_abs());
    }
    stamp[19] = sign;
    number::two(&mut stamp[20..], hours);
    number::two(&mut stamp[23..], minutes);
    stamp
}

/// Returns the local time and its offset in seconds. Times after the year 9999 are shown as 1970, because neither
/// format has room for a longer year.
fn local(zone: &TimeZone, unix_ms: u64) -> (DateTime, i32) {
    let instant = i64::try_from(unix_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(Timestamp::UNIX_EPOCH);
    let offset = zone.to_offset(instant);
    (offset.to_datetime(instant), offset.seconds())
}

/// Splits an offset into sign, hours and minutes. The seconds of an offset (local mean times before about 1900) are
/// cut, because both formats have only minutes.
fn split_offset(seconds: i32) -> (u8, u8, u8) {
    let minutes = seconds.unsigned_abs() / 60;
    (
        if seconds < 0 { b'-' } else { b'+' },
        (minutes / 60 % 100) as u8,
        (minutes % 60) as u8,
    )
}

#[cfg(test)]
mod tests {
    use jiff::tz::Offset;

    use super::*;

    #[test]
    fn stamps_show_local_time_and_offset() {
        let zone = |minutes: i32| Offset::from_seconds(minutes * 60).expect("an offset").to_time_zone();
        // Offset of the zone in minutes, Unix time in milliseconds, and the stamps of the access log and the error log.
        for (minutes, unix_ms, clf, millis) in [
            (
                -420,
                971_211_336_789,
                "[10/Oct/2000:13:55:36 -0700]",
                "2000-10-10T13:55:36.789-07:00",
            ),
            (0, 0, "[01/Jan/1970:00:00:00 +0000]", "1970-01-01T00:00:00.000+00:00"),
            (
                330,
                1_000_000_000_007,
                "[09/Sep/2001:07:16:40 +0530]",
                "2001-09-09T07:16:40.007+05:30",
            ),
            (
                60,
                1_704_067_199_999,
                "[01/Jan/2024:00:59:59 +0100]",
                "2024-01-01T00:59:59.999+01:00",
            ),
            (
                0,
                1_709_164_800_000,
                "[29/Feb/2024:00:00:00 +0000]",
                "2024-02-29T00:00:00.000+00:00",
            ),
            // After the year 9999, so only the milliseconds are right.
            (
                0,
                u64::MAX,
                "[01/Jan/1970:00:00:00 +0000]",
                "1970-01-01T00:00:00.615+00:00",
            ),
        ] {
            let stamps = Stamps::new(zone(minutes), unix_ms);
            assert_eq!(std::str::from_utf8(&stamps.clf), Ok(clf));
            assert_eq!(
                std::str::from_utf8(&rfc3339_millis(&zone(minutes), unix_ms)),
                Ok(millis)
            );
            let seconds = [&millis[..19], &millis[23..]].concat();
            assert_eq!(std::str::from_utf8(&stamps.rfc3339), Ok(seconds.as_str()));
        }
    }

    #[test]
    fn a_stamp_follows_the_clock_both_ways() {
        let mut stamps = Stamps::new(TimeZone::UTC, 1_000);
        for (unix_ms, expected) in [
            (1_999, "1970-01-01T00:00:01"),
            (2_000, "1970-01-01T00:00:02"),
            (0, "1970-01-01T00:00:00"),
        ] {
            stamps.set(unix_ms);
            assert_eq!(std::str::from_utf8(&stamps.rfc3339[..19]), Ok(expected));
        }
    }
}
