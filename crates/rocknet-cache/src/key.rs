//! Keys of stored responses: all parts of a request that a handler may read and that no `Vary` names.
//!
//! Besides scheme, site, host and target, a key has the fields in which some applications look for another host, scheme
//! or target. Otherwise a client could send such a field, and its response would be stored for the clients that do not
//! send it (cache poisoning). A template of the configuration, such as `{host}{path}?page={query.page}`, takes the
//! place of host and target.

use std::cell::Cell;

use rocknet_config::model::TrustedField;
use rocknet_config::template::{Placeholder, Scope, Template, Values};
use rocknet_handler::ExchangeRef;
use rocknet_handler::client::Client;
use rocknet_handler::forwarded;
use rocknet_handler::route::Route;
use rocknet_handler::values::{self, RequestId, RequestValues};
use rocknet_proto::fields::KnownField;
use rocknet_proto::request::Request;
use smallvec::SmallVec;

use crate::ambiguity;

/// Maximum length of a key in bytes. Requests with a longer key are not cached.
pub const MAX_KEY: usize = 4096;

/// Version of the rules by which keys and [`Variation`](crate::vary::Variation)s are made, and by which requests are
/// cached. Responses on disk of another version are not used.
pub const RULES: u32 = 1;

/// A key. Most keys need no allocation.
pub type Key = SmallVec<[u8; 256]>;

/// Separates the parts of a key. Targets and fields of requests cannot contain it.
const SEPARATOR: u8 = 0;

/// Ends a value in the text of a template.
const END_OF_VALUE: u8 = 1;

/// Beginnings of the names of fields that can replace the host, scheme, target or method of a request in some
/// applications, in lower case.
const OVERRIDE_PREFIXES: [&[u8]; 4] = [b"x-forwarded-", b"x-original-", b"x-rewrite-", b"x-http-method"];

/// Names of further such fields.
const OVERRIDES: [&[u8]; 6] = [
    b"x-host",
    b"x-method-override",
    b"x-scheme",
    b"x-url-scheme",
    b"front-end-https",
    b"x-arr-ssl",
];

/// Field that is not a part of keys although its name has a prefix of the list, because each client would get keys of
/// its own. [`Variation`](crate::vary::Variation) refuses to store responses that depend on it.
const ADDRESSES: &[u8] = b"x-forwarded-for";

/// Returns true for a field that can replace a part of the request. Applications that read fields by the variables of
/// CGI do not distinguish `_` from `-`.
fn is_override(name: &[u8]) -> bool {
    // All names and prefixes above begin with one of these letters.
    if !matches!(name.first(), Some(b'x' | b'X' | b'f' | b'F')) {
        return false;
    }
    let plain = |byte: &u8| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    let equals = |known: &[u8], name: &[u8]| {
        known.len() == name.len() && known.iter().zip(name).all(|(known, byte)| *known == plain(byte))
    };
    let begins = |known: &&[u8]| name.len() >= known.len() && equals(known, &name[..known.len()]);
    !equals(ADDRESSES, name)
        && (OVERRIDE_PREFIXES.iter().any(begins) || OVERRIDES.iter().any(|known| equals(known, name)))
}

/// Appends the fields that can replace parts of the request, except `Forwarded`.
pub fn append_overrides(key: &mut Key, request: &Request<'_>) {
    for (name, value) in overrides(request) {
        key.push(SEPARATOR);
        key.extend(name.iter().map(u8::to_ascii_lowercase));
        key.push(b':');
        key.extend_from_slice(value);
    }
}

/// Returns true if [`append_overrides`] appends exactly these bytes for a request.
pub fn has_overrides(mut appended: &[u8], request: &Request<'_>) -> bool {
    for (name, value) in overrides(request) {
        let Some((begin, rest)) = appended.split_at_checked(name.len() + value.len() + 2) else {
            return false;
        };
        let (own_name, own_value) = (&begin[1..=name.len()], &begin[name.len() + 2..]);
        let is_same = begin[0] == SEPARATOR && begin[name.len() + 1] == b':' && own_value == value;
        if !is_same || !own_name.eq_ignore_ascii_case(name) {
            return false;
        }
        appended = rest;
    }
    appended.is_empty()
}

fn overrides<'r>(request: &Request<'r>) -> impl Iterator<Item = (&'r [u8], &'r [u8])> + use<'r> {
    request.fields.iter().filter(|(name, _)| is_override(name))
}

