//! Reader of zip archives for tests. It checks each local header, data descriptor and checksum against the central
//! directory, and that no byte is left over.

use std::io::Read;

/// A file or folder of an archive.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadEntry {
    pub name: String,
    pub content: Vec<u8>,
    /// Time of the last change in seconds, if the archive has it.
    pub modified_unix: Option<i32>,
    /// Length of the content in the archive.
    pub packed: u64,
}

/// Fields of an entry in a header: those of 32 bits, replaced by those of the 64-bit form.
struct Header {
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    name: String,
    modified_unix: Option<i32>,
    offset: u64,
    /// True if the header has the 64-bit form.
    is_wide: bool,
    /// Length of the header with its name and extra fields.
    length: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Reads all entries of an archive, in the order of its central directory.
#[track_caller]
pub fn read(archive: &[u8]) -> Vec<ReadEntry> {
    let end = archive.len() - 22;
    assert_eq!(
        u32_at(archive, end),
        0x0605_4b50,
        "the end record is last, without a comment"
    );
    let mut count = u64::from(u16_at(archive, end + 10));
    let mut size = u64::from(u32_at(archive, end + 12));
    let mut start = u64::from(u32_at(archive, end + 16));
    let mut directory_end = end;
    if count == 0xffff || size == 0xffff_ffff || start == 0xffff_ffff {
        assert_eq!(u32_at(archive, end - 20), 0x0706_4b50, "a locator");
        let record = u64_at(archive, end - 20 + 8) as usize;
        assert_eq!(u32_at(archive, record), 0x0606_4b50, "a record of 64 bits");
        assert_eq!(record + 56, end - 20);
        assert_eq!(u64_at(archive, record + 4), 44);
        (count, size, start) = (
            u64_at(archive, record + 32),
            u64_at(archive, record + 40),
            u64_at(archive, record + 48),
        );
        directory_end = record;
    }
    assert_eq!(
        start + size,
        directory_end as u64,
        "the directory ends at the end record"
    );
    let mut at = start as usize;
    let mut content_end = 0;
    let mut entries = Vec::new();
    for _ in 0..count {
        let central = central(&archive[at..]);
        at += central.length;
        assert_eq!(
            central.offset, content_end,
            "{}: entries follow each other",
            central.name
        );
        let (entry, end) = content(archive, central);
        content_end = end;
        entries.push(entry);
    }
    assert_eq!((at, content_end), (directory_end, start), "no byte is left over");
    entries
}

/// Reads the content of an entry. Returns the entry, and the position after it.
fn content(archive: &[u8], central: Header) -> (ReadEntry, u64) {
    let offset = central.offset as usize;
    let local = local(&archive[offset..]);
    assert_eq!(local.name, central.name);
    assert_eq!((local.flags, local.method), (central.flags, central.method));
    assert_eq!(local.modified_unix, central.modified_unix);
    assert_eq!(central.flags & 1 << 11, 1 << 11, "the name is UTF-8");
    let begin = offset + local.length;
    let mut end = begin + central.packed as usize;
    let packed = &archive[begin..end];
    let content = match central.method {
        0 => packed.to_vec(),
        8 => {
            let mut content = Vec::new();
            flate2::read::DeflateDecoder::new(packed)
                .read_to_end(&mut content)
                .unwrap();
            content
        }
        other => panic!("method {other}"),
    };
    assert_eq!(content.len() as u64, central.size, "{}", central.name);
    let mut crc = flate2::Crc::new();
    crc.update(&content);
    assert_eq!(crc.sum(), central.crc, "{}", central.name);
    if central.flags & 1 << 3 != 0 {
        assert_eq!((local.crc, u32_at(archive, end)), (0, 0x0807_4b50), "a descriptor");
        assert_eq!(u32_at(archive, end + 4), central.crc);
        let sizes = match local.is_wide {
            true => (u64_at(archive, end + 8), u64_at(archive, end + 16)),
            false => (
                u64::from(u32_at(archive, end + 8)),
                u64::from(u32_at(archive, end + 12)),
            ),
        };
        assert_eq!(sizes, (central.packed, central.size));
        end += if local.is_wide { 24 } else { 16 };
    }
    let entry = ReadEntry {
        name: central.name,
        content,
        modified_unix: central.modified_unix,
        packed: central.packed,
    };
    (entry, end as u64)
}

fn central(bytes: &[u8]) -> Header {
    assert_eq!(u32_at(bytes, 0), 0x0201_4b50, "an entry of the directory");
    let mut header = header(&bytes[6..], 46, bytes);
    header.offset = u64::from(u32_at(bytes, 42));
    let extra = header.length - usize::from(u16_at(bytes, 30));
    extend(&mut header, &bytes[extra..]);
    let is_folder = header.name.ends_with('/');
    let mode = if is_folder { 0o040_755 } else { 0o100_644 };
    assert_eq!(u32_at(bytes, 38) >> 16, mode, "{}", header.name);
    header
}

fn local(bytes: &[u8]) -> Header {
    assert_eq!(u32_at(bytes, 0), 0x0403_4b50, "a local header");
    let mut header = header(&bytes[4..], 30, bytes);
    let extra = header.length - usize::from(u16_at(bytes, 28));
    extend(&mut header, &bytes[extra..]);
    header
}

/// Reads the fields that both kinds of headers have, from the version that readers need on. `length`: length of the
/// fixed part.
fn header(fields: &[u8], length: usize, bytes: &[u8]) -> Header {
    let name_length = usize::from(u16_at(fields, 22));
    let extra_length = usize::from(u16_at(fields, 24));
    Header {
        flags: u16_at(fields, 2),
        method: u16_at(fields, 4),
        crc: u32_at(fields, 10),
        packed: u64::from(u32_at(fields, 14)),
        size: u64::from(u32_at(fields, 18)),
        name: String::from_utf8(bytes[length..length + name_length].to_vec()).unwrap(),
        modified_unix: None,
        offset: 0,
        is_wide: false,
        length: length + name_length + extra_length,
    }
}

/// Reads the extra fields, up to the end of the header.
fn extend(header: &mut Header, from: &[u8]) {
    let mut rest = from;
    let wide = 0xffff_ffff;
    while rest.len() >= 4 {
        let (kind, length) = (u16_at(rest, 0), usize::from(u16_at(rest, 2)));
        if kind != 0x0001 && kind != 0x5455 {
            return;
        }
        let data = &rest[4..4 + length];
        rest = &rest[4 + length..];
        if kind == 0x5455 {
            assert_eq!((data[0], length), (1, 5));
            header.modified_unix = Some(u32_at(data, 1) as i32);
            continue;
        }
        header.is_wide = header.size == wide;
        let mut values = data.chunks(8).map(|value| u64_at(value, 0));
        for field in [&mut header.size, &mut header.packed, &mut header.offset] {
            if *field == wide {
                *field = values.next().expect("a value of 64 bits");
            }
        }
        assert_eq!(values.next(), None, "no further value");
    }
}
