//! Random numbers for jitter and for the IDs of DNS messages.

/// A number from 0 to 1, excluding 1.
pub type Fraction = f64;

/// Returns a random number. As jitter, it spreads the actions of many servers in time.
pub fn random_fraction() -> Fraction {
    let mut bytes = [0; 4];
    // If no randomness is available, the result is 0: nothing is spread, and the IDs of DNS messages can be guessed.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
