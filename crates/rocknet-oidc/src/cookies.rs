//! Cookies of logins and sessions: names, attributes, and values that need several cookies.

use std::borrow::Cow;

/// Maximum length of the value of one cookie. Browsers accept 4,096 bytes for name, value and attributes together
/// (RFC 6265 §6.1).
const MAX_PIECE: usize = 3_800;

/// Maximum number of cookies for one value. Together with the cookies of applications they have to fit into
/// `limits.header_size`, which is 16 KiB by default.
const MAX_PIECES: usize = 2;

/// Attributes of a cookie that can differ.
#[derive(Debug, Clone, Copy)]
pub struct CookieScope {
    /// True for a cookie that is sent only over TLS, and only to the host that has set it.
    pub is_secure: bool,
    /// Time in seconds after which the browser drops the cookie.
    pub max_age: u64,
}

/// Beginning of the names of all cookies over TLS. Browsers accept such a cookie only from its own host and over TLS.
/// Therefore neither another host of the domain nor an attacker in the network can set it.
const HOST_PREFIX: &str = "__Host-";

/// Beginning of all cookie names of this crate, after [`HOST_PREFIX`] if the cookie is sent only over TLS.
const OWN_PREFIX: &str = "rocknet-";

/// Returns the name of a cookie. `kind`: purpose of the cookie. `is_secure`: true if it is sent only over TLS.
pub fn name(kind: &str, is_secure: bool) -> String {
    let prefix = if is_secure { HOST_PREFIX } else { "" };
    format!("{prefix}{OWN_PREFIX}{kind}")
}

/// Returns the pairs of name and value in `Cookie` lines.
pub fn pairs<'a>(lines: &[&'a [u8]]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let pairs = lines.iter().flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.filter_map(|pair| {
        let pair = pair.trim_ascii();
        let at = pair.iter().position(|byte| *byte == b'=')?;
        Some((&pair[..at], &pair[at + 1..]))
    })
}

/// Returns the purpose of a cookie of this crate, as passed to [`name()`]; `None` for the name of another cookie.
pub(crate) fn kind(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_prefix(HOST_PREFIX.as_bytes()).unwrap_or(name);
    name.strip_prefix(OWN_PREFIX.as_bytes())
}

/// Returns true for a cookie name of this crate, and for a `Set-Cookie` value that begins with such a name.
pub fn is_own(name: &[u8]) -> bool {
    kind(name).is_some()
}

/// Returns the value of the first cookie with a name.
fn find<'a>(lines: &[&'a [u8]], name: &str) -> Option<&'a str> {
    let mut pairs = pairs(lines);
    let (_, value) = pairs.find(|(own, _)| *own == name.as_bytes())?;
    std::str::from_utf8(value).ok()
}

/// Reads a value that `write` has put into one or several cookies. `lines`: the `Cookie` fields of a request.
pub fn read<'a>(lines: &[&'a [u8]], name: &str) -> Option<Cow<'a, str>> {
    let (pieces, first) = find(lines, name)?.split_once('.')?;
    let pieces: usize = pieces.parse().ok().filter(|pieces| (1..=MAX_PIECES).contains(pieces))?;
    let mut value = Cow::Borrowed(first);
    for number in 1..pieces {
        value.to_mut().push_str(find(lines, &piece_name(name, number))?);
    }
    Some(value)
}

/// Returns the `Set-Cookie` fields for a value; `None` if it is too long or not ASCII. The first cookie begins with the
/// number of cookies and a dot. Further fields delete the cookies that an earlier, longer value has left over. `lines`:
/// the `Cookie` fields of the request.
pub fn write(name: &str, value: &str, scope: CookieScope, lines: &[&[u8]]) -> Option<Vec<String>> {
    let pieces = value.len().div_ceil(MAX_PIECE).max(1);
    if pieces > MAX_PIECES || !value.is_ascii() {
        return None;
    }
    let mut fields = Vec::new();
    for number in 0..pieces {
        let end = value.len().min((number + 1) * MAX_PIECE);
        let piece = &value[number * MAX_PIECE..end];
        let text = match number {
            0 => format!("{pieces}.{piece}"),
            _ => piece.to_owned(),
        };
        fields.push(set(&piece_name(name, number), &text, scope));
    }
    fields.extend(delete_pieces(name, pieces, scope.is_secure, lines));
    Some(fields)
}

