//! Transfer of the tables of clients to the process that replaces this one: used parts of limits, offences, and wrong
//! passwords. Without it, each upgrade would reset all counts.
//!
//! The tables are in a sealed file, whose descriptor passes through the channel of the upgrade. The secrets of their
//! keys have passed before, because the new process needs them when it loads its configuration. Once the file is
//! written, requests that the old process admits count only in that process.

use std::fs::File;
use std::io::{self, Read, Seek};

use rocknet_access::attempts::WrongGuess;
use rocknet_io::machine_clock::machine_uptime_ns;
use rocknet_io::sealed_file;
use rocknet_limit::transfer::{MAX_TRANSFER, Transfer, TransferWriter};

use crate::registries::Registries;

/// Kind of the section with wrong passwords. The kinds 1 to 4 belong to `limits/transfer.rs` and `bans/transfer.rs`.
const GUESSES: u32 = 5;

/// Size of the record of a wrong password in bytes: address of the client (16), nanoseconds until its window ends (8),
/// and tag of the credentials (8).
const GUESS_SIZE: usize = 32;

/// Writes the tables to a sealed file. Limits that would make it too large are left out, with a line in the log.
///
/// # Errors
///
/// Fails if the system has no memory for the file.
pub fn write(registries: &Registries) -> io::Result<File> {
    let mut transfer = TransferWriter::new(&registries.limit_secrets.seed, machine_uptime_ns());
    // The smaller tables come first, because the last ones are left out if the transfer would be too large.
    registries.bans.write(&mut transfer);
    let guesses = registries.access.wrong_guesses(registries.time.uptime_ms());
    transfer.section(GUESSES, b"", |write| {
        guesses.iter().map(guess_record).for_each(|record| write(&record));
    });
    registries.limits.write(&mut transfer, registries.time.uptime_ns());
    let left_out = transfer.left_out();
    if left_out > 0 {
        tracing::warn!("{left_out} limits have too many clients to be passed on, so their counts begin at 0");
    }
    sealed_file::create(&transfer.finish())
}

/// Adopts the tables in a file of [`write()`]. A file that cannot be used is logged, and all counts begin at 0.
/// `file`: `None` if it was not received.
pub fn adopt(registries: &Registries, file: Option<File>) {
    let bytes = file
        .ok_or_else(|| io::Error::other("they were not received"))
        .and_then(read);
    let adopted = bytes
        .map_err(|error| error.to_string())
        .and_then(|bytes| adopt_bytes(registries, &bytes));
    match adopted {
        Ok(0) => {}
        Ok(entries) => tracing::info!("limits and offences of clients continue: {entries} entries"),
        Err(error) => {
            tracing::warn!("the counts of all limits begin at 0, because the old ones cannot be taken over: {error}");
        }
    }
}

fn read(mut file: File) -> io::Result<Vec<u8>> {
    // The processes share the position in the file.
    file.rewind()?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(size.min(MAX_TRANSFER));
    // One byte more than the maximum is read, so that `Transfer::read` refuses a larger file.
    file.take(MAX_TRANSFER as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Adopts the tables in a transfer. Returns the number of their entries.
fn adopt_bytes(registries: &Registries, bytes: &[u8]) -> Result<usize, String> {
    let seed = &registries.limit_secrets.seed;
    let transfer = Transfer::read(bytes, seed, machine_uptime_ns()).map_err(|error| error.to_string())?;
    let mut adopted = registries.bans.adopt(&transfer);
    let now_ms = registries.time.uptime_ms();
    let guesses = transfer.sections(GUESSES).flat_map(|section| section.records());
    for guess in guesses.map(|record| guess_of(record, &transfer)) {
        registries.access.adopt_wrong_guess(guess, now_ms);
        adopted += 1;
    }
    Ok(adopted + registries.limits.adopt(&transfer, registries.time.uptime_ns()))
}

/// Returns the record of a wrong password.
fn guess_record(guess: &WrongGuess) -> [u8; GUESS_SIZE] {
    let left_ns = guess.left_ms.saturating_mul(1_000_000);
    let mut record = [0; GUESS_SIZE];
    record[..16].copy_from_slice(&guess.client.to_le_bytes());
    record[16..24].copy_from_slice(&left_ns.to_le_bytes());
    record[24..].copy_from_slice(&guess.tag.to_le_bytes());
    record
}

/// Returns the wrong password of a record.
fn guess_of(record: &[u8; GUESS_SIZE], transfer: &Transfer<'_>) -> WrongGuess {
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| record[at + byte]));
    WrongGuess {
        client: u128::from_le_bytes(std::array::from_fn(|byte| record[byte])),
        left_ms: transfer.left(number(16)).div_ceil(1_000_000),
        tag: number(24),
    }
}

#[cfg(test)]
mod tests;