/// Returns true if path and query, which the rules may have replaced, differ from the target.
pub fn is_rewritten(request: &Request<'_>) -> bool {
    let Some(rest) = request.target.strip_prefix(request.path) else {
        return true;
    };
    match request.query {
        // The `?` is compared too, because a rewrite of `/page/7` to `/page?7` changes only this byte.
        Some(query) => rest.strip_prefix(b"?") != Some(query),
        None => !rest.is_empty(),
    }
}

/// A template of keys.
pub struct KeyTemplate {
    template: Template,
    /// Text of the template, without the separator. It is a part of each key, because another template could render the
    /// same text for other requests.
    text: Box<[u8]>,
}

impl KeyTemplate {
    /// Parses a template; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<KeyTemplate> {
        Some(KeyTemplate {
            template: Template::parse(text, Scope::Request).ok()?,
            text: text.bytes().filter(|byte| *byte != SEPARATOR).collect(),
        })
    }
}

/// Returns the key of a request; `None` if it is too long or ambiguous, or if the handler may read another value in the
/// request than the template. `template`: takes the place of host and target.
pub fn of_request(exchange: &ExchangeRef<'_>, route: &Route, template: Option<&KeyTemplate>) -> Option<Key> {
    let request = exchange.request;
    let is_secure = exchange.tls.is_some();
    let mut key = Key::new();
    match template {
        None => {
            of_uri(
                &mut key,
                &route.label.site,
                is_secure,
                request.authority,
                request.target,
            );
            if is_rewritten(request) {
                key.extend_from_slice(request.path);
                key.push(b'?');
                key.extend_from_slice(request.query.unwrap_or_default());
            }
        }
        Some(template) if ambiguity::is_ambiguous(request, &template.template) => return None,
        Some(template) if !of_template(&mut key, template, exchange, route) => return None,
        Some(_) => {}
    }
    append_overrides(&mut key, request);
    if request.fields.contains(KnownField::Forwarded) {
        of_forwarded(&mut key, request, route, exchange.peer);
    }
    (key.len() <= MAX_KEY).then_some(key)
}

/// Appends the part that a template makes. The end of each value is marked, so that two values cannot be confused with
/// a longer one. Returns false if a value contains such a mark or the separator, which is possible for names in
/// certificates.
fn of_template(key: &mut Key, template: &KeyTemplate, exchange: &ExchangeRef<'_>, route: &Route) -> bool {
    let id = RequestId::default();
    let values = RequestValues {
        services: exchange.services,
        server: &route.server.server,
        request: exchange.request,
        client: Some(exchange.client),
        peer: exchange.peer,
        tls: exchange.tls,
        user: None,
        site: &route.label.site,
        id: &id,
        status: None,
        upstream: None,
    };
    let (mut text, is_ambiguous) = (Vec::new(), Cell::new(false));
    template.template.render(&values, &mut text, |value, out| {
        if value.iter().any(|byte| [SEPARATOR, END_OF_VALUE].contains(byte)) {
            is_ambiguous.set(true);
        }
        out.extend_from_slice(value);
        out.push(END_OF_VALUE);
    });
    key.extend_from_slice(route.label.site.as_bytes());
    key.push(SEPARATOR);
    // Upper case distinguishes the key from that of a URI.
    key.push(if exchange.tls.is_some() { b'S' } else { b'P' });
    key.extend_from_slice(&template.text);
    key.push(SEPARATOR);
    key.extend_from_slice(&text);
    key.push(SEPARATOR);
    of_differences(key, exchange.request, &values, exchange.tls.is_some());
    !is_ambiguous.get()
}

/// Appends the parts of the request that the handler gets in another form than the template, each after a mark. The
/// template has the normalized host and path, and rules may have replaced path and query. Without these parts, one
/// client could choose the response of the clients that send the usual form.
fn of_differences(key: &mut Key, request: &Request<'_>, values: &RequestValues<'_>, is_secure: bool) {
    let mut append = |mark: u8, text: &[u8]| {
        key.push(mark);
        key.extend_from_slice(text);
        key.push(SEPARATOR);
    };
    let authority = without_default_port(request.authority, is_secure);
    if !authority.eq_ignore_ascii_case(&values.value(&Placeholder::Host)) {
        append(b'a', authority);
    }
    let path = values.value(&Placeholder::Path);
    let (target_path, target_query) = path_and_query(request);
    if target_path != &path[..] {
        append(b't', target_path);
    }
    if request.path != &path[..] && request.path != target_path {
        append(b'p', request.path);
    }
    if target_query != request.query {
        append(b'q', target_query.unwrap_or_default());
    }
}

