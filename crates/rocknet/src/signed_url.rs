//! Signed URLs: a URL is admitted until a time if its last query parameter has a valid signature (HMAC-SHA256).
//!
//! ```text
//! https://example.com/dl/a.zip?signed=1764460800.main.5f3c…      EXPIRES.KEY[.ip][.dirN].SIGNATURE
//! ```
//! The signed text has six lines, separated by a line feed: method, host, path, query, client address, and the value of
//! the parameter without its signature. No line can contain a line feed, so two texts are equal only if each of their
//! lines is equal. The lines have these forms:
//! - The method of a HEAD request is `GET`.
//! - The host is in lower case, with the port unless it is 80 or 443.
//! - The path is decoded and normalized, as it is served. With `dirN`, it is the folder of the first `N` segments.
//! - The query is that of the URL as sent, without the parameter. With `dirN`, it is empty, and any query is admitted.
//! - The address is empty without `ip`.

use std::net::IpAddr;

use aws_lc_rs::hmac;
use rocknet_config::url_keys::{self, UrlKey};
use rocknet_proto::request::split_target;
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};
use rocknet_proto::semantics::safe_path::{PathError, SafePath};

/// Beginning of the query parameter with the signature. It is also the beginning of the cookie.
pub const PARAMETER: &str = "signed=";

/// Mark of a URL that is bound to the address of its client.
const FOR_CLIENT: &str = "ip";

/// Beginning of the mark of a URL that is valid for a folder.
const FOLDER: &str = "dir";

/// Latest time until which a signature can be valid, in seconds of the Unix clock: a number of 12 digits.
pub const MAX_EXPIRES: u64 = 999_999_999_999;

/// Number of hexadecimal digits of a signature.
const SIGNATURE_DIGITS: usize = 64;

/// Keys of signed URLs. All of them verify, and the first one signs.
pub struct SigningKeys(Vec<(Box<str>, hmac::Key)>);

/// Parts of a request that a signature covers.
#[derive(Clone, Copy)]
pub struct SignedRequest<'a> {
    /// Method.
    pub method: &'a [u8],
    /// Host and port.
    pub authority: &'a [u8],
    /// Path and query as sent.
    pub target: &'a [u8],
    /// Address of the client; `None` if it has none.
    pub client: Option<IpAddr>,
}

/// Terms of a signature, besides its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// End, in seconds of the Unix clock.
    pub expires: u64,
    /// True if the URL is valid for the address of one client.
    pub is_for_client: bool,
    /// Number of path segments of the folder that the URL is valid for; `None` if it is valid for one path.
    pub folder_depth: Option<usize>,
}

/// Result of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The signature is valid, and has not expired.
    Valid,
    /// The signature is valid, and has expired.
    Expired,
    /// There is no valid signature.
    Invalid,
}

/// Reason why a URL cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignError {
    /// The host is missing or invalid.
    Host,
    /// The path is malformed, or has an encoded slash or a backslash.
    Path,
    /// The path has fewer folders than `dirN` requires.
    Depth,
    /// The address of the client is missing.
    Client,
    /// The query ends with a signature.
    Signed,
    /// There is no key with this identifier.
    NoKey,
}

impl std::fmt::Display for SignError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SignError::Host => "the host is missing or invalid",
            SignError::Path => "the path is malformed, or has an encoded slash or a backslash",
            SignError::Depth => "the path has fewer folders than the signature is for",
            SignError::Client => "the address of the client is missing",
            SignError::Signed => "the URL has a signature already",
            SignError::NoKey => "there is no key with this identifier",
        })
    }
}

impl std::error::Error for SignError {}

impl SigningKeys {
    /// Prepares keys.
    pub fn new(keys: &[UrlKey]) -> SigningKeys {
        let prepare = |key: &UrlKey| {
            let secret = hmac::Key::new(hmac::HMAC_SHA256, key.secret.as_bytes());
            (key.id.clone(), secret)
        };
        SigningKeys(keys.iter().map(prepare).collect())
    }

