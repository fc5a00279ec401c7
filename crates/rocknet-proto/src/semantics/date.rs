//! Formats and parses HTTP dates (RFC 9110 §5.6.7), without reading a clock.

/// Length of an IMF-fixdate in bytes. The length is constant, so the date in a cached head can be replaced in place.
pub const DATE_LENGTH: usize = 29;

/// 9999-12-31T23:59:59Z, the last second with a year of four digits.
const LAST_SECOND: u64 = 253_402_300_799;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Two-digit years from 70 on belong to the twentieth century, years below 70 to the twenty-first. RFC 9110 interprets
/// such a year relative to the current year, at most 50 years ahead. A fixed pivot needs no clock. It gives another
/// result only for dates from 2070 on, which are not expected in this obsolete form.
const CENTURY_PIVOT: u64 = 70;

/// Returns the IMF-fixdate of a Unix time, such as `Sun, 06 Nov 1994 08:49:37 GMT`. Times after the year 9999 are
/// clamped to its last second.
pub fn format(unix_seconds: u64) -> [u8; DATE_LENGTH] {
    let seconds = unix_seconds.min(LAST_SECOND);
    let (days, of_day) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = civil_from_days(days);

    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    out[0..3].copy_from_slice(&DAY_NAMES[weekday(days)].as_bytes()[..3]);
    two_digits(&mut out, 5, day);
    out[8..11].copy_from_slice(MONTH_NAMES[month as usize - 1]);
    two_digits(&mut out, 12, year / 100);
    two_digits(&mut out, 14, year % 100);
    two_digits(&mut out, 17, of_day / 3600);
    two_digits(&mut out, 20, of_day / 60 % 60);
    two_digits(&mut out, 23, of_day % 60);
    out
}

/// Parses an HTTP-date in any of its three forms (IMF-fixdate, RFC 850, asctime) to seconds since 1970.
///
/// Returns `None` for an impossible date (31 February, a wrong day of the week, before 1970) and for other bytes.
/// Callers ignore a field with an invalid date. For `If-Modified-Since` this costs at most one unneeded transfer,
/// whereas a guessed date could lead to a stale page.
pub fn parse(date: &[u8]) -> Option<u64> {
    let comma = date.iter().take(LONGEST_DAY_NAME + 1).position(|&b| b == b',');
    // The day of the week has three letters in an IMF-fixdate and more in the form of RFC 850. The form of asctime has
    // no comma.
    match comma {
        Some(3) => parse_imf_fixdate(date),
        Some(end) => parse_rfc850(date, end),
        None => parse_asctime(date),
    }
}

/// Parses the form `Sun, 06 Nov 1994 08:49:37 GMT`. Fails as [`parse`] does.
fn parse_imf_fixdate(date: &[u8]) -> Option<u64> {
    if date.len() != DATE_LENGTH || &date[3..5] != b", " || date[7] != b' ' || date[11] != b' ' || date[16] != b' ' {
        return None;
    }
    let day_of_week = DAY_NAMES.iter().position(|name| name.as_bytes()[..3] == date[..3])?;
    if &date[25..] != b" GMT" {
        return None;
    }
    unix_seconds(
        day_of_week,
        number(&date[12..16])?,
        month(&date[8..11])?,
        number(&date[5..7])?,
        &date[17..25],
    )
}

/// Parses the form `Sunday, 06-Nov-94 08:49:37 GMT`. `comma` is the position of the comma. Fails as [`parse`] does.
fn parse_rfc850(date: &[u8], comma: usize) -> Option<u64> {
    let day_of_week = DAY_NAMES.iter().position(|name| name.as_bytes() == &date[..comma])?;
    let rest = &date[comma..];
    if rest.len() != ", 06-Nov-94 08:49:37 GMT".len() || &rest[..2] != b", " || rest[4] != b'-' || rest[8] != b'-' {
        return None;
    }
    if rest[11] != b' ' || &rest[20..] != b" GMT" {
        return None;
    }
    let short_year = number(&rest[9..11])?;
    let year = if short_year < CENTURY_PIVOT {
        2000 + short_year
    } else {
        1900 + short_year
    };
    unix_seconds(
        day_of_week,
        year,
        month(&rest[5..8])?,
        number(&rest[2..4])?,
        &rest[12..20],
    )
}

/// Parses the form `Sun Nov  6 08:49:37 1994`. Fails as [`parse`] does.
fn parse_asctime(date: &[u8]) -> Option<u64> {
    if date.len() != "Sun Nov  6 08:49:37 1994".len()
        || date[3] != b' '
        || date[7] != b' '
        || date[10] != b' '
        || date[19] != b' '
    {
        return None;
    }
    let day_of_week = DAY_NAMES.iter().position(|name| name.as_bytes()[..3] == date[..3])?;
    let day = if date[8] == b' ' {
        number(&date[9..10])?
    } else {
        number(&date[8..10])?
    };
    unix_seconds(
        day_of_week,
        number(&date[20..24])?,
        month(&date[4..7])?,
        day,
        &date[11..19],
    )
}

/// Returns the Unix time of a date; `None` if the date is impossible. `clock` is `hh:mm:ss`, eight bytes.
fn unix_seconds(day_of_week: usize, year: u64, month: u64, day: u64, clock: &[u8]) -> Option<u64> {
    if clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&clock[0..2])?, number(&clock[3..5])?, number(&clock[6..8])?);
    // Second 60 is a leap second, which the grammar allows. In Unix time it has the number of the next second.
    if hour > 23 || minute > 59 || second > 60 || year < 1970 || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    (weekday(days) == day_of_week).then_some(days * DAY + hour * 3600 + minute * 60 + second)
}