/// Returns path and query of the target as received.
fn path_and_query<'r>(request: &Request<'r>) -> (&'r [u8], Option<&'r [u8]>) {
    let target = values::origin_form(request);
    match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    }
}

/// Returns host and path of a request, as purges by URL name them. The query is left out, because a template may give
/// other queries the same key.
pub fn url_of(request: &Request<'_>, is_secure: bool) -> Box<[u8]> {
    url(request.authority, path_and_query(request).0, is_secure)
}

/// Returns the form of [`url_of`] for a host and a path.
pub fn url(authority: &[u8], path: &[u8], is_secure: bool) -> Box<[u8]> {
    let mut url = without_default_port(authority, is_secure).to_ascii_lowercase();
    url.push(SEPARATOR);
    url.extend_from_slice(path);
    url.into()
}

/// Parts that every key begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyParts<'k> {
    /// Name of the site.
    pub site: &'k [u8],
    /// Host and port in lower case; the text of the template if one has made the key.
    pub authority: &'k [u8],
    /// Path and query.
    pub target: &'k [u8],
    /// True if a template has made the key, so that host and target are not known.
    pub is_template: bool,
    /// True if `target` is only the path.
    pub is_path: bool,
}

impl<'k> KeyParts<'k> {
    /// Returns the parts with the host and path of [`url_of`].
    pub fn with_url(self, url: &'k [u8]) -> KeyParts<'k> {
        let mut parts = url.splitn(2, |byte| *byte == SEPARATOR);
        KeyParts {
            authority: parts.next().unwrap_or_default(),
            target: parts.next().unwrap_or_default(),
            is_template: false,
            is_path: true,
            ..self
        }
    }
}

/// Returns the parts of a key; `None` if the bytes are not a key.
pub fn parts(key: &[u8]) -> Option<KeyParts<'_>> {
    let mut parts = key.splitn(4, |byte| *byte == SEPARATOR);
    let site = parts.next()?;
    let (scheme, authority) = parts.next()?.split_first()?;
    Some(KeyParts {
        site,
        authority,
        target: parts.next()?,
        is_template: scheme.is_ascii_uppercase(),
        is_path: false,
    })
}

/// Appends the part that every key of a URI begins with. `target`: path and query.
pub fn of_uri(key: &mut Key, site: &str, is_secure: bool, authority: &[u8], target: &[u8]) {
    key.extend_from_slice(site.as_bytes());
    key.push(SEPARATOR);
    key.push(if is_secure { b's' } else { b'p' });
    let authority = without_default_port(authority, is_secure);
    let start = key.len();
    key.extend_from_slice(authority);
    key[start..].make_ascii_lowercase();
    key.push(SEPARATOR);
    key.extend_from_slice(target);
    key.push(SEPARATOR);
}

/// Returns an authority without the default port of its scheme.
pub fn without_default_port(authority: &[u8], is_secure: bool) -> &[u8] {
    let default_port: &[u8] = if is_secure { b":443" } else { b":80" };
    authority.strip_suffix(default_port).unwrap_or(authority)
}

