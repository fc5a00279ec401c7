//! Histogram of durations with a fixed number of buckets.

use super::counter::{Counter, Merge};

/// Binary logarithm of the number of buckets per power of two. With eight buckets, a quantile is at most an eighth too
/// high.
const PART_BITS: u32 = 3;
/// Number of buckets per power of two.
const PARTS: usize = 1 << PART_BITS;

/// Binary logarithm of the bound in microseconds up to which durations have buckets of their own. Durations of 2^27
/// µs (134 s) or more count in the last bucket, because most such responses reached a timeout.
const MAX_BITS: u32 = 27;

/// Number of buckets: one per microsecond below eight, then eight per power of two. A histogram needs 1.6 KB.
const BUCKETS: usize = PARTS + (MAX_BITS - PART_BITS) as usize * PARTS;

/// Durations in microseconds, either on one worker or summed over several workers. Only one thread at a time adds to
/// it.
#[derive(Debug)]
pub struct Histogram {
    /// Sum of all durations in microseconds.
    sum_us: Counter,
    buckets: [Counter; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            sum_us: Counter::default(),
            buckets: std::array::from_fn(|_| Counter::default()),
        }
    }
}

impl Merge for Histogram {
    fn merge(&self, other: &Histogram) {
        self.sum_us.merge(&other.sum_us);
        self.buckets.merge(&other.buckets);
    }
}

impl Histogram {
    /// Records a duration in microseconds.
    #[inline]
    pub fn add(&self, duration_us: u64) {
        self.buckets[bucket(duration_us)].add(1);
        self.sum_us.add(duration_us);
    }

    /// Returns the sum of the durations in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us.get()
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }

    /// Returns the number of durations of less than `1 << bits` microseconds. `bits`: at least 3. Below
    /// `1 << MAX_BITS`, no bucket contains durations on both sides of a power of two, so the number is exact. From
    /// `bits == MAX_BITS` on, all durations are counted, because the last bucket has no upper bound.
    pub fn count_below_power(&self, bits: u32) -> u64 {
        let powers = bits.saturating_sub(PART_BITS).min(MAX_BITS - PART_BITS);
        let buckets = PARTS + powers as usize * PARTS;
        self.buckets[..buckets].iter().map(Counter::get).sum()
    }

    /// Returns the duration in microseconds that `percent` of the responses did not exceed, rounded up to the end of
    /// its bucket; 0 without responses.
    pub fn quantile(&self, percent: u64) -> u64 {
        quantile(self.buckets.iter().map(Counter::get), self.count(), percent)
    }
}

/// Counts of the buckets of histograms at one moment.
#[derive(Debug, Clone)]
pub struct BucketCounts(Box<[u64; BUCKETS]>);

impl Default for BucketCounts {
    fn default() -> BucketCounts {
        BucketCounts(Box::new([0; BUCKETS]))
    }
}

impl BucketCounts {
    /// Adds the counts of a histogram.
    pub fn add(&mut self, histogram: &Histogram) {
        for (sum, counter) in self.0.iter_mut().zip(&histogram.buckets) {
            *sum = sum.saturating_add(counter.get());
        }
    }

    /// Subtracts counts of an earlier moment.
    pub fn subtract(&mut self, earlier: &BucketCounts) {
        for (count, before) in self.0.iter_mut().zip(&*earlier.0) {
            *count = count.saturating_sub(*before);
        }
    }

    /// Returns the quantile as [`Histogram::quantile`] does; `None` without responses.
    pub fn quantile(&self, percent: u64) -> Option<u64> {
        let count: u64 = self.0.iter().sum();
        (count > 0).then(|| quantile(self.0.iter().copied(), count, percent))
    }
}

/// Returns a quantile of bucket counts, whose sum is `count`.
fn quantile(buckets: impl Iterator<Item = u64>, count: u64, percent: u64) -> u64 {
    let rank = (count * percent).div_ceil(100).max(1);
    let mut seen = 0;
    for (number, count) in buckets.enumerate() {
        seen += count;
        if seen >= rank {
            return longest(number);
        }
    }
    0
}

