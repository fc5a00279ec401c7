//! Directives of nginx that restrict access.

use crate::directive::Directive;

/// Returns true for a restriction without a counterpart. The `server` or `location` with it is closed: RockNet denies
/// every client. Some forms of `auth_request`, `limit_except` and `ssl_crl` have a counterpart. Translations of blocks
/// handle these forms before they call this function, which returns true for all forms.
pub(super) fn is_unknown_restriction(name: &str) -> bool {
    // Directives `auth_…` that have a counterpart, or restrict nothing themselves.
    const KNOWN: [&str; 5] = [
        "auth_basic",
        "auth_basic_user_file",
        "auth_delay",
        "auth_request_set",
        "auth_http",
    ];
    let is_named = matches!(
        name,
        "limit_except" | "secure_link" | "ssl_ocsp" | "ssl_crl" | "js_access"
    );
    is_named || name.starts_with("access_by_lua") || name.starts_with("auth_") && !KNOWN.contains(&name)
}

/// Returns true if a directive in a block, or in a block inside it, restricts access.
pub(super) fn restricts(block: &Directive) -> bool {
    block.children().iter().any(|directive| match directive.name.as_str() {
        "deny" | "internal" | "auth_basic_user_file" => true,
        "auth_basic" => directive.argument(0) != "off",
        "return" => refuses(directive),
        name => is_unknown_restriction(name) && directive.words() != ["off"] || restricts(directive),
    })
}

/// Returns true if a `return` has the status of an error.
pub(super) fn refuses(directive: &Directive) -> bool {
    directive.argument(0).parse::<u64>().is_ok_and(|status| status >= 400)
}

/// Returns true if a location denies every request.
pub(super) fn is_denied(location: &Directive) -> bool {
    let denies = |d: &Directive| {
        d.is("deny") && d.argument(0) == "all" || d.is("return") && matches!(d.argument(0), "403" | "404" | "444")
    };
    let is_log = |d: &Directive| matches!(d.name.as_str(), "access_log" | "log_not_found");
    location.children().iter().any(denies) && location.children().iter().all(|d| denies(d) || is_log(d))
}

/// Returns the status of a location that denies every request. nginx responds by `return` before it applies `deny`.
pub(super) fn denied_status(location: &Directive) -> u64 {
    let returned = location.children().iter().find(|d| d.is("return"));
    returned.and_then(|d| d.argument(0).parse().ok()).unwrap_or(403)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restrictions_are_found_in_blocks() {
        for (text, expected) in [
            ("a { deny all; }", true),
            ("a { if ($x) { return 403; } }", true),
            ("a { location /b { auth_basic x; } }", true),
            ("a { auth_jwt x; }", true),
            ("a { auth_basic off; return 301 /x; expires 1d; }", false),
        ] {
            assert_eq!(restricts(&super::super::read(text).unwrap()[0]), expected, "{text}");
        }
    }
}
