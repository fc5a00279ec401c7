//! Parses `oidc` of `auth`: the login by a provider of OpenID Connect.

use std::time::Duration;

use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Oidc, Secret};
use crate::value::typed;

/// Keys that have an effect only together with `oidc`.
const OWN_KEYS: [&str; 13] = [
    "client_id",
    "client_secret",
    "scopes",
    "callback",
    "logout",
    "after_logout",
    "user_claim",
    "groups_claim",
    "groups",
    "emails",
    "trust_email",
    "lifetime",
    "idle",
];

/// Maximum length of a URL, path or scope, in bytes. A longer one is surely a mistake.
const MAX_URL: usize = 500;

/// Maximum number of names in one list. The user of each request is compared with all of them.
const MAX_NAMES: usize = 1_000;

const EXAMPLE: &str = "write auth = { oidc = \"https://id.example.com/\", client_id = \"app\", client_secret = \"…\" }";

/// Reads the provider of an `auth` with the key `oidc`; `None` after an error. `node`: value of `oidc`. `inherited`:
/// provider of the site, for a route.
pub(crate) fn build(check: &mut Check<'_>, table: &Table, node: &Node, inherited: Option<Oidc>) -> Option<Oidc> {
    for other in ["file", "realm", "forward", "headers", "user_field", "sign_in"] {
        if let Some(entry) = table.entries.get(other) {
            let message = format!("`oidc` cannot be combined with `{other}`");
            check.error(
                Code::Conflict,
                entry.key,
                message,
                "remove one of them: the provider checks passwords itself",
            );
        }
    }
    let mut oidc = base(check, table, node, inherited)?;
    if let Some(written) = table.node("client_secret").and_then(Node::written) {
        oidc.client_secret = Some(Secret::new(written.value.trim().as_bytes().to_vec()));
        if written.value.trim().is_empty() {
            let span = table.node("client_secret").map_or(node.span, |node| node.span);
            check.bad_text(
                written,
                span,
                "`client_secret` is empty",
                "remove it for a public client",
            );
        }
    }
    if let Some(node) = table.node("scopes") {
        oidc.scopes = scopes(check, node);
    }
    for (key, path) in [("callback", &mut oidc.callback), ("logout", &mut oidc.logout)] {
        if let Some(node) = table.node(key)
            && let Some(text) = own_path(check, key, node)
        {
            *path = text;
        }
    }
    if oidc.callback == oidc.logout {
        let message = "`callback` and `logout` are the same path";
        check.error(Code::Conflict, node.span, message, "write two different paths");
    }
    if let Some(node) = table.node("after_logout")
        && let Some(written) = node.written()
    {
        match is_url(&written.value) {
            true => oidc.after_logout = Some(written.value.clone()),
            false => {
                let message = format!("`after_logout`: \"{}\" is not a URL", short(typed::as_written(node)));
                check.bad_text(
                    written,
                    node.span,
                    message,
                    "write a URL with its scheme: \"https://www.example.com/\"",
                );
            }
        }
    }
    for (key, name) in [
        ("user_claim", &mut oidc.user_claim),
        ("groups_claim", &mut oidc.groups_claim),
    ] {
        if let Some(node) = table.node(key)
            && let Some(written) = node.written()
        {
            match is_name(&written.value) {
                true => *name = written.value.clone(),
                false => check.bad_text(
                    written,
                    node.span,
                    format!("`{key}` is not the name of a claim"),
                    NAME_HELP,
                ),
            }
        }
    }
    for (key, list) in [
        ("groups", &mut oidc.groups),
        ("emails", &mut oidc.emails),
        ("users", &mut oidc.users),
    ] {
        if let Some(node) = table.node(key) {
            *list = names(check, key, node)?;
        }
    }
    if let Some(node) = table.node("emails") {
        check_emails(check, node);
    }
    let table = Some(table);
    oidc.trust_email = typed::boolean(table, "trust_email").unwrap_or(oidc.trust_email);
    oidc.lifetime = typed::duration(table, "lifetime").unwrap_or(oidc.lifetime);
    oidc.idle = typed::duration(table, "idle").unwrap_or(oidc.idle);
    let timeout = typed::duration(table, "timeout").unwrap_or(oidc.timeout);
    // Less than 1 ms was reported as out of range.
    oidc.timeout = timeout.max(Duration::from_millis(1));
    Some(oidc)
}

