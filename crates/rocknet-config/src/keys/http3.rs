//! Keys of HTTP/3.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, SettingRows, bound, field, list, listen};
use crate::model::Http3;

/// Minimum of `max_age`: one second, the unit of `ma` in `Alt-Svc` (RFC 7838 §3.1).
const MIN_AGE_MS: u64 = 1_000;
/// Maximum of `max_age`: one year. A longer age would have no effect, because clients forget announcements earlier.
const MAX_AGE_MS: u64 = 365 * 86_400_000;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "http3",
        &[Section::Server, Section::Site],
        Kind::Either(&[Kind::Boolean, Kind::Table(Section::Http3)]),
        "Serves HTTP/3 (QUIC) at each HTTPS listener too, on the UDP port of the same number, and announces it to clients \
         (`Alt-Svc`). `false` turns it off and makes clients forget the announcement. A site overrides the value of \
         `[server]`. If the UDP port cannot be opened, the sites are served without HTTP/3.",
    )
    .group(SettingGroup::Site)
    .sets(&[
        Target::Server(bound!(
            render: |server, _| rendered(&server.http3),
            nested: |server, rows| nested_keys(&server.http3, rows)
        )),
        Target::Site(bound!(
            render: |site, _| if site.secure.is_empty() { Rendered::Unset } else { rendered(&site.http3) },
            nested: |site, rows| if !site.secure.is_empty() {
                nested_keys(&site.http3, rows);
            }
        )),
    ])
    .example("http3 = false")
    .foreign_names(&["h3", "quic", "alt_svc"]),
    Key::new(
        "max_age",
        &[Section::Http3],
        Kind::Duration {
            min_ms: MIN_AGE_MS,
            max_ms: MAX_AGE_MS,
        },
        "Time for which clients may use HTTP/3 after one response has announced it. Every response over TLS announces it \
         again.",
    )
    .sets(&[Target::Http3(field!(max_age))])
    .example("max_age = \"7d\""),
    Key::new(
        "hq_interop",
        &[Section::Http3],
        Kind::Boolean,
        "Also accepts `hq-interop` over QUIC: requests of one line, `GET /path`, whose response is the body without a \
         head. Test clients of QUIC implementations use it; no browser does.",
    )
    .sets(&[Target::Http3(field!(hq_interop))])
    .example("hq_interop = true")
    .foreign_names(&["http3_hq"]),
    Key::new(
        "except",
        &[Section::Http3],
        Kind::Several(&Kind::Either(&[
            Kind::Integer { min: 1, max: 65_535 },
            Kind::Text("\"IP:port\" or \"[IPv6]:port\""),
        ])),
        "Listeners that stay without HTTP/3: ports (at every address), or addresses with ports, as in `listen`. Their UDP \
         ports are not opened.",
    )
    .empty_by_default()
    .sets(&[Target::Http3(bound!(render: |http3, _| match &http3.except[..] {
        [] => Rendered::Unset,
        except => Rendered::Value(list(except.iter().map(listen))),
    }))])
    .example("except = [8443]"),
];

/// Renders whether HTTP/3 is on.
fn rendered(http3: &Http3) -> Rendered {
    Rendered::Value(http3.enabled.to_string())
}

/// Adds the keys of the table, if HTTP/3 is on.
fn nested_keys(http3: &Http3, rows: &mut SettingRows<'_>) {
    if http3.enabled {
        rows.table(Section::Http3, "http3", http3);
    }
}
