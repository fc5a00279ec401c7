//! Keys of `[tls]` and of a site's own `tls`: encryption and certificates.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field, list, quoted};
use crate::choice::{Choice, choice};
use crate::model::{CertificateSource, SiteTls, TlsVersion};

choice! {
    /// The short forms of a site's `tls`.
    #[derive(Copy)]
    pub enum Encryption {
        Auto = "auto", "a certificate by itself: of a public CA, or of this machine's own for names that only it knows \
            (`localhost`, `*.test`, `*.internal`, addresses) and for every name in `dev` mode";
        Local = "local", "a certificate of this machine's own CA";
        Off = "off", "in the clear";
    }
    default Auto
}

choice! {
    /// The authority that makes the certificate of a site.
    #[derive(Copy)]
    pub enum Issuer {
        Auto = "auto", "a public CA, or this machine's own where no public one can help";
        Local = "local", "this machine's own CA";
    }
    default Auto
}

choice! {
    /// The demand for a certificate of the client.
    #[derive(Copy)]
    pub enum ClientCertificate {
        Required = "required", "nobody enters without";
        Optional = "optional", "who has none enters too, and is known to have none";
    }
    default Required
}

const BOTH: &[Section] = &[Section::Tls, Section::SiteTls];
const DAY_MS: u64 = 86_400_000;

const FILE: Kind = Kind::Text("PEM file");

pub(super) const KEYS: &[Key] = &[
    Key::new("tls", &[Section::Top], Kind::Table(Section::Tls), "Encryption, for all sites that have it."),
    Key::new(
        "tls",
        &[Section::Site],
        Kind::Either(&[
            Kind::Choice(Encryption::WORDS),
            Kind::Table(Section::SiteTls),
        ]),
        "Encryption of the site. Sites without a host name are in the clear unless they say otherwise.",
    )
    .default(|| quoted(Encryption::default().word()))
    .group(SettingGroup::Site)
    .sets(&[Target::Site(bound!(
        render |site, _| encryption(site.tls.as_ref()),
        nested |site, rows| {
            if let Some(tls) = &site.tls {
                rows.table(Section::SiteTls, "tls", tls);
            }
        }
    ))])
    .example("tls = { cert = \"/etc/ssl/example.pem\", key = \"/etc/ssl/example.key\", min = \"1.3\" }")
    .elsewhere(&["ssl", "https", "SSLEngine", "certificate"]),
    Key::new(
        "cert",
        &[Section::SiteTls],
        Kind::Several(&FILE),
        "The site's certificate with its chain. A list holds one file for each kind of key, ECDSA and RSA; what a client \
         understands is chosen for it. A file that changes is taken up within seconds; one that is broken is told, and \
         the old stays.",
    )
    .example("cert = [\"ecdsa.pem\", \"rsa.pem\"]\nkey = [\"ecdsa.key\", \"rsa.key\"]")
    .elsewhere(&["ssl_certificate", "SSLCertificateFile", "certificate-file", "ssl.pemfile"]),
    Key::new(
        "key",
        &[Section::SiteTls],
        Kind::Several(&FILE),
        "The private key, PKCS#8, PKCS#1 or SEC1; a list in the order of `cert`. Without it the key is looked for in the \
         file of the certificate. A key that others may read is refused with a warning.",
    )
    .elsewhere(&["ssl_certificate_key", "SSLCertificateKeyFile", "key-file", "ssl.privkey"]),
    Key::new(
        "ocsp",
        &[Section::SiteTls],
        Kind::Several(&Kind::Text("DER file")),
        "An OCSP response to staple to the certificate; a list in the order of `cert`.",
    )
    .sets(&[Target::SiteTls(bound!(render |tls, _| match &tls.source {
        CertificateSource::Files(files) => Rendered::some_paths(files.iter().filter_map(|file| file.ocsp.as_ref())),
        _ => Rendered::Unset,
    }))])
    .elsewhere(&["ssl_stapling_file", "SSLStaplingForceURL"]),
    Key::new(
        "issuer",
        &[Section::SiteTls],
        Kind::Choice(Issuer::WORDS),
        "Who makes the certificate, where no file is named.",
    )
    .default(|| quoted(Issuer::default().word())),
    Key::new(
        "min",
        BOTH,
        Kind::Choice(TlsVersion::WORDS),
        "The oldest version of TLS that is spoken.",
    )
    .sets(&[Target::Tls(field!(min)), Target::SiteTls(field!(min))])
    .example("min = \"1.3\"")
    .elsewhere(&["ssl_protocols", "SSLProtocol", "minimum-version", "protocols"]),
    Key::new(
        "redirect",
        BOTH,
        Kind::Boolean,
        "Whether requests in the clear are sent to the same place under https:// (308), where the site listens there too. \
         Challenges of certificate authorities are answered in the clear all the same.",
    )
    .sets(&[Target::Tls(field!(redirect)), Target::SiteTls(field!(redirect))])
    .example("redirect = false")
    .elsewhere(&["auto_https", "HTTPSRedirect", "https_redirect"]),
    Key::new(
        "hsts",
        BOTH,
        // Two years is what the preload lists ask for.
        Kind::Duration { min_ms: 0, max_ms: 730 * DAY_MS },
        "How long a browser is to remember that the site is reached by https:// alone (`Strict-Transport-Security`). \
         It is said under TLS alone; `\"0s\"` says nothing. In `dev` mode, with the machine's own CA, and without \
         `redirect` nothing is said unless the site asks for it.",
    )
    .sets(&[Target::Tls(field!(hsts)), Target::SiteTls(field!(hsts))])
    .example("hsts = \"365d\"")
    .elsewhere(&["strict_transport_security", "Strict-Transport-Security"]),
    Key::new(
        "client_ca",
        &[Section::SiteTls],
        Kind::Several(&FILE),
        "Clients have to show a certificate of one of these authorities.",
    )
    .sets(&[Target::SiteTls(bound!(render |tls, _| match &tls.client {
        None => Rendered::Unset,
        Some(client) => Rendered::paths(&client.ca),
    }))])
    .elsewhere(&["ssl_client_certificate", "SSLCACertificateFile", "client_auth", "trust_pool"]),
    Key::new(
        "client",
        &[Section::SiteTls],
        Kind::Choice(ClientCertificate::WORDS),
        "Whether a client has to have a certificate, where `client_ca` is given.",
    )
    .default(|| quoted(ClientCertificate::default().word()))
    .sets(&[Target::SiteTls(bound!(render |tls, _| match &tls.client {
        None => Rendered::Unset,
        Some(client) if client.required => Rendered::text(ClientCertificate::Required.word()),
        Some(_) => Rendered::text(ClientCertificate::Optional.word()),
    }))])
    .elsewhere(&["ssl_verify_client", "SSLVerifyClient"]),
];

/// Writes where the certificate of a site comes from, in the short form where there is one.
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
