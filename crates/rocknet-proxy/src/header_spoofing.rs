//! Protection against header spoofing by underscores.
//!
//! CGI-like gateways map `X_Real_IP` and `X-Real-IP` to the same variable, `HTTP_X_REAL_IP`. With an underscore, a
//! client could therefore forge a field that only RockNet may set.

use rocknet_proto::fields::{KnownField, KnownFieldSet};
use rocknet_proto::semantics::cgi_names::fold;

/// Fields that upstreams trust because RockNet sets or checks them. Names without a hyphen, such as `Forwarded`, are
/// omitted, because no name with an underscore imitates them.
const TRUSTED_FIELDS: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::ContentLength,
    KnownField::ProxyAuthorization,
    KnownField::ProxyConnection,
    KnownField::TransferEncoding,
    KnownField::XForwardedFor,
    KnownField::XForwardedHost,
    KnownField::XForwardedProto,
    KnownField::XRealIp,
]);

/// Returns true if the name differs from the name of a trusted field, but a CGI-like gateway maps both names to the
/// same variable.
pub fn is_spoofed(name: &[u8]) -> bool {
    if memchr::memchr(b'_', name).is_none() {
        return false;
    }
    let plain: Vec<u8> = name.iter().map(|&byte| fold(byte)).collect();
    KnownField::from_name(&plain).is_some_and(|known| TRUSTED_FIELDS.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_imitate_trusted_fields_are_recognized() {
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
    }
}
