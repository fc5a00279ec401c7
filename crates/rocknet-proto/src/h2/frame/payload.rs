//! Padding and priority within the payload of HEADERS and PRIORITY (RFC 9113 §6.2, §6.3).

use super::{FrameHeader, PADDED, PRIORITY, read_u31};
use crate::h2::error::ConnectionError;

/// Stream that another stream depends on (RFC 7540 §5.3.1). Dependencies are obsolete; only the rule against
/// self-dependency is still checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dependency(pub u32);

/// Part of a field block, taken from HEADERS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fragment<'a> {
    pub block: &'a [u8],
    pub dependency: Option<Dependency>,
}

/// Size in bytes of the priority in HEADERS: four bytes for the stream depended on, and one byte for a weight.
const PRIORITY_SIZE: usize = 5;

/// Removes padding and priority from the payload of HEADERS.
#[inline]
pub(crate) fn fragment<'a>(header: &FrameHeader, payload: &'a [u8]) -> Result<Fragment<'a>, ConnectionError> {
    let mut block = payload;
    if header.has(PADDED) {
        let (&padding, rest) = block.split_first().ok_or(ConnectionError::FrameSize)?;
        let end = rest
            .len()
            .checked_sub(usize::from(padding))
            .ok_or(ConnectionError::Padding)?;
        block = &rest[..end];
    }
    let mut dependency = None;
    if header.has(PRIORITY) {
        let (priority, rest) = block
            .split_at_checked(PRIORITY_SIZE)
            .ok_or(ConnectionError::FrameSize)?;
        dependency = Some(Dependency(read_u31(priority)));
        block = rest;
    }
    Ok(Fragment { block, dependency })
}

/// Reads the payload of PRIORITY.
pub(crate) fn dependency(payload: &[u8]) -> Dependency {
    Dependency(read_u31(payload))
}

#[cfg(test)]
mod tests {
    use super::super::FrameType;
    use super::*;

    #[test]
    fn padding_and_priority_are_removed() {
        type PayloadRow<'a> = (u8, &'a [u8], Result<(&'a [u8], Option<u32>), ConnectionError>);
        // Flags, payload of HEADERS, and the expected field block with the number of the stream that it depends on.
        let rows: &[PayloadRow<'_>] = &[
            (0, b"block", Ok((b"block", None))),
            (0, b"", Ok((b"", None))),
            (PADDED, b"\x02block\0\0", Ok((b"block", None))),
            (PADDED, b"\x00", Ok((b"", None))),
            (PADDED, b"\x01", Err(ConnectionError::Padding)),
            (PADDED, b"", Err(ConnectionError::FrameSize)),
            (PRIORITY, b"\x80\0\0\x03\x10block", Ok((b"block", Some(3)))),
            (PRIORITY, b"\0\0\0\x03", Err(ConnectionError::FrameSize)),
            (PADDED | PRIORITY, b"\x01\0\0\0\x05\x10b\0", Ok((b"b", Some(5)))),
            (
                PADDED | PRIORITY,
                b"\x02\0\0\0\x05\x10\0",
                Err(ConnectionError::FrameSize),
            ),
        ];
        for (flags, payload, expected) in rows {
            let header = FrameHeader {
                length: payload.len() as u32,
                kind: FrameType::Headers,
                flags: *flags,
                stream: 1,
            };
            let found = fragment(&header, payload).map(|f| (f.block, f.dependency.map(|d| d.0)));
            assert_eq!(found, *expected, "{payload:?}");
        }
    }
}
