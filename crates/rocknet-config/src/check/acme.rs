//! Checks the ACME keys of `[tls]`. Values of the wrong type are skipped, because module `check::keys` reports them.

use std::net::{IpAddr, SocketAddr};

use crate::choice::Choice;
use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::keys::acme::DNS_WAIT;
use crate::model::{Acme, AcmeCa, Challenge, Dns, DnsZone, KnownCa, Secret, SharedKey};
use crate::value::{path, typed};

/// Maximum number of certificate authorities. They are tried one after the other, so a long list delays the report of a
/// failure.
const MAX_CAS: usize = 16;

/// Returns the ACME settings of `[tls]`. Invalid values are reported, and are left out or replaced by the default.
pub(super) fn build(check: &mut Check<'_>, table: Option<&Table>) -> Acme {
    let base = Acme::default();
    let Some(table) = table else { return base };
    let dns = table.table("dns").and_then(|dns| self::dns(check, table, dns));
    let cas = table.node("ca").map(|node| cas(check, node)).unwrap_or_default();
    let ask = table.node("ask").and_then(|node| ask(check, node));
    Acme {
        email: table.node("email").and_then(|node| email(check, node)),
        cas: if cas.is_empty() { base.cas } else { cas },
        ca_root: table
            .node("ca_root")
            .and_then(|node| path::file(check, "ca_root", node)),
        challenges: challenges(check, table, dns.is_some()).unwrap_or(base.challenges),
        dns,
        ask,
    }
}

/// Reads `email`; `None` after an error.
fn email(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let text = node.as_text()?;
    // A comma would add a second address to the `mailto:` URL that is sent to the authority (RFC 6068 §2). A colon
    // shows that the operator wrote a URL.
    let good = text
        .split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !host.contains('@'))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b',' && byte != b':');
    if !good {
        check.error(
            Code::BadValue,
            node.span,
            "`email` takes one email address",
            "for example: email = \"me@example.com\"",
        );
        return None;
    }
    Some(text.to_owned())
}

/// Reads `ca`: one authority or several. Invalid elements are reported and left out.
fn cas(check: &mut Check<'_>, node: &Node) -> Vec<AcmeCa> {
    let items = typed::elements(node);
    if items.len() > MAX_CAS {
        check.error(
            Code::BadValue,
            node.span,
            format!("`ca` names more than {MAX_CAS} authorities"),
            "write fewer",
        );
        return Vec::new();
    }
    items.iter().filter_map(|item| ca(check, item)).collect()
}

/// Reads one authority, in the short form or as a table; `None` after an error.
fn ca(check: &mut Check<'_>, item: &Node) -> Option<AcmeCa> {
    let Some(table) = item.as_table() else {
        let url = url(check, item)?;
        return Some(AcmeCa { url, binding: None });
    };
    let Some(node) = table.node("url") else {
        let help = "write { url = \"https://…\", account = \"…\", secret = \"…\" }";
        check.error(Code::Missing, item.span, "the authority has no `url`", help);
        return None;
    };
    let url = url(check, node)?;
    let binding = shared_key(check, table, "account")?;
    Some(AcmeCa { url, binding })
}

/// Reads the URL of an ACME directory, or the name of a known authority; `None` after an error.
fn url(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let text = node.as_text()?;
    if let Some(known) = KnownCa::of(text) {
        return Some(known.url().to_owned());
    }
    let good = text
        .strip_prefix("https://")
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !good {
        let help = "write \"letsencrypt\", or the URL of an ACME directory, https://…";
        check.error(
            Code::BadValue,
            node.span,
            "`ca` takes the name of an authority or the URL of its ACME directory",
            help,
        );
        return None;
    }
    Some(text.to_owned())
}

/// Reads a key identifier and its secret, which must be set together. `name`: the key with the identifier.
/// The outer `None` means that an error has been reported. The inner `None` means that neither is set.
fn shared_key(check: &mut Check<'_>, table: &Table, name: &str) -> Option<Option<SharedKey>> {
    let (identifier, secret) = (table.node(name), table.node("secret"));
    match (identifier, secret) {
        (None, None) => Some(None),
        (Some(identifier), Some(secret)) => {
            let Some(bytes) = base64(secret.as_text()?) else {
                check.error(
                    Code::BadValue,
                    secret.span,
                    "`secret` is not Base64",
                    "write it exactly as you received it",
                );
                return None;
            };
            Some(Some(SharedKey {
                name: identifier.as_text()?.to_owned(),
                secret: Secret::new(bytes),
            }))
        }
        (Some(node), None) | (None, Some(node)) => {
            let message = format!("`{name}` and `secret` must be set together");
            check.error(Code::Missing, node.span, message, "write both, or neither");
            None
        }
    }
}

