//! Parses the head of a request: request line, fields, and the rules that combine them (RFC 9112 §3, RFC 9110 §7).

use memchr::memchr;

use super::authority;
use super::framing::{self, BodyFraming, ConnectionOptions};
use super::lines::{ParseError, read_fields};
use crate::bytes::{TARGET, TOKEN, all, find_target_end, is};
use crate::fields::{ByteSpan, KnownField, KnownFieldSet};
use crate::limits::Limits;
use crate::method::Method;
use crate::refusal::Refusal;
use crate::request::{RequestIndex, TargetForm, Version};

/// Maximum number of empty lines before a request line: old clients send one after a POST (RFC 9112 §2.2), and some
/// two.
const MAX_EMPTY_LINES: usize = 2;

/// Maximum length of a method name in bytes: about twice the longest registered name, UPDATEREDIRECTREF, which has 17.
const MAX_METHOD: usize = 32;

/// Properties of a request head that the connection needs in addition to the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestHead {
    /// Position after the empty line that ends the head.
    pub end: usize,
    pub body: BodyFraming,
    /// True if the client keeps the connection open after the response.
    pub persists: bool,
    /// True if the client waits for 100 before it sends the body.
    pub expects_continue: bool,
    /// True if the client offers an upgrade that 101 may accept.
    pub wants_upgrade: bool,
}

/// Parses one head from the front of the window. The window holds the unread bytes up to the size limit of heads.
#[inline]
pub(crate) fn read_head(
    window: &[u8],
    limits: &Limits,
    index: &mut RequestIndex,
) -> Result<RequestHead, ParseError<Refusal>> {
    index.clear();
    let mut at = 0;
    // `empty_lines` skips no bare LF; the request line is then refused.
    if let Some(b'\r' | b'\n') = window.first() {
        at = empty_lines(window)?;
    }
    at = read_request_line(window, at, limits, index)?;
    let end = read_fields(window, at, &mut index.fields, limits.fields).map_err(|error| error.map(Refusal::Field))?;
    index.head_size = end as u32;
    check_host(window, index).map_err(ParseError::Invalid)?;
    let mut head = RequestHead {
        end,
        body: BodyFraming::None,
        persists: index.version != Version::Http10,
        expects_continue: false,
        wants_upgrade: false,
    };
    if index.fields.contains_any(CONNECTION_AND_BODY) {
        read_connection_fields(window, index, &mut head).map_err(ParseError::Invalid)?;
    }
    Ok(head)
}

/// Fields that affect the body or the connection. A request without them has no body, and its connection persists or
/// closes by the default of its version. Upgrade is not in the set, because it takes effect only together with
/// Connection.
const CONNECTION_AND_BODY: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Connection,
    KnownField::ContentLength,
    KnownField::TransferEncoding,
    KnownField::Expect,
]);

/// Returns the number of bytes of the empty lines before the request line.
#[cold]
fn empty_lines(window: &[u8]) -> Result<usize, ParseError<Refusal>> {
    let mut at = 0;
    while let Some(b"\r\n") = window.get(at..at + 2) {
        at += 2;
        if at > 2 * MAX_EMPTY_LINES {
            return Err(ParseError::Invalid(Refusal::EmptyLines));
        }
    }
    Ok(at)
}

