//! Targets of redirects and rewrites: paths or URLs in which `{*}` stands for the text that the pattern's `*` matched,
//! and placeholders such as `{host}` for values of the request.

use std::fmt;
use std::ops::Range;

use rocknet_config::captures::{Capture, CaptureNames, TargetPart};
use rocknet_config::template::{Piece as TemplatePiece, Placeholder, Scope, Template, Values};

use crate::captures::{CapturedText, Captures};

/// The request target whose parts are filled into the target of a redirect or rewrite.
#[derive(Clone, Copy)]
pub struct RequestTarget<'a> {
    /// Decoded and normalized path, which patterns match.
    pub path: &'a str,
    /// Path as received, without the query.
    pub raw_path: &'a [u8],
    /// Query as received, without the `?`; `None` if there was no `?`.
    pub query: Option<&'a [u8]>,
    /// Values for all placeholders except `{path}` and `{query}`.
    pub values: &'a dyn Values,
}

/// The request names no valid host, but the target contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoHost;

/// The reason why a redirect or rewrite is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetError {
    /// Another redirect has the same pattern.
    Duplicate,
    /// The target is neither a path beginning with `/` nor an absolute `http` or `https` URL.
    NotPathOrUrl,
    /// The target begins with `//` or `/\`, which lead to another host.
    SchemeRelative,
    /// The host is missing or contains invalid characters.
    BadHost,
    /// `{*}` is part of the host, so clients could choose the host of the redirect.
    StarInHost,
    /// The target contains a capture that the conditions do not provide, such as `{*}` for a pattern without `*`, or
    /// more than nine captures.
    BadCapture,
    /// A placeholder is unknown, or it is one that the host must not contain.
    BadPlaceholder,
    /// The status is not a redirect status.
    BadStatus,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TargetError::Duplicate => "another redirect has this pattern; keep one of them",
            TargetError::NotPathOrUrl => "the target must begin with `/`, `http://` or `https://`",
            TargetError::SchemeRelative => {
                "a target beginning with `//` or `/\\` leads to another host; write `https://` and the host"
            }
            TargetError::BadHost => {
                "the target's host is missing or not well-formed; write it as `https://example.com/…`"
            }
            TargetError::StarInHost => "`{*}` must not be part of the host; put a `/` before it",
            TargetError::BadCapture => {
                "the target contains `{*}` or a number in braces, but the pattern has no such `*` or group"
            }
            TargetError::BadPlaceholder => {
                "the target contains an unknown placeholder, or its host one other than `{host}` and `{authority}`"
            }
            TargetError::BadStatus => "the status must be 301, 302, 303, 307 or 308",
        })
    }
}

/// A parsed target. Parsing splits it into pieces, so that writing it only has to copy the pieces.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pieces: Box<[Piece]>,
    /// True if the target is a path on the same host. Only such a target could begin with `//`.
    is_local: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// Text that is already percent-encoded.
    Literal(Box<[u8]>),
    /// A text that the conditions matched, and the part of the URL into which it is inserted.
    Capture(Capture, UrlPart),
    /// A value of the request, and the part of the URL into which it is inserted.
    Value(Placeholder, UrlPart),
    /// The query of the request. A target with a query has no such piece.
    Query,
    /// The query of the request, after a query of the target.
    MoreQuery,
}

/// The part of a URL. It determines the characters that are percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UrlPart {
    Host,
    Path,
    Query,
    Fragment,
}

