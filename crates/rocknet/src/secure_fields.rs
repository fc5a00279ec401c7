//! Header fields that only responses with TLS carry. Without TLS an attacker on the path could have added them.

use std::collections::BTreeMap;

use rocknet_config::model;

const STRICT_TRANSPORT_SECURITY: &str = "Strict-Transport-Security";
const ALT_SVC: &str = "Alt-Svc";

/// Time in seconds for which clients may use the announced port without another response: one day, the default of
/// RFC 7838 §3.1.
const ALT_SVC_MAX_AGE: u32 = 86_400;

/// The fields of one site, each with its value.
pub type SecureFields = Vec<(&'static str, String)>;

/// Returns the fields of a site: `Strict-Transport-Security` (RFC 6797) if it is configured, and `Alt-Svc` (RFC 7838)
/// if the site has HTTP/3. `serves_quic`: whether an address of the site serves HTTP/3.
pub fn of_site(site: &model::Site, serves_quic: impl Fn(&model::Listen) -> bool) -> SecureFields {
    let hsts = site.tls.as_ref().map(|tls| tls.hsts).filter(|time| !time.is_zero());
    let hsts = hsts.map(|time| (STRICT_TRANSPORT_SECURITY, format!("max-age={}", time.as_secs())));
    let port = quic_port(site).filter(|_| site.secure.iter().all(serves_quic));
    let alt_svc = port.map(|port| (ALT_SVC, format!("h3=\":{port}\"; ma={ALT_SVC_MAX_AGE}")));
    hsts.into_iter().chain(alt_svc).collect()
}

/// Returns the port of the site with TLS. `None` if it has several, because the same responses are sent on all of them,
/// and another port may belong to other sites; also `None` if the kernel chooses the port.
fn quic_port(site: &model::Site) -> Option<u16> {
    let mut ports = site.secure.iter().filter_map(|listen| match listen {
        model::Listen::Tcp { port, .. } => Some(*port),
        model::Listen::Unix(_) => None,
    });
    let port = ports.next().filter(|port| *port != 0)?;
    ports.all(|other| other == port).then_some(port)
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

    use rocknet_config::environment::Memory;

    use super::*;

    /// Returns the fields of the only site, whose responses also carry the configured `headers`.
    fn fields(http3: bool, listen: &str, headers: &str) -> Vec<String> {
        let world = Memory {
            any_directory: true,
            ..Memory::default()
        };
        let text = format!(
            "[server]\nhttp3 = {http3}\n[site.\"a.test\"]\nlisten = {listen}\nroot = \"/w\"\n\
             tls = {{ issuer = \"local\", hsts = \"1m\" }}\nheaders = {{ {headers} }}\n"
        );
        let config = rocknet_config::parse(&text, Path::new("/r.toml"), &world)
            .unwrap_or_else(|report| panic!("{report:?}"))
            .config;
        let site = &config.sites[0];
        let fields = with_configured(&site.settings, &of_site(site, |_| http3));
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn http3_is_announced_at_the_only_port_with_tls() {
        let hsts = "Strict-Transport-Security: max-age=60";
        let announced = "Alt-Svc: h3=\":8443\"; ma=86400";
        assert_eq!(
            fields(true, "[\"127.0.0.1:8443\", \"[::1]:8443\"]", ""),
            [announced, hsts]
        );
        assert_eq!(
            fields(true, "[\"http://127.0.0.1:81\", \"127.0.0.1:8443\"]", ""),
            [announced, hsts]
        );
        assert_eq!(fields(false, "\"127.0.0.1:8443\"", ""), [hsts]);
        assert_eq!(fields(true, "[\"127.0.0.1:8443\", \"127.0.0.1:443\"]", ""), [hsts]);
        assert_eq!(fields(true, "\"127.0.0.1:0\"", ""), [hsts]);
    }

    #[test]
    fn configured_fields_come_first() {
        let own = "\"alt-svc\" = \"h3=':9'\", \"strict-transport-security\" = \"max-age=5\"";
        let expected = ["alt-svc: h3=':9'", "strict-transport-security: max-age=5"];
        assert_eq!(fields(true, "\"127.0.0.1:8443\"", own), expected);
    }
}