/// Parses the request line that begins at `line` and returns the position after it.
///
/// ```text
/// request-line = method SP request-target SP HTTP-version CRLF
/// ```
#[inline]
fn read_request_line(
    window: &[u8],
    line: usize,
    limits: &Limits,
    index: &mut RequestIndex,
) -> Result<usize, ParseError<Refusal>> {
    let name_end = match window.get(line..line + 4) {
        // `clear` has set the method to GET.
        Some(b"GET ") => line + 3,
        _ => {
            let mut at = line;
            while let Some(&byte) = window.get(at)
                && is(byte, TOKEN)
            {
                at += 1;
            }
            index.method = Method::from_bytes(&window[line..at]);
            at
        }
    };
    index.method_name = ByteSpan::new(line, name_end);
    let target_start = name_end + 1;
    if name_end == line || window.get(name_end) != Some(&b' ') {
        return Err(diagnose(window, line, limits));
    }
    let mut target_end = find_target_end(window, target_start);
    // The search stops at every `?`. Only the first begins the query.
    let mut query_mark = None;
    while let Some(b'?') = window.get(target_end) {
        query_mark.get_or_insert(target_end);
        target_end = find_target_end(window, target_end + 1);
    }
    // A space, the version and CRLF have eleven bytes.
    index.version = match window.get(target_end..target_end + 11) {
        Some(b" HTTP/1.1\r\n") => Version::Http11,
        Some(b" HTTP/1.0\r\n") => Version::Http10,
        _ => return Err(diagnose(window, line, limits)),
    };
    if target_end == target_start {
        return Err(diagnose(window, line, limits));
    }
    if target_end - target_start > limits.target_size {
        return Err(ParseError::Invalid(Refusal::TargetTooLong));
    }
    if name_end - line > MAX_METHOD {
        return Err(ParseError::Invalid(Refusal::MethodTooLong));
    }
    index.target = ByteSpan::new(target_start, target_end);
    if window[target_start] == b'/' && index.method != Method::Connect {
        index.path = ByteSpan::new(target_start, query_mark.unwrap_or(target_end));
        index.query = query_mark.map(|mark| ByteSpan::new(mark + 1, target_end));
    } else {
        read_uncommon_target(window, target_start, target_end, index).map_err(ParseError::Invalid)?;
    }
    Ok(target_end + 11)
}

/// Parses the absolute, authority and asterisk forms of a target, which ordinary requests do not use (RFC 9112
/// §3.2.2–3.2.4).
#[cold]
fn read_uncommon_target(window: &[u8], start: usize, end: usize, index: &mut RequestIndex) -> Result<(), Refusal> {
    let target = &window[start..end];
    if index.method == Method::Connect {
        index.form = TargetForm::Authority;
        index.authority = index.target;
        // A colon before `]` is a part of an IPv6 address.
        let has_port = target.last().is_some_and(u8::is_ascii_digit)
            && target
                .iter()
                .rposition(|&byte| byte == b':' || byte == b']')
                .is_some_and(|at| target[at] == b':');
        return if has_port && authority::is_valid(target) {
            Ok(())
        } else {
            Err(Refusal::TargetForm)
        };
    }
    if target == b"*" {
        index.form = TargetForm::Asterisk;
        index.path = index.target;
        return if index.method == Method::Options {
            Ok(())
        } else {
            Err(Refusal::TargetForm)
        };
    }
    let Some(scheme_end) = target.windows(3).position(|bytes| bytes == b"://") else {
        return Err(Refusal::TargetForm);
    };
    let scheme = &target[..scheme_end];
    if !is_http(scheme) && !is_https(scheme) {
        return Err(Refusal::TargetScheme);
    }
    index.form = TargetForm::Absolute;
    let host_start = scheme_end + 3;
    // The path may be empty.
    let path_start = target[host_start..]
        .iter()
        .position(|&b| b == b'/' || b == b'?')
        .map_or(target.len(), |at| host_start + at);
    let query_mark = target[path_start..]
        .iter()
        .position(|&b| b == b'?')
        .map(|at| path_start + at);
    if !authority::is_valid(&target[host_start..path_start]) {
        return Err(Refusal::HostInvalid);
    }
    index.authority = ByteSpan::new(start + host_start, start + path_start);
    index.path = ByteSpan::new(start + path_start, query_mark.map_or(end, |mark| start + mark));
    index.query = query_mark.map(|mark| ByteSpan::new(start + mark + 1, end));
    Ok(())
}

fn is_http(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"http")
}

fn is_https(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"https")
}

/// Requires exactly one valid Host, which only HTTP/1.0 may omit (RFC 9112 §3.2). Host becomes the authority of the
/// request, or must equal the authority of the target.
#[inline]
fn check_host(window: &[u8], index: &mut RequestIndex) -> Result<(), Refusal> {
    let Some(span) = index.fields.value_span(KnownField::Host) else {
        return if index.version == Version::Http10 {
            Ok(())
        } else {
            Err(Refusal::HostMissing)
        };
    };
    if index.fields.is_repeated(KnownField::Host) {
        return Err(Refusal::HostRepeated);
    }
    let host = span.of(window);
    if !authority::is_valid(host) {
        return Err(Refusal::HostInvalid);
    }
    match index.form {
        TargetForm::Origin | TargetForm::Asterisk => {
            index.authority = span;
            Ok(())
        }
        // By RFC 9112 §3.2.2 the authority of the target overrides Host. Two different hosts are refused nevertheless,
        // because a client that names two hosts may try to bypass the access rules of one of the sites.
        TargetForm::Absolute | TargetForm::Authority => {
            let target = index.target.of(window);
            let default_port: &[u8] = match index.form {
                TargetForm::Absolute if target.get(..5).is_some_and(is_https) => b"443",
                TargetForm::Absolute => b"80",
                // The target of CONNECT always has a port, so a Host without a port differs from it.
                _ => b"",
            };
            let agreed = authority::same(index.authority.of(window), host, default_port);
            if agreed { Ok(()) } else { Err(Refusal::HostMismatch) }
        }
    }
}

