//! Checks `[admin]`.

use super::{listen, tls};
use crate::binding::{self, Section};
use crate::choice::Choice;
use crate::context::Check;
use crate::file::{Node, Table};
use crate::finding::Code;
use crate::model::{Admin, CertificateFiles, CertificateSource, ControlSocket, HostPattern, PasswordHash};
use crate::value::path::{self, WordOrFile};
use crate::value::{auth, host, typed};

/// Maximum number of names in `hosts`. A server has far fewer names, so a longer list is a mistake.
const MAX_HOSTS: usize = 32;

/// Returns the settings of `[admin]`.
pub(super) fn build(check: &mut Check<'_>, table: Option<&Table>) -> Admin {
    let mut admin = Admin::default();
    if let Some(table) = table {
        admin.socket = socket(check, table);
        admin.password = password(check, table);
        admin.certificates = certificates(check, table);
        admin.hosts = hosts(check, table.node("hosts"));
        admin.listen = table.node("listen").and_then(|node| listen::of_admin(check, node));
        protect(check, table, &admin);
    }
    binding::read(check, Section::Admin, table, &mut admin);
    admin
}

fn socket(check: &mut Check<'_>, table: &Table) -> ControlSocket {
    const EXAMPLE: &str = "/run/rocknet/control.sock";
    let node = table.node("socket");
    match node.and_then(|node| path::word_or_file(check, "socket", node, ControlSocket::WORDS, EXAMPLE)) {
        Some(WordOrFile::Word(word)) => ControlSocket::of(word).unwrap_or_default(),
        Some(WordOrFile::File(file)) => ControlSocket::File(file),
        None => ControlSocket::default(),
    }
}

fn password(check: &mut Check<'_>, table: &Table) -> Option<PasswordHash> {
    let node = table.node("password")?;
    let written = node.written()?;
    auth::password_hash(check, &written.value, node.span, "the password of [admin]")
}

fn certificates(check: &mut Check<'_>, table: &Table) -> Vec<CertificateFiles> {
    match tls::source(check, table) {
        Some(CertificateSource::Files(files)) => files,
        // Without `cert`, the result is an issuer, but `[admin]` takes certificates only from files.
        Some(CertificateSource::Auto | CertificateSource::Local) | None => Vec::new(),
    }
}

fn hosts(check: &mut Check<'_>, node: Option<&Node>) -> Vec<String> {
    let Some(node) = node else { return Vec::new() };
    if typed::elements(node).len() > MAX_HOSTS {
        let message = format!("`hosts` of [admin] has more than {MAX_HOSTS} names");
        check.error(Code::BadValue, node.span, message, "write the names that clients use");
        return Vec::new();
    }
    let mut hosts = Vec::new();
    for (text, span) in typed::texts(node) {
        match host::host_pattern(&text.value) {
            Ok(HostPattern::Exact(name)) => hosts.push(name),
            Ok(_) => {
                let message = "`hosts` of [admin] takes no wildcard";
                check.error(Code::BadValue, span, message, "write each name");
            }
            Err((message, help)) => check.bad_text(text, span, message, help),
        }
    }
    hosts
}

/// Reports an address that other machines can reach without a password or without TLS, and keys without effect.
fn protect(check: &mut Check<'_>, table: &Table, admin: &Admin) {
    let Some(node) = table.node("listen") else {
        for key in ["password", "cert", "hosts"] {
            if let Some(entry) = table.entries.get(key) {
                let message = format!("`{key}` has no effect without `listen`");
                check.warning(Code::Useless, entry.key, message, "write listen = 7625 beside it");
            }
        }
        return;
    };
    let is_remote = admin.listen.is_some_and(|address| !address.ip().is_loopback());
    let has = |key: &str| table.entries.contains_key(key);
    if is_remote && !(has("password") && has("cert")) {
        let message = "other machines can reach this address: `listen` of [admin] needs `password` and `cert`";
        let help = "write \"127.0.0.1:7625\", or password = \"…\" with a hash from `rocknet hash-password`, and \
                    cert = \"admin.pem\" and key = \"admin.key\"";
        check.error(Code::Dangerous, node.span, message, help);
    }
}
