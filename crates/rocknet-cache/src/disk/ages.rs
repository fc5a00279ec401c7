//! Sizes of the responses of one site on disk by age, so that its oldest responses can be dropped from the index
//! without a search for them.
//!
//! The positions in the log are divided into spans, each with at most about 1/32 of the bytes of the site. A site has
//! at most [`MAX_SPANS`] of them, however many responses it has. Dropping the oldest span drops all responses before
//! its end.

use super::position::Position;

/// Divisor of the bytes of the site: a span ends when it has 1/32 of them.
const PARTS: u64 = 32;

/// Minimum size of a span in bytes, so that a small site has few of them.
const MIN_SPAN: u64 = 64 << 10;

/// Maximum number of spans. Beyond it, small neighbours are joined. At most `2 * PARTS + 1` spans are left, because any
/// two neighbours then have together more than `1 / PARTS` of the bytes.
const MAX_SPANS: usize = 128;

/// Responses between the beginning of a span and that of the next one.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Position of the first response that was added to the span.
    start: Position,
    bytes: u64,
    count: usize,
}

/// Sizes of the responses of a site by age, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Ages {
    spans: Vec<Span>,
    bytes: u64,
    /// Position of the newest response.
    newest: Position,
}

/// Responses that leave the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dropped {
    /// All responses of the site before this position leave it.
    pub before: Position,
    pub bytes: u64,
    pub count: usize,
}

impl Ages {
    /// Returns the size of all responses in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a response that is newer than all others.
    pub fn add(&mut self, position: Position, length: u64) {
        self.newest = position;
        self.bytes += length;
        let most = (self.bytes / PARTS).max(MIN_SPAN);
        match self.spans.last_mut().filter(|span| span.bytes + length <= most) {
            Some(span) => {
                span.bytes += length;
                span.count += 1;
            }
            None => {
                if self.spans.len() >= MAX_SPANS {
                    self.join(most);
                }
                self.spans.push(Span {
                    start: position,
                    bytes: length,
                    count: 1,
                });
            }
        }
    }

    /// Joins neighbours that have together at most `most` bytes.
    fn join(&mut self, most: u64) {
        self.spans.dedup_by(|next, span| {
            let is_joined = span.bytes + next.bytes <= most;
            if is_joined {
                span.bytes += next.bytes;
                span.count += next.count;
            }
            is_joined
        });
    }

    /// Removes a response. It must have been added, and not dropped since.
    pub fn remove(&mut self, position: Position, length: u64) {
        let after = self.spans.partition_point(|span| span.start <= position);
        let Some(at) = after.checked_sub(1) else { return };
        self.bytes = self.bytes.saturating_sub(length);
        let span = &mut self.spans[at];
        span.bytes = span.bytes.saturating_sub(length);
        span.count = span.count.saturating_sub(1);
        // The span before it takes over its positions. The positions of the first span have no response any more.
        if span.count == 0 {
            self.spans.remove(at);
        }
    }

    /// Drops the oldest responses until the rest has at most `quota` bytes. Returns `None` if the site does not exceed
    /// this quota.
    pub fn trim(&mut self, quota: u64) -> Option<Dropped> {
        let (mut bytes, mut count, mut spans) = (0, 0, 0);
        while self.bytes - bytes > quota
            && let Some(span) = self.spans.get(spans)
        {
            bytes += span.bytes;
            count += span.count;
            spans += 1;
        }
        if spans == 0 {
            return None;
        }
        self.spans.drain(..spans);
        self.bytes -= bytes;
        let after_newest = Position {
            offset: self.newest.offset.saturating_add(1),
            ..self.newest
        };
        Some(Dropped {
            before: self.spans.first().map_or(after_newest, |span| span.start),
            bytes,
            count,
        })
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn at(number: u64) -> Position {
        Position {
            segment: (number / 1000) as u32,
            offset: (number % 1000) as u32,
        }
    }

    /// Returns ages with responses of one length, at the positions from 0.
    fn with(count: u64, length: u64) -> Ages {
        let mut ages = Ages::default();
        (0..count).for_each(|number| ages.add(at(number), length));
        ages
    }

    #[test]
    fn the_oldest_are_dropped_and_the_newest_stay() {
        let mut ages = with(1000, 10 * KIB);
        assert_eq!(ages.trim(10_000 * KIB), None);
        let quota = 5_000 * KIB;
        let dropped = ages.trim(quota).expect("too many bytes");
        assert_eq!(dropped.before, at(dropped.count as u64));
        assert_eq!(dropped.bytes, dropped.count as u64 * 10 * KIB);
        assert_eq!(ages.bytes(), 10_000 * KIB - dropped.bytes);
        assert!((quota * 9 / 10..=quota).contains(&ages.bytes()), "{}", ages.bytes());
        // At the quota, each further response drops a small part, and never itself.
        for number in 1000..5000 {
            ages.add(at(number), 10 * KIB);
            if let Some(dropped) = ages.trim(quota) {
                assert!(dropped.bytes <= quota / 8, "{dropped:?}");
                assert!(dropped.before <= at(number));
            }
            assert!(
                (quota * 7 / 8..=quota).contains(&ages.bytes()),
                "{number}: {}",
                ages.bytes()
            );
        }
        let all = ages.trim(0).expect("responses");
        assert_eq!(
            (ages.bytes(), all.before),
            (
                0,
                Position {
                    segment: 4,
                    offset: 1000
                }
            )
        );
        assert_eq!(ages.trim(0), None);
    }

    #[test]
    fn a_response_as_large_as_the_quota_stays_alone() {
        let mut ages = with(20, 50 * KIB);
        ages.add(at(20), 1000 * KIB);
        let dropped = ages.trim(1000 * KIB).expect("too many bytes");
        assert_eq!((dropped.count, dropped.before, ages.bytes()), (20, at(20), 1000 * KIB));
    }

    #[test]
    fn removed_responses_do_not_count() {
        let mut ages = with(1000, 10 * KIB);
        (0..1000)
            .filter(|number| number % 2 == 1)
            .for_each(|number| ages.remove(at(number), 10 * KIB));
        assert_eq!(ages.bytes(), 5_000 * KIB);
        let dropped = ages.trim(4_000 * KIB).expect("too many bytes");
        assert!(dropped.before.offset as usize >= 2 * dropped.count - 1, "{dropped:?}");
        for number in (0..1000).filter(|number| number % 2 == 0 && at(*number) >= dropped.before) {
            ages.remove(at(number), 10 * KIB);
        }
        assert_eq!((ages.bytes(), ages.spans.len()), (0, 0));
        // A removal that comes too late changes nothing.
        ages.remove(at(3), 10 * KIB);
        assert_eq!(ages.bytes(), 0);
    }

    #[test]
    fn the_number_of_spans_is_bounded() {
        let mut ages = Ages::default();
        for number in 0..300_000 {
            ages.add(at(number), (number % 100) * KIB);
            assert!(ages.spans.len() <= MAX_SPANS);
        }
        let most = ages.bytes() / PARTS + 100 * KIB;
        assert!(ages.spans.iter().all(|span| span.bytes <= most));
        assert_eq!(ages.spans.iter().map(|span| span.bytes).sum::<u64>(), ages.bytes());
    }
}
