//! Frames: the header of nine bytes, and the stream and size that each type allows (RFC 9113 §4, §6).

mod payload;
mod write;

pub(crate) use payload::{Dependency, dependency, fragment};
pub(crate) use write::*;

use super::error::ConnectionError;

/// Size of a frame header in bytes (RFC 9113 §4.1).
pub const HEADER_SIZE: usize = 9;

/// Payload size in bytes that every peer accepts; also the smallest SETTINGS_MAX_FRAME_SIZE (RFC 9113 §4.2).
pub(crate) const FRAME_SIZE_MIN: u32 = 1 << 14;
/// Maximum payload of a received frame, in bytes. The server announces no SETTINGS_MAX_FRAME_SIZE, so the smallest
/// value applies.
pub(crate) const RECEIVED_FRAME_MAX: u32 = FRAME_SIZE_MIN;

/// Largest SETTINGS_MAX_FRAME_SIZE, in bytes (RFC 9113 §4.2).
pub(crate) const FRAME_SIZE_MAX: u32 = (1 << 24) - 1;

// Flags (RFC 9113 §6). Two flags share a bit: DATA and HEADERS have END_STREAM, and SETTINGS and PING have ACK.
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const PRIORITY: u8 = 0x20;

/// Streams on which a frame type is allowed.
#[derive(Clone, Copy)]
enum FrameScope {
    /// Any stream except 0.
    Stream,
    /// Stream 0, which stands for the connection.
    Connection,
    /// Stream 0 or any other stream.
    Either,
}

/// Payload sizes that a frame type allows, in bytes.
#[derive(Clone, Copy)]
enum PayloadSize {
    Any,
    Exactly(u32),
    AtLeast(u32),
    MultipleOf(u32),
}

/// One row per type: name, number, scope and payload size.
macro_rules! frame_types {
    ($($(#[$doc:meta])* $name:ident $number:literal $scope:ident $size:expr;)*) => {
        /// Type of a frame (RFC 9113 §6).
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(crate) enum FrameType {
            $($(#[$doc])* $name),*,
            /// Any other type; the frame is ignored (RFC 9113 §5.5).
            Unknown,
        }

        impl FrameType {
            #[inline]
            fn from_wire(number: u8) -> Self {
                match number {
                    $($number => Self::$name,)*
                    _ => Self::Unknown,
                }
            }

            /// Returns the number on the wire; 255 for `Unknown`, which stands for many numbers.
            pub(crate) const fn number(self) -> u8 {
                match self {
                    $(Self::$name => $number,)*
                    Self::Unknown => u8::MAX,
                }
            }

            /// Returns the streams and payload sizes that the type allows.
            #[inline]
            const fn rule(self) -> (FrameScope, PayloadSize) {
                use PayloadSize::*;
                match self {
                    $(Self::$name => (FrameScope::$scope, $size),)*
                    Self::Unknown => (FrameScope::Either, Any),
                }
            }
        }
    };
}

frame_types! {
    Data 0 Stream Any;
    Headers 1 Stream Any;
    /// A wrong size ends the connection, which RFC 9113 §5.4.1 permits; §6.3 requires only a stream error.
    Priority 2 Stream Exactly(5);
    RstStream 3 Stream Exactly(4);
    Settings 4 Connection MultipleOf(6);
    PushPromise 5 Stream Any;
    Ping 6 Connection Exactly(8);
    GoAway 7 Connection AtLeast(8);
    WindowUpdate 8 Either Exactly(4);
    Continuation 9 Stream Any;
    /// RFC 9218 §7.1.
    PriorityUpdate 16 Connection AtLeast(4);
}

/// Header of a frame (RFC 9113 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    /// Length of the payload in bytes.
    pub length: u32,
    pub kind: FrameType,
    pub flags: u8,
    /// Number of the stream; 0 for the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Parses the first nine bytes. Returns `None` if fewer have arrived.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> Option<FrameHeader> {
        let &[a, b, c, kind, flags, s, t, u, v] = bytes.first_chunk::<HEADER_SIZE>()?;
        Some(FrameHeader {
            length: u32::from_be_bytes([0, a, b, c]),
            kind: FrameType::from_wire(kind),
            flags,
            // The highest bit is reserved and must be ignored (RFC 9113 §4.1).
            stream: u32::from_be_bytes([s & 0x7f, t, u, v]),
        })
    }

    /// Returns true if a flag is set.
    #[inline]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Checks the payload size and the stream against the frame type. The payload may have at most `size_max` bytes.
    #[inline]
    pub(crate) fn check(&self, size_max: u32) -> Result<(), ConnectionError> {
        if self.length > size_max {
            return Err(ConnectionError::FrameTooLarge);
        }
        let (scope, size) = self.kind.rule();
        let in_scope = match scope {
            FrameScope::Stream => self.stream != 0,
            FrameScope::Connection => self.stream == 0,
            FrameScope::Either => true,
        };
        if !in_scope {
            return Err(ConnectionError::WrongStream);
        }
        let fits = match size {
            PayloadSize::Any => true,
            PayloadSize::Exactly(size) => self.length == size,
            PayloadSize::AtLeast(size) => self.length >= size,
            PayloadSize::MultipleOf(size) => {
                // Only SETTINGS has this rule, and its acknowledgement must be empty (RFC 9113 §6.5).
                self.length.is_multiple_of(size) && (self.flags & ACK == 0 || self.length == 0)
            }
        };
        if fits { Ok(()) } else { Err(ConnectionError::FrameSize) }
    }
}

/// Reads a 31-bit number and ignores the reserved bit before it. Returns 0 if the payload is too short.
pub(crate) fn read_u31(payload: &[u8]) -> u32 {
    payload
        .first_chunk::<4>()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes) & 0x7fff_ffff)
}

