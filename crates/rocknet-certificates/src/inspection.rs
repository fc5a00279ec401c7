//! Inspects certificate files: loads them as a site would and lists errors and warnings.
//!
//! The commands `check` and `doctor`, the start of the server, its reloads, and its check for changed files share this
//! code.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rocknet_config::Severity;
use rocknet_config::environment::{CertificateFinding, CertificatePart};
use rocknet_config::model::{CertificateFiles, HostPattern};
use rocknet_proto::semantics::date;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use super::Certificate;
use super::pem::{PemFileError, load};

/// Maximum number of names listed in one message.
const MAX_NAMES_SHOWN: usize = 5;
/// Maximum number of system roots whose names are kept. Browser root programs contain about 150.
const MAX_ROOTS: usize = 4_096;

/// The result of an inspection. `loaded` is `None` if a file has an error.
pub(super) struct Inspected {
    pub loaded: Option<Vec<Certificate>>,
    pub findings: Vec<CertificateFinding>,
    /// True if the first error is a missing read permission.
    pub is_denied: bool,
}

/// Loads pairs of certificate and key files and inspects each pair. A pair with an error cannot be served; a warning
/// means that clients will reject the certificate.
pub(super) fn inspect(files: &[CertificateFiles], now: SystemTime) -> Inspected {
    let mut inspected = Inspected {
        loaded: None,
        findings: Vec::new(),
        is_denied: false,
    };
    let mut loaded = Vec::with_capacity(files.len());
    for (at, pair) in files.iter().enumerate() {
        match load(pair) {
            Ok(certificate) => {
                inspected.findings.extend(warnings(at, pair, &certificate, now));
                loaded.push(certificate);
            }
            Err(failure) => {
                inspected.is_denied |=
                    inspected.findings.iter().all(|finding| !is_error(finding)) && failure.is_denied();
                inspected.findings.push(error(at, &failure));
            }
        }
    }
    inspected.loaded = (loaded.len() == files.len()).then_some(loaded);
    inspected
}

pub(super) fn is_error(finding: &CertificateFinding) -> bool {
    finding.severity == Severity::Error
}

/// Returns the error of a pair that cannot be loaded. `at` is the index of the pair in the list of the site.
fn error(at: usize, failure: &PemFileError) -> CertificateFinding {
    CertificateFinding {
        at,
        part: failure.part(),
        severity: Severity::Error,
        is_about_validity: false,
        message: failure.to_string(),
        help: failure.help().to_owned(),
    }
}

/// Returns the warnings about the certificate of `files`. `at` is the index of these files in the list of the site.
fn warnings(
    at: usize,
    files: &CertificateFiles,
    certificate: &Certificate,
    now: SystemTime,
) -> Vec<CertificateFinding> {
    let path = files.cert.display();
    let warning = |message: String, help: &str| CertificateFinding {
        at,
        part: CertificatePart::Certificate,
        severity: Severity::Warning,
        is_about_validity: false,
        message,
        help: help.to_owned(),
    };
    let of_validity = |message: String, help: &str| CertificateFinding {
        is_about_validity: true,
        ..warning(message, help)
    };
    let mut all = Vec::new();
    if certificate.not_after() < now {
        all.push(of_validity(
            format!(
                "{path}: the certificate expired on {}",
                http_date(certificate.not_after())
            ),
            "browsers will refuse it: put a renewed one into the file",
        ));
    } else if certificate.not_before() > now {
        all.push(of_validity(
            format!(
                "{path}: the certificate is not valid before {}",
                http_date(certificate.not_before())
            ),
            "browsers will refuse it until then: check that the clock of this machine is right",
        ));
    }
    if let Some(gap) = chain_gap(&certificate.key().cert) {
        all.push(warning(
            format!("{path}: the chain is incomplete: {gap}"),
            "append the intermediate certificates of the authority, or use its fullchain.pem: browsers refuse a chain with gaps",
        ));
    }
    all
}

