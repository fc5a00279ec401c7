//! Certificate files that cannot be served, and missing roots: check, start, reload and doctor report the same errors.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rocknet_testing::{Need, skip};
use rustix::process::Signal;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::program::ProgramFolder;

/// PEM text of a certificate and of its key.
struct CertificateFiles {
    cert: String,
    key: String,
}

/// Issues a certificate for these names, valid from the first to the second year. It is self-signed or signed by an
/// unknown authority.
fn pair(names: &[&str], years: (i32, i32), is_self_signed: bool) -> CertificateFiles {
    let all: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(all).unwrap();
    params.distinguished_name.push(DnType::CommonName, names[0]);
    params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
    let key = KeyPair::generate().unwrap();
    let cert = if is_self_signed {
        params.self_signed(&key).unwrap()
    } else {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "An intermediate");
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        params.signed_by(&key, &issuer).unwrap()
    };
    CertificateFiles {
        cert: cert.pem(),
        key: key.serialize_pem(),
    }
}

/// Returns a certificate for `a.test` and `*.a.test` that `rocknet check` accepts without a warning.
fn good() -> CertificateFiles {
    pair(&["a.test", "*.a.test"], (2020, 4000), true)
}

fn write_pair(dir: &ProgramFolder, pair: &CertificateFiles) {
    dir.write("x.pem", &pair.cert);
    set_mode(&dir.write("x.key", &pair.key), 0o600);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A site without TLS, and a site with certificate files.
const SITES: &str = "[site.\"b.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"www\"\n\
                     [site.\"a.test\"]\nlisten = \"https://127.0.0.2:0\"\nroot = \"www\"\n\
                     tls = { cert = \"x.pem\", key = \"x.key\" }\n";

/// Returns a folder with the configuration [`SITES`] and a valid certificate.
fn home() -> ProgramFolder {
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", SITES)]);
    write_pair(&dir, &good());
    dir
}

/// Name of the case, function that damages the files, and part of the expected message.
type Defect = (&'static str, fn(&ProgramFolder), &'static str);

/// Returns all defects that make the certificate of a site unusable.
fn defects() -> Vec<Defect> {
    vec![
        (
            "the key of another certificate",
            |dir| write_key(dir, &good().key),
            "the key belongs to another certificate",
        ),
        ("half a key", |dir| write_key(dir, &half(&good().key)), "x.key"),
        (
            "half a certificate",
            |dir| drop(dir.write("x.pem", &half(&good().cert))),
            "the certificate cannot be read",
        ),
        (
            "an empty certificate",
            |dir| drop(dir.write("x.pem", "")),
            "there is no certificate",
        ),
        ("an empty key", |dir| write_key(dir, ""), "contains no private key"),
        (
            "a key for a certificate",
            |dir| drop(dir.write("x.pem", &good().key)),
            "there is no certificate",
        ),
        (
            "a key that every user can read",
            |dir| set_mode(&dir.path().join("x.key"), 0o644),
            "every user can access",
        ),
        (
            "no certificate file",
            |dir| fs::remove_file(dir.path().join("x.pem")).unwrap(),
            "x.pem does not exist",
        ),
        (
            "no key file",
            |dir| fs::remove_file(dir.path().join("x.key")).unwrap(),
            "x.key does not exist",
        ),
        (
            "a file of client authorities without a certificate",
            |dir| {
                dir.write("ca.pem", "nothing");
                let with = SITES.replace("key = \"x.key\"", "key = \"x.key\", client_ca = \"ca.pem\"");
                dir.write("rocknet.toml", &with);
            },
            "ca.pem: contains no certificate",
        ),
    ]
}

fn half(text: &str) -> String {
    text[..text.len() / 2].to_owned()
}

fn write_key(dir: &ProgramFolder, text: &str) {
    set_mode(&dir.write("x.key", text), 0o600);
}

#[test]
fn check_reports_every_defect_of_certificate_files() {
    let dir = home();
    let output = dir.run(&["check"]);
    assert!(output.code == Some(0) && output.err.is_empty(), "{output:?}");
    for (what, damage, part) in defects() {
        let dir = home();
        damage(&dir);
        let output = dir.run(&["check"]);
        assert_eq!(output.code, Some(78), "{what}: {output:?}");
        assert!(output.err.contains(part), "{what}: {output:?}");
        // Line 7 of the configuration is the key `tls`.
        assert!(
            output.err.contains("rocknet.toml:7:") && output.err.contains("help: "),
            "{what}: {output:?}"
        );
        let output = dir.run(&["check", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&output.out).unwrap();
        assert_eq!(json["errors"].as_u64().map(|errors| errors > 0), Some(true), "{what}");
    }
}

#[test]
fn check_warns_about_certificates_that_clients_reject() {
    for (what, pair, aliases, part) in [
        (
            "expired",
            pair(&["a.test"], (2000, 2001), true),
            "",
            "the certificate expired on",
        ),
        (
            "not yet valid",
            pair(&["a.test"], (3000, 4000), true),
            "",
            "is not valid before",
        ),
        (
            "another name",
            pair(&["c.test", "*.a.test"], (2020, 4000), true),
            "",
            "is not for a.test; it is for c.test, *.a.test",
        ),
        (
            "an alias",
            good(),
            "aliases = [\"www.a.test\", \"c.test\", \"x.y.a.test\", \"*.a.test\"]\n",
            "is not for c.test, x.y.a.test; it is for",
        ),
        (
            "no chain",
            pair(&["a.test"], (2020, 4000), false),
            "",
            "the chain is incomplete",
        ),
        (
            "a chain of another authority",
            {
                let leaf = pair(&["a.test"], (2020, 4000), false);
                CertificateFiles {
                    cert: leaf.cert + &pair(&["ca.test"], (2020, 4000), true).cert,
                    key: leaf.key,
                }
            },
            "",
            "the chain is incomplete",
        ),
    ] {
        let dir = home();
        write_pair(&dir, &pair);
        dir.write("rocknet.toml", &format!("{SITES}{aliases}"));
        let output = dir.run(&["check"]);
        assert_eq!(output.code, Some(0), "{what}: {output:?}");
        assert!(
            output.err.contains(part) && output.err.contains("no errors, 1 warning"),
            "{what}: {output:?}"
        );
    }
}

#[test]
fn start_reports_a_site_without_a_certificate_and_serves_other_sites() {
    for (what, damage, part) in defects() {
        let dir = home();
        damage(&dir);
        let mut server = dir.serve(&["run", "--console"]);
        assert!(
            server.banner.contains("ERROR: no TLS: ") && server.banner.contains(&dir.path().display().to_string()),
            "{what}: {}",
            server.banner
        );
        let message = server.logged("error: ");
        assert!(message.contains(part), "{what}: {message}");
        let response = server.get_from("b.test", "/");
        assert!(response.ends_with("home"), "{what}: {response}");
        server.type_line("sites");
        let line = server.line_with("a.test");
        assert!(line.contains("ERROR: no TLS: "), "{what}: {line}");
    }
}

/// Sends a ClientHello and waits until the server closes the connection.
fn send_client_hello(address: &str, name: &'static str) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), name.try_into().unwrap()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    client.write_tls(&mut stream).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_handshake_for_a_site_without_a_certificate_is_logged_with_the_reason() {
    let dir = home();
    dir.write("x.pem", "");
    let server = dir.serve(&["run"]);
    let (_, rest) = server.banner.split_once("https://a.test:").expect("its URL");
    let port: u16 = rest
        .split('/')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    for _ in 0..3 {
        send_client_hello(&format!("127.0.0.2:{port}"), "a.test");
    }
    let line = server.logged("a handshake was refused");
    check_parts(&line, &["WARN", "site=a.test", "there is no certificate"]);
    let line = server.logged("more like this in the last second");
    check_parts(&line, &["WARN", "a handshake was refused", "site=a.test"]);
}

#[test]
fn every_reload_refuses_broken_files_and_keeps_the_certificate() {
    for (what, damage, part) in defects() {
        let dir = home();
        let mut server = dir.serve(&["run", "--console"]);
        let changed = format!("{SITES}headers = {{ \"X-New\" = \"yes\" }}\n");
        dir.write("rocknet.toml", &changed);
        damage(&dir);
        // One of the defects replaces the configuration, which then lacks the change.
        let now = dir.read("rocknet.toml");
        if !now.contains("X-New") {
            dir.write("rocknet.toml", &format!("{now}headers = {{ \"X-New\" = \"yes\" }}\n"));
        }
        for _ in 0..2 {
            server.signal(Signal::HUP);
            let line = server.logged(part);
            assert!(
                line.contains("ERROR") && line.contains("rocknet.toml:7:"),
                "{what}: {line}"
            );
            server.logged("is not reloaded, nothing has changed: ");
        }
        server.type_line("status");
        server.line_with("the last reload changed nothing:");
        write_pair(&dir, &good());
        dir.write("rocknet.toml", &changed);
        server.signal(Signal::HUP);
        server.logged("is reloaded, sites: 2");
    }
}

#[test]
fn a_broken_replacement_on_disk_is_logged_with_its_site() {
    let dir = home();
    let server = dir.serve(&["run"]);
    dir.write("x.pem", "");
    let line = server.logged("there is no certificate");
    check_parts(&line, &["ERROR", "stays in use", "site=a.test", "help="]);
    write_pair(&dir, &pair(&["c.test"], (2020, 4000), true));
    let line = server.logged("is not for a.test");
    assert!(line.contains("WARN") && line.contains("site=a.test"), "{line}");
    server.logged("certificate files reloaded");
}

/// The server reads the keys as root and then becomes a user who cannot read them.
#[test]
fn a_key_that_became_unreadable_does_not_prevent_reloads() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            Need::Root,
            "the server reads the keys as root and then becomes another user",
        );
    }
    let dir = home();
    set_mode(dir.path(), 0o755);
    let text = format!(
        "[server]\nuser = \"nobody\"\nstate = \"{}/state\"\n{SITES}",
        dir.path().display()
    );
    dir.write("rocknet.toml", &text);
    let server = dir.serve(&["run"]);
    server.signal(Signal::HUP);
    server.logged("is reloaded, sites: 2");
    // A renewed key is a different file. The server has to read it but lacks the permission, so the certificate in use
    // is kept.
    write_pair(&dir, &good());
    server.signal(Signal::HUP);
    let line = server.logged("Permission denied");
    check_parts(&line, &["WARN", "x.key", "stays in use"]);
    // A readable file with an error is still refused.
    dir.write("x.pem", "");
    server.signal(Signal::HUP);
    server.logged("there is no certificate");
    server.logged("is not reloaded, nothing has changed: 1 error");
}

