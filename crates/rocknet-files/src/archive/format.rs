//! The zip container, as far as a stream can write it (APPNOTE 6.3.10): local headers, data descriptors, the central
//! directory, and their 64-bit forms. Times are UTC.
//!
//! Files use the method `deflate` even if they are not compressed, in blocks that hold their bytes as they are (RFC
//! 1951 §3.2.4). A reader that does not seek finds the end of such data by itself. For the method `stored` it would
//! have to search for the data descriptor, and several readers refuse that combination.

use rocknet_pages::listing::UtcDateTime;

/// Maximum length of the content of an uncompressed block, in bytes.
pub const BLOCK: usize = 0xffff;
/// Length of the header of an uncompressed block, in bytes.
pub const BLOCK_HEADER: usize = 5;

/// Minimum size of files with the 64-bit form, in bytes. `deflate` adds less than 64 MiB to a smaller file, so its
/// length in the archive fits into 32 bits too.
const WIDE_FROM: u64 = (1 << 32) - (64 << 20);
/// Value of a 32-bit field whose real value is in the 64-bit form.
const WIDE: u32 = u32::MAX;
/// Maximum number of entries without the 64-bit form.
const NARROW_ENTRIES: usize = 0xfffe;

/// Version of the format that readers need: 2.0 for `deflate`, 4.5 for the 64-bit form.
const VERSION: u16 = 20;
const VERSION_WIDE: u16 = 45;
/// Upper byte of the field "version made by": Unix, so that readers use the mode of files.
const UNIX: u16 = 3 << 8;

/// Flag of names in UTF-8.
const UTF8: u16 = 1 << 11;
/// Flag of a data descriptor after the content, because the checksum is unknown before.
const DESCRIPTOR: u16 = 1 << 3;

const STORED: u16 = 0;
const DEFLATE: u16 = 8;

/// A file or folder of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveEntry {
    /// Path in the archive, with `/` between names. The path of a folder ends with `/`. The length fits in 16 bits,
    /// because a path of a site has at most 128 names of 255 bytes each.
    pub name: Box<str>,
    /// Size of the file in bytes; 0 for a folder.
    pub size: u64,
    /// Time of the last change, in seconds since 1970-01-01T00:00:00Z.
    pub modified_unix: i64,
    /// CRC-32 of the file, set once it was sent.
    pub crc: u32,
    /// Length of the content in the archive, set once it was sent.
    pub packed: u64,
    /// Position of the local header, set once it was sent.
    pub offset: u64,
}

impl ArchiveEntry {
    /// Creates an entry that was not sent yet.
    pub fn new(name: String, size: u64, modified_unix: i64) -> ArchiveEntry {
        ArchiveEntry {
            name: name.into(),
            size,
            modified_unix,
            crc: 0,
            packed: 0,
            offset: 0,
        }
    }

    fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }

    /// Returns true if the entry has content. Folders and empty files have only a header.
    pub fn has_content(&self) -> bool {
        self.size > 0
    }

    /// Returns true if the sizes of the entry need 64 bits.
    fn is_wide(&self) -> bool {
        self.size >= WIDE_FROM
    }

    fn flags(&self) -> u16 {
        if self.has_content() { UTF8 | DESCRIPTOR } else { UTF8 }
    }

    fn method(&self) -> u16 {
        if self.has_content() { DEFLATE } else { STORED }
    }

    /// Appends the header that precedes the content.
    pub fn push_local_header(&self, out: &mut Vec<u8>) {
        let extra = self.extra(self.is_wide().then_some(&[0, 0][..]));
        let (date, time) = dos_time(self.modified_unix);
        let size = if self.is_wide() { WIDE } else { 0 };
        put32(out, 0x0403_4b50);
        put16(out, if self.is_wide() { VERSION_WIDE } else { VERSION });
        put16(out, self.flags());
        put16(out, self.method());
        put16(out, time);
        put16(out, date);
        // The checksum and both sizes follow in the data descriptor. Here they are 0; in the 64-bit form, the zeros of
        // the sizes are in `extra`.
        put32(out, 0);
        put32(out, size);
        put32(out, size);
        put16(out, self.name.len() as u16);
        put16(out, extra.len() as u16);
        out.extend_from_slice(self.name.as_bytes());
        out.extend_from_slice(&extra);
    }

    /// Appends the data descriptor, which follows the content. An entry without content has none.
    pub fn push_descriptor(&self, out: &mut Vec<u8>) {
        if !self.has_content() {
            return;
        }
        put32(out, 0x0807_4b50);
        put32(out, self.crc);
        if self.is_wide() {
            put64(out, self.packed);
            put64(out, self.size);
        } else {
            put32(out, self.packed as u32);
            put32(out, self.size as u32);
        }
    }

    /// Appends the entry of the central directory.
    pub fn push_central(&self, out: &mut Vec<u8>) {
        let far = self.offset >= u64::from(WIDE);
        let mut wide = Vec::new();
        if self.is_wide() {
            wide.extend([self.size, self.packed]);
        }
        wide.extend(far.then_some(self.offset));
        let needs_64_bits = !wide.is_empty();
        let extra = self.extra(needs_64_bits.then_some(&wide));
        let (date, time) = dos_time(self.modified_unix);
        let version = if needs_64_bits { VERSION_WIDE } else { VERSION };
        let narrow = |value: u64| if self.is_wide() { WIDE } else { value as u32 };
        // Mode of Unix in the upper half, and the attributes of DOS, in which a folder has the bit 0x10.
        let attributes = match self.is_folder() {
            true => 0o040_755 << 16 | 0x10,
            false => 0o100_644 << 16,
        };
        put32(out, 0x0201_4b50);
        put16(out, UNIX | version);
        put16(out, version);
        put16(out, self.flags());
        put16(out, self.method());
        put16(out, time);
        put16(out, date);
        put32(out, self.crc);
        put32(out, narrow(self.packed));
        put32(out, narrow(self.size));
        put16(out, self.name.len() as u16);
        put16(out, extra.len() as u16);
        // Length of the comment, number of the disk, and internal attributes.
        put16(out, 0);
        put16(out, 0);
        put16(out, 0);
        put32(out, attributes);
        put32(out, if far { WIDE } else { self.offset as u32 });
        out.extend_from_slice(self.name.as_bytes());
        out.extend_from_slice(&extra);
    }

    /// Returns the extra fields: the time in seconds, because the time of DOS has no time zone and steps of two
    /// seconds, and the values of the 64-bit form.
    fn extra(&self, wide: Option<&[u64]>) -> Vec<u8> {
        let mut extra = Vec::new();
        if let Some(values) = wide {
            // Extra field "Zip64 extended information".
            put16(&mut extra, 0x0001);
            put16(&mut extra, values.len() as u16 * 8);
            values.iter().for_each(|value| put64(&mut extra, *value));
        }
        if let Ok(seconds) = i32::try_from(self.modified_unix) {
            // Extra field "extended timestamp", with only the time of the last change.
            put16(&mut extra, 0x5455);
            put16(&mut extra, 5);
            extra.push(1);
            extra.extend_from_slice(&seconds.to_le_bytes());
        }
        extra
    }
}

