//! A request head of any HTTP version: an index of byte positions, and a view that combines the index with the bytes.

use crate::fields::{ByteSpan, Field, FieldIndex, Fields, KnownField};
use crate::method::Method;

/// Protocol version of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2
    Http2,
    /// HTTP/3
    Http3,
}

impl Version {
    /// Returns the version in the notation of access logs and CGI variables, such as `HTTP/1.1` or `HTTP/3.0`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
            Self::Http3 => "HTTP/3.0",
        }
    }
}

/// Form of the request target (RFC 9112 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TargetForm {
    /// `/path?query`
    #[default]
    Origin,
    /// `http://authority/path?query`, as sent to a proxy
    Absolute,
    /// `host:port`, only with CONNECT
    Authority,
    /// `*`, only with OPTIONS
    Asterisk,
}

/// Positions of the parts of one request in its bytes; reused for the next request.
///
/// The positions refer to the received bytes in HTTP/1, and to the buffer of decoded fields in HTTP/2 and HTTP/3.
#[derive(Clone, Debug, Default)]
pub struct RequestIndex {
    /// Method.
    pub method: Method,
    /// Form of the target.
    pub form: TargetForm,
    /// Version.
    pub version: Version,
    /// Method as received.
    pub method_name: ByteSpan,
    /// Request target as received.
    pub target: ByteSpan,
    /// Path of the target. The span is empty for an absolute form without a path, and [`Request::path`] is then `/`.
    pub path: ByteSpan,
    /// Query of the target, without `?`.
    pub query: Option<ByteSpan>,
    /// `host[:port]` of the target, of Host or of `:authority`; see [`Request::authority`].
    pub authority: ByteSpan,
    /// Protocols that the client offers to switch to; see [`Request::upgrade`].
    pub upgrade: Option<ByteSpan>,
    /// Size of the request head in bytes, from the start of the buffer.
    pub head_size: u32,
    /// Header fields.
    pub fields: FieldIndex,
    /// Trailer fields. Their positions refer to the buffer that was passed to the parser when it reported the end of
    /// the body.
    pub trailers: FieldIndex,
}

impl RequestIndex {
    /// Clears the index and keeps its allocations. The parts that the parsers set for every request keep their values.
    #[inline]
    pub fn clear(&mut self) {
        self.fields.clear();
        self.trailers.clear();
        self.method = Method::Get;
        self.form = TargetForm::Origin;
        self.query = None;
        self.authority = ByteSpan::default();
        self.upgrade = None;
        self.path = ByteSpan::default();
    }

    /// Returns a view of the request; `bytes` must be the buffer that the index was filled from.
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

/// A request head. All parts are raw: nothing is percent-decoded.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Method.
    pub method: Method,
    /// Method as received.
    pub method_name: &'a [u8],
    /// Request target as received.
    pub target: &'a [u8],
    /// Form of the target.
    pub form: TargetForm,
    /// Path, percent-encoded as sent: `/` if a target in absolute form has no path, `*` in asterisk form, and empty in
    /// authority form.
    pub path: &'a [u8],
    /// Query: the bytes after the first `?`; `None` without a `?`, and empty if no byte follows it.
    pub query: Option<&'a [u8]>,
    /// `host[:port]` as sent: from `:authority` in HTTP/2 and HTTP/3, or from the target in absolute or authority form,
    /// else from Host. Empty if the request names no host, as HTTP/1.0 permits.
    pub authority: &'a [u8],
    /// Version.
    pub version: Version,
    /// Protocols that the client offers to switch to: the first `Upgrade` line in HTTP/1.1, which is a list, or
    /// `:protocol` of an extended CONNECT (RFC 8441, RFC 9220). `Upgrade` is ignored, so that the value is `None`, in
    /// HTTP/1.0, in a request with a body, and if Connection does not have the option `upgrade`.
    pub upgrade: Option<&'a [u8]>,
    /// Header fields.
    pub fields: Fields<'a>,
}

impl<'a> Request<'a> {
    /// Returns the request with the path and query of a rewritten target; see [`OwnedRequest::with_lookup_target`].
    pub fn with_lookup_target(&self, target: &'a [u8]) -> Request<'a> {
        let (path, query) = split_target(target);
        Request { path, query, ..*self }
    }
}

/// A request head copied from the shared read buffer, for handlers that run after the buffer is reused.
#[derive(Clone, Debug, Default)]
pub struct OwnedRequest {
    bytes: Box<[u8]>,
    index: RequestIndex,
}

impl OwnedRequest {
    /// Copies the head and its index, but no bytes after the head.
    pub fn copy(bytes: &[u8], index: &RequestIndex) -> Self {
        let head = bytes.get(..index.head_size as usize).unwrap_or(bytes);
        Self {
            bytes: head.into(),
            index: index.clone(),
        }
    }

