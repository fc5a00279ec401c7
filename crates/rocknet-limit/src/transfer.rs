//! Format in which a process passes its tables of limits to its successor in an upgrade.
//!
//! ```text
//! header   8 bytes "rnlimit1", time of the writer, check value of the seed
//! section  kind, size of a record, length of the name, number of records; name; records
//! ...
//! end      a section of kind 0 without a name and records
//! ```
//! Numbers are little-endian and have 8 bytes. Those in the head of a section have 4, except the number of records. A
//! reader ignores sections of a kind or with a size of records that it does not know, so that later versions can add
//! some. The end and the numbers of records tell a truncated transfer from a whole one.
//!
//! Times are nanoseconds of a clock that both processes share. Records have the time that was left when the transfer
//! was written, and the reader subtracts the time that has passed since.

use std::fmt;

use crate::key_seed::KeySeed;

/// Maximum size of a transfer in bytes. It has room for full tables: those of offences have at most 11 MB, and wrong
/// passwords 5 MB. The tables of limits have at most 17 MB in total, and in addition 2 KB for each limit.
pub const MAX_TRANSFER: usize = 64 << 20;

/// Maximum age of a transfer in nanoseconds. An upgrade takes at most 50 s.
const MAX_AGE: u64 = 600_000_000_000;

/// Size of a bucket in bytes.
pub const BUCKET_SIZE: usize = 16;

const MAGIC: &[u8; 8] = b"rnlimit1";
/// Size of the header in bytes.
const HEADER_SIZE: usize = 24;
/// Size of the head of a section in bytes, without the name.
const SECTION_HEAD_SIZE: usize = 20;
/// Kind of the section that ends a transfer.
const END: u32 = 0;

/// Transfer that is being written.
#[derive(Debug)]
pub struct TransferWriter {
    bytes: Vec<u8>,
    /// Number of sections that were left out.
    left_out: usize,
    max: usize,
}

/// Transfer of a predecessor.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    /// Sections, with the one that ends them.
    sections: &'a [u8],
    /// Nanoseconds since the transfer was written.
    age: u64,
}

/// Section of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'a> {
    /// Kind of the records.
    pub kind: u32,
    /// Name, such as that of a limit.
    pub name: &'a [u8],
    /// Size of a record in bytes.
    record_size: usize,
    records: &'a [u8],
}

/// Bucket of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferredBucket {
    /// Hash of the key.
    pub key: u64,
    /// Nanoseconds until the bucket is full.
    pub left: u64,
}

/// Reason why a transfer cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferError {
    /// The transfer has more than [`MAX_TRANSFER`] bytes.
    TooLarge,
    /// The transfer has another format.
    Format,
    /// The transfer is incomplete.
    Truncated,
    /// The keys were hashed with another seed.
    Seed,
    /// The transfer was written in the future, or too long ago.
    Age,
}

impl TransferWriter {
    /// Begins a transfer. `seed`: seed of the hashes of keys. `clock`: nanoseconds of a clock that the processes share.
    pub fn new(seed: &KeySeed, clock: u64) -> TransferWriter {
        TransferWriter::with_max(seed, clock, MAX_TRANSFER)
    }

    fn with_max(seed: &KeySeed, clock: u64, max: usize) -> TransferWriter {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&clock.to_le_bytes());
        bytes.extend_from_slice(&seed.check_value().to_le_bytes());
        let left_out = 0;
        TransferWriter { bytes, left_out, max }
    }

    /// Writes a section. `kind`: any number but 0. `write_records`: appends records of `N` bytes by the function that
    /// it gets. Leaves out a section without records, and one that does not fit.
    pub fn section<const N: usize>(
        &mut self,
        kind: u32,
        name: &[u8],
        write_records: impl FnOnce(&mut dyn FnMut(&[u8; N])),
    ) {
        let begin = self.bytes.len();
        self.head(kind, N, name, 0);
        // The section that ends the transfer has to fit too.
        let (bytes, max) = (&mut self.bytes, self.max.saturating_sub(SECTION_HEAD_SIZE));
        let (mut count, mut is_full) = (0_u64, bytes.len() > max);
        write_records(&mut |record| {
            is_full |= bytes.len() + N > max;
            if !is_full {
                bytes.extend_from_slice(record);
                count += 1;
            }
        });
        if count == 0 || is_full {
            self.left_out += usize::from(is_full);
            self.bytes.truncate(begin);
            return;
        }
        let count_at = begin + SECTION_HEAD_SIZE - size_of::<u64>();
        self.bytes[count_at..][..size_of::<u64>()].copy_from_slice(&count.to_le_bytes());
    }

    /// Appends the head of a section, and its name.
    fn head(&mut self, kind: u32, record_size: usize, name: &[u8], count: u64) {
        for number in [kind, record_size as u32, name.len() as u32] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.bytes.extend_from_slice(&count.to_le_bytes());
        self.bytes.extend_from_slice(name);
    }

    /// Returns the number of sections that were left out, because the transfer would have been too large.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Ends the transfer, and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.head(END, 0, b"", 0);
        self.bytes
    }
}