/// Reads `challenge`. `has_dns`: true if `dns` is set and valid. Without `challenge`, returns `dns-01` if `has_dns` is
/// true, and otherwise `None`, which selects the default. After an error, the list may be empty.
fn challenges(check: &mut Check<'_>, table: &Table, has_dns: bool) -> Option<Vec<Challenge>> {
    let Some(node) = table.node("challenge") else {
        return has_dns.then(|| vec![Challenge::Dns]);
    };
    let mut all = Vec::new();
    for (text, span) in typed::texts(node) {
        let Some(kind) = Challenge::of(&text.value) else {
            // The check of the keys has already reported an unknown word.
            continue;
        };
        // A `dns` that is present but invalid has already been reported.
        if kind == Challenge::Dns && !has_dns && table.node("dns").is_none() {
            let help = "write dns = { hook = \"…\" } or dns = { server = \"…\" } beside it";
            check.error(
                Code::Missing,
                span,
                "`dns-01` needs `dns`, the way to change the zone",
                help,
            );
        }
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    if matches!(&node.value, Value::List(items) if items.is_empty()) {
        check.error(
            Code::BadValue,
            node.span,
            "`challenge` is empty",
            "remove it, or name a challenge",
        );
    }
    Some(all)
}

/// Reads `dns` of `[tls]`. `tls`: the table that contains `dns`. `table`: the table of `dns`. Returns `None` after an
/// error.
fn dns(check: &mut Check<'_>, tls: &Table, table: &Table) -> Option<Dns> {
    let wait = typed::duration(Some(table), "wait").unwrap_or(DNS_WAIT);
    match (table.node("hook"), table.node("server")) {
        (Some(hook), None) => {
            let program = path::file(check, "hook", hook)?;
            for key in ["zone", "key", "secret"] {
                if let Some(entry) = table.entries.get(key) {
                    check.error(
                        Code::Conflict,
                        entry.key,
                        format!("`{key}` has no effect with `hook`"),
                        "remove it",
                    );
                }
            }
            Some(Dns::Hook { program, wait })
        }
        (None, Some(server)) => {
            let text = server.as_text()?;
            let address = text.parse::<SocketAddr>().ok();
            let address = address.or_else(|| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, DNS_PORT)));
            let Some(address) = address else {
                let help = "write server = \"10.0.0.53\", with a port if it is not 53: \"10.0.0.53:5353\"";
                check.error(Code::BadValue, server.span, "`server` takes an IP address", help);
                return None;
            };
            let key = shared_key(check, table, "key")?;
            let name = typed::text(Some(table), "zone").map(|zone| zone.trim_end_matches('.').to_ascii_lowercase());
            let zone = DnsZone {
                server: address,
                name,
                key,
            };
            Some(Dns::Update { zone, wait })
        }
        (hook, _) => {
            let what = if hook.is_some() {
                "`dns` has both `hook` and `server`"
            } else {
                "`dns` has neither `hook` nor `server`"
            };
            let span = tls.node("dns")?.span;
            check.error(Code::Missing, span, what, "write one of `hook` and `server`");
            None
        }
    }
}

/// Reads `ask`: the URL that the server queries before it requests a certificate on demand. Returns `None` after an
/// error.
fn ask(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let text = node.as_text()?;
    let host = text
        .strip_prefix("http://")
        .map(|rest| rest.split('/').next().unwrap_or_default());
    // The query is sent without TLS, so `https://` is refused. The URL needs a host. A user name and a fragment are
    // refused, because the request to the URL does not send them. A `?` needs a path before it.
    let good = host.is_some_and(|host| !host.is_empty() && !host.starts_with(':') && !host.contains(['@', '?']))
        && !text.contains('#')
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !good {
        let help = "for example: ask = \"http://127.0.0.1:9123/may-have\"";
        check.error(Code::BadValue, node.span, "`ask` takes an http:// URL", help);
        return None;
    }
    Some(text.to_owned())
}

/// Decodes Base64 in either alphabet (RFC 4648 §4 and §5), with or without padding, because keys are issued in both
/// alphabets. Returns `None` if the text is empty or is not Base64.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim().trim_end_matches('=');
    // A single character after the groups of four holds 6 bits, which is less than a byte.
    if text.is_empty() || text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut buffer, mut bits) = (0u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        buffer = buffer << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits) as u8);
            buffer &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

/// Port of the DNS (RFC 1035 §4.2).
const DNS_PORT: u16 = 53;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_in_both_alphabets_and_invalid_text_is_refused() {
        for (text, expected) in [
            ("Zm9v", Some(&b"foo"[..])),
            ("Zm8=", Some(b"fo")),
            ("Zm8", Some(b"fo")),
            ("Zg==", Some(b"f")),
            ("+/+/", Some(&[0xfb, 0xff, 0xbf])),
            ("-_-_", Some(&[0xfb, 0xff, 0xbf])),
            ("", None),
            ("Z", None),
            ("Zm9vY", None),
            ("Zm 9v", None),
        ] {
            assert_eq!(base64(text).as_deref(), expected, "{text:?}");
        }
    }
}
