//! A request whatever wire it came on: an index of places, and the view that joins it with the bytes.

use crate::fields::{FieldIndex, Fields, Known, Span};
use crate::method::Method;

/// The protocol version a message was written in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Version {
    Http10,
    #[default]
    Http11,
    Http2,
    Http3,
}

impl Version {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
            Self::Http3 => "HTTP/3.0",
        }
    }
}

/// How the request target was written (RFC 9112 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TargetForm {
    /// `/path?query`
    #[default]
    Origin,
    /// `http://authority/path?query`, as to a proxy
    Absolute,
    /// `host:port`, CONNECT alone
    Authority,
    /// `*`, OPTIONS alone
    Asterisk,
}

/// Where the parts of one request stand in its bytes; used again for the next one.
///
/// HTTP/1 points into the bytes as received; HTTP/2 and HTTP/3 point into bytes they decoded into a buffer.
#[derive(Clone, Debug, Default)]
pub struct RequestIndex {
    pub method: Method,
    pub form: TargetForm,
    pub version: Version,
    pub method_name: Span,
    pub target: Span,
    /// Empty in absolute form without a path; `Request::path` is `/` then.
    pub path: Span,
    pub query: Option<Span>,
    pub authority: Span,
    /// Where the protocol stands that the client asks for in a way that may be agreed to.
    pub upgrade: Option<Span>,
    /// Bytes from the start of the buffer that belong to the request head.
    pub head_size: u32,
    pub fields: FieldIndex,
    /// Fields behind chunked content; their places are in the bytes that were given when content ended.
    pub trailers: FieldIndex,
}

impl RequestIndex {
    /// Forgets the request and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.fields.clear();
        self.trailers.clear();
        self.method = Method::Get;
        self.form = TargetForm::Origin;
        self.query = None;
        self.authority = Span::default();
        self.upgrade = None;
        self.path = Span::default();
    }

    /// The request, read from the bytes the index was made for.
    #[inline]
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Request<'a> {
        let path = match self.path.of(bytes) {
            b"" if self.form == TargetForm::Absolute => b"/",
            path => path,
        };
        Request {
            method: self.method,
            method_name: self.method_name.of(bytes),
            target: self.target.of(bytes),
            form: self.form,
            path,
            query: self.query.map(|query| query.of(bytes)),
            authority: self.authority.of(bytes),
            version: self.version,
            upgrade: self.upgrade.map(|upgrade| upgrade.of(bytes)),
            fields: self.fields.view(bytes),
        }
    }
}

/// A request as the server sees it; all parts are raw, nothing is decoded.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: Method,
    pub method_name: &'a [u8],
    pub target: &'a [u8],
    pub form: TargetForm,
    /// Percent-encoded as sent; `/` where absolute form has none, `*` in asterisk form, empty in authority form.
    pub path: &'a [u8],
    /// What follows the first `?`; `Some` and empty when nothing follows it.
    pub query: Option<&'a [u8]>,
    /// `host[:port]` as sent, from the target in absolute form, else from Host; empty in HTTP/1.0 without Host.
    pub authority: &'a [u8],
    pub version: Version,
    /// The protocol that the client wants to go on with, where it has asked in a way that may be agreed to: `Upgrade` in
    /// HTTP/1.1 (the first line of it, a list), `:protocol` of an extended CONNECT above (RFC 8441, RFC 9220).
    pub upgrade: Option<&'a [u8]>,
    pub fields: Fields<'a>,
}

impl<'a> Request<'a> {
    /// As [`OwnedRequest::looked_up_as`].
    pub fn with_lookup_target(&self, target: &'a [u8]) -> Request<'a> {
        let (path, query) = split_target(target);
        Request { path, query, ..*self }
    }
}

/// A request head copied out of the shared read buffer, for handlers that outlive the read.
#[derive(Clone, Debug, Default)]
pub struct OwnedRequest {
    bytes: Box<[u8]>,
    index: RequestIndex,
}

impl OwnedRequest {
    /// Copies the head and its index; content behind the head is not taken.
    pub fn copy(bytes: &[u8], index: &RequestIndex) -> Self {
        let head = bytes.get(..index.head_size as usize).unwrap_or(bytes);
        Self {
            bytes: head.into(),
            index: index.clone(),
        }
    }