    /// Returns true if there is no key, so that no URL is admitted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of the parameter for a request. `id`: identifier of the key; `None` for the first one.
    ///
    /// # Errors
    ///
    /// Fails if the request cannot be signed, or if the key does not exist.
    pub fn sign(&self, request: &SignedRequest<'_>, terms: &Terms, id: Option<&str>) -> Result<String, SignError> {
        let mut keys = self.0.iter();
        let (id, key) = keys
            .find(|(own, _)| id.is_none_or(|id| **own == *id))
            .ok_or(SignError::NoKey)?;
        let (path, query) = split_target(request.target);
        if split_parameter(query.unwrap_or_default()).is_some() {
            return Err(SignError::Signed);
        }
        let mut head = format!("{}.{id}", terms.expires);
        if terms.is_for_client {
            head.push('.');
            head.push_str(FOR_CLIENT);
        }
        if let Some(depth) = terms.folder_depth {
            head.push_str(&format!(".{FOLDER}{depth}"));
        }
        let text = text(request, path, query.unwrap_or_default(), &head, terms)?;
        let signature = hmac::sign(key, &text);
        let digits = signature.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Ok(format!("{head}.{}", digits.collect::<String>()))
    }

    /// Verifies the signature of a request: that of its query, or one of its `cookies` if the query has none. Cookies
    /// are valid only with `dirN`. `now_s`: current time in seconds of the Unix clock.
    pub fn verify<'c>(
        &self,
        request: &SignedRequest<'_>,
        cookies: impl Iterator<Item = &'c [u8]>,
        now_s: u64,
    ) -> Verdict {
        let (path, query) = split_target(request.target);
        let query = query.unwrap_or_default();
        if let Some((query, value)) = split_parameter(query) {
            return self.verify_value(request, path, query, value, now_s);
        }
        let mut verdict = Verdict::Invalid;
        for value in cookies.take(MAX_COOKIES) {
            if Terms::parse(value).is_none_or(|(terms, ..)| terms.folder_depth.is_none()) {
                continue;
            }
            match self.verify_value(request, path, query, value, now_s) {
                Verdict::Valid => return Verdict::Valid,
                Verdict::Expired => verdict = Verdict::Expired,
                Verdict::Invalid => {}
            }
        }
        verdict
    }

    fn verify_value(
        &self,
        request: &SignedRequest<'_>,
        path: &[u8],
        query: &[u8],
        value: &[u8],
        now_s: u64,
    ) -> Verdict {
        let Some((terms, id, head, signature)) = Terms::parse(value) else {
            return Verdict::Invalid;
        };
        // Identifiers are public, and need no comparison in constant time.
        let Some((_, key)) = self.0.iter().find(|(own, _)| **own == *id) else {
            return Verdict::Invalid;
        };
        let Ok(text) = text(request, path, query, head, &terms) else {
            return Verdict::Invalid;
        };
        match hmac::verify(key, &text, &signature) {
            Ok(()) if now_s < terms.expires => Verdict::Valid,
            Ok(()) => Verdict::Expired,
            Err(_) => Verdict::Invalid,
        }
    }
}

/// Maximum number of cookies that are verified, because each takes time. Browsers send one for each folder above a
/// path.
const MAX_COOKIES: usize = 8;

impl Terms {
    /// Parses the value of the parameter. Returns the terms, the identifier of the key, the value without the
    /// signature, and the signature.
    fn parse(value: &[u8]) -> Option<(Terms, &str, &str, [u8; 32])> {
        let value = std::str::from_utf8(value).ok()?;
        let (head, digits) = value.rsplit_once('.')?;
        let mut parts = head.split('.');
        let (expires, id) = (parts.next()?, parts.next()?);
        let mut next = parts.next();
        let is_for_client = next == Some(FOR_CLIENT);
        if is_for_client {
            next = parts.next();
        }
        let folder_depth = match next {
            Some(folder) => Some(number(folder.strip_prefix(FOLDER)?)?),
            None => None,
        };
        if parts.next().is_some() || !url_keys::is_id(id) {
            return None;
        }
        let terms = Terms {
            expires: number(expires)?,
            is_for_client,
            folder_depth: folder_depth.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX)),
        };
        Some((terms, id, head, signature(digits)?))
    }
}

