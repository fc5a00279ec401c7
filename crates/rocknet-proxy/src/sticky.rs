//! Sticky sessions by a cookie that identifies the upstream without revealing its address.

use rocknet_proto::fields::{Fields, KnownField};

/// Returns the cookie value for an upstream with this name hash.
pub fn token(name: u64) -> String {
    format!("{name:016x}")
}

/// Returns the name hash from the request's cookie with the name `cookie`; `None` if there is no such cookie with a
/// valid hash.
pub fn from_cookies(fields: Fields<'_>, cookie: &str) -> Option<u64> {
    let pairs = fields
        .get_all(KnownField::Cookie)
        .flat_map(|line| line.split(|byte| *byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        let pair = pair.trim_ascii();
        let value = pair.strip_prefix(cookie.as_bytes())?.strip_prefix(b"=")?;
        // `from_str_radix` alone would also accept a plus sign before 15 digits.
        let is_hash = value.len() == 16 && value.iter().all(u8::is_ascii_hexdigit);
        let text = std::str::from_utf8(value).ok().filter(|_| is_hash)?;
        u64::from_str_radix(text, 16).ok()
    });
    values.next()
}

/// Returns the value of `Set-Cookie` for an upstream. `cookie`: name of the cookie. `name`: name hash of the upstream.
/// `is_secure`: true if the client uses TLS.
///
/// The cookie is `HttpOnly`, because scripts need no access to it, and `SameSite=Lax`, so that requests embedded in
/// other sites do not send it.
pub fn set_cookie(cookie: &str, name: u64, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{cookie}={}; Path=/; HttpOnly; SameSite=Lax{secure}", token(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocknet_proto::request::{OwnedRequest, Version};

    #[test]
    fn the_sticky_cookie_is_found_among_others() {
        for (cookies, expected) in [
            ("at=00000000000000ff", Some(255)),
            ("a=1; at=00000000000000ff; b=2", Some(255)),
            ("at=ff", None),
            ("at=zz000000000000ff", None),
            ("at=+0000000000000ff", None),
            ("bat=00000000000000ff", None),
            ("at2=00000000000000ff", None),
            ("at=\u{e9}00000000000000", None),
            ("", None),
        ] {
            let fields = [(KnownField::Cookie, cookies.as_bytes())];
            let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &fields);
            assert_eq!(from_cookies(request.view().fields, "at"), expected, "{cookies}");
        }
        assert_eq!(
            set_cookie("at", 255, true),
            "at=00000000000000ff; Path=/; HttpOnly; SameSite=Lax; Secure"
        );
    }
}