/// Parses decimal digits; `None` for other bytes.
fn number(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0, |sum, &b| b.is_ascii_digit().then(|| sum * 10 + u64::from(b - b'0')))
}

/// Returns the number of a month, from 1 to 12; `None` for other bytes.
fn month(name: &[u8]) -> Option<u64> {
    MONTH_NAMES
        .iter()
        .position(|&month| month == name)
        .map(|index| index as u64 + 1)
}

/// Writes the last two decimal digits of `value` at `at`.
fn two_digits(out: &mut [u8; DATE_LENGTH], at: usize, value: u64) {
    out[at] = b'0' + (value / 10 % 10) as u8;
    out[at + 1] = b'0' + (value % 10) as u8;
}

/// Returns the index into [`DAY_NAMES`] of a day since 1970; day 0 was a Thursday.
fn weekday(days: u64) -> usize {
    ((days + 4) % 7) as usize
}

fn days_in_month(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days since 1970. Internally a year begins in March, so that a leap day is the last day of its year.
/// Month `m`, counted from March as 0, begins at day `(153 m + 2) / 5` of that year.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before_month = (153 * month + 2) / 5;
    year * 365 + year / 4 - year / 100 + year / 400 + before_month + day - 1 - MARCH_OF_YEAR_0_TO_1970
}

/// Returns the year, month and day of a day since 1970: the inverse of [`days_from_civil`].
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + MARCH_OF_YEAR_0_TO_1970;
    let (era, of_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    // Subtracts the number of leap days so far, so that all years have 365 days, and the division gives the year. There
    // is a leap day every 4 years, except every 100 years (36,524 days), but again every 400 years (day 146,096). The
    // number includes the day itself, because a leap day would otherwise be the first day of the next year. Days count
    // from 0, so the first leap day is day 1460. The number rises at every multiple of 1460, which is up to 97 days
    // before the end of a year. Until the end of that year, it can be greater by one, but the year is the same.
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}

/// Days of a cycle of the Gregorian calendar.
const DAYS_IN_400_YEARS: u64 = 146_097;

/// Days from 1 March of the year 0 to 1 January 1970.
const MARCH_OF_YEAR_0_TO_1970: u64 = 719_468;

const DAY_NAMES: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Length of the longest day name in bytes.
const LONGEST_DAY_NAME: usize = "Wednesday".len();

const MONTH_NAMES: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_formatted() {
        // Unix time in seconds, and its date.
        let rows: &[(u64, &str)] = &[
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (LAST_SECOND, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (LAST_SECOND + 1, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ];
        for &(seconds, expected) in rows {
            assert_eq!(String::from_utf8_lossy(&format(seconds)), expected, "{seconds}");
        }
    }

    #[test]
    fn only_valid_dates_are_parsed() {
        // Date, and its Unix time in seconds; `None` if the date is invalid.
        let rows: &[(&str, Option<u64>)] = &[
            // The example of RFC 9110 §5.6.7 in its three forms.
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Wednesday, 31-Dec-69 23:59:59 GMT", None), // the pivot selects 2069, when the day is a Tuesday
            ("Tuesday, 31-Dec-69 23:59:59 GMT", Some(3_155_759_999)),
            ("Thursday, 01-Jan-70 00:00:00 GMT", Some(0)),
            ("Fri Nov 16 08:49:37 2001", Some(1_005_900_577)),
            ("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_800)), // a real leap second
            ("Wed, 31 Dec 1969 23:59:59 GMT", None),
            ("Mon, 06 Nov 1994 08:49:37 GMT", None), // that day was a Sunday
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("Sun, 06 Nov 1994 08:60:00 GMT", None),
            ("Sun, 06 Nov 1994 08:49:61 GMT", None),
            ("Tue, 29 Feb 2100 00:00:00 GMT", None),
            ("Sun, 00 Nov 1994 08:49:37 GMT", None),
            ("Sun, 6 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 UTC", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT ", None),
            ("Sun, 06 Nov 1994 08:49:37", None),
            ("Sun, 06 Nov 1994 08-49-37 GMT", None),
            ("Sun, +6 Nov 1994 08:49:37 GMT", None),
            ("Sun,_06 Nov 1994 08:49:37 GMT", None),
            ("Sunday, 06-Nov-1994 08:49:37 GMT", None),
            ("Someday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun Nov 6 08:49:37 1994", None),
            (",", None),
            ("", None),
            ("784111777", None),
        ];
        for &(date, expected) in rows {
            assert_eq!(parse(date.as_bytes()), expected, "{date:?}");
        }
    }

    /// Formats with the httpdate crate, as a reference.
    fn reference_format(seconds: u64) -> String {
        httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
    }

    proptest! {
        #[test]
        fn format_then_parse_is_the_identity(seconds in 0..=LAST_SECOND) {
            prop_assert_eq!(parse(&format(seconds)), Some(seconds));
        }

        #[test]
        fn formats_as_httpdate_does(seconds in 0..=LAST_SECOND) {
            prop_assert_eq!(String::from_utf8_lossy(&format(seconds)).into_owned(), reference_format(seconds));
        }

        #[test]
        fn any_bytes_do_not_panic(date in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(seconds) = parse(&date) {
                // The year 9999 may end with a leap second.
                prop_assert!(seconds <= LAST_SECOND + 1);
            }
        }
    }
}