impl Target {
    /// Parses a target. `names`: captures that it may contain. `keeps_query`: true if the query of the request follows
    /// a query of the target. Without a query of its own, every target keeps that of the request, unless it ends in
    /// `?`.
    pub(super) fn new(to: &str, names: &CaptureNames, keeps_query: bool) -> Result<Target, TargetError> {
        if names.error(to).is_some() {
            return Err(TargetError::BadCapture);
        }
        let origin = origin_length(to)?;
        let mut pieces = Vec::new();
        push_part(&mut pieces, &to[..origin].to_ascii_lowercase(), UrlPart::Host, names)?;
        let (rest, fragment) = split_at_mark(&to[origin..], '#');
        let (path, query) = split_at_mark(rest, '?');
        push_part(&mut pieces, path, UrlPart::Path, names)?;
        match query {
            // A query that ends in `?` drops the query of the request.
            Some("?") => {}
            Some(query) if query.ends_with('?') => {
                push_part(&mut pieces, &query[..query.len() - 1], UrlPart::Query, names)?;
            }
            Some(query) => {
                push_part(&mut pieces, query, UrlPart::Query, names)?;
                // `{query}` is already the query of the request.
                let has_query = pieces.contains(&Piece::Value(Placeholder::Query, UrlPart::Query));
                pieces.extend((keeps_query && !has_query).then_some(Piece::MoreQuery));
            }
            // `{target}` includes the query of the request.
            None if pieces.contains(&Piece::Value(Placeholder::Target, UrlPart::Path)) => {}
            None => pieces.push(Piece::Query),
        }
        if let Some(fragment) = fragment {
            push_part(&mut pieces, fragment, UrlPart::Fragment, names)?;
        }
        Ok(Target {
            pieces: pieces.into(),
            is_local: origin == 0,
        })
    }

    /// Returns true if the target has values of the request.
    pub(super) fn has_values(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Value(..)))
    }

    /// Appends the target to `location`.
    ///
    /// A captured range of the decoded path keeps the percent-encoding of the request. If the path was normalized
    /// (`//`, `..`), the decoded text is encoded again.
    ///
    /// # Errors
    ///
    /// Fails if the host is to be that of the request, and the request names no valid host.
    pub(super) fn write(
        &self,
        request: &RequestTarget<'_>,
        captures: &Captures<'_>,
        location: &mut Vec<u8>,
    ) -> Result<(), NoHost> {
        let start = location.len();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => location.extend_from_slice(bytes),
                Piece::Capture(capture, part) => push_captured(location, request, captures.text(*capture), *part),
                Piece::Value(placeholder, part) => value::push(location, request, placeholder, *part)?,
                Piece::Query => {
                    if let Some(query) = request.query {
                        location.push(b'?');
                        push_encoded(location, query, is_sent_query, Triplets::Keep);
                    }
                }
                Piece::MoreQuery => {
                    if let Some(query) = request.query.filter(|query| !query.is_empty()) {
                        location.push(b'&');
                        push_encoded(location, query, is_sent_query, Triplets::Keep);
                    }
                }
            }
        }
        if self.is_local {
            let slashes = location[start..].iter().take_while(|&&byte| byte == b'/').count();
            if slashes > 1 {
                location.drain(start + 1..start + slashes);
            }
        }
        Ok(())
    }
}

mod value;

/// Returns the length of scheme, host and port; 0 for a path.
fn origin_length(to: &str) -> Result<usize, TargetError> {
    // The values of both placeholders begin with a slash.
    if to.starts_with("{path}") || to.starts_with("{target}") {
        return Ok(0);
    }
    if let Some(rest) = to.strip_prefix('/') {
        return if rest.starts_with(['/', '\\']) {
            Err(TargetError::SchemeRelative)
        } else {
            Ok(0)
        };
    }
    let lower = to
        .get(..HTTPS.len().min(to.len()))
        .unwrap_or_default()
        .to_ascii_lowercase();
    let scheme = [HTTP, HTTPS]
        .into_iter()
        .find(|scheme| lower.starts_with(scheme))
        .ok_or(TargetError::NotPathOrUrl)?;
    let host = &to[scheme.len()..];
    let mut ends = [host.find(['/', '?', '#']), host.find("{path}"), host.find("{target}")];
    ends.sort_by_key(|end| end.unwrap_or(host.len()));
    let host = &host[..ends[0].unwrap_or(host.len())];
    if host.contains(STAR) {
        return Err(TargetError::StarInHost);
    }
    // A user or password is refused too, because in a redirect they only serve to disguise one host as another.
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let sample = host.replace("{host}", "h").replace("{authority}", "h");
    let end = scheme.len() + host.len();
    let host = sample.as_str();
    if host.is_empty() || host.starts_with(':') || !host.bytes().all(is_host_byte) {
        return Err(TargetError::BadHost);
    }
    Ok(end)
}

/// Splits a text before the first `mark`; the second part begins with the mark.
fn split_at_mark(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.find(mark) {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    }
}

