//! What a load generator counted.

/// Figures of one round.
#[derive(Debug, Default, PartialEq)]
pub struct Count {
    pub requests: f64,
    /// MiB that were read, heads included.
    pub mebibytes: f64,
    pub seconds: f64,
    pub failures: u64,
    /// Answers whose status was not 2xx (wrk: nor 3xx).
    pub refused: u64,
    pub p99_ms: Option<f64>,
}
