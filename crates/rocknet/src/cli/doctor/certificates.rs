//! Checks the certificates of sites: their expiry, and whether they can be renewed.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rocknet::certificates::acme::stored_state;
use rocknet::certificates::files::FileSet;
use rocknet::certificates::storage::FileStorage;
use rocknet::certificates::{Authority, Certificate, state_folder};
use rocknet_config::model::{CertificateSource, Config, HostPattern, Site};
use rocknet_control::CertificateSummary;

use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "certificate";

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Days before the expiry from which a certificate file is reported. Programs such as certbot renew a month before.
const FILE_DAYS: i64 = 21;

/// Divisor of the lifetime. A certificate that the server renews is reported if less than an eighth of its lifetime is
/// left. The server renews much earlier.
const LIFETIME_DIVISOR: i64 = 8;

/// Days before the expiry from which a certificate that cannot be renewed counts as broken.
const URGENT_DAYS: i64 = 3;

/// Maximum number of certificates that are read or reported. `rocknet certs` lists all of a running server.
const MAX_CERTIFICATES: usize = 256;

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let now = seconds(SystemTime::now());
    if let Some(all) = &facts.running.certificates {
        let mut all = all.clone();
        all.extend(without_certificate(facts.config, &all));
        let is_running = true;
        return report(&all, now, is_running);
    }
    let stored = stored(facts.config, facts.other_account.is_none());
    let is_running = false;
    let mut checks = report(&stored, now, is_running);
    let mut sites = facts.config.sites.iter().filter(|site| !site.secure.is_empty());
    if let Some(other) = &facts.other_account
        && sites.any(|site| site.names.iter().any(|name| is_from_acme(site, name, facts.config)))
    {
        checks.push(other.skipped(SUBJECT, "certificates in the state folder"));
    }
    checks
}

/// Returns an entry for each name that has no certificate although other names of its site have one. `served`: all
/// certificates of the running server.
fn without_certificate(config: &Config, served: &[CertificateSummary]) -> Vec<CertificateSummary> {
    let mut missing = Vec::new();
    for site in config.sites.iter().filter(|site| !site.secure.is_empty()) {
        let own: Vec<_> = served.iter().filter(|one| one.site == site.name).collect();
        // `served` already has an entry without names for a site without any certificate.
        if own.is_empty() || own.iter().any(|one| one.names.is_empty()) {
            continue;
        }
        let is_missing = |name: &&HostPattern| {
            is_from_acme(site, name, config) && !own.iter().any(|one| one.names.contains(&text(name)))
        };
        // The name takes the place of the site, because the site has certificates for other names.
        missing.extend(site.names.iter().filter(is_missing).map(|name| CertificateSummary {
            site: text(name),
            source: "acme".to_owned(),
            ..CertificateSummary::default()
        }));
    }
    missing
}

/// Returns the seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns true if the certificate of a name comes from a public CA.
fn is_from_acme(site: &Site, name: &HostPattern, config: &Config) -> bool {
    let source = site.tls.as_ref().map(|tls| &tls.source);
    source.and_then(|source| Authority::of(source, config.server.mode, &text(name))) == Some(Authority::Acme)
}

/// Reads the certificates that a server of this configuration would load. Those of the local CA are left out, because
/// the server signs them when it starts. `reads_state`: false to leave out those in the state folder.
fn stored(config: &Config, reads_state: bool) -> Vec<CertificateSummary> {
    let state = reads_state.then(|| state_folder(config));
    let sites = config
        .sites
        .iter()
        .filter(|site| !site.secure.is_empty())
        .take(MAX_CERTIFICATES);
    sites
        .flat_map(|site| of_site(site, config, state.as_deref()))
        .take(MAX_CERTIFICATES)
        .collect()
}

/// Reads the certificates of a site. `state`: the state folder, if its certificates are to be read.
fn of_site(site: &Site, config: &Config, state: Option<&Path>) -> Vec<CertificateSummary> {
    let Some(tls) = &site.tls else { return Vec::new() };
    if let CertificateSource::Files(files) = &tls.source {
        let set = FileSet::new(files.clone()).certificate_set();
        // Files that cannot be loaded are findings of the configuration.
        let loaded = set.iter().flat_map(|set| set.certificates());
        return loaded.map(|one| summary(site, "files", Some(one), None)).collect();
    }
    let Some(state) = state else { return Vec::new() };
    let storage = FileStorage::new(state);
    let of_name = |name: &HostPattern| {
        let stored = stored_state(&storage, &text(name));
        let certificate = stored.certificate.as_ref();
        let mut summary = summary(site, "acme", certificate, stored.error);
        if certificate.is_none() {
            summary.site = text(name);
        }
        summary
    };
    let names = site.names.iter();
    names
        .filter(|name| is_from_acme(site, name, config))
        .map(of_name)
        .collect()
}

