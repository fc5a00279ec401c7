//! Random identifiers of traces and spans.

use std::cell::Cell;
use std::io;

use aws_lc_rs::rand;

use crate::context::{SpanId, TraceId};

/// Generator of identifiers (SplitMix64), one for each thread. Identifiers have to be unique; they are not secret.
#[derive(Debug)]
pub struct IdGenerator(Cell<u64>);

impl IdGenerator {
    /// Creates a generator with a random seed.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random numbers.
    pub fn new() -> io::Result<IdGenerator> {
        let mut seed = [0; 8];
        rand::fill(&mut seed).map_err(|_| io::Error::other("the system provides no random numbers"))?;
        Ok(IdGenerator(Cell::new(u64::from_ne_bytes(seed))))
    }

    /// Returns a new id of a trace.
    pub fn trace(&self) -> TraceId {
        TraceId::new(u128::from(self.next()) << u64::BITS | u128::from(self.next()))
    }

    /// Returns a new id of a span.
    pub fn span(&self) -> SpanId {
        SpanId::new(self.next())
    }

    /// Returns the next random number.
    fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_differ() {
        let (one, other) = (IdGenerator::new().unwrap(), IdGenerator::new().unwrap());
        let mut spans: Vec<String> = (0..1000)
            .flat_map(|_| [one.span(), other.span()])
            .map(|id| id.to_string())
            .collect();
        spans.sort_unstable();
        spans.dedup();
        assert_eq!(spans.len(), 2000);
        assert_ne!(one.trace(), one.trace());
    }
}
