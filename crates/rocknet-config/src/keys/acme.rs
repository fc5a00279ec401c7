//! Keys of `[tls]` for certificates from public certificate authorities.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use std::time::Duration;

use super::{Key, Kind, Section};
use crate::binding::quoted;
use crate::choice::Choice;
use crate::model::{Challenge, KnownCa};
use crate::units;

/// Default of the key `wait` in the table `dns`. NOTIFY (RFC 1996) updates the other servers of a zone within a second
/// or two.
pub(crate) const DNS_WAIT: Duration = Duration::from_secs(5);

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "email",
        &[Section::Tls],
        Kind::Text("address"),
        "Email address at which a certificate authority may contact the operator. Some authorities require it.",
    )
    .example("email = \"me@example.com\""),
    Key::new(
        "ca",
        &[Section::Tls],
        Kind::Several(&Kind::Either(&[
            Kind::Choice(KnownCa::WORDS),
            Kind::Text("ACME directory URL"),
            Kind::Table(Section::Ca),
        ])),
        "Public certificate authorities that issue certificates by ACME. They are tried in this order until one \
         succeeds.",
    )
    .default(|| quoted(KnownCa::default().word()))
    .example("ca = [\"letsencrypt\", \"https://acme.example.org/directory\"]")
    .foreign_names(&["acme_ca", "acme_issuer", "cert_issuer"]),
    Key::new(
        "url",
        &[Section::Ca],
        Kind::Text("ACME directory URL"),
        "URL of the ACME directory of the authority, `https://…`.",
    ),
    Key::new(
        "account",
        &[Section::Ca],
        Kind::Text("key identifier"),
        "EAB key ID (`kid`, RFC 8555 §7.3.4) issued by the authority; used with `secret`. External account binding \
         ties the ACME account to an existing account at the authority.",
    )
    .foreign_names(&["eab", "acme_eab"]),
    Key::new(
        "secret",
        &[Section::Ca, Section::TlsDns],
        Kind::Text("Base64"),
        "Secret of the key that `account` or `key` names, in Base64 or base64url. `\"${file:PATH}\"` keeps it out of \
         this file.",
    ),
    Key::new(
        "ca_root",
        &[Section::Tls],
        Kind::Text("PEM file"),
        "Root certificates that verify connections to certificate authorities, instead of those of the system: for an \
         authority of your own.",
    )
    .example("ca_root = \"/etc/rocknet/ca.pem\"")
    .foreign_names(&["acme_ca_root"]),
    Key::new(
        "challenge",
        &[Section::Tls],
        Kind::Several(&Kind::Choice(Challenge::WORDS)),
        "ACME challenges that prove control of names. They are tried in this order until one succeeds. Default: \
         `http-01` and `tls-alpn-01`, or `dns-01` if `dns` is set.",
    )
    .example("challenge = \"tls-alpn-01\""),
    Key::new(
        "dns",
        &[Section::Tls],
        Kind::Table(Section::TlsDns),
        "Way to change records of the zone for `dns-01`: a program (`hook`), or a dynamic update (RFC 2136) at a \
         server of the zone (`server`), signed with a TSIG key if `key` is set.",
    )
    .example("dns = { hook = \"/etc/rocknet/dns-hook\" }")
    .foreign_names(&["acme_dns"]),
    Key::new(
        "hook",
        &[Section::TlsDns],
        Kind::Text("program"),
        "Program that changes records, called as `PROGRAM present|cleanup NAME VALUE`. NAME is the record, such as \
         `_acme-challenge.example.com` without a final dot; VALUE is the text of its TXT record. The program must exit \
         within five minutes; any status other than 0 is a failure.",
    ),
    Key::new(
        "server",
        &[Section::TlsDns],
        Kind::Text("\"IP\", \"IP:port\" or \"[IPv6]:port\""),
        "Server of the zone that accepts updates. The default port is 53.",
    ),
    Key::new(
        "zone",
        &[Section::TlsDns],
        Kind::Text("name"),
        "Zone that is changed. If it is not set, the server is queried for the name of the zone.",
    ),
    Key::new(
        "key",
        &[Section::TlsDns],
        Kind::Text("name of a key"),
        "Name of the TSIG key that signs updates, by HMAC-SHA256. If it is not set, updates are not signed.",
    ),
    Key::new(
        "wait",
        &[Section::TlsDns],
        Kind::Duration {
            min_ms: 0,
            max_ms: 600_000,
        },
        "Time to wait after a change before the challenge is answered, so that all servers of the zone have the record \
         (propagation).",
    )
    .default(|| quoted(&units::format_timeout(DNS_WAIT))),
    Key::new(
        "ask",
        &[Section::Tls],
        Kind::Text("http:// URL"),
        "URL that permits certificates on demand: a host name that a site's wildcard name covers gets its own \
         certificate on the first connection if a GET of this URL with `domain=NAME` returns 200. If it is not set, no \
         certificate is issued on demand. With `dns-01`, the site gets a wildcard certificate instead.",
    )
    .example("ask = \"http://127.0.0.1:9123/may-have\"")
    .foreign_names(&["on_demand_tls"]),
];
