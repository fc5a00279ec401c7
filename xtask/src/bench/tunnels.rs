//! Measures the memory of idle tunnels through a proxy.

use super::counted::start_one;
use super::echo::{MAX_SHORT_PAYLOAD, message, open};
use super::lane::Lane;
use super::machine::descriptor_limit;
use super::measure::{Memory, memory_kib};
use super::run::Run;
use super::table::{Table, table};
use crate::Failure;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Number of tunnels, if the descriptor limit permits. Each needs one descriptor in this process and two in the server.
const IDLE: u64 = 10_000;
/// Descriptors reserved for everything else.
const RESERVED: u64 = 1_000;

/// Measures the memory of idle tunnels.
pub fn idle(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "Resident memory with 10,000 open tunnels (fewer where the descriptor limit is lower), each after one \
                echoed message, minus the memory after ten; kernel memory of sockets is not included.";
    let most = IDLE.min(descriptor_limit().saturating_sub(RESERVED) / 2);
    let count = if run.quick { most / 10 } else { most };
    let columns = ["bytes per tunnel", "resident, MiB", "tunnels"];
    Ok(table(lanes, &columns, note, |lane| {
        let started = start_one(run, lane, &[])?;
        let pid = started.server.pid();
        let message = message(MAX_SHORT_PAYLOAD as u32);
        let mut back = vec![0; message.len()];
        let mut open_all = |count: u64| -> io::Result<Vec<TcpStream>> {
            let one = |_| {
                let mut tunnel = open(started.port)?;
                tunnel.write_all(&message)?;
                tunnel.read_exact(&mut back)?;
                Ok(tunnel)
            };
            (0..count).map(one).collect()
        };
        drop(open_all(10)?);
        let before = memory_kib(pid, Memory::Resident);
        let opened = open_all(count)?;
        let after = memory_kib(pid, Memory::Resident);
        let bytes = after.saturating_sub(before) as f64 * 1024.0 / opened.len() as f64;
        Ok(vec![bytes, after as f64 / 1024.0, opened.len() as f64])
    }))
}