/// Reads `oidc` and `client_id`, or takes the provider of the site.
fn base(check: &mut Check<'_>, table: &Table, node: &Node, inherited: Option<Oidc>) -> Option<Oidc> {
    let written = match &node.value {
        Value::Boolean(true) => {
            if inherited.is_none() {
                let message = "`oidc = true` takes the provider of the site, and the site has none";
                check.error(Code::Missing, node.span, message, EXAMPLE);
            }
            let mut oidc = inherited?;
            if let Some(node) = table.node("client_id") {
                oidc.client_id = client_id(check, node)?;
            }
            return Some(oidc);
        }
        Value::Boolean(false) => {
            let help = "write auth = false to turn authentication off";
            check.error(Code::BadValue, node.span, "`oidc = false` names no provider", help);
            return None;
        }
        Value::Text(written) => written,
        _ => return None,
    };
    let issuer = &written.value;
    if !is_url(issuer) || issuer.contains('?') {
        let message = format!(
            "`oidc`: \"{}\" is not the URL of an issuer",
            short(typed::as_written(node))
        );
        check.bad_text(
            written,
            node.span,
            message,
            "write a URL without query: \"https://id.example.com/\"",
        );
        return None;
    }
    if issuer.ends_with("/.well-known/openid-configuration") {
        let message = "`oidc` takes the issuer, not the address of its metadata";
        check.bad_text(
            written,
            node.span,
            message,
            "remove /.well-known/openid-configuration from the URL",
        );
        return None;
    }
    if issuer.starts_with("http://") && !is_loopback(issuer) {
        let message = "the provider is reached without TLS, so others in the network can log in as any user";
        check.warning(Code::Dangerous, node.span, message, "write https://");
    }
    let Some(id) = table.node("client_id") else {
        check.error(Code::Missing, node.span, "`oidc` has no `client_id`", EXAMPLE);
        return None;
    };
    Some(Oidc::at(issuer.clone(), client_id(check, id)?))
}

fn client_id(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let written = node.written()?;
    if !is_name(&written.value) {
        let message = format!(
            "`client_id`: \"{}\" is not an identifier",
            short(typed::as_written(node))
        );
        check.bad_text(
            written,
            node.span,
            message,
            "write the identifier that the provider shows",
        );
        return None;
    }
    Some(written.value.clone())
}

/// Reports the keys that belong to `oidc` in an `auth` without `oidc`.
pub(crate) fn report_unused(check: &mut Check<'_>, table: &Table) {
    if table.node("oidc").is_some() {
        // The table has `certificate`, too. `certificate_rule::build` reports that the two cannot be combined.
        return;
    }
    for name in OWN_KEYS {
        if let Some(entry) = table.entries.get(name) {
            let message = format!("`{name}` has no effect without `oidc`");
            check.error(Code::Missing, entry.key, message, EXAMPLE);
        }
    }
    if let Some(node) = table.node("users")
        && !matches!(node.value, Value::Table(_) | Value::Broken)
    {
        let help = "write users = { bob = \"…\" } with a hash from `rocknet hash-password`";
        check.error(
            Code::BadValue,
            node.span,
            "a list of `users` has no effect without `oidc`",
            help,
        );
    }
}

/// Returns true for the URL of an issuer or of a page: with a host, and without a user or a fragment.
fn is_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_url_byte = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte);
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        !host.is_empty() && !host.contains('@')
    }) && url.len() <= MAX_URL
        && url.bytes().all(is_url_byte)
}

