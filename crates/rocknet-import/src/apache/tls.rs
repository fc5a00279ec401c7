//! Translates the directives `SSL…` of a host.

use crate::directive::Directive;
use crate::document::Notes;
use crate::hosts::HostDraft;
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

use super::context::ServerContext;
use super::inherit;

/// Beginnings of the names of directives that RockNet does not need, in lower case.
const UNNEEDED: [&str; 14] = [
    "sslciphersuite",
    "sslhonorcipherorder",
    "sslprotocol",
    "sslsession",
    "sslcompression",
    "sslusestapling",
    "sslstapling",
    "sslrandomseed",
    "sslopensslconfcmd",
    "sslinsecurerenegotiation",
    "sslcryptodevice",
    "sslstrictsnivhostcheck",
    "sslproxyengine",
    "sslpolicy",
];

/// Directives `SSL…` of a host.
#[derive(Default)]
pub(super) struct ApacheTls {
    /// True if `SSLEngine` is on.
    pub is_on: bool,
    certificates: Vec<String>,
    keys: Vec<String>,
    /// Other settings of the key `tls`.
    rest: Vec<(String, Value)>,
    /// `SSLVerifyClient`, unless it is `none`.
    verify: Option<Directive>,
    /// The directive `SSLCACertificateFile`, if there is one, and the file that it names.
    client_ca: Option<(Directive, String)>,
    /// The directive `SSLCARevocationFile`, if there is one, and the file that it names.
    crl: Option<(Directive, String)>,
    /// True for `SSLCARevocationCheck chain`.
    checks_chain: bool,
    /// Restrictions without a counterpart in RockNet, such as folders of revocation lists.
    unsupported: Vec<Directive>,
}