/// Returns a warning that lists the names of a site that the certificate does not cover; `None` if it covers all. `at`
/// is the index of the certificate's files in the list of the site, and `path` is the certificate file.
pub(super) fn uncovered(
    at: usize,
    path: &std::path::Path,
    certificate: &Certificate,
    names: &[HostPattern],
) -> Option<CertificateFinding> {
    let missing: Vec<String> = names
        .iter()
        .filter(|name| !covers(certificate.names(), name))
        .map(shown)
        .collect();
    if missing.is_empty() {
        return None;
    }
    let has = match certificate.names() {
        [] => "it names no host (subjectAltName)".to_owned(),
        names => format!("it is for {}", listed(names)),
    };
    Some(CertificateFinding {
        at,
        part: CertificatePart::Certificate,
        severity: Severity::Warning,
        is_about_validity: false,
        message: format!(
            "{}: the certificate is not for {}; {has}",
            path.display(),
            listed(&missing)
        ),
        help: "browsers will refuse it under these names: order one for all of them, or correct the name or `aliases`"
            .to_owned(),
    })
}

/// Returns true if one of the certificate's names equals this name or is a wildcard that covers it (RFC 9525 §6.3).
fn covers(certificate_names: &[String], name: &HostPattern) -> bool {
    match name {
        HostPattern::Exact(name) => {
            let parent = name.split_once('.').map(|(_, parent)| parent);
            certificate_names
                .iter()
                .any(|own| own == name || own.strip_prefix("*.").is_some_and(|own| Some(own) == parent))
        }
        HostPattern::Wildcard(name) => certificate_names
            .iter()
            .any(|own| own.strip_prefix("*.") == Some(name.as_str())),
    }
}

fn shown(name: &HostPattern) -> String {
    match name {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(name) => format!("*.{name}"),
    }
}

/// Joins names with commas. Names after the first `MAX_NAMES_SHOWN` are only counted.
pub(super) fn listed(names: &[String]) -> String {
    let first = names.iter().take(MAX_NAMES_SHOWN).map(String::as_str);
    let text = first.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES_SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Describes the missing link between a certificate and a root, if any. The root itself need not be in the file.
fn chain_gap(chain: &[CertificateDer<'_>]) -> Option<String> {
    let parsed: Vec<_> = chain
        .iter()
        .map(|der| X509Certificate::from_der(der).ok().map(|(_, one)| one))
        .collect::<Option<_>>()?;
    for (at, pair) in parsed.windows(2).enumerate() {
        if pair[0].issuer().as_raw() != pair[1].subject().as_raw() {
            return Some(format!(
                "certificate {} was issued by \"{}\", and the next one in the file is \"{}\"",
                at + 1,
                pair[0].issuer(),
                pair[1].subject()
            ));
        }
    }
    let last = parsed.last()?;
    let issuer = last.issuer().as_raw();
    if issuer == last.subject().as_raw() {
        return None;
    }
    let is_known = match roots_of_system() {
        // Without a root list, a heuristic decides: a single certificate with the URL of its issuer lacks its
        // intermediate certificate. Public CAs add this URL to a certificate; private CAs rarely do.
        known if known.is_empty() => parsed.len() > 1 || !names_its_issuer(last),
        known => known.contains(issuer),
    };
    (!is_known).then(|| {
        format!(
            "its issuer \"{}\" is neither in the file nor a root that this machine trusts",
            last.issuer()
        )
    })
}

/// Returns true if the certificate contains the URL of its issuer (RFC 5280 §4.2.2.1).
fn names_its_issuer(certificate: &X509Certificate<'_>) -> bool {
    certificate.extensions().iter().any(|extension| {
        let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else {
            return false;
        };
        access.accessdescs.iter().any(|one| {
            one.access_method.to_id_string() == CA_ISSUERS && matches!(one.access_location, GeneralName::URI(_))
        })
    })
}

/// OID of id-ad-caIssuers (RFC 5280 §4.2.2.1).
const CA_ISSUERS: &str = "1.3.6.1.5.5.7.48.2";

/// Returns the subject names of the roots that this machine trusts. The roots are read once; the names use about 20 KB.
fn roots_of_system() -> &'static HashSet<Vec<u8>> {
    static ROOTS: OnceLock<HashSet<Vec<u8>>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs().certs;
        let subject = |der: &CertificateDer<'_>| {
            let (_, root) = X509Certificate::from_der(der).ok()?;
            Some(root.subject().as_raw().to_vec())
        };
        found.iter().take(MAX_ROOTS).filter_map(subject).collect()
    })
}

/// Formats a time as an HTTP date.
fn http_date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    String::from_utf8_lossy(&date::format(seconds)).into_owned()
}