/// Appends host and scheme of `Forwarded`. The addresses in the field of a trusted proxy differ for each client, so
/// they are not a part of the key. From another peer, the whole field is appended.
fn of_forwarded(key: &mut Key, request: &Request<'_>, route: &Route, peer: Client) {
    let server = &route.server.server;
    key.push(SEPARATOR);
    key.extend_from_slice(b"forwarded:");
    if server.trusted_field == TrustedField::Forwarded && forwarded::is_trusted(server, peer) {
        let info = forwarded::resolve(server, peer, request.fields);
        key.extend_from_slice(info.host.as_deref().unwrap_or_default());
        key.push(b'/');
        key.extend_from_slice(info.proto.as_deref().unwrap_or_default());
    } else {
        for value in request.fields.get_all(KnownField::Forwarded) {
            key.extend_from_slice(value);
            key.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use rocknet_handler::response::FieldList;
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;
    use crate::vary::Variation;

    #[test]
    fn only_the_same_overriding_fields_are_recognized() {
        let request = |fields: &[(&[u8], &[u8])]| {
            let plain = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &[(KnownField::UserAgent, b"x")]);
            plain.with_replaced_fields(&[], fields)
        };
        let all: [&[(&[u8], &[u8])]; 8] = [
            &[],
            &[(b"X-Scheme", b"a")],
            &[(b"X-Scheme", b"ab")],
            &[(b"X-Host", b"a")],
            &[(b"X-Scheme", b"")],
            &[(b"X-Scheme", b"a"), (b"X-Host", b"a")],
            &[(b"X-Host", b"a"), (b"X-Scheme", b"a")],
            &[(b"X-Scheme", b"a"), (b"X-Scheme", b"a")],
        ];
        for (number, fields) in all.iter().enumerate() {
            let mut key = Key::new();
            append_overrides(&mut key, &request(fields).view());
            for (other, fields) in all.iter().enumerate() {
                let is_same = has_overrides(&key, &request(fields).view());
                assert_eq!(is_same, number == other, "{number} {other}");
            }
        }
        let mut key = Key::new();
        append_overrides(&mut key, &request(&[(b"x-scheme", b"a")]).view());
        assert!(has_overrides(&key, &request(&[(b"X-SCHEME", b"a")]).view()));
        assert!(!has_overrides(&key, &request(&[(b"X-SCHEME", b"A")]).view()));
    }

    #[test]
    fn a_rewritten_request_is_recognized() {
        let all: [&[u8]; 8] = [
            b"/page/7",
            b"/page?7",
            b"/page7",
            b"/page",
            b"/page?",
            b"/page/?7",
            b"/?/page/7",
            b"/",
        ];
        for target in all {
            let request = OwnedRequest::synthetic_get(Version::Http11, b"h", target, &[]);
            assert!(!is_rewritten(&request.view()));
            for other in all {
                let rewritten = request.view().with_lookup_target(other);
                assert_eq!(is_rewritten(&rewritten), target != other, "{target:?} {other:?}");
            }
        }
    }

    #[test]
    fn fields_that_replace_parts_of_a_request_are_recognized() {
        for (name, expected) in [
            ("X-Forwarded-Host", true),
            ("x_forwarded_ssl", true),
            ("X_Original_URL", true),
            ("X-Rewrite-Url", true),
            ("x-http-method-override", true),
            ("X-Forwarded-Protocol", true),
            ("Front-End-Https", true),
            ("front_end_https", true),
            ("X-Scheme", true),
            ("X-Forwarded-For", false),
            ("X_Forwarded_For", false),
            ("X-Requested-With", false),
            ("From", false),
            ("X", false),
            ("", false),
        ] {
            assert_eq!(is_override(name.as_bytes()), expected, "{name}");
        }
    }

    /// If this test has to be adapted, increase [`RULES`], so that responses on disk are not used any longer.
    #[test]
    fn the_rules_are_those_of_their_version() {
        assert_eq!(RULES, 1);
        let names = |names: &[&[u8]]| names.join(&b' ').escape_ascii().to_string();
        assert_eq!(
            names(&OVERRIDE_PREFIXES),
            "x-forwarded- x-original- x-rewrite- x-http-method"
        );
        assert_eq!(
            names(&OVERRIDES),
            "x-host x-method-override x-scheme x-url-scheme front-end-https x-arr-ssl"
        );
        let plain = OwnedRequest::synthetic_get(
            Version::Http11,
            b"h",
            b"/",
            &[(KnownField::AcceptEncoding, b"GZIP, br")],
        );
        let request = plain.with_replaced_fields(
            &[],
            &[(b"X-Scheme", b"a"), (b"X-Forwarded-For", b"b"), (b"X_Host", b"c")],
        );
        let mut key = Key::new();
        of_uri(&mut key, "site", true, b"Example.com:443", b"/A?b");
        append_overrides(&mut key, &request.view());
        let expected = r"site\x00sexample.com\x00/A?b\x00\x00x-scheme:a\x00x_host:c";
        assert_eq!(key.escape_ascii().to_string(), expected);
        let mut fields = FieldList::default();
        fields.add("Vary", "Accept-Encoding, X-Scheme");
        let variation = Variation::of(&fields, &request.view().fields, &["group".to_owned()], &[]);
        let variation = variation.expect("a variation");
        let selectors = variation.selectors().iter().map(|(name, value)| {
            let value = value.as_deref().unwrap_or(b"-");
            format!("{}={}", name.escape_ascii(), value.escape_ascii())
        });
        let selectors: Vec<_> = selectors.collect();
        assert_eq!(selectors, ["cookie;group=-", "accept-encoding=gzip,br", "x-scheme=a"]);
    }
}
