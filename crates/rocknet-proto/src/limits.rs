//! Limits on the size of received heads, bodies, trailers and chunk extensions.

/// Default of [`Limits::head_size`] in bytes. Node.js has the same default, and nginx accepts four buffers of 8 KiB.
/// Browsers with full cookie jars stay below 12 KiB.
pub const HEAD_SIZE: usize = 16 * 1024;

/// Default of [`Limits::fields`]: browsers send 15–30 field lines and chains of proxies add ten. Apache allows 100,
/// too.
pub const FIELDS: usize = 100;

/// Default of [`Limits::target_size`] in bytes: RFC 9112 §3 recommends at least 8000 for the whole request line.
pub const TARGET_SIZE: usize = 8 * 1024;

/// Default of [`Limits::trailer_size`] in bytes: checksums and timings need a few hundred bytes.
pub const TRAILER_SIZE: usize = 4 * 1024;

/// Default of [`Limits::chunk_extension`] in bytes. No server uses chunk extensions, and parsing a megabyte of them
/// around one-byte chunks wastes CPU time (CVE-2023-39326).
pub const CHUNK_EXTENSION: usize = 4 * 1024;

/// Default of [`Limits::body_size`] in bytes: 100 MiB. The default of nginx, 1 MiB, is too small for many photos.
pub const BODY_SIZE: u64 = 100 * 1024 * 1024;

/// Ceiling of `head_size` and `trailer_size` in bytes, because a field index keeps the length of a name in 24 bits.
pub const HEAD_SIZE_CEILING: usize = (1 << 24) - 1;

/// Ceiling of `fields`, because indices of field lines are kept in 16 bits.
pub const FIELDS_CEILING: usize = u16::MAX as usize;

/// Limits of one connection. A request that exceeds a limit is refused with the status at the end of the limit's
/// description. In HTTP/2 and HTTP/3, a stream is reset instead if its trailers exceed a limit, or if its body exceeds
/// a limit after the response has started. On connections to upstreams, a response that exceeds a limit is an error;
/// `target_size` and `body_size` have no effect on responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a head in bytes, including empty lines before it. In HTTP/2 and HTTP/3, the bytes of the decoded
    /// names and values count. Status 431, or 414 if the request line is incomplete.
    pub head_size: usize,
    /// Maximum number of field lines of a head or of a trailer section. Status 431.
    pub fields: usize,
    /// Maximum size of a request target in bytes. Status 414.
    pub target_size: usize,
    /// Maximum size of a trailer section with its empty line, in bytes; counted like a head in HTTP/2 and HTTP/3.
    /// Status 431.
    pub trailer_size: usize,
    /// Maximum size of all chunk extensions of a message together, in bytes. Status 413.
    pub chunk_extension: usize,
    /// Maximum size of a request body in bytes, unless the site sets a limit of its own. Status 413.
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
    /// Returns `head_size`, or [`HEAD_SIZE_CEILING`] if that is less.
    #[inline]
    pub(crate) fn max_head_size(&self) -> usize {
        self.head_size.min(HEAD_SIZE_CEILING)
    }

    /// Returns the part of the unread bytes that a head may occupy.
    #[inline]
    pub(crate) fn head_window<'a>(&self, unread: &'a [u8]) -> &'a [u8] {
        &unread[..unread.len().min(self.max_head_size())]
    }

    /// Returns `trailer_size`, or [`HEAD_SIZE_CEILING`] if that is less.
    #[inline]
    pub(crate) fn max_trailer_size(&self) -> usize {
        self.trailer_size.min(HEAD_SIZE_CEILING)
    }

    /// Returns the unread bytes up to the limit of a trailer section that begins at `at`.
    #[inline]
    pub(crate) fn trailer_window<'a>(&self, unread: &'a [u8], at: usize) -> &'a [u8] {
        &unread[..unread.len().min(at.saturating_add(self.max_trailer_size()))]
    }
}