/// Appends the end of an archive: the central directory begins at `start` and ends at `end`.
pub fn push_end(out: &mut Vec<u8>, entries: usize, start: u64, end: u64) {
    let size = end - start;
    if entries > NARROW_ENTRIES || start >= u64::from(WIDE) || size >= u64::from(WIDE) {
        put32(out, 0x0606_4b50);
        // Size of the rest of this record.
        put64(out, 44);
        put16(out, UNIX | VERSION_WIDE);
        put16(out, VERSION_WIDE);
        // Number of this disk, and of the disk on which the central directory begins.
        put32(out, 0);
        put32(out, 0);
        put64(out, entries as u64);
        put64(out, entries as u64);
        put64(out, size);
        put64(out, start);
        // The locator, which is found from the end: number of the disk, position of the record above, number of disks.
        put32(out, 0x0706_4b50);
        put32(out, 0);
        put64(out, end);
        put32(out, 1);
    }
    let entries = if entries > NARROW_ENTRIES {
        u16::MAX
    } else {
        entries as u16
    };
    let narrow = |value: u64| u32::try_from(value).unwrap_or(WIDE);
    put32(out, 0x0605_4b50);
    // The numbers of disks as above.
    put16(out, 0);
    put16(out, 0);
    put16(out, entries);
    put16(out, entries);
    put32(out, narrow(size));
    put32(out, narrow(start));
    // Length of the comment.
    put16(out, 0);
}

/// Returns the length in the archive of a file of `size` bytes: its content as uncompressed blocks, with their headers.
pub fn blocks_length(size: u64) -> u64 {
    size + size.div_ceil(BLOCK as u64) * BLOCK_HEADER as u64
}

/// Appends the header of an uncompressed block. `length`: length of its content in bytes, at most [`BLOCK`].
pub fn push_block_header(out: &mut Vec<u8>, length: usize, is_last: bool) {
    out.push(u8::from(is_last));
    put16(out, length as u16);
    put16(out, !(length as u16));
}

/// Length of an archive without compression, computed while its entries are found.
#[derive(Default)]
pub struct Length {
    /// Length of the headers and the content of all entries.
    offset: u64,
    /// Length of the central directory.
    central: u64,
    buffer: Vec<u8>,
}

impl Length {
    /// Adds an entry, and sets the position that it has without compression, because the length of its entry in the
    /// central directory depends on the position.
    pub fn add(&mut self, entry: &mut ArchiveEntry) {
        entry.offset = self.offset;
        self.central += self.measured(|out| entry.push_central(out));
        let header = self.measured(|out| entry.push_local_header(out));
        let descriptor = self.measured(|out| entry.push_descriptor(out));
        self.offset += header + blocks_length(entry.size) + descriptor;
    }

    /// Returns the length of the archive with this number of entries.
    pub fn finish(mut self, entries: usize) -> u64 {
        let (start, end) = (self.offset, self.offset + self.central);
        end + self.measured(|out| push_end(out, entries, start, end))
    }

    fn measured(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        self.buffer.clear();
        write(&mut self.buffer);
        self.buffer.len() as u64
    }
}

/// Returns date and time in the form of DOS. Times before 1980 and after 2107 become the first and the last one.
fn dos_time(unix: i64) -> (u16, u16) {
    let time = UtcDateTime::from_unix(unix);
    let (year, month, day) = time.year_month_day();
    let seconds = time.second_of_day();
    let (hour, minute, pair) = (seconds / 3600, seconds / 60 % 60, seconds % 60 / 2);
    match year {
        0..1980 => (1 << 5 | 1, 0),
        1980..2108 => (
            ((year - 1980) << 9 | month << 5 | day) as u16,
            (hour << 11 | minute << 5 | pair) as u16,
        ),
        _ => (127 << 9 | 12 << 5 | 31, 23 << 11 | 59 << 5 | 29),
    }
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}
