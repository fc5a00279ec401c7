//! Keys of `certificate` of `auth`: requirements of client certificates.

use super::{Key, Kind, Section};
use crate::binding::{Rendered, list, quoted};
use crate::choice::Choice;
use crate::model::{CertificateRule, CertificateUser, NameRule, attribute_name};

const NAMES: Kind = Kind::Either(&[
    Kind::Text("whole name, such as \"CN=bob,O=Example\""),
    Kind::List(&Kind::Text("whole name, such as \"CN=bob,O=Example\"")),
    Kind::Map {
        name: "attribute, such as CN, O or OU",
        value: &Kind::Several(&Kind::Text("exact value")),
    },
]);

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "certificate",
        &[Section::Auth],
        Kind::Either(&[Kind::Boolean, Kind::Table(Section::Certificate)]),
        "Admits clients with a certificate of an authority in `client_ca` of `tls`; all others get 403. `true` admits \
         every such certificate. A table admits those that meet all of its keys. If the value of a key is a list, \
         one match is enough. Write `client = \"optional\"` in `tls`, so that routes without `certificate` stay open. \
         docs/client-certificates.md has examples.",
    )
    .example("certificate = { subject = { O = \"Example\", OU = \"Ops\" } }")
    .foreign_names(&["ssl_client_verify", "SSLRequire"]),
    Key::new(
        "subject",
        &[Section::Certificate],
        NAMES,
        "Subject of the certificate: the whole name as OpenSSL or nginx shows it, or a table of attributes, all of which \
         are required. If an attribute has a list of values, each of them is accepted. Names are compared attribute by \
         attribute and exactly. A certificate with several common names meets no requirement of `CN`.",
    )
    .example("subject = { CN = [\"bob\", \"ann\"], O = \"Example\" }")
    .foreign_names(&["ssl_client_s_dn"]),
    Key::new(
        "issuer",
        &[Section::Certificate],
        NAMES,
        "Name of the authority that has issued the certificate, as in `subject`.",
    )
    .example("issuer = \"CN=Staff CA, O=Example\"")
    .foreign_names(&["ssl_client_i_dn"]),
    Key::new(
        "dns",
        &[Section::Certificate],
        Kind::Several(&Kind::Text("host name, or \"*.\" and a host name")),
        "DNS names, one of which the certificate must have as an alternative name. `*.example.com` stands for one more \
         label.",
    )
    .example("dns = [\"ci.example.com\", \"*.ops.example.com\"]"),
    Key::new(
        "email",
        &[Section::Certificate],
        Kind::Several(&Kind::Text("email address, or \"*@\" and a host name")),
        "Email addresses, one of which the certificate must have as an alternative name. `*@example.com` stands for all \
         addresses of a domain.",
    )
    .example("email = \"*@example.com\""),
    Key::new(
        "uri",
        &[Section::Certificate],
        Kind::Several(&Kind::Text("URI, with \"/*\" at its end for all below it")),
        "URIs, one of which the certificate must have as an alternative name, such as SPIFFE IDs.",
    )
    .example("uri = \"spiffe://example.org/ns/prod/*\""),
    Key::new(
        "fingerprint",
        &[Section::Certificate],
        Kind::Several(&Kind::Text("64 hexadecimal digits")),
        "SHA-256 of accepted certificates, with or without colons, as `openssl x509 -noout -fingerprint -sha256` shows it.",
    )
    .example("fingerprint = \"1f3870be274f6c49b3e31a0c6728957f9d1f3870be274f6c49b3e31a0c672895\"")
    .foreign_names(&["ssl_client_fingerprint", "trusted_leaf_cert"]),
    Key::new(
        "user",
        &[Section::Certificate],
        Kind::Choice(CertificateUser::WORDS),
        "Name of the certificate that becomes the user, for the access log, `{user}` and `REMOTE_USER`. A certificate \
         without exactly one such name is refused. Without this setting, the user is the common name, and a \
         certificate without one is admitted without a user.",
    )
    .example("user = \"email\"")
    .foreign_names(&["SSLUserName"]),
    Key::new(
        "headers",
        &[Section::Certificate],
        Kind::Map {
            name: "field name",
            value: &Kind::Text("field value"),
        },
        "Header fields that admitted requests get, for upstreams and applications, with placeholders such as \
         `{tls.client.subject}`. Fields of clients with these names are removed on all routes of the site.",
    )
    .empty_by_default()
    .example("headers = { X-Client-Subject = \"{tls.client.subject}\", Client-Cert = \"{tls.client.certificate}\" }"),
];

/// Renders the requirements of client certificates.
pub(super) fn rendered(rule: &CertificateRule) -> Rendered {
    let mut words = Vec::new();
    for (key, rules) in [("subject", &rule.subject), ("issuer", &rule.issuer)] {
        if !rules.is_empty() {
            words.push(format!("{key} = {}", names(rules)));
        }
    }
    let texts = |all: &[String]| list(all.iter().map(|text| quoted(text)));
    for (key, all) in [("dns", &rule.dns), ("email", &rule.email), ("uri", &rule.uri)] {
        if !all.is_empty() {
            words.push(format!("{key} = {}", texts(all)));
        }
    }
    if !rule.fingerprint.is_empty() {
        let hex = |one: &[u8; 32]| one.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        words.push(format!(
            "fingerprint = {}",
            list(rule.fingerprint.iter().map(|one| quoted(&hex(one))))
        ));
    }
    if let Some(user) = rule.user {
        words.push(format!("user = {}", quoted(user.word())));
    }
    if !rule.headers.is_empty() {
        let pairs = rule
            .headers
            .iter()
            .map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)));
        words.push(format!("headers = {{ {} }}", pairs.collect::<Vec<_>>().join(", ")));
    }
    Rendered::Value(match words.is_empty() {
        true => "{ certificate = true }".to_owned(),
        false => format!("{{ certificate = {{ {} }} }}", words.join(", ")),
    })
}

fn names(rules: &[NameRule]) -> String {
    let whole = rules.iter().map(|rule| match rule {
        NameRule::Whole(name) => quoted(&name.to_string()),
        NameRule::Attributes(required) => {
            let pairs = required.iter().map(|(kind, accepted)| {
                let accepted = list(accepted.iter().map(|value| quoted(value)));
                format!("{} = {accepted}", quoted(attribute_name(kind)))
            });
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    });
    list(whole)
}