impl<'a> Transfer<'a> {
    /// Reads a transfer, and checks its structure. `seed`: the seed of this process. `clock`: nanoseconds of the clock
    /// that the processes share.
    ///
    /// # Errors
    ///
    /// Returns the reason why nothing of the transfer can be used.
    pub fn read(bytes: &'a [u8], seed: &KeySeed, clock: u64) -> Result<Transfer<'a>, TransferError> {
        if bytes.len() > MAX_TRANSFER {
            return Err(TransferError::TooLarge);
        }
        let (header, sections) = bytes.split_at_checked(HEADER_SIZE).ok_or(TransferError::Truncated)?;
        if !header.starts_with(MAGIC) {
            return Err(TransferError::Format);
        }
        if number(header, 16) != Some(seed.check_value()) {
            return Err(TransferError::Seed);
        }
        let written = number(header, 8).ok_or(TransferError::Truncated)?;
        let age = clock.checked_sub(written).filter(|age| *age <= MAX_AGE);
        let age = age.ok_or(TransferError::Age)?;
        let mut rest = sections;
        while let Some(section) = next_section(&mut rest)? {
            if section.kind == END {
                return match rest.is_empty() && section.record_size == 0 {
                    true => Ok(Transfer { sections, age }),
                    false => Err(TransferError::Format),
                };
            }
        }
        Err(TransferError::Truncated)
    }

    /// Returns the sections of a kind.
    pub fn sections(&self, kind: u32) -> impl Iterator<Item = Section<'a>> {
        let mut rest = self.sections;
        let all = std::iter::from_fn(move || next_section(&mut rest).ok().flatten());
        all.take_while(|section| section.kind != END)
            .filter(move |section| section.kind == kind)
    }

    /// Returns the part of a time that is left now. `left`: nanoseconds that were left when the transfer was written.
    pub fn left(&self, left: u64) -> u64 {
        left.saturating_sub(self.age)
    }

    /// Returns the buckets of a section that are not full yet. `capacity`: nanoseconds in which an empty bucket becomes
    /// full, which bounds the time that is left.
    pub fn buckets(&self, section: &Section<'a>, capacity: u64) -> impl Iterator<Item = TransferredBucket> {
        let transfer = *self;
        let bucket = move |record: &[u8; BUCKET_SIZE]| {
            let left = transfer.left(number(record, 8)?).min(capacity);
            let key = number(record, 0)?;
            (left > 0).then_some(TransferredBucket { key, left })
        };
        section.records().iter().filter_map(bucket)
    }
}

impl<'a> Section<'a> {
    /// Returns the records; an empty list if they have another size.
    pub fn records<const N: usize>(&self) -> &'a [[u8; N]] {
        match self.record_size == N {
            true => self.records.as_chunks().0,
            false => &[],
        }
    }
}

impl TransferredBucket {
    /// Returns the record of the bucket.
    pub fn record(self) -> [u8; BUCKET_SIZE] {
        let mut record = [0; BUCKET_SIZE];
        record[..8].copy_from_slice(&self.key.to_le_bytes());
        record[8..].copy_from_slice(&self.left.to_le_bytes());
        record
    }
}

/// Removes the first section from `rest`. Returns `None` if nothing is left.
fn next_section<'a>(rest: &mut &'a [u8]) -> Result<Option<Section<'a>>, TransferError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let section = || {
        let (head, body) = rest.split_at_checked(SECTION_HEAD_SIZE)?;
        let small = |at| Some((number(head, at)? & u64::from(u32::MAX)) as u32);
        let (kind, record_size, name_length) = (small(0)?, small(4)? as usize, small(8)? as usize);
        let count = usize::try_from(number(head, 12)?).ok()?;
        let (name, body) = body.split_at_checked(name_length)?;
        let (records, body) = body.split_at_checked(count.checked_mul(record_size)?)?;
        let section = Section {
            kind,
            name,
            record_size,
            records,
        };
        Some((section, body))
    };
    let (section, body) = section().ok_or(TransferError::Truncated)?;
    *rest = body;
    Ok(Some(section))
}

/// Returns the number of 8 bytes at a position.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let (bytes, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Writes a clause about the entries, for a message such as `…cannot be taken over: they are incomplete`.
impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransferError::TooLarge => "they are larger than 64 MiB",
            TransferError::Format => "they are in another format",
            TransferError::Truncated => "they are incomplete",
            TransferError::Seed => "their keys have another seed",
            TransferError::Age => "their time is in the future or too old",
        })
    }
}

impl std::error::Error for TransferError {}

#[cfg(test)]
mod tests;
