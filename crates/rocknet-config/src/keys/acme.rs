//! Keys of `[tls]` that say how certificates are had from public CAs.

use std::time::Duration;

use super::{Key, Kind, Section};
use crate::binding::quoted;
use crate::choice::Choice;
use crate::model::{Challenge, KnownCa};
use crate::units;

/// Wait for the zone's other servers: NOTIFY reaches them in a second or two.
pub(crate) const DNS_WAIT: Duration = Duration::from_secs(5);

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "email",
        &[Section::Tls],
        Kind::Text("address"),
        "Where a certificate authority may write to the operator; some want one.",
    )
    .example("email = \"me@example.com\""),
    Key::new(
        "ca",
        &[Section::Tls],
        Kind::Several(&Kind::Either(&[
            Kind::Choice(KnownCa::WORDS),
            Kind::Text("URL of a directory"),
            Kind::Table(Section::Ca),
        ])),
        "The public authorities that sign certificates, by ACME. They are asked in this order until one does.",
    )
    .default(|| quoted(KnownCa::default().word()))
    .example("ca = [\"letsencrypt\", \"https://acme.example.org/directory\"]")
    .elsewhere(&["acme_ca", "acme_issuer", "cert_issuer"]),
    Key::new(
        "url",
        &[Section::Ca],
        Kind::Text("URL of a directory"),
        "The directory of the authority, `https://…`.",
    ),
    Key::new(
        "account",
        &[Section::Ca],
        Kind::Text("name of a key"),
        "With `secret`: what the authority gave to tie an account had with it to this server (external account binding).",
    )
    .elsewhere(&["eab", "acme_eab"]),
    Key::new(
        "secret",
        &[Section::Ca, Section::TlsDns],
        Kind::Text("Base64"),
        "The key itself, in Base64. `\"${file:PATH}\"` keeps it out of this file.",
    ),
    Key::new(
        "ca_root",
        &[Section::Tls],
        Kind::Text("PEM file"),
        "The roots by which authorities are known, instead of those of the system: for one of your own.",
    )
    .example("ca_root = \"/etc/rocknet/ca.pem\"")
    .elsewhere(&["acme_ca_root"]),
    Key::new(
        "challenge",
        &[Section::Tls],
        Kind::Several(&Kind::Choice(Challenge::WORDS)),
        "How names are proven to be ours. With each failure the next one has its turn. Without the key: the first two, \
         or `dns-01` where `dns` is given.",
    )
    .example("challenge = \"tls-alpn-01\""),
    Key::new(
        "dns",
        &[Section::Tls],
        Kind::Table(Section::TlsDns),
        "How records of the zone are changed for `dns-01`: by a program, or by an update of the zone at its server \
         (RFC 2136), signed with a TSIG key.",
    )
    .example("dns = { hook = \"/etc/rocknet/dns-hook\" }")
    .elsewhere(&["acme_dns"]),
    Key::new(
        "hook",
        &[Section::TlsDns],
        Kind::Text("program"),
        "Called as `PROGRAM present|cleanup NAME VALUE`. It has to be back within five minutes; anything but 0 is a \
         failure.",
    ),
    Key::new(
        "server",
        &[Section::TlsDns],
        Kind::Text("\"IP\" or \"IP:port\""),
        "The server of the zone that takes updates; port 53 where none is written.",
    ),
    Key::new(
        "zone",
        &[Section::TlsDns],
        Kind::Text("name"),
        "The zone that is changed. Without it the server is asked for it.",
    ),
    Key::new(
        "key",
        &[Section::TlsDns],
        Kind::Text("name of a key"),
        "The name of the key that signs updates, by HMAC-SHA256.",
    ),
    Key::new(
        "wait",
        &[Section::TlsDns],
        // Longer than authorities wait for the whole proof would be no use.
        Kind::Duration { min_ms: 0, max_ms: 600_000 },
        "How long the zone's other servers need to have a new record.",
    )
    .default(|| quoted(&units::format_timeout(DNS_WAIT))),
    Key::new(
        "ask",
        &[Section::Tls],
        Kind::Text("http:// URL"),
        "Certificates on demand: a name below a wildcard of a site gets one of its own when the first client comes for \
         it, if a GET of this URL with `domain=NAME` is answered with 200. Without the key nothing is had on demand.",
    )
    .example("ask = \"http://127.0.0.1:9123/may-have\"")
    .elsewhere(&["on_demand_tls"]),
];
