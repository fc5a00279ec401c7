//! Reads from a program which loader it needs.

/// Type of the program header that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// Returns the path of the dynamic loader that a 64-bit little-endian program names; `None` if it is static.
///
/// # Errors
///
/// Fails if the bytes are no such program.
pub fn interpreter(program: &[u8]) -> Result<Option<String>, &'static str> {
    const BROKEN: &str = "the program is no complete ELF file of 64 bits";
    // Magic number, 64 bits, little-endian.
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return Err(BROKEN);
    }
    let start = number::<8>(program, 0x20).ok_or(BROKEN)?;
    let size = number::<2>(program, 0x36).ok_or(BROKEN)?;
    let count = number::<2>(program, 0x38).ok_or(BROKEN)?;
    for index in 0..count {
        let header = program.get(start + index * size..).ok_or(BROKEN)?;
        if number::<4>(header, 0).ok_or(BROKEN)? != PT_INTERP as usize {
            continue;
        }
        let at = number::<8>(header, 0x08).ok_or(BROKEN)?;
        let length = number::<8>(header, 0x20).ok_or(BROKEN)?;
        let path = program.get(at..at.saturating_add(length)).ok_or(BROKEN)?;
        let path = String::from_utf8_lossy(path);
        return Ok(Some(path.trim_end_matches('\0').to_owned()));
    }
    Ok(None)
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
}
