//! Checks `[tls]`, and `tls` of a site.

use std::path::PathBuf;
use std::time::Duration;

use crate::binding::{self, Section};
use crate::check::acme;
use crate::choice::Choice;
use crate::context::Check;
use crate::environment::{CertificateFinding, CertificatePart, FileKind};
use crate::file::{Node, Table, Value};
use crate::finding::{Code, Severity};
use crate::keys::tls::{ClientCertificate, Encryption, Issuer};
use crate::local_name::is_local_name;
use crate::model::{CertificateFiles, CertificateSource, ClientAuth, HostPattern, Mode, SiteTls, Tls};
use crate::source::Span;
use crate::value::{path, typed};

/// Maximum number of certificates of one site. A site needs one for each type of key, and there are fewer types.
const MAX_CERTIFICATES: usize = 8;

/// Returns the settings of `[tls]`, including the settings for ACME.
pub(super) fn build(check: &mut Check<'_>, table: Option<&Table>) -> Tls {
    let mut tls = Tls {
        acme: acme::build(check, table),
        ..Tls::default()
    };
    binding::read(check, Section::Tls, table, &mut tls);
    tls
}

/// Reads the TLS settings of a site; `None` if the site does not use TLS, or if an error was reported. `written`: the
/// value of `tls` of the site. `name`: host name of the site; a site with a host name uses TLS by default. `defaults`:
/// the settings of `[tls]`.
pub(super) fn site(
    check: &mut Check<'_>,
    written: Option<&Node>,
    name: Option<&str>,
    mode: Mode,
    defaults: &Tls,
) -> Option<SiteTls> {
    let table = written.and_then(Node::as_table);
    let source = match (written.map(|node| &node.value), table) {
        (_, Some(table)) => source(check, table)?,
        (Some(Value::Text(text)), _) => match Encryption::of(&text.value)? {
            Encryption::Auto => CertificateSource::Auto,
            Encryption::Local => CertificateSource::Local,
            Encryption::Off => return None,
        },
        (None, _) if name.is_some() => CertificateSource::Auto,
        _ => return None,
    };
    let redirect = typed::boolean(table, "redirect").unwrap_or(defaults.redirect);
    let inherited = inherited_hsts(&source, redirect, name, mode, defaults);
    Some(SiteTls {
        min: typed::choice(table, "min").unwrap_or(defaults.min),
        client: client(check, table),
        redirect,
        early_data: typed::boolean(table, "early_data").unwrap_or(defaults.early_data),
        hsts: typed::duration(table, "hsts").unwrap_or(inherited),
        source,
    })
}

/// Returns the duration of HSTS for a site that does not set `hsts`. `name`: host name of the site.
///
/// Browsers remember HSTS. A name on a developer's machine, or with a certificate that only this machine trusts, would
/// become unreachable once the name is served without TLS or with another certificate. A site without `redirect` is
/// meant to be reachable without TLS, which HSTS would prevent. With the source `Auto`, a site without a host name
/// counts as local.
pub(super) fn inherited_hsts(
    source: &CertificateSource,
    redirect: bool,
    name: Option<&str>,
    mode: Mode,
    defaults: &Tls,
) -> Duration {
    let is_local = match source {
        CertificateSource::Auto => mode == Mode::Dev || name.is_none_or(is_local_name),
        CertificateSource::Local => true,
        CertificateSource::Files(_) => mode == Mode::Dev,
    };
    if is_local || !redirect {
        Duration::ZERO
    } else {
        defaults.hsts
    }
}

/// Returns the certificate files in `cert`, `key` and `ocsp` of a table. Without `cert`, returns the issuer that the
/// table selects for the certificate. Returns `None` after an error was reported.
pub(super) fn source(check: &mut Check<'_>, table: &Table) -> Option<CertificateSource> {
    let Some(cert) = table.node("cert") else {
        for key in ["key", "ocsp"] {
            if let Some(entry) = table.entries.get(key) {
                let message = format!("`{key}` has no effect without `cert`");
                check.error(Code::Missing, entry.key, message, "write cert = \"…\" beside it");
            }
        }
        return Some(match typed::choice(Some(table), "issuer").unwrap_or_default() {
            Issuer::Local => CertificateSource::Local,
            Issuer::Auto => CertificateSource::Auto,
        });
    };
    if let Some(entry) = table.entries.get("issuer") {
        let help = "remove one of the two";
        check.error(Code::Conflict, entry.key, "`issuer` has no effect with `cert`", help);
    }
    let certs = files(check, "cert", cert);
    if certs.is_empty() {
        // A value that is not a path has already been reported.
        if typed::elements(cert).is_empty() {
            let help = "write cert = \"example.pem\"";
            check.error(Code::BadValue, cert.span, "`cert` names no file", help);
        }
        return None;
    }
    if certs.len() > MAX_CERTIFICATES {
        let message = format!("`cert` names more than {MAX_CERTIFICATES} certificates");
        check.error(Code::BadValue, cert.span, message, "write one for each type of key");
        return None;
    }
    // The outer `None` means that an error was reported. The inner `None` means that the key is not set.
    let mut files_of = |key: &str| -> Option<Option<Vec<PathBuf>>> {
        let Some(node) = table.node(key) else { return Some(None) };
        let found = files(check, key, node);
        if found.len() == certs.len() {
            return Some(Some(found));
        }
        let message = format!("`cert` names {} files, but `{key}` names {}", certs.len(), found.len());
        check.error(
            Code::Conflict,
            node.span,
            message,
            "write one for each certificate, in the same order",
        );
        None
    };
    let (keys, ocsp) = (files_of("key")?, files_of("ocsp")?);
    // Without `key`, the file of a certificate also contains its private key.
    let certificate = |at: usize| CertificateFiles {
        cert: certs[at].clone(),
        key: keys.as_ref().map_or(&certs[at], |keys| &keys[at]).clone(),
        ocsp: ocsp.as_ref().map(|ocsp| ocsp[at].clone()),
    };
    Some(CertificateSource::Files((0..certs.len()).map(certificate).collect()))
}

