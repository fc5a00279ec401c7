//! Variable-length integers of QUIC (RFC 9000 §16), and frame headers of HTTP/3 (RFC 9114 §7.1).

/// Type of a DATA frame.
pub const DATA: u64 = 0;
/// Type of a HEADERS frame.
pub const HEADERS: u64 = 1;
/// First bytes of a control stream: its type (RFC 9114 §6.2.1) and an empty SETTINGS frame (§7.2.4).
pub const CONTROL_STREAM: &[u8] = &[0, 4, 0];

/// Reads an integer at the start of `bytes`. Returns it with its length in bytes, or `None` if bytes are missing.
pub fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1..length)?;
    let start = u64::from(first & 0x3f);
    Some((
        rest.iter().fold(start, |value, &byte| value << 8 | u64::from(byte)),
        length,
    ))
}

/// Appends a frame with `payload`.
pub fn write_frame(kind: u64, payload: &[u8], out: &mut Vec<u8>) {
    write(kind, out);
    write(payload.len() as u64, out);
    out.extend_from_slice(payload);
}

/// Appends `value` in its shortest form.
fn write(value: u64, out: &mut Vec<u8>) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(0x4000 | value as u16).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(0x8000_0000 | value as u32).to_be_bytes()),
        _ => out.extend_from_slice(&(0xc000_0000_0000_0000 | value).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_they_are_written() {
        for (value, bytes) in [
            (0, &[0][..]),
            (37, &[0x25]),
            (63, &[0x3f]),
            (64, &[0x40, 0x40]),
            (15_293, &[0x7b, 0xbd]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (
                151_288_809_941_952_652,
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
            ),
        ] {
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(read(bytes), Some((value, bytes.len())));
            assert_eq!(read(&bytes[..bytes.len() - 1]), None, "{value} without its last byte");
        }
    }
}
