//! Random numbers for jitter.

/// A number in 0..1, without 1.
pub type Fraction = f64;

/// Returns a random number in 0..1, which spreads in time what many servers do.
pub fn random_fraction() -> Fraction {
    let mut bytes = [0; 4];
    // If no randomness is available, the result is 0: nothing is spread, which does no harm.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