/// Reads Connection, Content-Length, Transfer-Encoding, Expect and Upgrade.
fn read_connection_fields(window: &[u8], index: &mut RequestIndex, head: &mut RequestHead) -> Result<(), Refusal> {
    let fields = index.fields.view(window);
    let options = ConnectionOptions::read(fields);
    head.persists = options.persists(index.version);
    head.body = framing::declared_body(fields, index.version)?.unwrap_or(BodyFraming::None);
    if index.version == Version::Http10 {
        // Expect and Upgrade have no meaning in HTTP/1.0 (RFC 9110 §10.1.1, §7.8).
        return Ok(());
    }
    for expectation in fields.get_all(KnownField::Expect) {
        if !expectation.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal::Expectation);
        }
        head.expects_continue = head.body != BodyFraming::None;
    }
    // A server may ignore Upgrade (RFC 9110 §7.8). It is ignored for requests with a body, because the bytes of the new
    // protocol would follow the body, which the handler might not read. Refusing the request would break `curl --http2
    // -d`.
    head.wants_upgrade = options.upgrade && fields.contains(KnownField::Upgrade) && head.body == BodyFraming::None;
    if head.wants_upgrade {
        index.upgrade = index.fields.value_span(KnownField::Upgrade);
    }
    Ok(())
}

/// Returns the error in the request line that begins at `line`, or `Incomplete` if the line has no LF yet.
#[cold]
fn diagnose(window: &[u8], line: usize, limits: &Limits) -> ParseError<Refusal> {
    let rest = window.get(line..).unwrap_or_default();
    match memchr(b'\n', rest) {
        Some(end) => ParseError::Invalid(classify(&rest[..end], limits)),
        None => ParseError::Incomplete,
    }
}

/// Returns the error of an invalid request line, which is passed without its LF.
fn classify(line: &[u8], limits: &Limits) -> Refusal {
    let Some((b'\r', line)) = line.split_last() else {
        return Refusal::RequestLineEnd;
    };
    if memchr(b'\r', line).is_some() {
        return Refusal::RequestLineEnd;
    }
    if line == b"PRI * HTTP/2.0" {
        return Refusal::Http2Preface;
    }
    let mut parts = line.split(|&byte| byte == b' ');
    let (method, target, version, more) = (parts.next(), parts.next(), parts.next(), parts.next());
    let (Some(method), Some(target)) = (method, target) else {
        return Refusal::RequestLine;
    };
    if method.is_empty() || target.is_empty() || more.is_some() {
        return Refusal::RequestLine;
    }
    if !all(method, TOKEN) {
        return Refusal::MethodNotToken;
    }
    if !all(target, TARGET) {
        return Refusal::TargetByte;
    }
    let Some(version) = version else { return Refusal::Http09 };
    if target.contains(&b'#') {
        return Refusal::TargetFragment;
    }
    if target.len() > limits.target_size {
        return Refusal::TargetTooLong;
    }
    match version {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Refusal::Version
        }
        // `PRI * …` without an HTTP version may be a damaged preface of HTTP/2. It is therefore an unknown protocol
        // rather than a bad version, see `Refusal::may_be_preface`.
        _ if is_target(target) && method != b"PRI" => Refusal::VersionSyntax,
        _ => Refusal::UnknownProtocol,
    }
}

/// Returns true if `target` looks like a request target: a path, an asterisk or a URI (RFC 9112 §3.2). The authority
/// form of CONNECT is not recognized, because it looks like any other word.
fn is_target(target: &[u8]) -> bool {
    target.starts_with(b"/") || target == b"*" || memchr::memmem::find(target, b"://").is_some()
}
