//! Translates the directive `tls` of a site of Caddy.

use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::hosts::HostDraft;
use crate::value::Value;

/// Translates `tls`. Settings of certificate authorities are global in RockNet.
pub(super) fn translate(directive: &Directive, host: &mut HostDraft, document: &mut Document) {
    let line = directive.line;
    match directive.words()[..] {
        [] => {}
        ["internal"] => host.tls_word = Some("local"),
        [email] if email.contains('@') => document.table("tls").set_default("email", Value::text(email), line),
        [cert, key] if !cert.contains('{') && !key.contains('{') => {
            host.tls.push(("cert".to_owned(), Value::text(cert)));
            host.tls.push(("key".to_owned(), Value::text(key)));
        }
        _ => host.site.skip(directive, "see docs/https.md for the settings of `tls`"),
    }
    for inner in directive.children() {
        let words = inner.words();
        match (inner.name.as_str(), &words[..]) {
            ("protocols", ["tls1.3", ..]) => host.tls.push(("min".to_owned(), Value::text("1.3"))),
            ("protocols" | "ciphers" | "curves" | "alpn", _) => {
                host.site
                    .unneeded(inner, "RockNet selects versions, ciphers and curves itself");
            }
            ("ca", [url]) => document.table("tls").set_default("ca", Value::text(*url), inner.line),
            ("ca_root", [file]) => document
                .table("tls")
                .set_default("ca_root", Value::text(*file), inner.line),
            ("issuer", ["internal"]) => host.tls_word = Some("local"),
            ("on_demand", _) => {
                host.site.skip(
                    inner,
                    "write `ask` in [tls], with the URL that decides which names get a certificate (docs/https.md)",
                );
            }
            ("dns", _) => {
                let message = "write `dns` in [tls], with a program or a server that changes the zone: docs/https.md";
                host.site.skip(inner, message);
            }
            ("client_auth", _) => client(inner, host),
            _ => host.site.skip(inner, "see docs/https.md for the settings of `tls`"),
        }
    }
}

/// Translates the requirement of client certificates. If no file of their authority is named, the site denies
/// every client.
fn client(block: &Directive, host: &mut HostDraft) {
    let mut is_known = false;
    for inner in block.children() {
        let words = inner.words();
        match (inner.name.as_str(), &words[..]) {
            ("mode", ["require_and_verify"]) => {}
            ("mode", ["verify_if_given"]) => host.tls.push(("client".to_owned(), Value::text("optional"))),
            ("trusted_ca_cert_file", files) => {
                is_known = true;
                host.tls
                    .push(("client_ca".to_owned(), Value::texts(files.iter().copied())));
            }
            ("trust_pool", ["file", files @ ..]) if !files.is_empty() => {
                is_known = true;
                host.tls
                    .push(("client_ca".to_owned(), Value::texts(files.iter().copied())));
            }
            _ => host.site.skip(inner, "write `client_ca` and `client` of `tls`"),
        }
    }
    if !is_known {
        host.site.settings.close(block.line);
        host.site.skip(
            block,
            "no file of an authority is named, so `deny = \"all\"` denies every client of the site: write `client_ca` \
             of `tls`",
        );
    }
}
