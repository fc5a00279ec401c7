//! Translates the directives that rewrite redirects and cookies of upstreams.

use crate::directive::Directive;
use crate::document::Notes;
use crate::proxy::{ProxySettings, is_plain_url};
use crate::value::Value;

/// Translates `proxy_redirect`, `proxy_cookie_path` or `proxy_cookie_domain`. `words`: its arguments.
pub(super) fn translate(directive: &Directive, words: &[&str], proxy: &mut ProxySettings, notes: &mut dyn Notes) {
    let key = match directive.name.as_str() {
        "proxy_redirect" => "redirects",
        "proxy_cookie_path" => "cookie_paths",
        _ => "cookie_domains",
    };
    match words {
        ["default"] => notes.unneeded(directive, "RockNet rewrites the address of the upstream itself"),
        ["off"] => proxy.set(key, Value::Flag(false)),
        [from, to] => match pair(key, from, to) {
            Some((from, to)) => proxy.add_pair(key, &from, &to),
            None => notes.skip(
                directive,
                "only the beginning of an address can be replaced, by a constant: docs/proxy.md#redirects-and-cookies",
            ),
        },
        _ => notes.skip(directive, "see docs/proxy.md#redirects-and-cookies"),
    }
}

/// Returns the pair of a key; `None` if it has no counterpart, such as a regular expression.
fn pair(key: &str, from: &str, to: &str) -> Option<(String, String)> {
    if from.starts_with('~') {
        return None;
    }
    let to = match key {
        "redirects" => path_of_own_host(to)?,
        // A cookie without a domain belongs to the host that the client requested.
        "cookie_domains" if matches!(to, "$host" | "$http_host" | "$server_name") => "",
        _ => to,
    };
    let is_address = |text: &str| {
        let is_url = matches!(text, "http://" | "https://") || is_plain_url(text);
        (text.starts_with('/') && !text.starts_with("//")) || is_url
    };
    let is_path = |text: &str| text.starts_with('/') && !text.contains([';', ',']);
    let is_constant = !from.contains('$') && !to.contains('$');
    let is_valid = match key {
        // RockNet replaces a scheme alone only by a scheme alone.
        "redirects" => is_address(from) && is_address(to) && is_scheme(from) == is_scheme(to),
        "cookie_paths" => is_path(from) && is_path(to),
        _ => true,
    };
    (is_constant && is_valid).then(|| (from.to_owned(), to.to_owned()))
}

fn is_scheme(text: &str) -> bool {
    matches!(text, "http://" | "https://")
}

/// Returns the path of an address at the requested host: `/a` for `$scheme://$host/a`. Returns `None` for other
/// addresses that begin with `$scheme://`, such as `$scheme://example.com/a`. Addresses that do not begin with
/// `$scheme://` are returned unchanged.
fn path_of_own_host(address: &str) -> Option<&str> {
    let Some(rest) = address.strip_prefix("$scheme://") else {
        return Some(address);
    };
    let host = ["$host:$server_port", "$http_host", "$host", "$server_name"];
    let path = host.iter().find_map(|host| rest.strip_prefix(host))?;
    match path {
        "" => Some("/"),
        path => path.starts_with('/').then_some(path),
    }
}