/// Reads a 32-bit number. Returns 0 if the payload is too short.
pub(crate) fn read_u32(payload: &[u8]) -> u32 {
    payload.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_a_scope_and_a_size() {
        use ConnectionError::{FrameSize, FrameTooLarge, WrongStream};
        // Length of the payload, number of the type, stream, flags, and the expected result.
        let rows = [
            (0, 0, 1, 0, Ok(())),
            (16384, 0, 1, 0, Ok(())),
            (16385, 0, 1, 0, Err(FrameTooLarge)),
            (0, 0, 0, 0, Err(WrongStream)),
            (5, 1, 0, 0, Err(WrongStream)),
            (5, 2, 3, 0, Ok(())),
            (4, 2, 3, 0, Err(FrameSize)),
            (5, 2, 0, 0, Err(WrongStream)),
            (4, 3, 1, 0, Ok(())),
            (5, 3, 1, 0, Err(FrameSize)),
            (4, 3, 0, 0, Err(WrongStream)),
            (12, 4, 0, 0, Ok(())),
            (0, 4, 0, ACK, Ok(())),
            (6, 4, 0, ACK, Err(FrameSize)),
            (5, 4, 0, 0, Err(FrameSize)),
            (0, 4, 1, 0, Err(WrongStream)),
            (8, 6, 0, 0, Ok(())),
            (9, 6, 0, 0, Err(FrameSize)),
            (8, 6, 1, 0, Err(WrongStream)),
            (8, 7, 0, 0, Ok(())),
            (7, 7, 0, 0, Err(FrameSize)),
            (8, 7, 1, 0, Err(WrongStream)),
            (4, 8, 0, 0, Ok(())),
            (4, 8, 9, 0, Ok(())),
            (3, 8, 9, 0, Err(FrameSize)),
            (5, 9, 0, 0, Err(WrongStream)),
            (4, 16, 0, 0, Ok(())),
            (3, 16, 0, 0, Err(FrameSize)),
            (100, 200, 7, 0xff, Ok(())),
        ];
        for (length, number, stream, flags, expected) in rows {
            let mut bytes = Vec::new();
            frame_header(length, FrameType::from_wire(number), flags, stream, &mut bytes);
            // `FrameType::Unknown` has the number 255.
            bytes[3] = number;
            let header = FrameHeader::parse(&bytes).expect("nine bytes");
            assert_eq!(
                (header.length as usize, header.flags, header.stream),
                (length, flags, stream)
            );
            assert_eq!(header.check(FRAME_SIZE_MIN), expected, "{header:?}");
        }
        assert_eq!(FrameHeader::parse(&[0; 8]), None);
        let reserved = FrameHeader::parse(&[0, 0, 0, 0, 0, 0x80, 0, 0, 1]).map(|header| header.stream);
        assert_eq!(reserved, Some(1));
    }

    #[test]
    fn types_match_their_numbers() {
        for number in 0..=u8::MAX {
            let kind = FrameType::from_wire(number);
            assert!(kind == FrameType::Unknown || kind.number() == number);
        }
    }
}
