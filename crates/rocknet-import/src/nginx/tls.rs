//! Translates the directives `ssl_…` of a server.

use crate::directive::Directive;
use crate::document::Notes;
use crate::hosts::HostDraft;
use crate::units;
use crate::value::Value;

use super::scope::{Scope, constant};

/// Directives `ssl_…` of a server.
#[derive(Default)]
pub(super) struct TlsDraft<'a> {
    certificates: Vec<String>,
    keys: Vec<String>,
    /// Other settings of the key `tls`.
    rest: Vec<(String, Value)>,
    /// `ssl_verify_client`, unless it is `off`.
    verify: Option<&'a Directive>,
    client_ca: Option<String>,
    /// `ssl_crl`.
    crl: Option<&'a Directive>,
    /// True if all listeners use TLS: `ssl on`.
    pub all: bool,
    /// True if requests without TLS are redirected.
    pub redirects: bool,
}

/// Returns true for the directives that [`TlsDraft::read`] translates, and that a server inherits from `http`.
pub(super) fn is_tls(directive: &Directive) -> bool {
    const NAMES: [&str; 7] = [
        "ssl_certificate",
        "ssl_certificate_key",
        "ssl_protocols",
        "ssl_client_certificate",
        "ssl_verify_client",
        "ssl_crl",
        "ssl_early_data",
    ];
    NAMES.contains(&directive.name.as_str())
}

impl<'a> TlsDraft<'a> {
    /// Returns the directives of a server, preceded by the directives of `http` that the server does not replace.
    pub fn collect(server: &'a Directive, http: &[&'a Directive]) -> Vec<&'a Directive> {
        let is_own = |name: &str| server.children().iter().any(|own| own.is(name));
        let inherited = http.iter().copied().filter(|directive| !is_own(&directive.name));
        inherited.chain(server.children()).collect()
    }

    /// Reads a directive. Returns false if it cannot be translated to a key of `tls`.
    pub fn read(&mut self, directive: &'a Directive) -> bool {
        let words = directive.words();
        match (directive.name.as_str(), &words[..]) {
            ("ssl_certificate", [file]) if constant(file).is_some() => self.certificates.push((*file).to_owned()),
            ("ssl_certificate_key", [file]) if constant(file).is_some() => self.keys.push((*file).to_owned()),
            ("ssl_protocols", ["TLSv1.3"]) => self.rest.push(("min".to_owned(), Value::text("1.3"))),
            ("ssl_client_certificate", [file]) => self.client_ca = Some((*file).to_owned()),
            ("ssl_crl", [file]) if constant(file).is_some() => self.crl = Some(directive),
            ("ssl_early_data", ["on"]) => self.rest.push(("early_data".to_owned(), Value::Flag(true))),
            ("ssl_verify_client", ["off"]) | ("ssl_early_data", ["off"]) => {}
            ("ssl_verify_client", [_]) => self.verify = Some(directive),
            _ => return false,
        }
        true
    }

    /// Requires or requests client certificates, if the site has TLS. If they are required and no authority is named,
    /// the site denies every client.
    pub fn verify_clients(&mut self, host: &mut HostDraft) {
        let crl = self.crl.take();
        let Some(directive) = self.verify.filter(|_| host.is_tls()) else {
            if let Some(crl) = crl {
                host.site.unneeded(crl, "no client certificates are requested");
            }
            return;
        };
        let authority = self.client_ca.take();
        match (directive.argument(0), authority) {
            (mode @ ("on" | "optional"), Some(file)) => {
                self.rest.push(("client_ca".to_owned(), Value::Text(file)));
                if mode == "optional" {
                    self.rest.push(("client".to_owned(), Value::text("optional")));
                }
                if let Some(crl) = crl {
                    self.rest.push(("crl".to_owned(), Value::text(crl.argument(0))));
                }
            }
            ("on", None) => {
                host.site.settings.close(directive.line);
                let message = "no `ssl_client_certificate` is named, so `deny = \"all\"` denies every client of the \
                     site: write `client_ca` of `tls`";
                host.site.skip(directive, message);
                if let Some(crl) = crl {
                    host.site.skip(crl, "write `crl` of `tls`, too");
                }
            }
            _ => {
                let message = "no client certificates are requested: write `client_ca` and `client` of `tls`";
                host.site.skip_restriction(directive, message);
                if let Some(crl) = crl {
                    host.site.skip_restriction(crl, "write `crl` of `tls`, too");
                }
            }
        }
    }

    /// Returns the settings of the key `tls`.
    pub fn keys(self) -> Vec<(String, Value)> {
        let mut keys = Vec::new();
        if !self.certificates.is_empty() {
            keys.push(("cert".to_owned(), Value::texts(self.certificates)));
            if !self.keys.is_empty() {
                keys.push(("key".to_owned(), Value::texts(self.keys)));
            }
        }
        keys.extend(self.rest);
        // By default, RockNet redirects to HTTPS, and nginx does not.
        if !self.redirects {
            keys.push(("redirect".to_owned(), Value::Flag(false)));
        }
        keys
    }

    /// Sets the duration of `Strict-Transport-Security`.
    pub fn hsts(&mut self, scope: &Scope<'_>, host: &mut HostDraft) {
        let value = match &scope.hsts {
            Some((value, directive)) => match units::hsts(value) {
                Some((age, has_more)) => {
                    if has_more {
                        host.site.differs(
                            directive,
                            "only `max-age` is sent, without includeSubDomains and preload",
                        );
                    }
                    units::duration(age)
                }
                None => return host.site.skip(directive, "write `tls.hsts`"),
            },
            // RockNet sends the field by default, and browsers would remember it.
            None => "0s".to_owned(),
        };
        self.rest.push(("hsts".to_owned(), Value::Text(value)));
    }
}
