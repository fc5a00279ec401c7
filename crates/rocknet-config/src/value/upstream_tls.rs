//! Reads the TLS keys of a proxy: trusted authorities, server name, verification, and client certificate.

use crate::context::Check;
use crate::environment::FileKind;
use crate::file::{Node, Table};
use crate::finding::{Code, Severity};
use crate::message::short;
use crate::model::{CertificateFiles, UpstreamTls, WeightedUpstream};
use crate::value::host::{MAX_HOST_BYTES, MAX_LABEL_BYTES};
use crate::value::{path, typed};

/// Maximum number of files of authorities. Each file may contain any number of certificates.
const MAX_FILES: usize = 64;

/// Keys that have an effect only with TLS.
const KEYS: [&str; 5] = ["ca", "server_name", "verify", "cert", "key"];

/// Reads the TLS keys of a proxy. `to`: its upstreams.
pub(crate) fn build(check: &mut Check<'_>, table: &Table, to: &[WeightedUpstream]) -> UpstreamTls {
    if !to.iter().any(|to| to.upstream.is_secure) {
        for key in KEYS {
            if let Some(entry) = table.entries.get(key) {
                let message = format!("`{key}` has no effect: no server of this proxy uses https://");
                check.error(
                    Code::Conflict,
                    entry.key,
                    message,
                    format!("write \"https://…\" in `to`, or remove `{key}`"),
                );
            }
        }
        return UpstreamTls::default();
    }
    let tls = UpstreamTls {
        ca: table
            .node("ca")
            .map(|node| authorities(check, node))
            .unwrap_or_default(),
        server_name: table.node("server_name").and_then(|node| server_name(check, node)),
        verify: typed::boolean(Some(table), "verify").unwrap_or(true),
        client: client(check, table),
    };
    if let (false, Some(entry)) = (tls.verify, table.entries.get("verify")) {
        if let Some(ca) = table.entries.get("ca") {
            let help = "remove `verify = false`, so that servers are verified by `ca`";
            check.error(Code::Conflict, ca.key, "`ca` has no effect with `verify = false`", help);
        }
        let message = "with `verify = false` an attacker in the network can read and change everything";
        let help = "name the authority of the server's certificate instead: ca = \"internal-ca.pem\"";
        check.warning(Code::Dangerous, entry.key, message, help);
    }
    tls
}

/// Reads `ca`: the files of the trusted authorities.
fn authorities(check: &mut Check<'_>, node: &Node) -> Vec<std::path::PathBuf> {
    let items = typed::elements(node);
    if items.is_empty() || items.len() > MAX_FILES {
        let message = match items.len() {
            0 => "`ca` names no file".to_owned(),
            _ => format!("`ca` names more than {MAX_FILES} files"),
        };
        check.error(
            Code::BadValue,
            node.span,
            message,
            "write one PEM file with all authorities",
        );
        return Vec::new();
    }
    let files: Vec<_> = items.iter().filter_map(|item| path::file(check, "ca", item)).collect();
    if files.iter().all(|path| is_file(check, path))
        && let Some(error) = check.env.ca_certificates_error(&files)
    {
        let help = "name a PEM file that contains the certificates of the authorities";
        check.site_error(Code::Certificate, node.span, format!("`ca`: {error}"), help);
    }
    files
}

/// Returns true if a path leads to a file that is not a folder. Any other path has already been reported.
fn is_file(check: &Check<'_>, path: &std::path::Path) -> bool {
    matches!(check.env.kind(path), Some(FileKind::File | FileKind::Other))
}

/// Reads a server name: a host name or an IP address.
fn server_name(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let written = node.written()?;
    let text = written.value.as_str();
    let is_label = |label: &str| {
        let is_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= MAX_LABEL_BYTES && label.bytes().all(is_byte)
    };
    let is_name = text.len() <= MAX_HOST_BYTES && text.split('.').all(is_label);
    if is_name || text.parse::<std::net::IpAddr>().is_ok() {
        return Some(text.to_ascii_lowercase());
    }
    let message = format!("\"{}\" is not a valid server name", short(typed::as_written(node)));
    check.bad_text(
        written,
        node.span,
        message,
        "write the name in the server's certificate: \"app.internal\"",
    );
    None
}

/// Reads `cert` and `key`: the files of the client certificate and of its private key. If there is no `key`, the
/// certificate file also contains the private key.
fn client(check: &mut Check<'_>, table: &Table) -> Option<(std::path::PathBuf, std::path::PathBuf)> {
    let Some(node) = table.node("cert") else {
        if let Some(entry) = table.entries.get("key") {
            let message = "`key` has no effect without `cert`";
            check.error(Code::Missing, entry.key, message, "write cert = \"…\" beside it");
        }
        return None;
    };
    let cert = path::file(check, "cert", node)?;
    let key = match table.node("key") {
        Some(node) => path::file(check, "key", node)?,
        None => cert.clone(),
    };
    if is_file(check, &cert) && is_file(check, &key) {
        let files = CertificateFiles {
            cert: cert.clone(),
            key: key.clone(),
            ocsp: None,
        };
        // Only errors are reported, because the upstream decides whether it accepts the validity period and the issuer.
        let mut findings = check.env.certificate_findings(&[files], &[]);
        findings.retain(|finding| finding.severity == Severity::Error);
        for finding in findings {
            check.site_error(
                Code::Certificate,
                node.span,
                format!("`cert`: {}", finding.message),
                finding.help,
            );
        }
    }
    Some((cert, key))
}