/// Returns the number of the bucket of a duration.
#[inline]
fn bucket(duration_us: u64) -> usize {
    let duration = duration_us.min((1 << MAX_BITS) - 1);
    if duration < PARTS as u64 {
        return duration as usize;
    }
    let power = duration.ilog2();
    let part = (duration >> (power - PART_BITS)) as usize & (PARTS - 1);
    PARTS + (power - PART_BITS) as usize * PARTS + part
}

/// Returns the longest duration of a bucket in microseconds.
fn longest(bucket: usize) -> u64 {
    let Some(above) = bucket.checked_sub(PARTS) else {
        return bucket as u64;
    };
    let (shift, part) = (above / PARTS, above % PARTS);
    (((PARTS + part + 1) as u64) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        let mut last = 0;
        for duration in (0..5_000).chain([1 << 20, (1 << 27) - 1, 1 << 27, u64::MAX]) {
            let number = bucket(duration);
            // The durations from 5,000 on skip buckets.
            assert!(number == last || number == last + 1 || duration >= 5_000, "{duration}");
            last = number;
            let end = longest(number);
            assert!(
                end >= duration.min((1 << MAX_BITS) - 1),
                "{duration} is not in a bucket up to {end}"
            );
            assert!(
                end <= duration.saturating_add(duration / PARTS as u64),
                "{duration}: {end} is too far"
            );
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_rounded_up_to_the_end_of_a_bucket() {
        // Durations, expected 50 % quantile and 99 % quantile.
        for (durations, half, almost_all) in [
            (&[][..], 0, 0),
            (&[5], 5, 5),
            (&[1, 2, 3, 4], 2, 4),
            (&[1, 1, 1, 1000], 1, 1023),
            (&[90_000_000], 92_274_687, 92_274_687),
        ] {
            let histogram = Histogram::default();
            durations.iter().for_each(|&duration| histogram.add(duration));
            assert_eq!(histogram.count(), durations.len() as u64);
            assert_eq!(
                (histogram.quantile(50), histogram.quantile(99)),
                (half, almost_all),
                "{durations:?}"
            );
        }
        let histogram = Histogram::default();
        (0..99).for_each(|_| histogram.add(7));
        histogram.add(100_000);
        assert_eq!((histogram.quantile(99), histogram.quantile(100)), (7, 106_495));
    }

    #[test]
    fn counts_of_an_interval_have_their_own_quantiles() {
        let (histogram, mut earlier, mut now) =
            (Histogram::default(), BucketCounts::default(), BucketCounts::default());
        assert_eq!(earlier.quantile(50), None);
        (0..100).for_each(|_| histogram.add(100_000));
        earlier.add(&histogram);
        (0..99).for_each(|_| histogram.add(5));
        histogram.add(7);
        now.add(&histogram);
        now.subtract(&earlier);
        assert_eq!(
            (now.quantile(50), now.quantile(99), now.quantile(100)),
            (Some(5), Some(5), Some(7))
        );
        now.subtract(&earlier);
        assert_eq!(now.quantile(50), Some(5), "no count is negative");
    }

    #[test]
    fn durations_below_a_power_of_two_are_counted_exactly() {
        for bits in 3..=MAX_BITS {
            let histogram = Histogram::default();
            let bound = 1_u64 << bits;
            for duration in [0, bound / 2, bound - 1, bound, bound + 1, u64::MAX] {
                histogram.add(duration);
            }
            // Durations above the last bound share its bucket.
            let expected = if bits == MAX_BITS { 6 } else { 3 };
            assert_eq!(histogram.count_below_power(bits), expected, "{bits}");
        }
    }

    #[test]
    fn merged_histograms_have_the_counts_and_sums_of_both() {
        let (one, two) = (Histogram::default(), Histogram::default());
        one.add(1);
        one.add(1);
        two.add(5);
        one.merge(&two);
        assert_eq!((one.count(), one.quantile(99), one.sum_us()), (3, 5, 7));
    }
}
