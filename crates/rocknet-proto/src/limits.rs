//! The bounds a connection holds its peer to, each met with a refusal of its own.

/// Bytes from the first of a head to the end of its empty line: what nginx and Apache take by default or more (8–32 KiB);
/// browsers with full cookie jars stay below 12 KiB.
pub const HEAD_SIZE: usize = 16 * 1024;

/// Field lines of one head: browsers send 15–30, chains of proxies add ten; Apache allows 100 too.
pub const FIELDS: usize = 100;

/// Bytes of a request target: RFC 9112 §3 asks for 8000 at least for the whole request line.
pub const TARGET_SIZE: usize = 8 * 1024;

/// Bytes of a trailer section: checksums and timings, never more than a few hundred bytes in use.
pub const TRAILER_SIZE: usize = 4 * 1024;

/// Bytes of all chunk extensions of one message together: nobody reads them, and a megabyte of them around one-byte chunks
/// is a way to make a server work for nothing (CVE-2023-39326).
pub const CHUNK_EXTENSION: usize = 4 * 1024;

/// Bytes of content of one request until the site says otherwise.
pub const BODY_SIZE: u64 = 100 * 1024 * 1024;

/// No configuration lifts a head above this: offsets into a head are kept in 24 and 32 bits.
pub const HEAD_SIZE_CEILING: usize = (1 << 24) - 1;

/// No configuration lifts the number of fields above this: positions of fields are kept in 16 bits.
pub const FIELDS_CEILING: usize = u16::MAX as usize;

/// Bounds of one connection; a peer that crosses one is refused with the status in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head, empty lines before it counted: 431, or 414 while the request line is not complete.
    pub head_size: usize,
    /// Field lines of a head or of a trailer section: 431.
    pub fields: usize,
    /// Bytes of a request target: 414.
    pub target_size: usize,
    /// Bytes of a trailer section with its empty line: 431.
    pub trailer_size: usize,
    /// Bytes of all chunk extensions of a message together: 413.
    pub chunk_extension: usize,
    /// Bytes of content of a request whose site set no limit of its own: 413.
    pub body_size: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_size: HEAD_SIZE,
            fields: FIELDS,
            target_size: TARGET_SIZE,
            trailer_size: TRAILER_SIZE,
            chunk_extension: CHUNK_EXTENSION,
            body_size: BODY_SIZE,
        }
    }
}

impl Limits {
    #[inline]
    pub(crate) fn head_ceiling(&self) -> usize {
        self.head_size.min(HEAD_SIZE_CEILING)
    }

    /// The part of the unread bytes that a head may take.
    #[inline]
    pub(crate) fn head_window<'a>(&self, unread: &'a [u8]) -> &'a [u8] {
        &unread[..unread.len().min(self.head_ceiling())]
    }

    #[inline]
    pub(crate) fn trailer_ceiling(&self) -> usize {
        self.trailer_size.min(HEAD_SIZE_CEILING)
    }

    /// The unread bytes up to where a trailer section that begins at `at` must have ended.
    #[inline]
    pub(crate) fn trailer_window<'a>(&self, unread: &'a [u8], at: usize) -> &'a [u8] {
        &unread[..unread.len().min(at.saturating_add(self.trailer_ceiling()))]
    }
}
