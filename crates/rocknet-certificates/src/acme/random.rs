//! Random numbers for jitter.

/// A number from 0 to 1, excluding 1.
pub type Fraction = f64;

/// Returns a random number, which spreads the actions of many servers in time.
pub fn random_fraction() -> Fraction {
    let mut bytes = [0; 4];
    // If no randomness is available, the result is 0, so nothing is spread. That does no harm.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
