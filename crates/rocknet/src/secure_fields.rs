//! Header fields that are sent only over TLS. Clients cannot trust them without TLS, because an attacker on the path
//! could have added them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rocknet_config::model;

const STRICT_TRANSPORT_SECURITY: &str = "Strict-Transport-Security";
const ALT_SVC: &str = "Alt-Svc";

/// Value of `Alt-Svc` that makes clients forget what was announced before (RFC 7838 §3).
const CLEAR: &str = "clear";

/// The fields of one site, each with its value.
pub type SecureFields = Vec<(&'static str, String)>;

/// Returns the fields of a site with TLS: `Strict-Transport-Security` (RFC 6797) if it is configured, and `Alt-Svc`
/// (RFC 7838). `serves_quic` returns true if an address serves HTTP/3.
pub fn of_site(site: &model::Site, serves_quic: impl Fn(&model::Listen) -> bool) -> SecureFields {
    let hsts = site.tls.as_ref().map(|tls| tls.hsts).filter(|time| !time.is_zero());
    let hsts = hsts.map(|time| (STRICT_TRANSPORT_SECURITY, format!("max-age={}", time.as_secs())));
    let alt_svc = alt_svc(site, serves_quic).map(|value| (ALT_SVC, value));
    hsts.into_iter().chain(alt_svc).collect()
}

/// Returns the value of `Alt-Svc`. It is `clear` if the site has no HTTP/3, because clients may remember an earlier
/// announcement. `None` if the site has no TCP listener with TLS, or if HTTP/3 is served but no port can be announced.
fn alt_svc(site: &model::Site, serves_quic: impl Fn(&model::Listen) -> bool) -> Option<String> {
    let serves_http3 = |listen: &model::Listen| site.serves_http3(listen) && serves_quic(listen);
    // If only Unix sockets use TLS, the proxy in front of them makes its own announcement.
    if !site
        .secure
        .iter()
        .any(|listen| matches!(listen, model::Listen::Tcp { .. }))
    {
        return None;
    }
    if !site.secure.iter().any(serves_http3) {
        return Some(CLEAR.to_owned());
    }
    let port = announced_port(site, serves_http3)?;
    Some(format!("h3=\":{port}\"; ma={}", site.http3.max_age.as_secs()))
}

/// Returns the first port at which each address with TLS of the site serves HTTP/3. One port is announced, because the
/// same responses are sent at all listeners. `None` if there is no such port, or if the kernel chooses it.
fn announced_port(site: &model::Site, serves_http3: impl Fn(&model::Listen) -> bool) -> Option<u16> {
    // `address`: `None` for a listener on all addresses.
    let serves = |address: Option<IpAddr>, port: u16| serves_http3(&model::Listen::Tcp { address, port });
    let mut ports = site.secure.iter().filter_map(|listen| match listen {
        model::Listen::Tcp { port, .. } => Some(*port).filter(|port| *port != 0),
        model::Listen::Unix(_) => None,
    });
    ports.find(|port| {
        site.secure.iter().all(|listen| match listen {
            model::Listen::Tcp { address, .. } => serves(None, *port) || serves(*address, *port),
            model::Listen::Unix(_) => true,
        })
    })
}

/// Returns the header fields that the configuration adds to responses, and those of `secure` that the configuration
/// does not set itself.
pub fn with_configured(settings: &model::Settings, secure: &[(&'static str, String)]) -> BTreeMap<String, String> {
    let mut headers = settings.headers.clone();
    for (name, value) in secure {
        if !headers.keys().any(|configured| configured.eq_ignore_ascii_case(name)) {
            headers.insert((*name).to_owned(), value.clone());
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rocknet_config::environment::MemoryEnvironment;

    use super::*;

    /// Returns the response fields of a site with these values of the keys `http3`, `listen` and `headers`. The UDP
    /// port 9443 could not be opened.
    fn fields(http3: &str, listen: &str, headers: &str) -> Vec<String> {
        let world = MemoryEnvironment {
            any_directory: true,
            ..MemoryEnvironment::default()
        };
        let text = format!(
            "[server]\nhttp3 = {http3}\n[site.\"a.test\"]\nlisten = {listen}\nroot = \"/w\"\n\
             tls = {{ issuer = \"local\", hsts = \"1m\" }}\nheaders = {{ {headers} }}\n"
        );
        let config = rocknet_config::parse(&text, Path::new("/r.toml"), &world)
            .unwrap_or_else(|report| panic!("{report:?}"))
            .config;
        let site = &config.sites[0];
        let serves_quic = |listen: &model::Listen| !matches!(listen, model::Listen::Tcp { port: 9443, .. });
        let fields = with_configured(&site.settings, &of_site(site, serves_quic));
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn http3_is_announced_at_a_port_of_every_address() {
        let hsts = "Strict-Transport-Security: max-age=60";
        let announced = "Alt-Svc: h3=\":8443\"; ma=86400";
        // In each list, 8443 is the first port that serves HTTP/3 at every address with TLS.
        for listen in [
            "[\"127.0.0.1:8443\", \"[::1]:8443\"]",
            "[\"http://127.0.0.1:81\", \"127.0.0.1:8443\"]",
            "[\"127.0.0.1:8443\", \"127.0.0.1:443\"]",
            "[\"127.0.0.1:9443\", \"127.0.0.1:8443\"]",
            "[\"127.0.0.1:7443\", \"127.0.0.1:8443\", \"[::1]:8443\"]",
            "[\"127.0.0.1:7443\", 8443]",
        ] {
            assert_eq!(fields("true", listen, ""), [announced, hsts], "{listen}");
        }
        // No port serves both addresses, or the kernel chooses the port.
        let of_two_addresses = "[\"127.0.0.1:8443\", \"[::1]:7443\"]";
        for listen in [of_two_addresses, "\"127.0.0.1:0\""] {
            assert_eq!(fields("true", listen, ""), [hsts], "{listen}");
        }
        let for_a_week = fields("{ max_age = \"7d\" }", "8443", "");
        assert_eq!(for_a_week, ["Alt-Svc: h3=\":8443\"; ma=604800", hsts]);
    }

    #[test]
    fn a_site_without_http3_clears_the_announcement() {
        let hsts = "Strict-Transport-Security: max-age=60";
        assert_eq!(fields("false", "\"127.0.0.1:8443\"", ""), ["Alt-Svc: clear", hsts]);
        assert_eq!(fields("true", "\"127.0.0.1:9443\"", ""), ["Alt-Svc: clear", hsts]);
        assert_eq!(fields("false", "\"https://unix:/s.sock\"", ""), [hsts]);
    }

    #[test]
    fn a_listener_without_http3_is_not_announced() {
        let hsts = "Strict-Transport-Security: max-age=60";
        let at_443 = "Alt-Svc: h3=\":443\"; ma=86400";
        // Listeners without HTTP/3, all listeners, and the expected `Alt-Svc`.
        for (except, listen, expected) in [
            ("8443", "[8443, 443]", at_443),
            ("\"127.0.0.1:8443\"", "[\"127.0.0.1:8443\", 443]", at_443),
            ("[443, 8443]", "[8443, 443]", "Alt-Svc: clear"),
        ] {
            let http3 = format!("{{ except = {except} }}");
            assert_eq!(fields(&http3, listen, ""), [expected, hsts], "{except}");
        }
    }

    #[test]
    fn configured_fields_take_precedence() {
        let own = "\"alt-svc\" = \"h3=':9'\", \"strict-transport-security\" = \"max-age=5\"";
        let expected = ["alt-svc: h3=':9'", "strict-transport-security: max-age=5"];
        assert_eq!(fields("true", "\"127.0.0.1:8443\"", own), expected);
    }
}
