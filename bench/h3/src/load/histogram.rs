//! Histogram of latencies with a relative error of 1.6 %.

/// Buckets per power of two.
const STEPS: u64 = 64;
const STEP_BITS: u32 = STEPS.ilog2();
/// Number of buckets: latencies up to 2^40 µs, which is 12 days.
const BUCKETS: usize = (STEPS as usize) * 35;

/// Counts of latencies in microseconds.
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
        }
    }

    pub fn add(&mut self, microseconds: u64) {
        self.counts[bucket(microseconds).min(BUCKETS - 1)] += 1;
        self.total += 1;
    }

    /// Returns the latency in microseconds that this share of the latencies does not exceed, or `None` without any.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let rank = (self.total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(lowest(bucket))
    }
}

/// Returns the bucket of a value: the value itself below [`STEPS`], then 64 buckets for each power of two.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(STEP_BITS + 1);
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// Returns the least value of a bucket.
fn lowest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    (bucket - shift * STEPS) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_contains_its_least_value() {
        for value in (0..5000).chain([1 << 20, 123_456_789]) {
            let low = lowest(bucket(value));
            assert!(low <= value && (value - low) * STEPS <= value, "{value}: {low}");
        }
        assert!((0..BUCKETS).all(|number| bucket(lowest(number)) == number));
    }

    #[test]
    fn percentiles_are_ranks() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile(0.5), None);
        (1..=50).for_each(|value| histogram.add(value));
        let percentiles = [0.0, 0.5, 0.99, 1.0].map(|share| histogram.percentile(share));
        assert_eq!(percentiles, [Some(1), Some(25), Some(50), Some(50)]);
    }
}
