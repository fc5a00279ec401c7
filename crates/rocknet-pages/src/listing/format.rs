//! Formats sizes, counts, and dates in UTC for people.

/// Formats a size: `532 B`, `1.4 KiB`, `12 MiB`. Sizes below 10 units have one decimal. The number has at most three
/// digits, or four just below the next unit (`1023 KiB`).
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut unit = 1u128;
    for name in UNITS {
        unit *= 1024;
        let tenths = (u128::from(bytes) * 10 + unit / 2) / unit;
        if tenths < 100 {
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
        let whole = (u128::from(bytes) + unit / 2) / unit;
        // The comparison is made after the rounding, because 1048575 would otherwise be shown as `1024 KiB`.
        if whole < 1024 {
            return format!("{whole} {name}");
        }
    }
    // Not reached, because `u64::MAX` is shown as 16 EiB.
    format!("{bytes} B")
}

/// Formats a number with commas: `10,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number with its noun in the singular or plural: `1 file`, `2 files`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A date and time in the Gregorian calendar, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UtcDateTime {
    year: u32,
    month: u32,
    day: u32,
    /// Seconds since midnight, below 86,400.
    second_of_day: u32,
}

impl UtcDateTime {
    /// Converts a Unix time. RFC 3339 cannot express times outside the years 0000 to 9999, so such a time is clamped to
    /// the nearest time that it can express.
    pub fn from_unix(seconds: i64) -> UtcDateTime {
        let since_year_0 = seconds.clamp(YEAR_0, YEAR_9999_END) - YEAR_0;
        let days = since_year_0 / DAY;
        // Years begin on 1 March, so that the leap day is the last day of its year. 60 days (31 + 29) precede 1 March
        // of year 0. A whole cycle of 400 years is added so that January and February of year 0 do not become negative.
        let shifted = days - 60 + CYCLE_DAYS;
        let (cycle, day_of_cycle) = (shifted / CYCLE_DAYS, shifted % CYCLE_DAYS);
        // `min` keeps the leap day at the end of the cycle in the last of its 4 centuries.
        let century = (day_of_cycle / CENTURY_DAYS).min(3);
        let day_of_century = day_of_cycle - century * CENTURY_DAYS;
        let (period, day_of_period) = (day_of_century / FOUR_YEARS_DAYS, day_of_century % FOUR_YEARS_DAYS);
        // `min` keeps the leap day at the end of the period in the last of its 4 years.
        let year_of_period = (day_of_period / 365).min(3);
        let day_of_year = day_of_period - 365 * year_of_period;
        let year_of_cycle = 100 * century + 4 * period + year_of_period;
        // From March on, the lengths of months repeat as 31, 30, 31, 30 and 31 days, so five months have 153 days.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = (cycle - 1) * 400 + year_of_cycle + i64::from(month <= 2);
        UtcDateTime {
            year: year as u32,
            month: month as u32,
            day: day as u32,
            second_of_day: (since_year_0 % DAY) as u32,
        }
    }

    /// Returns year, month and day.
    pub fn year_month_day(self) -> (u32, u32, u32) {
        (self.year, self.month, self.day)
    }

    /// Returns the number of seconds since midnight.
    pub fn second_of_day(self) -> u32 {
        self.second_of_day
    }

    /// Formats the date: `2026-11-21`.
    pub fn date(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// Formats hours and minutes: `12:31`.
    pub fn clock(self) -> String {
        format!("{:02}:{:02}", self.second_of_day / 3600, self.second_of_day / 60 % 60)
    }

    /// Formats date and time by RFC 3339: `2026-11-21T12:31:07Z`.
    pub fn rfc3339(self) -> String {
        format!("{}T{}:{:02}Z", self.date(), self.clock(), self.second_of_day % 60)
    }
}

/// Units above the byte, each 1024 times as large as the previous one.
const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/// Number of seconds in a day.
const DAY: i64 = 86_400;
/// Number of days in 400 years, after which the Gregorian calendar repeats.
const CYCLE_DAYS: i64 = 146_097;
/// Number of days in 100 years without a leap day at their end.
const CENTURY_DAYS: i64 = 36_524;
/// Number of days in 4 years with a leap day at their end.
const FOUR_YEARS_DAYS: i64 = 1_461;
/// 0000-01-01T00:00:00Z as a Unix time.
const YEAR_0: i64 = -62_167_219_200;
/// 9999-12-31T23:59:59Z as a Unix time.
const YEAR_9999_END: i64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_at_each_unit() {
        let rows = [
            (0, "0 B"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1434, "1.4 KiB"),
            (10_188, "9.9 KiB"),
            (10_189, "10 KiB"),
            (51_200, "50 KiB"),
            (1_048_063, "1023 KiB"),
            (1_048_064, "1.0 MiB"),
            (1_048_576, "1.0 MiB"),
            (1_288_490_189, "1.2 GiB"),
            (1 << 40, "1.0 TiB"),
            (1 << 50, "1.0 PiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (bytes, expected) in rows {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        let rows = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345_678, "12,345,678"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ];
        for (number, expected) in rows {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!(
            [0, 1, 2].map(|n| counted(n, "file", "files")),
            ["0 files", "1 file", "2 files"]
        );
    }

    #[test]
    fn dates_are_valid_from_year_0_to_9999() {
        let rows = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_264_267, "2026-11-21T12:31:07Z"),
            (2_147_483_648, "2038-01-19T03:14:08Z"),
            (YEAR_0, "0000-01-01T00:00:00Z"),
            (YEAR_0 + 59 * DAY, "0000-02-29T00:00:00Z"),
            (YEAR_9999_END, "9999-12-31T23:59:59Z"),
            (i64::MIN, "0000-01-01T00:00:00Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(UtcDateTime::from_unix(seconds).rfc3339(), expected, "{seconds}");
        }
    }

    #[test]
    fn every_day_follows_the_previous_one() {
        let mut before = UtcDateTime::from_unix(YEAR_0);
        for day in 1..=(YEAR_9999_END - YEAR_0) / DAY {
            let today = UtcDateTime::from_unix(YEAR_0 + day * DAY);
            let leap =
                before.year.is_multiple_of(4) && (!before.year.is_multiple_of(100) || before.year.is_multiple_of(400));
            let length = match before.month {
                2 => 28 + u32::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let expected = match (before.day < length, before.month < 12) {
                (true, _) => (before.year, before.month, before.day + 1),
                (false, true) => (before.year, before.month + 1, 1),
                (false, false) => (before.year + 1, 1, 1),
            };
            assert_eq!((today.year, today.month, today.day), expected);
            before = today;
        }
    }
}