impl ApacheTls {
    /// Reads a directive. Returns false if it does not concern TLS.
    pub fn read(&mut self, directive: &Directive, host: &mut HostDraft, context: &ServerContext) -> bool {
        let words: Vec<String> = directive
            .arguments
            .iter()
            .filter_map(|word| context.expand(word))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
            ("sslengine", [on]) => self.is_on = on.eq_ignore_ascii_case("on"),
            ("sslcertificatefile", [file]) => self.certificates.push((*file).to_owned()),
            ("sslcertificatekeyfile", [file]) => self.keys.push((*file).to_owned()),
            ("sslcertificatechainfile", [_]) => {
                host.site.skip(
                    directive,
                    "the file that `cert` names must contain the whole chain: append this file to it",
                );
            }
            ("sslcacertificatefile", [file]) => {
                self.client_ca = Some((directive.clone(), (*file).to_owned()));
            }
            ("sslverifyclient", [mode]) => {
                self.verify = (!mode.eq_ignore_ascii_case("none")).then(|| directive.clone());
            }
            ("sslcarevocationfile", [file]) => self.crl = Some((directive.clone(), (*file).to_owned())),
            ("sslcarevocationcheck", [mode, ..]) => self.checks_chain = mode.eq_ignore_ascii_case("chain"),
            ("sslrequire" | "sslcarevocationfile" | "sslcarevocationpath", _) => {
                self.unsupported.push(directive.clone());
            }
            ("sslrequiressl", _) => {
                let keys = vec![("scheme", Value::text("http")), ("respond", Value::Number(403))];
                host.site.rule(directive, keys);
            }
            ("sslprotocol", words)
                if words
                    .last()
                    .is_some_and(|word| *word == "TLSv1.3" || *word == "+TLSv1.3") =>
            {
                // Otherwise TLS 1.2 is permitted too, as by default.
                if words.iter().all(|word| word.ends_with("TLSv1.3") || *word == "-all") {
                    self.rest.push(("min".to_owned(), Value::text("1.3")));
                }
            }
            ("header", ["always", "set", name, value] | ["set", name, value])
                if name.eq_ignore_ascii_case("Strict-Transport-Security") =>
            {
                match units::hsts(value) {
                    Some((age, has_more)) => {
                        if has_more {
                            let message = "only `max-age` is sent, without includeSubDomains and preload";
                            host.site.differs(directive, message);
                        }
                        self.rest.retain(|(key, _)| key != "hsts");
                        self.rest.push(("hsts".to_owned(), Value::Text(units::duration(age))));
                    }
                    None => host.site.skip(directive, "write `tls.hsts`"),
                }
            }
            (name, _) if UNNEEDED.iter().any(|start| name.starts_with(start)) => {
                host.site.unneeded(
                    directive,
                    "RockNet selects ciphers, sessions and other details of TLS itself",
                );
            }
            (name, _) if name.starts_with("sslproxy") => {
                host.site
                    .skip(directive, "see docs/proxy.md for the settings of `proxy`");
            }
            (name, _) if name.starts_with("ssl") => {
                host.site.skip(directive, "see docs/https.md for the settings of `tls`");
            }
            _ => return false,
        }
        true
    }

    /// Translates the directives about client certificates. A host with TLS denies all requests if it requires
    /// certificates without naming their authority, or has a restriction without a counterpart. Revocation lists
    /// restrict nothing without `SSLVerifyClient`. Adds notes about directives that have no effect.
    pub fn verify_clients(&mut self, host: &mut HostDraft) {
        let verify = self.verify.take();
        let unsupported = std::mem::take(&mut self.unsupported);
        if !self.is_on {
            let message = "it was left out: the host has no `SSLEngine on`";
            let crl = self.crl.take().map(|(directive, _)| directive);
            for directive in verify.iter().chain(&unsupported).chain(&crl) {
                host.site.skip_restriction(directive, message);
            }
        } else if verify.is_some() || unsupported.iter().any(|directive| directive.is("SSLRequire")) {
            for directive in &unsupported {
                close(host, directive.line);
                let message =
                    "this restriction has no counterpart, so `deny = \"all\"` denies every client of the site";
                host.site.skip(directive, message);
            }
        } else {
            for directive in &unsupported {
                host.site.skip(directive, "the host requires no client certificates");
            }
        }
        match verify.filter(|_| self.is_on) {
            Some(directive) => {
                self.require_certificates(&directive, host);
                if let Some((crl, _)) = self.crl.take() {
                    let message = "write `crl` of `tls`, too";
                    match host.site.settings.is_closed() {
                        true => host.site.skip(&crl, message),
                        false => host.site.skip_restriction(&crl, message),
                    }
                }
            }
            None => {
                if let Some((directive, _)) = self.client_ca.take() {
                    let message =
                        "the host requires no client certificates, but `client_ca` of `tls` would require them";
                    host.site.skip(&directive, message);
                }
                if let Some((crl, _)) = self.crl.take() {
                    host.site.skip(&crl, "the host requires no client certificates");
                }
            }
        }
    }

    /// Translates `SSLVerifyClient`.
    fn require_certificates(&mut self, directive: &Directive, host: &mut HostDraft) {
        let mode = directive.argument(0).to_ascii_lowercase();
        match (mode.as_str(), self.client_ca.take()) {
            (mode @ ("require" | "optional"), Some((_, file))) => {
                self.rest.push(("client_ca".to_owned(), Value::Text(file)));
                if mode == "optional" {
                    self.rest.push(("client".to_owned(), Value::text("optional")));
                }
                if let Some((crl, file)) = self.crl.take() {
                    self.rest.push(("crl".to_owned(), Value::Text(file)));
                    if !self.checks_chain {
                        let message =
                            "a list is needed for each authority of the chain, as with `SSLCARevocationCheck chain`";
                        host.site.differs(&crl, message);
                    }
                }
            }
            ("optional" | "optional_no_ca", _) => host.site.skip_restriction(
                directive,
                "no client certificates are requested: write `client_ca` and `client` of `tls`",
            ),
            _ => {
                close(host, directive.line);
                let message = "no `SSLCACertificateFile` is named, so `deny = \"all\"` denies every client of the \
                     site: write `client_ca` of `tls`";
                host.site.skip(directive, message);
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
        let has_hsts = self.rest.iter().any(|(key, _)| key == "hsts");
        keys.extend(self.rest);
        if !has_hsts {
            // RockNet sends `Strict-Transport-Security` by default, and browsers would remember it.
            keys.push(("hsts".to_owned(), Value::text("0s")));
        }
        // Apache does not redirect to HTTPS by itself. `hosts` removes the key from sites that redirect, and from those
        // without a listener in clear text.
        keys.push(("redirect".to_owned(), Value::Flag(false)));
        keys
    }
}

/// Denies all requests of a host, in all its routes (`deny = "all"`), because a restriction by TLS applies to each of
/// them.
fn close(host: &mut HostDraft, line: usize) {
    let mut closed = Settings::default();
    closed.close(line);
    inherit::add(&mut host.site, "/*", line, &closed, true);
}
