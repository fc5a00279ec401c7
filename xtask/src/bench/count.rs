//! Counts of a load generator.

/// Figures of one round.
#[derive(Debug, Default, PartialEq)]
pub struct Count {
    pub requests: f64,
    /// MiB received, heads included.
    pub mebibytes: f64,
    pub seconds: f64,
    pub failures: u64,
    /// Responses with a status other than 2xx (for wrk also other than 3xx).
    pub refused: u64,
    pub p99_ms: Option<f64>,
}
