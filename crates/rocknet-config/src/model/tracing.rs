//! Settings of traces.

use std::collections::BTreeMap;
use std::fmt;

use super::acme::Secret;
use super::with_defaults::with_defaults;

with_defaults! {
    /// Settings of `[tracing]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tracing {
        /// URL of the collector that trace spans are sent to; `None`: no trace spans are recorded.
        pub endpoint: Option<String> = None,
        /// Share of the requests that are recorded. For a request with a valid `traceparent`, the sampled flag of that
        /// field decides instead.
        pub sample: SampleRatio = SampleRatio::ALL,
        /// Name of the service in the trace spans.
        pub service: String = "rocknet".to_owned(),
        /// Header fields of requests to the collector.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(),
    }
}

/// Share of requests in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRatio(u32);

/// Number of millionths in the whole.
const WHOLE: u32 = 1_000_000;

/// Number of millionths in one percent.
const PERCENT: u32 = WHOLE / 100;

impl SampleRatio {
    /// All requests.
    pub const ALL: SampleRatio = SampleRatio(WHOLE);

    /// Parses a percentage with at most four decimals, such as `10%` or `0.5%`.
    pub fn parse(text: &str) -> Option<SampleRatio> {
        let number = text.strip_suffix('%')?.trim_end();
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 4 || whole.len() > 3 {
            return None;
        }
        // The fourth decimal of a percentage is a millionth, so zeros are appended up to the fourth decimal.
        let decimals: u32 = format!("{decimals:0<4}").parse().ok()?;
        let millionths = whole.parse::<u32>().ok()? * PERCENT + decimals;
        (millionths <= WHOLE).then_some(SampleRatio(millionths))
    }

    /// Returns the share in millionths.
    pub fn millionths(self) -> u32 {
        self.0
    }
}

/// Writes a percentage.
impl fmt::Display for SampleRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / PERCENT, self.0 % PERCENT);
        match decimals {
            0 => write!(f, "{whole}%"),
            _ => write!(f, "{whole}.{}%", format!("{decimals:04}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_and_written() {
        for (text, millionths, written) in [
            ("100%", 1_000_000, "100%"),
            ("0%", 0, "0%"),
            ("10 %", 100_000, "10%"),
            ("0.5%", 5_000, "0.5%"),
            ("0.0001%", 1, "0.0001%"),
            ("99.9990%", 999_990, "99.999%"),
        ] {
            let ratio = SampleRatio::parse(text).unwrap();
            assert_eq!((ratio.millionths(), ratio.to_string().as_str()), (millionths, written));
        }
        for text in [
            "",
            "%",
            "10",
            "101%",
            "100.0001%",
            "-1%",
            "1.%",
            ".5%",
            "0.00001%",
            "1e2%",
            "4294967296%",
        ] {
            assert_eq!(SampleRatio::parse(text), None, "{text}");
        }
    }
}