/// Appends the pieces of one part of the URL. A query includes its `?` and a fragment its `#`.
fn push_part(pieces: &mut Vec<Piece>, text: &str, part: UrlPart, names: &CaptureNames) -> Result<(), TargetError> {
    let mark = match part {
        UrlPart::Host | UrlPart::Path => "",
        UrlPart::Query => "?",
        UrlPart::Fragment => "#",
    };
    let keep: fn(u8) -> bool = match part {
        // The host has been checked.
        UrlPart::Host => |_| true,
        UrlPart::Path => is_path,
        UrlPart::Query | UrlPart::Fragment => is_written_query,
    };
    let mut literal = mark.as_bytes().to_vec();
    let mut flush = |literal: &mut Vec<u8>, piece: Option<Piece>| {
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(literal).into()));
        }
        pieces.extend(piece);
    };
    for target_part in names.split(text.strip_prefix(mark).unwrap_or(text)) {
        let text = match target_part {
            TargetPart::Text(text) => text,
            TargetPart::Capture(capture) => {
                flush(&mut literal, Some(Piece::Capture(capture, part)));
                continue;
            }
        };
        let template = Template::parse(text, Scope::Request).map_err(|_| TargetError::BadPlaceholder)?;
        for piece in template.pieces() {
            match piece {
                TemplatePiece::Text(text) => push_encoded(&mut literal, text.as_bytes(), keep, Triplets::Keep),
                TemplatePiece::Value(placeholder) => {
                    flush(&mut literal, Some(Piece::Value(placeholder.clone(), part)));
                }
            }
        }
    }
    flush(&mut literal, None);
    Ok(())
}

/// Appends a captured text, encoded for this part of the URL.
fn push_captured(out: &mut Vec<u8>, request: &RequestTarget<'_>, text: CapturedText<'_>, part: UrlPart) {
    // In a query, `+`, `&` and `=` are syntax, so only unreserved characters are kept unencoded.
    let keep = if part == UrlPart::Query { is_unreserved } else { is_path };
    let range = match text {
        CapturedText::Missing => return,
        CapturedText::Path(range) => range,
        // A text of a query or a field must not change the folder: a text of dots only is left out, and slashes are
        // encoded.
        CapturedText::Encoded(text) | CapturedText::Plain(text) if part == UrlPart::Path && is_dots(&text) => return,
        CapturedText::Encoded(text) if part == UrlPart::Path => {
            return push_encoded(out, &text, is_segment, Triplets::Keep);
        }
        CapturedText::Plain(text) if part == UrlPart::Path => {
            return push_encoded(out, &text, is_segment, Triplets::Encode);
        }
        CapturedText::Encoded(text) => return push_encoded(out, &text, keep, Triplets::Keep),
        CapturedText::Plain(text) => return push_encoded(out, &text, keep, Triplets::Encode),
    };
    let decoded = request.path.as_bytes();
    match raw_range(request.raw_path, decoded, &range) {
        Some(range) => push_encoded(
            out,
            request.raw_path.get(range).unwrap_or_default(),
            keep,
            Triplets::Keep,
        ),
        None => push_decoded(out, request, range, keep),
    }
}

/// Appends a range of the decoded path, percent-encoded. In this path, an encoded slash of the request is a backslash.
/// It becomes `%2F` again, and a backslash of the request becomes `%5C`.
fn push_decoded(out: &mut Vec<u8>, request: &RequestTarget<'_>, range: Range<usize>, keep: fn(u8) -> bool) {
    let path = request.path.as_bytes();
    let count = |text: &[u8]| memchr::memchr_iter(b'\\', text).count();
    let Some((before, text)) = path
        .get(..range.end)
        .and_then(|path| path.split_at_checked(range.start))
    else {
        return;
    };
    if count(text) == 0 {
        return push_encoded(out, text, keep, Triplets::Encode);
    }
    let mut slashes = encoded_slashes(request.raw_path, count(path))
        .into_iter()
        .skip(count(before));
    for (index, part) in text.split(|byte| *byte == b'\\').enumerate() {
        if index > 0 {
            let is_slash = slashes.next() == Some(true);
            out.extend_from_slice(if is_slash { b"%2F" } else { b"%5C" });
        }
        push_encoded(out, part, keep, Triplets::Encode);
    }
}

