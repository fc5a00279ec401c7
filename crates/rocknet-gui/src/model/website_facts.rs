//! Facts about a website that are not in the list of websites but in other lists: PHP, protocol and certificate.

use rocknet_control::{CertificateSummary, SiteKind, SiteSummary};

use super::fetched::Fetched;
use super::services::Services;
use crate::words::Words;

/// Number of days before the end of the validity at which a certificate that cannot be renewed needs attention.
const SOON: i64 = 7;

/// Trust of browsers in the certificate of a website. The variants are in the sort order of the column: problems
/// are first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CertificateTrust {
    /// Missing, expired, or about to expire and not renewable.
    Fault,
    /// Issued by the local CA, which a browser of this account does not trust.
    NotYet,
    /// Issued by the local CA, and no browser was found for this account.
    Local,
    /// Read from files of the user.
    Files,
    Trusted,
    /// The website has no HTTPS, or its certificate is not known.
    #[default]
    None,
}

/// Facts about a website.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebsiteFacts {
    /// Version of PHP; empty without PHP.
    pub php: String,
    /// Best protocol: `HTTP`, `HTTPS` or `HTTP/3`; empty if the website is disabled.
    pub protocol: &'static str,
    pub trust: CertificateTrust,
    /// Texts of all columns in lower case, for the filter.
    pub search: String,
}

impl WebsiteFacts {
    /// Returns the facts of a website that the server has not loaded yet.
    pub fn of_file(words: &Words, site: &SiteSummary) -> WebsiteFacts {
        WebsiteFacts {
            search: format!("{}\n{}", site.name, words.not_loaded).to_lowercase(),
            ..WebsiteFacts::default()
        }
    }

    /// Collects the facts. `http3`: ports that serve HTTP/3.
    pub fn new(
        words: &Words,
        site: &SiteSummary,
        http3: &[u16],
        services: &Services,
        certificates: &Fetched<Vec<CertificateSummary>>,
    ) -> WebsiteFacts {
        let php = services.php_version(&site.name).unwrap_or_default();
        // The address of a PHP that the server does not run is too long for the column.
        let php = if php.contains(':') { words.php_elsewhere } else { php };
        let trust = trust(site, services, certificates);
        let mut facts = WebsiteFacts {
            php: php.to_owned(),
            protocol: protocol(site, http3),
            trust,
            search: String::new(),
        };
        let root = site
            .root
            .as_ref()
            .map_or(String::new(), |root| root.to_string_lossy().into_owned());
        let state = match site {
            site if site.disabled => words.disabled,
            site if site.fault.is_some() => words.fault,
            _ => words.served,
        };
        let columns = [
            &site.name,
            &root,
            state,
            kind_label(words, site.kind),
            &site.urls.join(" "),
            &facts.php,
            facts.protocol,
            trust_label(words, trust),
        ];
        // A line end keeps a text from matching across two columns.
        facts.search = columns.join("\n").to_lowercase();
        facts
    }
}

fn protocol(site: &SiteSummary, http3: &[u16]) -> &'static str {
    let port = |url: &str| {
        let authority = url.strip_prefix("https://")?.split('/').next()?;
        match authority.rsplit_once(':') {
            Some((_, port)) if !port.contains(']') => port.parse::<u16>().ok(),
            _ => Some(443),
        }
    };
    let mut secure = site.urls.iter().filter_map(|url| port(url)).peekable();
    if secure.peek().is_none() {
        return match site.urls.is_empty() {
            true => "",
            false => "HTTP",
        };
    }
    match secure.any(|port| http3.contains(&port)) {
        true => "HTTP/3",
        false => "HTTPS",
    }
}

fn trust(site: &SiteSummary, services: &Services, certificates: &Fetched<Vec<CertificateSummary>>) -> CertificateTrust {
    let Fetched::Loaded(certificates) = certificates else {
        return CertificateTrust::None;
    };
    let is_secure = site.urls.iter().any(|url| url.starts_with("https://"));
    let mut own = certificates.iter().filter(|certificate| certificate.site == site.name);
    let Some(certificate) = own.next().filter(|_| is_secure) else {
        return CertificateTrust::None;
    };
    let is_ending = certificate.fault.is_some() && certificate.days_left < SOON;
    if certificate.names.is_empty() || certificate.days_left < 0 || is_ending {
        return CertificateTrust::Fault;
    }
    match (certificate.source.as_str(), services.browsers_trust()) {
        ("local", Some(true)) => CertificateTrust::Trusted,
        ("local", Some(false)) => CertificateTrust::NotYet,
        ("local", None) => CertificateTrust::Local,
        ("files", _) => CertificateTrust::Files,
        _ => CertificateTrust::Trusted,
    }
}

