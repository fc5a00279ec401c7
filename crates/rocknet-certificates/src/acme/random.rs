//! Random numbers that spread in time what many servers do.

/// A number from 0 up to but without 1.
pub type Fraction = f64;

/// Returns a random number from 0 up to but without 1, which spreads what many servers do at once.
pub fn random_fraction() -> Fraction {
    let mut bytes = [0; 4];
    // Without randomness nothing is spread, and no harm is done.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