    /// Creates a GET request that no client sent, such as the request of a server push, or the request that the command
    /// `rocknet explain` evaluates. `target` is in origin form.
    pub fn synthetic_get(version: Version, authority: &[u8], target: &[u8], fields: &[(KnownField, &[u8])]) -> Self {
        let mut bytes = Vec::new();
        let mut put = |part: &[u8]| {
            let start = bytes.len();
            bytes.extend_from_slice(part);
            ByteSpan::new(start, bytes.len())
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
        index.path = ByteSpan::new(start, mark.map_or(end, |mark| start + mark));
        index.query = mark.map(|mark| ByteSpan::new(start + mark + 1, end));
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

    /// Returns the request with the path and query of a rewritten `target`, so that files and routes are looked up by
    /// the new path. [`Request::target`] remains the target as received.
    pub fn with_lookup_target(&self, target: &[u8]) -> Self {
        let (path, query) = split_target(target);
        let start = self.bytes.len();
        let mut index = self.index.clone();
        index.path = ByteSpan::new(start, start + path.len());
        index.query = query.map(|query| ByteSpan::new(start + path.len() + 1, start + path.len() + 1 + query.len()));
        Self {
            bytes: [&self.bytes, target].concat().into(),
            index,
        }
    }

    /// Returns the request without the last parameter of its query, such as the signature of a signed URL, if the query
    /// ends with `parameter`. A query with this parameter alone is removed. Header fields that contain the parameter,
    /// such as `Referer`, are not changed.
    pub fn without_last_parameter(&self, parameter: &[u8]) -> Self {
        let mut index = self.index.clone();
        let (target, query) = (self.view().target, self.view().query);
        let ends = |text: &[u8]| {
            let rest = text.strip_suffix(parameter);
            rest.is_some_and(|rest| rest.is_empty() || matches!(rest.last(), Some(b'?' | b'&')))
        };
        // The `?` or `&` before the parameter is removed, too.
        let removed = parameter.len() as u32 + 1;
        if ends(target) && target.len() >= removed as usize {
            index.target.end -= removed;
        }
        if let Some((query, span)) = query.zip(index.query)
            && ends(query)
        {
            index.query = (query.len() > parameter.len()).then(|| ByteSpan {
                end: span.end - removed,
                ..span
            });
        }
        Self {
            bytes: self.bytes.clone(),
            index,
        }
    }

    /// Returns the request without the fields of these names, and with `added` fields at the end.
    pub fn with_replaced_fields(&self, removed: &[&[u8]], added: &[(&[u8], &[u8])]) -> Self {
        let is_removed = |name: &[u8]| removed.iter().any(|removed| removed.eq_ignore_ascii_case(name));
        self.with_edited_fields(is_removed, added.iter().copied())
    }

    /// Returns the request without the fields for whose names `is_removed` returns true, and with `added` fields at the
    /// end.
    pub fn with_edited_fields<'f>(
        &'f self,
        is_removed: impl Fn(&[u8]) -> bool,
        added: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Self {
        let kept = self.view().fields.lines().filter(|field| !is_removed(field.name));
        let fields = kept.chain(added.map(|(name, value)| Field::new(name, value)));
        self.with_all_fields(self.index.clone(), fields)
    }

    /// Creates a GET request for `target`, in origin form, with the version, the authority and the fields of `request`.
    /// The result has no [`upgrade`](Request::upgrade).
    pub fn get_like(request: &Request<'_>, target: &[u8]) -> Self {
        let get = Self::synthetic_get(request.version, request.authority, target, &[]);
        get.with_all_fields(get.index.clone(), request.fields.lines())
    }

    /// Converts the request to HTTP/2, without the fields for whose names `is_omitted` returns true. The result has no
    /// [`upgrade`](Request::upgrade).
    pub fn to_http2(&self, is_omitted: impl Fn(&[u8]) -> bool) -> Self {
        let index = RequestIndex {
            version: Version::Http2,
            upgrade: None,
            ..self.index.clone()
        };
        let fields = self.view().fields.lines().filter(|field| !is_omitted(field.name));
        self.with_all_fields(index, fields)
    }

    /// Returns a copy of the request with the index `index`, in which `fields` replace all fields. The spans of `index`
    /// refer to the bytes of this request.
    fn with_all_fields<'f>(&self, mut index: RequestIndex, fields: impl Iterator<Item = Field<'f>>) -> Self {
        let mut bytes = self.bytes.to_vec();
        index.fields = FieldIndex::default();
        for field in fields {
            let start = bytes.len();
            bytes.extend_from_slice(field.name);
            let value = bytes.len();
            bytes.extend_from_slice(field.value);
            index.fields.push(
                ByteSpan::new(start, value),
                field.known,
                ByteSpan::new(value, bytes.len()),
            );
        }
        index.head_size = bytes.len() as u32;
        Self {
            bytes: bytes.into(),
            index,
        }
    }

    /// Returns the request as a view.
    pub fn view(&self) -> Request<'_> {
        self.index.view(&self.bytes)
    }
}

/// Splits a target in origin form into its path and its query. The query is the bytes after the first `?`.
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
        let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/a?b", &[(KnownField::Accept, b"*/*")]);
        // Target, and the expected path and query.
        for (target, path, query) in [
            ("/c/d?e?f", "/c/d", Some("e?f")),
            ("/c", "/c", None),
            ("/?", "/", Some("")),
        ] {
            let other = request.with_lookup_target(target.as_bytes());
            let (owned, borrowed) = (other.view(), request.view().with_lookup_target(target.as_bytes()));
            for request in [owned, borrowed] {
                assert_eq!((request.target, request.authority), (&b"/a?b"[..], &b"h"[..]));
                assert_eq!(
                    (request.path, request.query),
                    (path.as_bytes(), query.map(str::as_bytes))
                );
                assert_eq!(request.fields.get(KnownField::Accept), Some(&b"*/*"[..]));
            }
        }
    }

    #[test]
    fn the_last_parameter_can_be_removed() {
        let without = |target: &str, lookup: Option<&str>| {
            let mut request = OwnedRequest::synthetic_get(Version::Http11, b"h", target.as_bytes(), &[]);
            if let Some(lookup) = lookup {
                request = request.with_lookup_target(lookup.as_bytes());
            }
            let once = request.without_last_parameter(b"s=1");
            let twice = once.without_last_parameter(b"s=1");
            let parts = |request: &OwnedRequest| {
                let view = request.view();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (text(view.target), text(view.path), view.query.map(text))
            };
            assert_eq!(parts(&once), parts(&twice));
            parts(&once)
        };
        for (target, expected, query) in [
            ("/a?s=1", "/a", None),
            ("/a?b=2&s=1", "/a?b=2", Some("b=2")),
            ("/a?&s=1", "/a?", Some("")),
            ("/a?xs=1", "/a?xs=1", Some("xs=1")),
            ("/a?s=1&b", "/a?s=1&b", Some("s=1&b")),
            ("/as=1", "/as=1", None),
            ("/a", "/a", None),
        ] {
            let (got, path, got_query) = without(target, None);
            assert_eq!((&*got, got_query.as_deref()), (expected, query), "{target}");
            assert!(path.starts_with("/a"));
        }
        // A rewritten request keeps its path.
        let (target, path, query) = without("/a?s=1", Some("/x?c&s=1"));
        assert_eq!((&*target, &*path, query.as_deref()), ("/a", "/x", Some("c")));
    }

    #[test]
    fn a_get_request_for_another_target_keeps_the_fields() {
        let request = OwnedRequest::synthetic_get(Version::Http2, b"h", b"/a?b", &[(KnownField::Cookie, b"c")]);
        let other = OwnedRequest::get_like(&request.view(), b"/verify?rd=1");
        let other = other.with_edited_fields(|name| name == b"x", [(&b"X-A"[..], &b"1"[..])].into_iter());
        let view = other.view();
        assert_eq!((view.method, view.method_name), (Method::Get, &b"GET"[..]));
        assert_eq!((view.target, view.path), (&b"/verify?rd=1"[..], &b"/verify"[..]));
        assert_eq!((view.query, view.upgrade), (Some(&b"rd=1"[..]), None));
        assert_eq!(
            (view.authority, view.fields.get(KnownField::Cookie)),
            (&b"h"[..], Some(&b"c"[..]))
        );
        assert_eq!(view.fields.by_name(b"x-a").collect::<Vec<_>>(), [b"1"]);
    }

    #[test]
    fn a_synthetic_request_has_its_parts() {
        // Target, and the expected path and query.
        for (target, path, query) in [
            ("/a/b", "/a/b", None),
            ("/a?b?c", "/a", Some("b?c")),
            ("/?", "/", Some("")),
        ] {
            let fields = [(KnownField::AcceptEncoding, &b"br"[..])];
            let request = OwnedRequest::synthetic_get(Version::Http2, b"h:1", target.as_bytes(), &fields);
            let request = request.view();
            assert_eq!((request.method, request.method_name), (Method::Get, &b"GET"[..]));
            assert_eq!((request.authority, request.target), (&b"h:1"[..], target.as_bytes()));
            assert_eq!(
                (request.path, request.query),
                (path.as_bytes(), query.map(str::as_bytes))
            );
            assert_eq!(request.fields.get(KnownField::AcceptEncoding), Some(&b"br"[..]));
            assert_eq!((request.fields.len(), request.form), (1, TargetForm::Origin));
        }
    }
}
