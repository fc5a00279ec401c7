//! Validation of a complete head: required and forbidden fields, and the fields that describe the message (RFC 9113
//! §8.2, §8.3).

use super::{DecodedHead, HeadInfo, HeadParts, HeadSink, RequestHeadError};
use crate::bytes::{TARGET, all, find_target_end, is_token};
use crate::decimal;
use crate::fields::{ByteSpan, KnownField, KnownFieldSet};
use crate::h1::Refusal;
use crate::h1::authority;
use crate::h1::body_reader::FORBIDDEN_TRAILERS;
use crate::hpack::Pseudo;
use crate::limits::Limits;
use crate::method::Method;
use crate::multiplexed::malformed::Malformed;
use crate::multiplexed::priority::Priority;
use crate::request::{RequestIndex, TargetForm, Version};

/// Fields that [`read_special_fields`] handles. A request without these fields skips that call.
const SPECIAL_FIELDS: KnownFieldSet = CONNECTION_FIELDS.union(KnownFieldSet::of(&[
    KnownField::ContentLength,
    KnownField::Expect,
    KnownField::Host,
    KnownField::Priority,
    KnownField::Te,
]));

/// Connection-specific fields of HTTP/1, which must not be forwarded (RFC 9113 §8.2.2).
const CONNECTION_FIELDS: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Connection,
    KnownField::KeepAlive,
    KnownField::ProxyConnection,
    KnownField::TransferEncoding,
    KnownField::Upgrade,
]);

impl HeadSink<'_> {
    /// Validates a request head and completes its index.
    #[inline]
    pub(crate) fn finish_request(self, version: Version) -> Result<HeadInfo, RequestHeadError> {
        let DecodedHead {
            bytes,
            index,
            cookie,
            parts,
        } = self.head;
        if let Some(malformed) = parts.malformed {
            return Err(malformed.into());
        }
        index.version = version;
        if let Some(refusal) = parts.refusal {
            // Clears the spans of the previous request, because `RequestIndex::clear` keeps these two spans.
            (index.method_name, index.target) = (ByteSpan::default(), ByteSpan::default());
            return Err(refusal.into());
        }
        if parts.has_cookie {
            let start = bytes.len();
            bytes.extend_from_slice(b"cookie");
            let value = bytes.len();
            bytes.extend_from_slice(cookie);
            let (name, value) = (ByteSpan::new(start, value), ByteSpan::new(value, bytes.len()));
            index.fields.push(name, Some(KnownField::Cookie), value);
        }
        index.head_size = bytes.len() as u32;
        if !parts.has(Pseudo::Method) {
            return Err(Malformed::PseudoMissing.into());
        }
        index.method_name = parts.pseudo[Pseudo::Method as usize];
        let method = index.method_name.of(bytes);
        // `RequestIndex::clear` has set the method to GET.
        if method != b"GET" {
            if !is_token(method) {
                return Err(Malformed::Method.into());
            }
            index.method = Method::from_bytes(method);
        }
        index.authority = parts.pseudo[Pseudo::Authority as usize];
        // Extended CONNECT requests a protocol in `:protocol`, as HTTP/1 does in Upgrade.
        index.upgrade = parts
            .has(Pseudo::Protocol)
            .then(|| parts.pseudo[Pseudo::Protocol as usize]);
        if index.method == Method::Connect && !parts.has(Pseudo::Protocol) {
            read_connect(bytes, index, parts)?;
        } else {
            read_target(bytes, index, parts, self.limits)?;
        }
        let mut info = HeadInfo::default();
        if index.fields.contains_any(SPECIAL_FIELDS) {
            info = read_special_fields(bytes, index, parts)?;
        }
        let host = index.authority.of(bytes);
        if host.is_empty() {
            return Err(Refusal::HostMissing.into());
        }
        if !authority::is_valid(host) {
            return Err(Refusal::HostInvalid.into());
        }
        Ok(info)
    }

    /// Validates trailers. They remain in the index.
    pub(crate) fn finish_trailers(self) -> Result<(), Malformed> {
        let parts = &self.head.parts;
        if let Some(malformed) = parts.malformed {
            return Err(malformed);
        }
        if parts.refusal.is_some() {
            return Err(Malformed::TrailersTooLarge);
        }
        let trailers = &self.head.index.trailers;
        if trailers.contains_any(FORBIDDEN_TRAILERS) || trailers.contains_any(CONNECTION_FIELDS) {
            return Err(Malformed::ForbiddenTrailer);
        }
        Ok(())
    }
}

