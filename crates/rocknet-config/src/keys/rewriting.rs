//! Keys of the proxy that rewrite addresses in responses of upstreams that do not know their public address.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, bound, quoted};
use crate::model::AddressRewrites;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "redirects",
        &[Section::Proxy],
        Kind::Either(&[
            Kind::Boolean,
            Kind::Map {
                name: "beginning of an address",
                value: &Kind::Text("path or URL that replaces it"),
            },
        ]),
        "Rewrites `Location`, `Content-Location` and `Refresh` of responses. By default, an address with the host and \
         port of the upstream, or with the `Host` that `headers` sets, becomes a path of the site. Paths get the \
         prefix that `strip` removes. A map adds pairs, which go first: the beginning of an address, and its \
         replacement. A beginning matches whole segments of the path. If several pairs match, only the longest \
         beginning is replaced. `\"http://\" = \"https://\"` replaces only the scheme. `false`: nothing is rewritten.",
    )
    .sets(&[Target::Proxy(bound!(render: |proxy, _| rendered(&proxy.redirects)))])
    .example("redirects = { \"http://app.internal:8080/two/\" = \"/two/\" }")
    .foreign_names(&["proxy_redirect", "ProxyPassReverse"]),
    Key::new(
        "cookie_paths",
        &[Section::Proxy],
        Kind::Either(&[
            Kind::Boolean,
            Kind::Map {
                name: "beginning of a path",
                value: &Kind::Text("path that replaces it"),
            },
        ]),
        "Rewrites `Path` of cookies. By default, paths get the prefix of `strip`, except `/`, which covers all paths, \
         and paths that already begin with the prefix. A map adds pairs, which go first. Cookies with a name that \
         begins with `__Host-` keep their path, because browsers require it. `false`: nothing is rewritten.",
    )
    .sets(&[Target::Proxy(bound!(render: |proxy, _| rendered(&proxy.cookie_paths)))])
    .example("cookie_paths = { \"/\" = \"/app\" }")
    .foreign_names(&["proxy_cookie_path", "ProxyPassReverseCookiePath"]),
    Key::new(
        "cookie_domains",
        &[Section::Proxy],
        Kind::Either(&[
            Kind::Boolean,
            Kind::Map {
                name: "domain",
                value: &Kind::Text("domain that replaces it, or empty"),
            },
        ]),
        "Rewrites `Domain` of cookies. By default, `Domain` is removed if it is the name of the upstream or \
         the `Host` that `headers` sets. The cookie then belongs to the host of the site; a browser would refuse it \
         otherwise. A map adds pairs, which go first; an empty value removes `Domain`. `false`: nothing is rewritten.",
    )
    .sets(&[Target::Proxy(
        bound!(render: |proxy, _| rendered(&proxy.cookie_domains)),
    )])
    .example("cookie_domains = { \"app.internal\" = \"example.com\" }")
    .foreign_names(&["proxy_cookie_domain", "ProxyPassReverseCookieDomain"]),
];

/// Renders the pairs; without pairs, the switch.
fn rendered(rewrites: &AddressRewrites) -> Rendered {
    if rewrites.pairs.is_empty() {
        return Rendered::Value(rewrites.is_automatic.to_string());
    }
    let pairs = rewrites.pairs.iter().map(|(from, to)| (from, to));
    Rendered::entries(pairs, String::clone, |to| quoted(to))
}
