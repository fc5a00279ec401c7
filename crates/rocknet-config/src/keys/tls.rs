//! Keys of `[tls]`, and of `tls` of a site.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field, list, quoted};
use crate::choice::{Choice, choice};
use crate::model::{CertificateSource, SiteTls, TlsVersion};

choice! {
    /// Short forms of `tls` of a site.
    #[derive(Copy)]
    pub enum Encryption {
        Auto = "auto", "with a certificate from a public CA, or from this machine's own CA for local names (`localhost`, \
            `*.test`, `*.internal`, addresses) and for every name in `dev` mode";
        Local = "local", "with a certificate from this machine's own CA";
        Off = "off", "without TLS";
    }
    default Auto
}

choice! {
    /// Issuer of the certificate of a site.
    #[derive(Copy)]
    pub enum Issuer {
        Auto = "auto", "a public CA, or this machine's own CA for local names";
        Local = "local", "this machine's own CA";
    }
    default Auto
}

choice! {
    /// Requirement of client certificates.
    #[derive(Copy)]
    pub enum ClientCertificate {
        Required = "required", "clients without a certificate are refused";
        Optional = "optional", "clients without a certificate are accepted, and applications see that they have none";
    }
    default Required
}

/// Sections of the keys that `[tls]` and `tls` of a site accept.
const BOTH: &[Section] = &[Section::Tls, Section::SiteTls];
const DAY_MS: u64 = 86_400_000;