/// Returns true if the host of a URL is this machine.
fn is_loopback(url: &str) -> bool {
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = match host.rsplit_once(':') {
        Some((host, port)) if is_port(port) => host,
        _ => host,
    };
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Reads a path of the site that RockNet serves itself.
fn own_path(check: &mut Check<'_>, key: &str, node: &Node) -> Option<String> {
    let written = node.written()?;
    let text = &written.value;
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let has_segments = text
        .split('/')
        .skip(1)
        .all(|segment| !segment.is_empty() && segment != "." && segment != "..");
    if !text.starts_with('/') || text.len() > MAX_URL || !text.bytes().all(is_path) || !has_segments {
        let message = format!(
            "`{key}`: \"{}\" is not a path of the site",
            short(typed::as_written(node))
        );
        let help = format!("write a path of letters, digits, `-`, `.`, `_` and `/`: {key} = \"/oidc/{key}\"");
        check.bad_text(written, node.span, message, help);
        return None;
    }
    Some(text.clone())
}

/// Reads `scopes`. Invalid ones are reported and left out.
fn scopes(check: &mut Check<'_>, node: &Node) -> Vec<String> {
    let mut scopes = vec!["openid".to_owned()];
    for (text, span) in typed::texts(node) {
        let scope = &text.value;
        // RFC 6749 §3.3.
        let is_scope = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if scope.is_empty() || scope.len() > MAX_URL || !scope.bytes().all(is_scope) {
            let message = format!("\"{}\" is not a scope", short(scope));
            check.bad_text(
                text,
                span,
                message,
                "write a list of scopes without spaces: [\"openid\", \"email\"]",
            );
        } else if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    scopes
}

const NAME_HELP: &str = "write 1 to 255 characters without control characters";

/// Reads a list of names; `None` if it is empty or has an invalid name, because it would then admit other users than
/// those that are meant.
fn names(check: &mut Check<'_>, key: &str, node: &Node) -> Option<Vec<String>> {
    if let Value::Table(_) = &node.value {
        let help = "write a list of names: users = [\"ann\", \"bob\"]";
        check.error(
            Code::BadValue,
            node.span,
            format!("`{key}` takes no passwords together with `oidc`"),
            help,
        );
        return None;
    }
    let texts: Vec<_> = typed::texts(node).collect();
    if texts.is_empty() || texts.len() > MAX_NAMES {
        let message = format!("`{key}` has to have 1 to {MAX_NAMES} names");
        check.error(Code::BadValue, node.span, message, "remove the key to admit every user");
        return None;
    }
    let mut names = Vec::new();
    for (text, span) in texts {
        if !is_name(&text.value) {
            check.bad_text(
                text,
                span,
                format!("\"{}\" cannot be in `{key}`", short(&text.value)),
                NAME_HELP,
            );
            return None;
        }
        names.push(text.value.clone());
    }
    Some(names)
}

/// Reports elements of `emails` that are neither an address nor a domain.
fn check_emails(check: &mut Check<'_>, node: &Node) {
    for (text, span) in typed::texts(node) {
        let domain = text.value.rsplit_once('@').map(|(_, domain)| domain);
        let is_address = domain.is_some_and(|domain| !domain.is_empty() && !domain.contains('*'));
        if !is_address || text.value.contains(char::is_whitespace) {
            let message = format!(
                "`emails`: \"{}\" is neither an address nor a domain",
                short(&text.value)
            );
            check.bad_text(
                text,
                span,
                message,
                "write \"ann@example.com\", or \"@example.com\" for a domain",
            );
        }
    }
}

/// Returns true for a name of 1 to 255 bytes, the maximum of the claim `sub` (OpenID Connect Core §2).
fn is_name(text: &str) -> bool {
    (1..=255).contains(&text.len()) && !text.contains(char::is_control)
}
