//! Reads from a program which loader and which shared libraries it needs.

/// Types of program headers: a part that is loaded, the section for the dynamic loader, and the path of the loader.
const PT_LOAD: usize = 1;
const PT_DYNAMIC: usize = 2;
const PT_INTERP: usize = 3;

/// Tags of the section for the dynamic loader: the offset of a library's name, and the address of the names.
const DT_NEEDED: usize = 1;
const DT_STRTAB: usize = 5;

/// Size of an entry in that section: a tag and a value.
const DYNAMIC_ENTRY: usize = 16;

/// Error of a program that cannot be read.
const BROKEN: &str = "the program is no complete ELF file of 64 bits";

/// Program header, as far as it is used.
struct Header {
    kind: usize,
    /// Position in the file.
    offset: usize,
    /// Address in memory.
    address: usize,
    /// Size in the file.
    size: usize,
}

/// Reads the program headers of a 64-bit little-endian program.
fn headers(program: &[u8]) -> Result<Vec<Header>, &'static str> {
    // Magic number, 64 bits, little-endian.
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return Err(BROKEN);
    }
    let start = number::<8>(program, 0x20).ok_or(BROKEN)?;
    let size = number::<2>(program, 0x36).ok_or(BROKEN)?;
    let count = number::<2>(program, 0x38).ok_or(BROKEN)?;
    let read = |index: usize| {
        let header = program.get(start.checked_add(index * size)?..)?;
        Some(Header {
            kind: number::<4>(header, 0)?,
            offset: number::<8>(header, 0x08)?,
            address: number::<8>(header, 0x10)?,
            size: number::<8>(header, 0x20)?,
        })
    };
    (0..count).map(|index| read(index).ok_or(BROKEN)).collect()
}

/// Returns the path of the dynamic loader that a 64-bit little-endian program names; `None` if it is static.
///
/// # Errors
///
/// Fails if the bytes are no such program.
pub fn interpreter(program: &[u8]) -> Result<Option<String>, &'static str> {
    let headers = headers(program)?;
    let Some(header) = headers.iter().find(|header| header.kind == PT_INTERP) else {
        return Ok(None);
    };
    let path = contents(program, header).ok_or(BROKEN)?;
    Ok(Some(text(path)))
}

/// Returns the names of the shared libraries that a program needs.
///
/// # Errors
///
/// Fails if the bytes are no 64-bit little-endian program.
pub fn needed(program: &[u8]) -> Result<Vec<String>, &'static str> {
    let headers = headers(program)?;
    let Some(dynamic) = headers.iter().find(|header| header.kind == PT_DYNAMIC) else {
        return Ok(Vec::new());
    };
    let mut entries = Vec::new();
    for entry in contents(program, dynamic).ok_or(BROKEN)?.chunks_exact(DYNAMIC_ENTRY) {
        entries.push((
            number::<8>(entry, 0).ok_or(BROKEN)?,
            number::<8>(entry, 8).ok_or(BROKEN)?,
        ));
    }
    let address = entries.iter().find(|(tag, _)| *tag == DT_STRTAB).ok_or(BROKEN)?.1;
    let holder = headers.iter().find(|header| {
        header.kind == PT_LOAD
            && address
                .checked_sub(header.address)
                .is_some_and(|within| within < header.size)
    });
    let holder = holder.ok_or(BROKEN)?;
    let names = holder.offset + (address - holder.address);
    let needed = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED);
    needed
        .map(|(_, offset)| program.get(names.checked_add(*offset)?..).map(text))
        .collect::<Option<_>>()
        .ok_or(BROKEN)
}

/// Returns the bytes of a header.
fn contents<'a>(program: &'a [u8], header: &Header) -> Option<&'a [u8]> {
    program.get(header.offset..header.offset.checked_add(header.size)?)
}

/// Returns the text that ends at the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Reads a little-endian number of `SIZE` bytes, 8 at most.
fn number<const SIZE: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let found = bytes.get(at..)?.get(..SIZE)?;
    let value = found.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

/// Returns a program with one program header of type `kind`, followed by the path of a loader.
#[cfg(test)]
pub fn program(kind: u8, loader: &str) -> Vec<u8> {
    let mut bytes = vec![0; 0x40 + 0x38];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (bytes[0x20], bytes[0x36], bytes[0x38]) = (0x40, 0x38, 1);
    (bytes[0x40], bytes[0x48], bytes[0x60]) = (kind, 0x78, loader.len() as u8 + 1);
    bytes.extend_from_slice(loader.as_bytes());
    bytes.extend_from_slice(b"\0\0");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_read_from_its_program_header() {
        assert_eq!(interpreter(&program(3, "/ld")), Ok(Some("/ld".to_owned())));
        assert_eq!(interpreter(&program(1, "/ld")), Ok(None));
        for length in 0..program(3, "/ld").len() - 1 {
            assert!(interpreter(&program(3, "/ld")[..length]).is_err(), "{length}");
        }
        let mut huge = program(3, "/ld");
        huge[0x48..0x50].fill(0xff);
        assert!(interpreter(&huge).is_err());
    }

    #[test]
    fn the_libraries_are_read_from_the_dynamic_section() {
        if cfg!(target_env = "gnu") {
            let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
            let libraries = needed(&own).unwrap();
            assert!(libraries.iter().any(|name| name == "libc.so.6"), "{libraries:?}");
            assert!(needed(&own[..own.len() / 2]).is_ok() || needed(&own[..64]).is_err());
        }
        assert_eq!(needed(&program(1, "")), Ok(Vec::new()));
        assert!(needed(b"#!/bin/sh").is_err());
    }
}