/// Kind of the keys that name files with certificates or private keys.
const FILE: Kind = Kind::Text("PEM file");

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "tls",
        &[Section::Top],
        Kind::Table(Section::Tls),
        "TLS settings of all sites that use TLS.",
    ),
    Key::new(
        "tls",
        &[Section::Site],
        Kind::Either(&[Kind::Choice(Encryption::WORDS), Kind::Table(Section::SiteTls)]),
        "TLS of the site. Sites without a host name do not use TLS by default.",
    )
    .default(|| quoted(Encryption::default().word()))
    .group(SettingGroup::Site)
    .sets(&[Target::Site(bound!(
        render: |site, _| encryption(site.tls.as_ref()),
        nested: |site, rows| {
            if let Some(tls) = &site.tls {
                rows.table(Section::SiteTls, "tls", tls);
            }
        }
    ))])
    .example("tls = { cert = \"/etc/ssl/example.pem\", key = \"/etc/ssl/example.key\", min = \"1.3\" }")
    .foreign_names(&["ssl", "https", "SSLEngine", "certificate"]),
    Key::new(
        "cert",
        &[Section::SiteTls],
        Kind::Several(&FILE),
        "Certificate of the site with its chain. A list has one file for each type of key, ECDSA and RSA; each client \
         gets the one it supports. A changed file is reloaded within seconds; if it is invalid, an error is logged \
         and the old certificate stays in use.",
    )
    .example("cert = [\"ecdsa.pem\", \"rsa.pem\"]\nkey = [\"ecdsa.key\", \"rsa.key\"]")
    .foreign_names(&[
        "ssl_certificate",
        "SSLCertificateFile",
        "certificate-file",
        "ssl.pemfile",
    ]),
    Key::new(
        "key",
        &[Section::SiteTls],
        Kind::Several(&FILE),
        "Private key in PKCS#8, PKCS#1 or SEC1; a list in the order of `cert`. Without this setting, the private \
         key is read from the file of the certificate. A key file that every user of the machine can read is refused.",
    )
    .foreign_names(&[
        "ssl_certificate_key",
        "SSLCertificateKeyFile",
        "key-file",
        "ssl.privkey",
    ]),
    Key::new(
        "ocsp",
        &[Section::SiteTls],
        Kind::Several(&Kind::Text("DER file")),
        "OCSP response that is stapled to the certificate; a list in the order of `cert`.",
    )
    .sets(&[Target::SiteTls(bound!(
        render: |tls, _| match &tls.source {
            CertificateSource::Files(files) => Rendered::some_paths(files.iter().filter_map(|file| file.ocsp.as_ref())),
            _ => Rendered::Unset,
        }
    ))])
    .foreign_names(&["ssl_stapling_file", "SSLStaplingForceURL"]),
    Key::new(
        "issuer",
        &[Section::SiteTls],
        Kind::Choice(Issuer::WORDS),
        "Issuer of the certificate if `cert` is not set.",
    )
    .default(|| quoted(Issuer::default().word())),
    Key::new("min", BOTH, Kind::Choice(TlsVersion::WORDS), "Minimum version of TLS.")
        .sets(&[Target::Tls(field!(min)), Target::SiteTls(field!(min))])
        .example("min = \"1.3\"")
        .foreign_names(&["ssl_protocols", "SSLProtocol", "minimum-version", "protocols"]),
    Key::new(
        "redirect",
        BOTH,
        Kind::Boolean,
        "Redirects requests without TLS to https:// (308) if the site listens there. Challenges of certificate \
         authorities are still served without TLS.",
    )
    .sets(&[Target::Tls(field!(redirect)), Target::SiteTls(field!(redirect))])
    .example("redirect = false")
    .foreign_names(&["auto_https", "HTTPSRedirect", "https_redirect"]),
    Key::new(
        "early_data",
        BOTH,
        Kind::Boolean,
        "Accepts requests of returning clients in their first flight over HTTP/3 (0-RTT), which saves a round trip. An \
         attacker who records early data can send it again. Therefore only GET, HEAD and OPTIONS without a body, of \
         clients with a token of an earlier visit, are served before the handshake is complete. Other requests get \
         425, and clients repeat them. Upstreams and applications see `Early-Data: 1`. Sessions are kept in memory and \
         resumed once. Over TLS on TCP, and with `client_ca`, early data is never accepted.",
    )
    .sets(&[Target::Tls(field!(early_data)), Target::SiteTls(field!(early_data))])
    .example("early_data = true")
    .foreign_names(&["ssl_early_data", "allow_0rtt", "0rtt"]),
    Key::new(
        "hsts",
        BOTH,
        // The maximum is two years, which the preload lists of browsers recommend.
        Kind::Duration {
            min_ms: 0,
            max_ms: 730 * DAY_MS,
        },
        "Time for which browsers must use https:// for the site (`Strict-Transport-Security`). The field is sent only \
         over TLS; with `\"0s\"` it is not sent. In `dev` mode, with this machine's own CA, or without `redirect`, it is sent \
         only if the site sets this key.",
    )
    .sets(&[Target::Tls(field!(hsts)), Target::SiteTls(field!(hsts))])
    .example("hsts = \"365d\"")
    .foreign_names(&["strict_transport_security", "Strict-Transport-Security"]),
    Key::new(
        "client_ca",
        &[Section::SiteTls],
        Kind::Several(&FILE),
        "Certificate authorities that issue client certificates. Clients must present a certificate of one of them, \
         unless `client` is `\"optional\"`.",
    )
    .sets(&[Target::SiteTls(bound!(
        render: |tls, _| match &tls.client {
            None => Rendered::Unset,
            Some(client) => Rendered::paths(&client.ca),
        }
    ))])
    .foreign_names(&[
        "ssl_client_certificate",
        "SSLCACertificateFile",
        "client_auth",
        "trust_pool",
    ]),
    Key::new(
        "client",
        &[Section::SiteTls],
        Kind::Choice(ClientCertificate::WORDS),
        "Requirement of client certificates if `client_ca` is set.",
    )
    .default(|| quoted(ClientCertificate::default().word()))
    .sets(&[Target::SiteTls(bound!(
        render: |tls, _| match &tls.client {
            None => Rendered::Unset,
            Some(client) if client.required => Rendered::text(ClientCertificate::Required.word()),
            Some(_) => Rendered::text(ClientCertificate::Optional.word()),
        }
    ))])
    .foreign_names(&["ssl_verify_client", "SSLVerifyClient"]),
    Key::new(
        "crl",
        &[Section::SiteTls],
        Kind::Several(&Kind::Text("PEM or DER file")),
        "Lists of revoked client certificates (CRL). One is needed from each authority that issues certificates to clients \
         or to intermediate authorities. A certificate is refused if the list of its issuer contains it, or if its \
         issuer has no currently valid list. A changed file is read again within seconds, and applies to open \
         connections and resumed sessions, too.",
    )
    .sets(&[Target::SiteTls(bound!(
        render: |tls, _| match &tls.client {
            Some(client) if !client.crl.is_empty() => Rendered::paths(&client.crl),
            _ => Rendered::Unset,
        }
    ))])
    .foreign_names(&["ssl_crl", "SSLCARevocationFile"]),
];

/// Renders the origin of a site's certificate, in the short form if there is one.
fn encryption(tls: Option<&SiteTls>) -> Rendered {
    let Some(tls) = tls else {
        return Rendered::text(Encryption::Off.word());
    };
    let file = |path: &std::path::Path| quoted(&path.to_string_lossy());
    match &tls.source {
        CertificateSource::Auto => Rendered::text(Encryption::Auto.word()),
        CertificateSource::Local => Rendered::text(Encryption::Local.word()),
        CertificateSource::Files(all) => {
            let (certs, keys) = (
                all.iter().map(|one| file(&one.cert)),
                all.iter().map(|one| file(&one.key)),
            );
            Rendered::Value(format!("{{ cert = {}, key = {} }}", list(certs), list(keys)))
        }
    }
}