/// Returns for each backslash of the decoded path whether it is an encoded slash of the raw path. `count`: number of
/// backslashes in the decoded path.
fn encoded_slashes(raw: &[u8], count: usize) -> Vec<bool> {
    let (mut received, mut rest) = (Vec::new(), raw);
    while let Some(first) = rest.first() {
        let (byte, length) = triplet(rest).map_or((*first, 1), |byte| (byte, 3));
        received.extend(match byte {
            b'/' if length == 3 => Some(true),
            b'\\' => Some(false),
            _ => None,
        });
        rest = &rest[length..];
    }
    // A segment before `..` is missing in the decoded path, with its backslashes.
    if received.len() != count {
        let is_slash = received.contains(&true) && !received.contains(&false);
        received = vec![is_slash; count];
    }
    received
}

/// Returns true for a text of dots only, which may be percent-encoded.
fn is_dots(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        rest = match triplet(rest) {
            Some(b'.') => &rest[3..],
            None if *first == b'.' => tail,
            _ => return false,
        };
    }
    true
}

/// Returns true for characters of a path segment: no slash.
fn is_segment(byte: u8) -> bool {
    is_path(byte) && byte != b'/'
}

/// Returns the range of the raw path that corresponds to a range of the decoded path. `None` if the raw path was
/// normalized, so that decoding alone does not yield the decoded path.
fn raw_range(raw: &[u8], decoded: &[u8], range: &Range<usize>) -> Option<Range<usize>> {
    let (mut at, mut start, mut end) = (0, None, None);
    for (index, &expected) in decoded.iter().enumerate() {
        if index == range.start {
            start = Some(at);
        }
        if index == range.end {
            end = Some(at);
        }
        let (byte, length) = match triplet(&raw[at..]) {
            // In the decoded path that patterns match, an encoded slash is a backslash, which separates no segments.
            Some(b'/') if expected == b'\\' => (b'\\', 3),
            Some(byte) => (byte, 3),
            None => (*raw.get(at)?, 1),
        };
        if byte != expected {
            return None;
        }
        at += length;
    }
    (at == raw.len()).then(|| start.unwrap_or(at)..end.unwrap_or(at))
}

/// Treatment of a `%xx` in bytes that are percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Triplets {
    /// The `%xx` is copied: the bytes are partly encoded already.
    Keep,
    /// The `%` is encoded like any other byte: the bytes are decoded text.
    Encode,
}

/// Copies the bytes for which `keep` is true and percent-encodes the others.
pub(super) fn push_encoded(out: &mut Vec<u8>, bytes: &[u8], keep: fn(u8) -> bool, triplets: Triplets) {
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        if triplets == Triplets::Keep && triplet(rest).is_some() {
            out.extend_from_slice(&rest[..3]);
            rest = &rest[3..];
            continue;
        }
        if keep(byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        rest = tail;
    }
}

/// Decodes a `%xx` at the beginning; `None` if there is no `%xx`.
pub(super) fn triplet(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// Returns true for unreserved characters (RFC 3986 §2.3) and the slash.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte)
}

/// Returns true for `pchar` (RFC 3986 §3.3) and the slash. A backslash has to be encoded, because browsers treat it as
/// a slash.
pub(super) fn is_path(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:@".contains(&byte)
}

/// Returns true for characters of a query or fragment (RFC 3986 §3.4, §3.5) in the configuration.
fn is_written_query(byte: u8) -> bool {
    is_path(byte) || byte == b'?'
}

/// Returns true for characters of a request's query that are kept as received. Browsers send many characters unencoded,
/// so only those that could do harm are encoded. These are spaces, control characters, bytes outside ASCII, and
/// characters that could end an attribute in double quotes, a tag or the query. `'` is kept, because RFC 3986 §3.4
/// permits it in queries.
fn is_sent_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"<>#".contains(&byte)
}

const HTTP: &str = "http://";
const HTTPS: &str = "https://";

/// Placeholder for the text that the star matched.
const STAR: &str = "{*}";

const HEX: &[u8; 16] = b"0123456789ABCDEF";
