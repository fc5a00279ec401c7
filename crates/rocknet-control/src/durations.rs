//! Percentiles of response times during an interval, computed from the counts at its beginning and at its end.
//!
//! The counts are `duration_counts` of [`Status`](crate::Status) or [`RouteTraffic`](crate::route::RouteTraffic), which
//! clients query at both times. They are cumulative: the entry at index `i` counts the responses that took less than
//! `8 << i` microseconds, and the last entry counts slower responses, too.

/// Binary logarithm of the first bound in microseconds: the bounds are `8 << i`.
const FIRST_BITS: u32 = 3;

/// Subtracts the counts at the beginning of an interval from the counts at its end. Missing entries of `before` count
/// as 0.
pub fn between(before: &[u64], now: &[u64]) -> Vec<u64> {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    now.iter()
        .zip(before)
        .map(|(now, before)| now.saturating_sub(before))
        .collect()
}

/// Adds counts to a sum, which may be shorter.
pub fn add(sum: &mut Vec<u64>, more: &[u64]) {
    sum.resize(sum.len().max(more.len()), 0);
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// Returns the response time in microseconds that `percent` percent of the responses did not exceed, interpolated
/// between the bounds of its bucket; `None` without responses. `counts`: those of the interval, from [`between`]. The
/// result never exceeds the bound of the last entry, even if responses were slower.
pub fn quantile(counts: &[u64], percent: u64) -> Option<u64> {
    let total = counts.last().copied().filter(|total| *total > 0)?;
    let rank = (u128::from(total) * u128::from(percent)).div_ceil(100).max(1) as u64;
    let index = counts.iter().position(|count| *count >= rank)?;
    let above = 1_u64 << (FIRST_BITS + index as u32).min(63);
    let (below, fewer) = match index.checked_sub(1) {
        Some(previous) => (above / 2, counts[previous]),
        None => (0, 0),
    };
    let share = (rank - fewer) as f64 / (counts[index] - fewer) as f64;
    Some(below + ((above - below) as f64 * share) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_the_bucket_of_their_rank() {
        // The expected quantile is in microseconds.
        for (counts, percent, expected) in [
            (&[][..], 50, None),
            (&[0, 0], 50, None),
            (&[10, 10], 50, Some(4)),
            (&[0, 10], 50, Some(12)),
            (&[0, 10], 99, Some(16)),
            (&[99, 99, 100], 99, Some(8)),
            (&[98, 98, 100], 99, Some(24)),
        ] {
            assert_eq!(quantile(counts, percent), expected, "{counts:?} {percent}");
        }
    }

    #[test]
    fn counts_are_subtracted_and_added() {
        assert_eq!(between(&[1, 5], &[3, 4, 9]), [2, 0, 9]);
        let mut sum = Vec::new();
        add(&mut sum, &[1, 2]);
        add(&mut sum, &[1]);
        assert_eq!(sum, [2, 2]);
    }
}
