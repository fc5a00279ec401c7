//! Translates the global options of a Caddyfile.

use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::units;
use crate::value::Value;

/// Global options that sites depend on.
#[derive(Default)]
pub(super) struct CaddyOptions {
    /// True for `auto_https off`.
    pub has_no_https: bool,
    /// True for `auto_https disable_redirects`.
    pub has_no_redirects: bool,
    pub uses_local_certificates: bool,
}

impl CaddyOptions {
    /// Translates the block of the global options.
    pub fn read(&mut self, block: &Directive, document: &mut Document) {
        for directive in block.children() {
            let line = directive.line;
            match (directive.name.as_str(), &directive.words()[..]) {
                ("email", [email]) if !email.contains('{') => {
                    document.table("tls").set("email", Value::text(*email), line);
                }
                ("acme_ca", [url]) => document.table("tls").set("ca", Value::text(*url), line),
                ("acme_ca_root", [file]) => document.table("tls").set("ca_root", Value::text(*file), line),
                ("local_certs", []) => self.uses_local_certificates = true,
                ("auto_https", ["off"]) => self.has_no_https = true,
                ("auto_https", ["disable_redirects"]) => self.has_no_redirects = true,
                ("debug", []) => document.table("log").set("level", Value::text("debug"), line),
                ("admin", ["off"]) => {
                    document.unneeded(
                        directive,
                        "the control API is a Unix socket; admin.socket = \"off\" turns it off",
                    );
                }
                ("grace_period", [time]) => match units::duration_of(time) {
                    Some(time) => document.table("limits").set("shutdown", Value::Text(time), line),
                    None => document.skip(directive, "write `limits.shutdown`"),
                },
                ("order" | "persist_config" | "skip_install_trust", _) => {
                    document.unneeded(directive, "it has no meaning in RockNet");
                }
                ("on_demand_tls", _) => {
                    let ask = directive.children().iter().find(|inner| inner.is("ask"));
                    match ask {
                        Some(ask) => document.table("tls").set("ask", Value::text(ask.argument(0)), ask.line),
                        None => document.skip(directive, "write `ask` in [tls]"),
                    }
                }
                _ => document.skip(directive, "see docs/configuration.md for the global tables"),
            }
        }
    }
}
