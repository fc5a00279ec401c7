//! CPU time of a running process.

use crate::Failure;
use std::fs;

/// Clock ticks per second in `/proc`, which every Linux uses.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the CPU time of a process in seconds.
pub fn of_process(process: u32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program may have spaces, so fields are counted after its parenthesis.
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in the state of the program")?;
    let ticks: f64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<f64>().unwrap_or_default())
        .sum();
    Ok(ticks / TICKS_PER_SECOND)
}