/// Returns the `Set-Cookie` fields that delete a value, for the cookies that the browser has sent.
pub fn delete(name: &str, is_secure: bool, lines: &[&[u8]]) -> Vec<String> {
    delete_pieces(name, 0, is_secure, lines).collect()
}

fn delete_pieces(name: &str, from: usize, is_secure: bool, lines: &[&[u8]]) -> impl Iterator<Item = String> {
    let names = (from..MAX_PIECES).map(|number| piece_name(name, number));
    let scope = CookieScope { is_secure, max_age: 0 };
    names.filter_map(move |name| {
        let is_sent = pairs(lines).any(|(own, _)| own == name.as_bytes());
        is_sent.then(|| set(&name, "", scope))
    })
}

/// Returns the name of the cookie with a piece of a value.
fn piece_name(name: &str, number: usize) -> String {
    match number {
        0 => name.to_owned(),
        _ => format!("{name}-{number}"),
    }
}

/// Returns a `Set-Cookie` field. `SameSite=Lax` keeps the cookie from requests that pages of other sites cause, except
/// for links. The redirect from the provider counts as a link.
fn set(name: &str, value: &str, scope: CookieScope) -> String {
    let secure = if scope.is_secure { "; Secure" } else { "" };
    let max_age = scope.max_age;
    format!("{name}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: CookieScope = CookieScope {
        is_secure: true,
        max_age: 60,
    };

    /// Returns the `Cookie` field of a browser with these cookies.
    fn sent(fields: &[String]) -> String {
        let pairs = fields.iter().filter_map(|field| field.split(';').next());
        pairs.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn values_of_any_accepted_length_are_read_back() {
        let name = name("session", true);
        for length in [0, 1, MAX_PIECE, MAX_PIECE + 1, MAX_PIECES * MAX_PIECE] {
            let value = "x".repeat(length);
            let fields = write(&name, &value, SCOPE, &[]).expect("cookies");
            assert!(fields.iter().all(|field| field.len() < 4_096), "{length}");
            assert_eq!(
                read(&[sent(&fields).as_bytes()], &name).as_deref(),
                Some(&*value),
                "{length}"
            );
        }
        assert_eq!(write(&name, &"x".repeat(MAX_PIECES * MAX_PIECE + 1), SCOPE, &[]), None);
    }

    #[test]
    fn cookies_are_bound_to_their_host_under_tls() {
        let fields = write(&name("session", true), "v", SCOPE, &[]).expect("cookies");
        let expected = "__Host-rocknet-session=1.v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(fields, [expected]);
        let plain = CookieScope {
            is_secure: false,
            ..SCOPE
        };
        let fields = write(&name("session", false), "v", plain, &[]).expect("cookies");
        assert_eq!(
            fields,
            ["rocknet-session=1.v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax"]
        );
    }

    #[test]
    fn a_shorter_value_deletes_the_rest_of_a_longer_one() {
        let fields = write("n", "v", SCOPE, &["n=2.abc; n-1=def".as_bytes()]).expect("cookies");
        assert_eq!(fields.len(), 2);
        assert!(
            fields[1].starts_with("n-1=; ") && fields[1].contains("Max-Age=0"),
            "{fields:?}"
        );
        let deleted = delete("n", true, &["n=2.abc; n-1=def; m=1".as_bytes()]);
        assert!(
            deleted.len() == 2 && deleted.iter().all(|field| field.contains("Max-Age=0")),
            "{deleted:?}"
        );
    }

    #[test]
    fn other_values_are_ignored() {
        for text in [
            "",
            "n",
            "n=",
            "n=v",
            "n=0.v",
            "n=3.v; n-1=a; n-2=b",
            "n=2.v",
            "n=-1.v",
            "m=1.v",
            "n=1,v",
        ] {
            assert_eq!(read(&[text.as_bytes()], "n"), None, "{text}");
        }
        let two = [&b"a=1; n=2.x"[..], b" n-1=y "];
        assert_eq!(read(&two, "n").as_deref(), Some("xy"));
        assert!(is_own(b"__Host-rocknet-a") && is_own(b"rocknet-a") && !is_own(b"a") && !is_own(b"__Host-a"));
    }
}