/// Reads the target of CONNECT: an authority with a port, without `:scheme` and `:path` (RFC 9113 §8.5).
#[cold]
fn read_connect(bytes: &[u8], index: &mut RequestIndex, parts: &HeadParts) -> Result<(), RequestHeadError> {
    if parts.has(Pseudo::Scheme) || parts.has(Pseudo::Path) || !parts.has(Pseudo::Authority) {
        return Err(Malformed::Connect.into());
    }
    index.form = TargetForm::Authority;
    index.target = index.authority;
    let target = index.target.of(bytes);
    // A colon before `]` is a part of an IPv6 address.
    let has_port = target.last().is_some_and(u8::is_ascii_digit)
        && target
            .iter()
            .rposition(|&byte| byte == b':' || byte == b']')
            .is_some_and(|at| target[at] == b':');
    if has_port && authority::is_valid(target) {
        Ok(())
    } else {
        Err(Refusal::TargetForm.into())
    }
}

/// Reads `:scheme` and `:path`, and splits the path from the query (RFC 9113 §8.3.1).
#[inline]
fn read_target(
    bytes: &[u8],
    index: &mut RequestIndex,
    parts: &HeadParts,
    limits: &Limits,
) -> Result<(), RequestHeadError> {
    if !parts.has(Pseudo::Scheme) || !parts.has(Pseudo::Path) {
        return Err(Malformed::PseudoMissing.into());
    }
    if parts.has(Pseudo::Protocol) && index.method != Method::Connect {
        return Err(Malformed::Protocol.into());
    }
    let scheme = parts.pseudo[Pseudo::Scheme as usize].of(bytes);
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return Err(Refusal::TargetScheme.into());
    }
    let span = parts.pseudo[Pseudo::Path as usize];
    let target = span.of(bytes);
    if target.len() > limits.target_size {
        return Err(Refusal::TargetTooLong.into());
    }
    index.target = span;
    if target.first() != Some(&b'/') {
        return match target {
            b"" => Err(Malformed::PathEmpty.into()),
            b"*" if index.method == Method::Options => {
                (index.form, index.path) = (TargetForm::Asterisk, span);
                Ok(())
            }
            _ => Err(Refusal::TargetForm.into()),
        };
    }
    let mut stop = find_target_end(target, 0);
    // The search stops at every `?`. Only the first begins the query.
    let mut query_mark = None;
    while let Some(b'?') = target.get(stop) {
        query_mark.get_or_insert(stop);
        stop = find_target_end(target, stop + 1);
    }
    if stop != target.len() {
        // A forbidden byte takes precedence over a fragment before it, as in HTTP/1.
        let fragment = target[stop] == b'#' && all(&target[stop..], TARGET);
        let refusal = if fragment {
            Refusal::TargetFragment
        } else {
            Refusal::TargetByte
        };
        return Err(refusal.into());
    }
    let start = span.start as usize;
    index.path = ByteSpan::new(start, query_mark.map_or(span.end as usize, |mark| start + mark));
    index.query = query_mark.map(|mark| ByteSpan::new(start + mark + 1, span.end as usize));
    Ok(())
}

/// Rejects connection-specific fields, checks TE, and reads Content-Length, Expect and Priority. Host must equal
/// `:authority`; without `:authority`, Host is the authority.
fn read_special_fields(
    bytes: &[u8],
    index: &mut RequestIndex,
    parts: &HeadParts,
) -> Result<HeadInfo, RequestHeadError> {
    let fields = index.fields.view(bytes);
    if fields.contains_any(CONNECTION_FIELDS) {
        return Err(Malformed::ConnectionField.into());
    }
    if !fields
        .get_all(KnownField::Te)
        .all(|te| te.eq_ignore_ascii_case(b"trailers"))
    {
        return Err(Malformed::Te.into());
    }
    let mut info = HeadInfo::default();
    if let Some(length) = fields.get(KnownField::ContentLength) {
        let length = decimal::parse(length).filter(|_| !fields.is_repeated(KnownField::ContentLength));
        info.content_length = Some(length.ok_or(Malformed::ContentLength)?);
    }
    for expectation in fields.get_all(KnownField::Expect) {
        if !expectation.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal::Expectation.into());
        }
        info.expects_continue = true;
    }
    info.priority = fields.get(KnownField::Priority).map(Priority::parse);
    if let Some(host) = index.fields.value_span(KnownField::Host) {
        if index.fields.is_repeated(KnownField::Host) {
            return Err(Refusal::HostRepeated.into());
        }
        if !parts.has(Pseudo::Authority) {
            index.authority = host;
        } else {
            let scheme = parts.pseudo[Pseudo::Scheme as usize].of(bytes);
            // CONNECT without a scheme always has a port in `:authority`, so the default only completes a Host without
            // a port.
            let port: &[u8] = if scheme.eq_ignore_ascii_case(b"https") {
                b"443"
            } else {
                b"80"
            };
            // A client that names two hosts may try to bypass the access rules of one of the sites (RFC 9113 §8.3.1).
            if !authority::same(index.authority.of(bytes), host.of(bytes), port) {
                return Err(Refusal::HostMismatch.into());
            }
        }
    }
    Ok(info)
}
