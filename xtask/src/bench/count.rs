//! Figures that a load generator reports.

/// Figures of one round of load.
#[derive(Debug, Default, PartialEq)]
pub struct Count {
    pub requests: f64,
    /// MiB received, heads included.
    pub mebibytes: f64,
    pub seconds: f64,
    /// Requests without a correct exchange, such as connection errors and timeouts.
    pub failures: u64,
    /// Responses with a status other than 2xx (for wrk also other than 3xx).
    pub refused: u64,
    /// 99th percentile of the latency in milliseconds; `None` if the load generator reports none.
    pub p99_ms: Option<f64>,
}