/// Reads `client_ca`, `client` and `crl`; `None` if no client certificates are requested.
fn client(check: &mut Check<'_>, table: Option<&Table>) -> Option<ClientAuth> {
    let table = table?;
    let Some(node) = table.node("client_ca") else {
        for key in ["client", "crl"] {
            if let Some(entry) = table.entries.get(key) {
                let message =
                    format!("`{key}` has no effect without `client_ca`: no client certificates are requested");
                let help = "name the file with the authorities of client certificates: client_ca = \"clients.pem\"";
                check.warning(Code::Dangerous, entry.key, message, help);
            }
        }
        return None;
    };
    let ca = files(check, "client_ca", node);
    let crl = table
        .node("crl")
        .map(|node| files(check, "crl", node))
        .unwrap_or_default();
    Some(ClientAuth {
        ca,
        crl,
        required: typed::choice::<ClientCertificate>(Some(table), "client").unwrap_or_default()
            == ClientCertificate::Required,
    })
}

/// Loads the certificates of a site, and the CA certificates that verify its clients, and reports the findings. Missing
/// files, and folders in place of files, have already been reported. `written`: value of the key `tls`. `site`: name of
/// the site in messages. `names`: host names that the certificates must contain.
pub(super) fn inspect(check: &mut Check<'_>, written: Option<&Node>, tls: &SiteTls, site: &str, names: &[HostPattern]) {
    let Some(table) = written.and_then(Node::as_table) else {
        return;
    };
    let is_file = |path: &PathBuf| matches!(check.env.kind(path), Some(FileKind::File | FileKind::Other));
    if let (Some(client), Some(node)) = (&tls.client, table.node("client_ca"))
        && client.ca.iter().all(is_file)
        && let Some(error) = check.env.ca_certificates_error(&client.ca)
    {
        let help = "name a PEM file that contains the certificates of the authorities";
        let message = format!("site \"{site}\" cannot be served with TLS: {error}");
        check.site_error(Code::Certificate, node.span, message, help);
    }
    if let (Some(client), Some(node)) = (&tls.client, table.node("crl"))
        && client.crl.iter().all(is_file)
        && let Some(error) = check.env.revocation_lists_error(&client.crl)
    {
        let help = "name a PEM or DER file that contains the lists of the authorities in `client_ca`";
        let message = format!("site \"{site}\" cannot be served with TLS: {error}");
        check.site_error(Code::Certificate, node.span, message, help);
    }
    let CertificateSource::Files(files) = &tls.source else {
        return;
    };
    let mut paths = files
        .iter()
        .flat_map(|files| [Some(&files.cert), Some(&files.key), files.ocsp.as_ref()])
        .flatten();
    if !paths.all(is_file) {
        return;
    }
    for finding in check.env.certificate_findings(files, names) {
        let Some(span) = file_span(table, &finding) else {
            continue;
        };
        let CertificateFinding {
            severity,
            message,
            help,
            ..
        } = finding;
        match severity {
            Severity::Error => {
                let message = format!("site \"{site}\" cannot be served with TLS: {message}");
                check.site_error(Code::Certificate, span, message, help);
            }
            Severity::Warning => check.warning(Code::Certificate, span, format!("site \"{site}\": {message}"), help),
        }
    }
}

/// Returns the span of the configured path of the file that a finding concerns. If there is no `key`, a finding about
/// the private key gets the span of the certificate.
fn file_span(table: &Table, finding: &CertificateFinding) -> Option<Span> {
    let key = match finding.part {
        CertificatePart::Certificate => "cert",
        CertificatePart::Key => "key",
        CertificatePart::Ocsp => "ocsp",
    };
    let node = table.node(key).or_else(|| table.node("cert"))?;
    let item = typed::elements(node).get(finding.at);
    Some(item.map_or(node.span, |item| item.span))
}

/// Reads the paths of a key. Values that are not paths are reported and left out.
fn files(check: &mut Check<'_>, key: &str, node: &Node) -> Vec<PathBuf> {
    let items = typed::elements(node).iter();
    items.filter_map(|item| path::file(check, key, item)).collect()
}
