//! Tests that `rocknet explain` shows the keys of the table.

mod fixture;

use rocknet_config::explain;
use rocknet_config::keys::{self, Kind, Section};

use fixture::{config_with, parse};

/// Returns the row of an explanation that shows a key, and true if that row shows the whole table of the key. Returns
/// `None` for a section whose keys are not explained.
fn row_of(section: Section, name: &str) -> Option<(String, bool)> {
    // Row of the whole table, and the keys that only this row shows. Other keys of the table have rows of their own.
    let (table, in_its_value): (_, &[&str]) = match section {
        Section::Site | Section::Route => ("", &[]),
        Section::SiteLimits => ("limits", &[]),
        Section::SiteLog => ("log", &["access", "format"]),
        Section::SiteTls => ("tls", &["cert", "key", "issuer"]),
        Section::Proxy => ("proxy", &["to"]),
        Section::Upstream => ("proxy", &["url", "weight", "drain", "backup"]),
        Section::Health => ("proxy.health", &["path"]),
        Section::Mirror => ("proxy.mirror", &["to"]),
        Section::Application => ("fastcgi", &["to"]),
        Section::Cgi => ("cgi", &["folder"]),
        Section::Php => ("php", &["version"]),
        Section::Browse => ("browse", &[]),
        Section::Zip => ("browse.zip", &[]),
        Section::ResponseCache => ("cache", &[]),
        Section::Auth => (
            "auth",
            &[
                "realm",
                "users",
                "file",
                "forward",
                "headers",
                "user_field",
                "sign_in",
                "timeout",
                "signed",
                "certificate",
                "oidc",
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
            ],
        ),
        Section::Certificate => return Some(("auth".to_owned(), true)),
        Section::Limit => (
            "limit",
            &[
                "rate",
                "connections",
                "bandwidth",
                "after",
                "burst",
                "key",
                "delay",
                "exempt",
                "dry_run",
            ],
        ),
        Section::Redirect => ("redirects./a", &["to", "status"]),
        Section::Rule => return Some(("rule 1".to_owned(), true)),
        _ => return None,
    };
    Some(match (table, in_its_value.contains(&name)) {
        ("", _) => (name.to_owned(), false),
        (table, true) => (table.to_owned(), true),
        (table, false) => (format!("{table}.{name}"), false),
    })
}

/// Fails for a key whose definition has no `sets`: the server would read such a key, but `rocknet explain` would not
/// show it.
#[test]
fn explain_shows_every_key_of_a_site_and_a_route() {
    let mut seen = 0;
    for section in Section::ALL {
        for key in keys::within(*section) {
            let Some((row, is_table)) = row_of(*section, key.name) else {
                continue;
            };
            let example = match (section, key.name) {
                // `route` itself has no value to show. The keys of routes are tested in `Section::Route`.
                (_, "route") => continue,
                // A disabled site is not explained.
                (_, "enabled") => continue,
                (_, "fallback") => "fallback = false",
                (Section::Redirect, "to") => "to = \"/b\"",
                (Section::Rule, "path") => "path = \"/a/*\"",
                (Section::Rule, "exists_at") => "exists = \"file\"\nexists_at = \"/x\"",
                (Section::Redirect, _) => "status = 302",
                (Section::SiteTls, "issuer") => "issuer = \"local\"",
                (Section::SiteTls, "key") => "cert = \"a.pem\"\nkey = \"a.key\"",
                (Section::SiteTls, "ocsp") => "cert = \"a.pem\"\nocsp = \"a.der\"",
                (Section::SiteTls, "client_ca") => "client_ca = \"ca.pem\"",
                (Section::SiteTls, "crl") => "crl = \"revoked.crl\"",
                (Section::SiteTls, "client") => "client_ca = \"ca.pem\"\nclient = \"optional\"",
                _ => key.example,
            };
            let text = match (section, key.name) {
                (Section::Site, "rule") => config_with(Section::Rule, "path = \"/a/*\""),
                (Section::Redirect, "to") => {
                    config_with(Section::Site, &format!("redirects = {{ \"/a\" = {{ {example} }} }}"))
                }
                (Section::Upstream, "drain" | "backup") => {
                    let to = format!("[\"http://b\", {{ url = \"http://a\", {example} }}]");
                    config_with(Section::Site, &format!("proxy = {{ to = {to} }}"))
                }
                _ => config_with(*section, example),
            };
            let config = parse(&text).unwrap_or_else(|report| panic!("{text}\n{report}"));
            // The rules of these configurations are for `/a/*`, and their routes for `/x/*`.
            let path = if row == "rule 1" || key.name == "rule" {
                "/a/x"
            } else {
                "/x/a"
            };
            let explained = explain::explain(&config, "example.com", None, path).unwrap();
            let row = if key.name == "rule" { "rule 1" } else { &row };
            let found = explained.settings.iter().find(|applied| {
                let rest = applied.key.strip_prefix(row);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            let Some(found) = found else {
                panic!("explain does not show `{}` of {}:\n{text}", key.name, section.header());
            };
            assert!(found.span.is_some(), "no line for `{row}`:\n{text}");
            let written = example.rsplit_once(" = ").map(|(_, value)| value).unwrap_or_default();
            match &key.kind {
                Kind::Map { .. } | Kind::Either([Kind::Map { .. }, ..]) => {}
                // A secret is hidden.
                _ if key.name == "client_secret" => assert!(!found.value.contains("VGhl"), "{found:?}"),
                _ if is_table => {
                    // Only the first string of the example is compared. It is only a part of the shown value, because
                    // files are shown with their folders.
                    let first = written.trim_matches(['[', ']', '"', ' ', '}']).split('"').next();
                    let name = first.unwrap_or_default();
                    assert!(found.value.contains(name), "{found:?} does not contain {name}:\n{text}");
                }
                Kind::Boolean | Kind::Integer { .. } | Kind::Duration { .. } | Kind::Size { .. } | Kind::Choice(_) => {
                    assert_eq!(found.value, written, "{text}");
                }
                _ => {}
            }
            seen += 1;
        }
    }
    // A smaller number would mean that the loop skips keys by mistake.
    assert!(seen > 110, "{seen} keys");
}