#[track_caller]
fn check_parts(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn doctor_and_explain_show_sites_without_a_certificate() {
    for (what, damage, part) in defects() {
        let dir = home();
        damage(&dir);
        let output = dir.run(&["doctor"]);
        let line = output.out.lines().find(|line| line.contains(part)).unwrap_or_default();
        assert!(output.code == Some(1) && line.starts_with("bad "), "{what}: {output:?}");
        let output = dir.run(&["explain", "https://a.test:0/"]);
        let line = output
            .out
            .lines()
            .find(|line| line.starts_with("problem"))
            .unwrap_or_default();
        assert!(line.contains("not served under TLS: "), "{what}: {output:?}");
    }
}

#[test]
fn a_missing_root_and_an_empty_site_do_not_affect_other_sites() {
    for (what, site, part, banner_part) in [
        (
            "no root",
            "[site.\"c.test\"]\nheaders = { X-A = \"b\" }\n",
            "serves nothing",
            "serves nothing",
        ),
        (
            "a missing root",
            "[site.\"c.test\"]\nroot = \"gone\"\n",
            "gone does not exist",
            "cannot be opened",
        ),
    ] {
        let other = "[site.\"b.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"www\"\n";
        let site = format!("{site}listen = \"http://127.0.0.1:0\"\n");
        let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", &format!("{other}{site}"))]);
        let output = dir.run(&["check"]);
        assert!(
            output.code == Some(78) && output.err.contains(part),
            "{what}: {output:?}"
        );

        let mut server = dir.serve(&["run", "--console"]);
        assert!(
            server.banner.contains("ERROR: ") && server.banner.contains(banner_part),
            "{what}: {}",
            server.banner
        );
        let message = server.logged("error: ");
        assert!(message.contains(part), "{what}: {message}");
        assert!(server.get_from("b.test", "/").ends_with("home"), "{what}");
        let response = server.get_from("c.test", "/");
        assert!(
            response.starts_with("HTTP/1.1 404 ") || response.starts_with("HTTP/1.1 503 "),
            "{what}: {response}"
        );
        server.type_line("sites");
        assert!(server.line_with("c.test").contains("ERROR: "), "{what}");

        // A running server refuses the same file at a reload.
        server.signal(Signal::HUP);
        server.logged(part);
        server.logged("is not reloaded, nothing has changed: 1 error");
        dir.write("rocknet.toml", other);
        server.signal(Signal::HUP);
        server.logged("is reloaded, sites: 1");
        dir.write("rocknet.toml", &format!("{other}{site}"));
        server.signal(Signal::HUP);
        server.logged("is not reloaded, nothing has changed: 1 error");
    }
}

#[test]
fn a_site_with_only_routes_has_no_default_page() {
    let text = "[site.\":0\"]\n[site.\":0\".route.\"/docs/*\"]\nroot = \"www\"\n";
    let dir = ProgramFolder::new(&[("www/docs/index.html", "docs"), ("rocknet.toml", text)]);
    assert_eq!(dir.run(&["check"]).code, Some(0));
    let mut server = dir.serve(&["run", "--console"]);
    assert!(server.get("/").starts_with("HTTP/1.1 404 "));
    assert!(server.get("/docs/").ends_with("docs"));
    server.type_line("sites");
    let line = server.line_with(":0 ");
    assert!(line.contains("routes") && !line.contains("ERROR"), "{line}");
    let output = dir.run(&["explain", "/"]);
    assert!(output.out.contains("404 Not Found"), "{output:?}");
}
