//! Names of header fields as CGI-like gateways distinguish them.
//!
//! CGI-like gateways map `X_Real_IP` and `X-Real-IP` to the same variable, `HTTP_X_REAL_IP` (RFC 3875 §4.1.18). With an
//! underscore, a client could therefore forge a field that only a server may set.

/// Returns true if CGI-like gateways may map two names to the same variable.
pub fn are_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(&one, &other)| fold(one) == fold(other))
}

/// Maps bytes that gateways may not distinguish to the same byte: letters to lower case, and every byte that is neither
/// a letter nor a digit to a hyphen. Most gateways map only the hyphen to an underscore, and some map every such byte.
pub fn fold(byte: u8) -> u8 {
    match byte {
        byte if byte.is_ascii_alphanumeric() => byte.to_ascii_lowercase(),
        _ => b'-',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_case_make_no_difference() {
        for (one, other, expected) in [
            ("X-User", "x_user", true),
            ("X_User", "X-USER", true),
            ("X-User", "X-User", true),
            ("X-User", "X.User", true),
            ("X-User", "XUser", false),
            ("X-User", "X-Users", false),
            ("X-User", "X-Us3r", false),
        ] {
            assert_eq!(are_same(one.as_bytes(), other.as_bytes()), expected, "{one} {other}");
        }
    }
}