    /// A GET that nobody sent, of a target in origin form: what a server asks itself on a client's behalf.
    pub fn synthetic_get(version: Version, authority: &[u8], target: &[u8], fields: &[(Known, &[u8])]) -> Self {
        let mut bytes = Vec::new();
        let mut put = |part: &[u8]| {
            let start = bytes.len();
            bytes.extend_from_slice(part);
            Span::new(start, bytes.len())
        };
        let mut index = RequestIndex {
            version,
            method_name: put(b"GET"),
            authority: put(authority),
            target: put(target),
            ..RequestIndex::default()
        };
        let (start, end) = (index.target.start as usize, index.target.end as usize);
        let mark = target.iter().position(|&byte| byte == b'?');
        index.path = Span::new(start, mark.map_or(end, |mark| start + mark));
        index.query = mark.map(|mark| Span::new(start + mark + 1, end));
        for (name, value) in fields {
            let (written, value) = (put(name.as_str().as_bytes()), put(value));
            index.fields.push(written, Some(*name), value);
        }
        index.head_size = bytes.len() as u32;
        Self {
            bytes: bytes.into(),
            index,
        }
    }

    /// The same request, looked up under another path and query; its target stays as it was sent.
    pub fn with_lookup_target(&self, target: &[u8]) -> Self {
        let (path, query) = split_target(target);
        let start = self.bytes.len();
        let mut index = self.index.clone();
        index.path = Span::new(start, start + path.len());
        index.query = query.map(|query| Span::new(start + path.len() + 1, start + path.len() + 1 + query.len()));
        Self {
            bytes: [&self.bytes, target].concat().into(),
            index,
        }
    }

    /// The same request as HTTP/2 has it, without the fields whose names are left out.
    pub fn to_http2(&self, is_omitted: impl Fn(&[u8]) -> bool) -> Self {
        let mut bytes = self.bytes.to_vec();
        let mut index = RequestIndex {
            version: Version::Http2,
            upgrade: None,
            fields: FieldIndex::default(),
            ..self.index.clone()
        };
        for field in self.view().fields.lines().filter(|field| !is_omitted(field.name)) {
            let start = bytes.len();
            bytes.extend_from_slice(field.name);
            let value = bytes.len();
            bytes.extend_from_slice(field.value);
            index
                .fields
                .push(Span::new(start, value), field.known, Span::new(value, bytes.len()));
        }
        index.head_size = bytes.len() as u32;
        Self {
            bytes: bytes.into(),
            index,
        }
    }

    pub fn view(&self) -> Request<'_> {
        self.index.view(&self.bytes)
    }
}

/// The path of a target in origin form, and what follows the first `?`.
pub fn split_target(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_target_replaces_path_and_query() {
        let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/a?b", &[(Known::Accept, b"*/*")]);
        for (target, path, query) in [
            ("/c/d?e?f", "/c/d", Some("e?f")),
            ("/c", "/c", None),
            ("/?", "/", Some("")),
        ] {
            let other = request.with_lookup_target(target.as_bytes());
            let (kept, view) = (other.view(), request.view().with_lookup_target(target.as_bytes()));
            for request in [kept, view] {
                assert_eq!((request.target, request.authority), (&b"/a?b"[..], &b"h"[..]));
                assert_eq!(
                    (request.path, request.query),
                    (path.as_bytes(), query.map(str::as_bytes))
                );
                assert_eq!(request.fields.get(Known::Accept), Some(&b"*/*"[..]));
            }
        }
    }

    #[test]
    fn a_synthetic_request_has_its_parts() {
        for (target, path, query) in [
            ("/a/b", "/a/b", None),
            ("/a?b?c", "/a", Some("b?c")),
            ("/?", "/", Some("")),
        ] {
            let fields = [(Known::AcceptEncoding, &b"br"[..])];
            let request = OwnedRequest::synthetic_get(Version::Http2, b"h:1", target.as_bytes(), &fields);
            let request = request.view();
            assert_eq!((request.method, request.method_name), (Method::Get, &b"GET"[..]));
            assert_eq!((request.authority, request.target), (&b"h:1"[..], target.as_bytes()));
            assert_eq!(
                (request.path, request.query),
                (path.as_bytes(), query.map(str::as_bytes))
            );
            assert_eq!(request.fields.get(Known::AcceptEncoding), Some(&b"br"[..]));
            assert_eq!((request.fields.len(), request.form), (1, TargetForm::Origin));
        }
    }
}