fn text(name: &HostPattern) -> String {
    match name {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(name) => format!("*.{name}"),
    }
}

fn summary(site: &Site, source: &str, found: Option<&Certificate>, fault: Option<String>) -> CertificateSummary {
    let mut summary = CertificateSummary {
        site: site.name.clone(),
        source: source.to_owned(),
        fault,
        ..CertificateSummary::default()
    };
    if let Some(found) = found {
        summary.names = found.names().to_vec();
        summary.issuer = found.issuer();
        (summary.not_before, summary.not_after) = (seconds(found.not_before()), seconds(found.not_after()));
        let left = i128::from(summary.not_after) - i128::from(seconds(SystemTime::now()));
        summary.days_left = i64::try_from(left).unwrap_or(i64::MAX).div_euclid(DAY);
    }
    summary
}

/// Returns a check for each certificate with a problem, and one for all others. `now`: seconds since 1970.
/// `is_running`: true if a server serves them.
fn report(certificates: &[CertificateSummary], now: u64, is_running: bool) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    let mut good: Vec<&CertificateSummary> = Vec::new();
    for certificate in certificates.iter().take(MAX_CERTIFICATES) {
        match problem(certificate, now, is_running) {
            Some(mut check) => {
                // The commands query the running server.
                check.command = check.command.filter(|_| is_running);
                checks.push(check.place(&certificate.site));
            }
            None => good.push(certificate),
        }
    }
    if let Some(first) = good.iter().min_by_key(|certificate| certificate.days_left) {
        let found = format!(
            "valid: {}; the first to expire is that of {}, in {} days",
            good.len(),
            first.site,
            first.days_left
        );
        checks.insert(0, Check::good(SUBJECT, found));
    }
    checks
}

/// Returns the problem of a certificate, if there is one. `now` and `is_running` as in [`report`].
fn problem(certificate: &CertificateSummary, now: u64, is_running: bool) -> Option<Check> {
    let CertificateSummary {
        site,
        names,
        source,
        days_left,
        fault,
        ..
    } = certificate;
    let days = *days_left;
    let why = fault.as_deref();
    if names.is_empty() {
        return Some(match why {
            // Nothing is wrong before the first start.
            None if !is_running => {
                let found = format!("{site} has none yet: the server gets one when it runs");
                Check::fair(SUBJECT, "certificate-missing", found)
            }
            why => {
                let why = why.unwrap_or("it is not issued yet");
                let found = format!("{site} has none, so it cannot be opened with HTTPS: {why}");
                Check::bad(SUBJECT, "certificate-missing", found).command(renewal_command(source))
            }
        });
    }
    if certificate.not_before > now {
        let days = (certificate.not_before - now).div_ceil(DAY.unsigned_abs());
        let found = format!(
            "that of {site} becomes valid only in {days} days, so browsers refuse it: put a valid one in its place, or set \
             the clock of this machine"
        );
        return Some(Check::bad(SUBJECT, "certificate-not-yet-valid", found).command(renewal_command(source)));
    }
    let remedy = match source.as_str() {
        "files" => "put a renewed one into its file, which the server loads without a reload",
        _ => "the error log names the reason why it is not renewed",
    };
    if days < 0 {
        let since = days.unsigned_abs();
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        let found = format!("that of {site} expired {since} days ago, so browsers refuse it{why}: {remedy}");
        return Some(Check::bad(SUBJECT, "certificate-expired", found).command(renewal_command(source)));
    }
    if let Some(why) = why {
        let found = format!("that of {site} cannot be renewed, and expires in {days} days: {why}");
        let check = if days <= URGENT_DAYS {
            Check::bad(SUBJECT, "certificate-not-renewed", found)
        } else {
            Check::fair(SUBJECT, "certificate-not-renewed", found)
        };
        return Some(check.command(renewal_command(source)));
    }
    let lifetime = certificate.not_after.saturating_sub(certificate.not_before);
    let days_of_lifetime = i64::try_from(lifetime).unwrap_or(i64::MAX) / DAY;
    let expires_soon = match source.as_str() {
        // A certificate with a lifetime of a few days is renewed late in it, so only its last quarter is reported.
        "files" => days <= FILE_DAYS.min(days_of_lifetime / 4),
        _ => days < days_of_lifetime / LIFETIME_DIVISOR,
    };
    expires_soon.then(|| {
        let found = format!("that of {site} expires in {days} days: {remedy}");
        Check::fair(SUBJECT, "certificate-expires-soon", found).command(renewal_command(source))
    })
}

