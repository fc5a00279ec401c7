//! Measures the latency of an HTTP/3 client while datagrams that belong to no connection arrive.

use super::counted::{hello, start_one};
use super::http3::{BesideGarbage, beside_garbage};
use super::lane::Lane;
use super::run::Run;
use super::table::{Table, table};
use crate::Failure;

/// Datagrams per second.
const RATE: u32 = 100_000;
/// Duration of a measurement in seconds.
const SECONDS: u32 = 5;

/// Measures the latency of one client alone, and beside [`RATE`] datagrams per second.
pub fn garbage(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "One client that requests 13 bytes again and again on one connection, alone and beside 100,000 datagrams per \
                second that belong to no connection: Initial packets that cannot be decrypted, unknown versions, unknown \
                connections and random bytes. The client and the sender of the datagrams share a core.";
    let columns = [
        "p50 beside garbage, ms",
        "p99, ms",
        "p50 alone, ms",
        "responses/s beside garbage",
        "garbage, datagrams/s",
    ];
    Ok(table(lanes, &columns, note, |lane| {
        let started = start_one(run, lane, &[])?;
        let url = format!("https://127.0.0.1:{}{}", started.port, hello());
        let seconds = if run.quick { 1 } else { SECONDS };
        let alone = beside_garbage(&url, 0, seconds)?;
        let BesideGarbage {
            p50_ms,
            p99_ms,
            requests_per_second,
            garbage_per_second,
        } = beside_garbage(&url, RATE, seconds)?;
        Ok(vec![
            p50_ms,
            p99_ms,
            alone.p50_ms,
            requests_per_second,
            garbage_per_second,
        ])
    }))
}
