//! Translates rules that redirect to HTTPS, which sites with TLS do by themselves.

use crate::directive::Directive;
use crate::document::Notes;
use crate::hosts::{HostDraft, HttpsRedirect};

use super::flags::RewriteFlags;

/// Translates a redirect to HTTPS. Returns false for other rules.
pub(super) fn translate(directive: &Directive, conditions: &[Directive], host: &mut HostDraft) -> bool {
    let Some(rest) = directive.argument(1).strip_prefix("https://") else {
        return false;
    };
    // The target consists of a host and the whole path of the request.
    let host_part = ["%{REQUEST_URI}", "/$1", "$1", "/%{REQUEST_URI}"]
        .iter()
        .find_map(|end| rest.strip_suffix(end));
    let Some(name) = host_part else { return false };
    let is_own = ["%{HTTP_HOST}", "%{SERVER_NAME}"].contains(&name);
    if !is_own && name.contains(['%', '$', '/']) {
        return false;
    }
    // True for a condition that every request without TLS meets.
    let is_clear = |condition: &Directive| {
        let words = (condition.argument(0), condition.argument(1).to_ascii_lowercase());
        match (words.0, words.1.as_str()) {
            ("%{HTTPS}", "off" | "=off" | "!=on" | "!on" | "^off$" | "!^on$") => true,
            ("%{SERVER_PORT}", "80" | "=80" | "^80$" | "!443" | "!^443$" | "!=443") => true,
            ("%{REQUEST_SCHEME}", "http" | "=http" | "!https" | "!=https") => true,
            // Certbot writes a condition for each name of the host.
            ("%{SERVER_NAME}", name) => name.starts_with('=') && is_own,
            _ => false,
        }
    };
    if !conditions.iter().all(is_clear) {
        return false;
    }
    // A file without `<VirtualHost>`, such as `.htaccess`, names no listeners, so its site may have TLS.
    let has_no_block = host.directive.is_empty();
    if has_no_block || host.is_tls() {
        let message = "sites with TLS redirect from http:// by themselves (308): `tls.redirect`";
        host.site.unneeded(directive, message);
    } else {
        host.https_redirect = Some(HttpsRedirect {
            host: if is_own { String::new() } else { name.to_owned() },
            status: RewriteFlags::read(directive.argument(2)).redirect.unwrap_or(302),
        });
    }
    true
}