/// Returns the command that shows more about a certificate that should have been renewed.
fn renewal_command(source: &str) -> &'static str {
    match source {
        "files" => "rocknet certs",
        _ => "rocknet logs --only error --contains certificate",
    }
}

#[cfg(test)]
mod tests {
    use rocknet_control::doctor::DoctorVerdict;

    use super::*;

    fn certificate(source: &str, lifetime: u64, days_left: i64, fault: Option<&str>) -> CertificateSummary {
        CertificateSummary {
            site: "a.example.com".to_owned(),
            names: vec!["a.example.com".to_owned()],
            source: source.to_owned(),
            not_before: 0,
            not_after: lifetime * 86_400,
            days_left,
            fault: fault.map(str::to_owned),
            ..CertificateSummary::default()
        }
    }

    #[test]
    fn certificates_are_reported_by_their_source_and_the_days_left() {
        use DoctorVerdict::{Bad, Fair, Good};
        for (source, lifetime, days, fault, expected) in [
            ("files", 90, 60, None, ("", Good)),
            ("files", 90, 22, None, ("", Good)),
            ("files", 90, 21, None, ("certificate-expires-soon", Fair)),
            ("files", 7, 2, None, ("", Good)),
            ("files", 7, 1, None, ("certificate-expires-soon", Fair)),
            ("files", 90, 0, None, ("certificate-expires-soon", Fair)),
            ("files", 90, -1, None, ("certificate-expired", Bad)),
            ("files", 90, 60, Some("broken"), ("certificate-not-renewed", Fair)),
            ("acme", 90, 30, None, ("", Good)),
            ("acme", 90, 10, None, ("certificate-expires-soon", Fair)),
            ("acme", 90, 60, Some("rate limit"), ("certificate-not-renewed", Fair)),
            ("acme", 90, 3, Some("rate limit"), ("certificate-not-renewed", Bad)),
            ("acme", 90, -5, Some("rate limit"), ("certificate-expired", Bad)),
            ("local", 7, 1, None, ("", Good)),
        ] {
            let checks = report(&[certificate(source, lifetime, days, fault)], 0, true);
            let found: Vec<_> = checks.iter().map(|check| (check.code, check.verdict)).collect();
            assert_eq!(found, [expected], "{source} {lifetime} {days} {fault:?}");
        }
        let none = CertificateSummary {
            site: "b".to_owned(),
            source: "acme".to_owned(),
            ..CertificateSummary::default()
        };
        let all = [
            none.clone(),
            certificate("acme", 90, 60, None),
            certificate("files", 90, 50, None),
        ];
        let checks = report(&all, 0, true);
        assert_eq!(
            checks[0].found,
            "valid: 2; the first to expire is that of a.example.com, in 50 days"
        );
        assert_eq!((checks[1].code, checks[1].verdict), ("certificate-missing", Bad));
        assert!(report(&[], 0, true).is_empty());
        // Before the first start nothing is wrong, unless the CA has refused.
        let refused = CertificateSummary {
            fault: Some("refused".to_owned()),
            ..none.clone()
        };
        for (one, expected) in [(none, Fair), (refused, Bad)] {
            assert_eq!(report(&[one], 0, false)[0].verdict, expected);
        }
        let later = CertificateSummary {
            not_before: 86_401,
            ..certificate("files", 90, 60, None)
        };
        let checks = report(&[later], 0, true);
        assert_eq!((checks[0].code, checks[0].verdict), ("certificate-not-yet-valid", Bad));
        assert!(checks[0].found.contains("2 days"), "{}", checks[0].found);
    }

    #[test]
    fn a_name_without_a_certificate_of_a_running_server_is_found() {
        let text = "[site.\"a.example.com\"]\naliases = [\"b.example.com\", \"c.test\"]\nroot = \"/w\"\n";
        let world = rocknet_config::environment::MemoryEnvironment {
            any_directory: true,
            ..Default::default()
        };
        let loaded = rocknet_config::parse(text, Path::new("/r.toml"), &world).expect("valid");
        let served = [certificate("acme", 90, 60, None)];
        let missing = without_certificate(&loaded.config, &served);
        assert_eq!(
            missing.iter().map(|one| &*one.site).collect::<Vec<_>>(),
            ["b.example.com"]
        );
        assert!(without_certificate(&loaded.config, &[]).is_empty());
    }
}
