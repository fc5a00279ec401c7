//! Reads the framing of the body and the options of the connection from a head (RFC 9112 §6 and §9).

use crate::bytes::trim;
use crate::decimal;
use crate::fields::{Fields, KnownField};
use crate::refusal::FramingError;
use crate::request::Version;

/// Framing of a request body, or of a response body whose head has framing fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyFraming {
    /// No body; the next head follows.
    None,
    /// A body of this many bytes; never 0.
    Length(u64),
    /// Chunks and then trailers.
    Chunked,
}

/// Returns the framing that Content-Length or Transfer-Encoding declares; `None` if the head has neither field. A
/// Content-Length of 0 is `Some(BodyFraming::None)`.
pub(crate) fn declared_body(fields: Fields<'_>, version: Version) -> Result<Option<BodyFraming>, FramingError> {
    let length = fields.get(KnownField::ContentLength);
    if fields.contains(KnownField::TransferEncoding) {
        if version == Version::Http10 {
            return Err(FramingError::CodingInHttp10);
        }
        if length.is_some() {
            return Err(FramingError::LengthAndCoding);
        }
        return chunked(fields).map(|()| Some(BodyFraming::Chunked));
    }
    let Some(length) = length else { return Ok(None) };
    if fields.is_repeated(KnownField::ContentLength) {
        return Err(FramingError::LengthRepeated);
    }
    match decimal::parse(length) {
        Some(0) => Ok(Some(BodyFraming::None)),
        Some(length) => Ok(Some(BodyFraming::Length(length))),
        None => Err(FramingError::LengthInvalid),
    }
}

/// Checks that `chunked` is the only transfer coding.
fn chunked(fields: Fields<'_>) -> Result<(), FramingError> {
    // True if a coding other than `chunked` occurs.
    let mut has_other = false;
    // True if the last coding so far is `chunked`, after which no other coding may follow.
    let mut is_chunked_last = false;
    for line in fields.get_all(KnownField::TransferEncoding) {
        for coding in line.split(|&byte| byte == b',').map(trim) {
            if is_chunked_last || coding.is_empty() {
                return Err(FramingError::CodingInvalid);
            }
            is_chunked_last = coding.eq_ignore_ascii_case(b"chunked");
            has_other |= !is_chunked_last;
        }
    }
    match (is_chunked_last, has_other) {
        (true, false) => Ok(()),
        // Other codings before `chunked` are valid, but they are not supported.
        (true, true) => Err(FramingError::CodingUnknown),
        (false, _) => Err(FramingError::CodingInvalid),
    }
}

/// Options of the Connection field that this crate handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConnectionOptions {
    pub close: bool,
    pub keep_alive: bool,
    pub upgrade: bool,
}

impl ConnectionOptions {
    pub(crate) fn read(fields: Fields<'_>) -> Self {
        let mut options = Self::default();
        for option in connection_options(fields) {
            // The length selects the name to compare with, so that `keep-alive`, the only option of most clients, costs
            // one comparison.
            match option.len() {
                10 if option.eq_ignore_ascii_case(b"keep-alive") => options.keep_alive = true,
                5 if option.eq_ignore_ascii_case(b"close") => options.close = true,
                7 if option.eq_ignore_ascii_case(b"upgrade") => options.upgrade = true,
                _ => {}
            }
        }
        options
    }

    /// Returns true if the connection persists after this message (RFC 9112 §9.3); `close` overrides `keep-alive`.
    pub(crate) fn persists(self, version: Version) -> bool {
        !self.close && (version != Version::Http10 || self.keep_alive)
    }
}

/// Returns the members of all Connection lines: options, and the names of fields that a proxy must not forward.
pub fn connection_options<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    fields
        .get_all(KnownField::Connection)
        .flat_map(|line| line.split(|&byte| byte == b','))
        .map(trim)
        .filter(|option| !option.is_empty())
}
