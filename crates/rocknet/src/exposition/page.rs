//! Writer of metric families and their samples.

use std::fmt::{Display, Write as _};

use crate::metrics::Histogram;

/// Binary logarithms of the bounds of the histograms in microseconds. The bounds go from 64 µs to 67 s, each four times
/// the previous one.
const BOUND_BITS: [u32; 11] = [6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26];

/// Label of a sample: its name and value.
pub type Label<'l> = (&'static str, &'l str);

/// Text of the metrics so far.
pub struct Page(String);

impl Page {
    /// Creates an empty page.
    pub fn new() -> Page {
        Page(String::with_capacity(16 * 1024))
    }

    /// Begins a family. `kind`: its type, such as `gauge`. `unit`: empty, or the last part of `name`.
    pub fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    /// Writes a sample of the last family. `name`: name of the family, with the suffix that its type requires.
    pub fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl Display) {
        self.labelled("", name, labels, None, value);
    }

    /// Writes a gauge without labels.
    pub fn gauge(&mut self, name: &str, unit: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", unit, help);
        self.sample(name, &[], value);
    }

    /// Writes a counter without labels. `name`: without the suffix `_total`.
    pub fn counter(&mut self, name: &str, unit: &str, help: &str, value: impl Display) {
        self.family(name, "counter", unit, help);
        self.labelled("_total", name, &[], None, value);
    }

    /// Writes a histogram of durations with a set of labels.
    pub fn histogram(&mut self, name: &str, labels: &[Label<'_>], histogram: &Histogram) {
        // Number of durations below each bound. By definition (`le`), a bucket also includes durations equal to its
        // bound. They are missing here: all durations were rounded down to microseconds, so they cannot be
        // distinguished from durations that were slightly longer.
        let within: Vec<u64> = BOUND_BITS
            .iter()
            .map(|bits| histogram.count_below_power(*bits))
            .collect();
        // Computed last, because workers add durations meanwhile: a count computed first could be less than a bucket.
        let count = histogram.count();
        for (bits, within) in BOUND_BITS.iter().zip(within) {
            let bound = ((1_u64 << bits) as f64 / 1e6).to_string();
            self.labelled("_bucket", name, labels, Some(("le", &bound)), within);
        }
        self.labelled("_bucket", name, labels, Some(("le", "+Inf")), count);
        self.labelled("_sum", name, labels, None, seconds(histogram.sum_us()));
        self.labelled("_count", name, labels, None, count);
    }

    /// Ends the page.
    pub fn finish(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }

    /// Writes a sample. `suffix`: end of the sample's name after `name`. `last`: label after those of `labels`, if any.
    fn labelled(
        &mut self,
        suffix: &str,
        name: &str,
        labels: &[Label<'_>],
        last: Option<Label<'_>>,
        value: impl Display,
    ) {
        self.0.push_str(name);
        self.0.push_str(suffix);
        for (number, (label, text)) in labels.iter().copied().chain(last).enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() || last.is_some() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// Returns microseconds as seconds.
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