/// Parses a number of at most 12 digits.
fn number(text: &str) -> Option<u64> {
    let is_number = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Parses a signature: lower-case hexadecimal digits.
fn signature(digits: &str) -> Option<[u8; 32]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let digits = digits.as_bytes();
    if digits.len() != SIGNATURE_DIGITS {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// Splits a query into the part before the parameter, and the value of the parameter. The parameter is the last one, so
/// that no parameter can be added after the signature.
pub fn split_parameter(query: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, last) = match query.iter().rposition(|byte| *byte == b'&') {
        // Refuses `?&signed=…`. The part before its `&` is empty, as in `?signed=…`, so both URLs would have the same
        // signature.
        Some(0) => return None,
        Some(at) => (&query[..at], &query[at + 1..]),
        None => (&query[..0], query),
    };
    Some((rest, last.strip_prefix(PARAMETER.as_bytes())?))
}

/// Returns the text that a signature covers. `head`: the value of the parameter without the signature.
fn text(
    request: &SignedRequest<'_>,
    path: &[u8],
    query: &[u8],
    head: &str,
    terms: &Terms,
) -> Result<Vec<u8>, SignError> {
    let method: &[u8] = match request.method {
        b"HEAD" => b"GET",
        method => method,
    };
    // The parsers of HTTP refuse such a query already. Here it would add a line to the text.
    if query.contains(&b'\n') {
        return Err(SignError::Path);
    }
    let path = served_path(path).ok_or(SignError::Path)?;
    let (path, query) = match terms.folder_depth {
        Some(depth) => (folder(&path, depth).ok_or(SignError::Depth)?, &b""[..]),
        None => (&*path, query),
    };
    let client = match terms.is_for_client {
        true => request.client.ok_or(SignError::Client)?.to_canonical().to_string(),
        false => String::new(),
    };
    let host = host(request.authority).ok_or(SignError::Host)?;
    let lines = [
        method,
        host.as_bytes(),
        path.as_bytes(),
        query,
        client.as_bytes(),
        head.as_bytes(),
    ];
    Ok(lines.join(&b'\n'))
}

/// Returns host and port in the form that is signed.
fn host(authority: &[u8]) -> Option<String> {
    let authority = Authority::parse(authority)?;
    let mut buffer = [0; HOST_BUFFER];
    let host = authority.lower_host(&mut buffer);
    Some(match authority.port {
        None | Some(80 | 443) => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
    })
}

/// Returns a path as it is served: decoded and normalized. Returns `None` for a malformed path, and for one whose
/// decoded form does not distinguish it from another path.
fn served_path(path: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    match SafePath::parse(path) {
        Ok(safe) => Some(safe.into_str()),
        Err(PathError::Unmatchable) => {
            // No file can have this path, but a handler may serve it. `for_rules` decodes an encoded slash to a
            // backslash, and bytes that are not UTF-8 to U+FFFD, so different paths could become equal.
            let decoded = SafePath::for_rules(path).ok()?;
            (!decoded.contains(['\\', '\u{fffd}'])).then_some(decoded.into())
        }
        Err(_) => None,
    }
}

/// Returns the folder of the first segments of a path, with a slash at its end.
fn folder(path: &str, depth: usize) -> Option<&str> {
    let (end, _) = path.match_indices('/').nth(depth)?;
    Some(&path[..=end])
}

/// Returns the number of segments of the folder that a path is in, or that it names. `None` for a path that cannot be
/// signed.
pub fn depth_of_folder(path: &[u8]) -> Option<usize> {
    served_path(path).map(|path| path.matches('/').count() - 1)
}

#[cfg(test)]
mod tests;