/// Returns the words for the trust in a certificate.
pub fn trust_label(words: &Words, trust: CertificateTrust) -> &'static str {
    match trust {
        CertificateTrust::Fault => words.fault,
        CertificateTrust::NotYet => words.not_yet,
        CertificateTrust::Local => words.trust_local,
        CertificateTrust::Files => words.trust_files,
        CertificateTrust::Trusted => words.trusted,
        CertificateTrust::None => "–",
    }
}

/// Returns the words for the kind of a website.
pub fn kind_label(words: &Words, kind: SiteKind) -> &'static str {
    match kind {
        SiteKind::Files => words.kind_files,
        SiteKind::Proxy => words.kind_proxy,
        SiteKind::Application => words.kind_application,
        SiteKind::Controller => words.kind_controller,
        SiteKind::Redirect => words.kind_redirect,
        SiteKind::Routes => words.kind_routes,
        SiteKind::Nothing => words.kind_nothing,
        SiteKind::Welcome => words.kind_welcome,
        SiteKind::Other => words.kind_other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{SiteUse, Trust, TrustStore};
    use crate::words::Language;

    fn site(urls: &[&str]) -> SiteSummary {
        SiteSummary {
            name: "a.test".to_owned(),
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            root: Some("/srv/Shop".into()),
            kind: SiteKind::Files,
            ..SiteSummary::default()
        }
    }

    #[test]
    fn protocols_are_read_from_the_urls() {
        for (urls, expected) in [
            (&[][..], ""),
            (&["unix:/s"], "HTTP"),
            (&["http://a.test/"], "HTTP"),
            (&["http://a.test/", "https://a.test:8443/"], "HTTPS"),
            (&["https://a.test/"], "HTTP/3"),
            (&["https://[::1]/"], "HTTP/3"),
        ] {
            assert_eq!(protocol(&site(urls), &[443]), expected, "{urls:?}");
        }
    }

    #[test]
    fn trust_depends_on_the_source_and_the_stores() {
        let certificate = |source: &str, days_left, fault: Option<&str>| {
            Fetched::Loaded(vec![CertificateSummary {
                site: "a.test".to_owned(),
                names: vec!["a.test".to_owned()],
                source: source.to_owned(),
                days_left,
                fault: fault.map(str::to_owned),
                ..CertificateSummary::default()
            }])
        };
        let store = |reader: &str, trust| TrustStore {
            reader: reader.to_owned(),
            trust,
            ..TrustStore::default()
        };
        let secure = site(&["https://a.test/"]);
        let mut services = Services::default();
        let found = |services: &Services, certificates| trust(&secure, services, &certificates);
        assert_eq!(found(&services, certificate("local", 5, None)), CertificateTrust::Local);
        services.trust = Fetched::Loaded(vec![store("system", Trust::NotYet), store("Firefox", Trust::Trusted)]);
        assert_eq!(
            found(&services, certificate("local", 5, None)),
            CertificateTrust::Trusted
        );
        services.trust = Fetched::Loaded(vec![
            store("Firefox", Trust::Trusted),
            store("Chromium", Trust::Unknown),
        ]);
        assert_eq!(
            found(&services, certificate("local", 5, None)),
            CertificateTrust::NotYet
        );
        assert_eq!(
            found(&services, certificate("acme", 5, None)),
            CertificateTrust::Trusted
        );
        assert_eq!(found(&services, certificate("files", 5, None)), CertificateTrust::Files);
        assert_eq!(
            found(&services, certificate("acme", 5, Some("x"))),
            CertificateTrust::Fault
        );
        assert_eq!(found(&services, certificate("acme", -1, None)), CertificateTrust::Fault);
        assert_eq!(found(&services, Fetched::Loading), CertificateTrust::None);
        let clear = trust(&site(&["http://a.test/"]), &services, &certificate("local", 5, None));
        assert_eq!(clear, CertificateTrust::None);
    }

    #[test]
    fn every_column_is_searched() {
        let mut services = Services::default();
        services.uses = Fetched::Loaded(vec![SiteUse {
            site: "a.test".to_owned(),
            php: Some("8.2".to_owned()),
            ..SiteUse::default()
        }]);
        let words = Language::German.words();
        let facts = WebsiteFacts::new(words, &site(&["https://a.test/"]), &[], &services, &Fetched::Missing);
        for text in ["a.test", "shop", "aktiv", "dateien", "https://a", "8.2"] {
            assert!(facts.search.contains(text), "{text}");
        }
        assert!(!facts.search.contains("testsrv"));
        let not_loaded = WebsiteFacts::of_file(words, &site(&[]));
        assert!(not_loaded.search.contains("noch nicht geladen") && !not_loaded.search.contains("aktiv"));
    }
}
