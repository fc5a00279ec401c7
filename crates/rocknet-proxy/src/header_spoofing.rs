//! Fields that gateways of applications take for others: `X_Real_IP` becomes `HTTP_X_REAL_IP`, as `X-Real-IP` does. So a
//! client could say in the one way what nobody but this server may say in the other.

use rocknet_proto::fields::{Known, KnownSet};

/// What upstreams believe because this server says it, or has looked at it.
const TRUSTED_FIELDS: KnownSet = KnownSet::of(&[
    Known::ContentLength,
    Known::ProxyAuthorization,
    Known::ProxyConnection,
    Known::TransferEncoding,
    Known::XForwardedFor,
    Known::XForwardedHost,
    Known::XForwardedProto,
    Known::XRealIp,
]);

/// Whether a name stands for one of those, but is none of them.
pub fn is_spoofed(name: &[u8]) -> bool {
    if memchr::memchr(b'_', name).is_none() {
        return false;
    }
    let plain: Vec<u8> = name.iter().map(|&byte| fold(byte)).collect();
    Known::from_name(&plain).is_some_and(|known| TRUSTED_FIELDS.contains(known))
}

/// Whether two names are the same to a gateway.
pub fn is_same_to_cgi(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(&one, &other)| fold(one) == fold(other))
}

fn fold(byte: u8) -> u8 {
    match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spoofed_names_are_recognized() {
        for (name, expected) in [
            ("X_Forwarded_For", true),
            ("x-forwarded_proto", true),
            ("X_REAL-IP", true),
            ("Content_Length", true),
            ("X-Forwarded-For", false),
            ("X_Forwarded", false),
            ("X_Own", false),
            ("_", false),
            ("", false),
        ] {
            assert_eq!(is_spoofed(name.as_bytes()), expected, "{name}");
        }
        for (one, other, expected) in [
            ("X-User", "x_user", true),
            ("X_User", "X-USER", true),
            ("X-User", "X-User", true),
            ("X-User", "XUser", false),
            ("X-User", "X-Users", false),
        ] {
            assert_eq!(
                is_same_to_cgi(one.as_bytes(), other.as_bytes()),
                expected,
                "{one} {other}"
            );
        }
    }
}
