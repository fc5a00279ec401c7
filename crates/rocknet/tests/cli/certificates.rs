//! Certificate files that cannot be served, and missing roots: check, start, reload and doctor judge them alike.

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

use crate::program::Place;

/// A certificate and its key for these names, self-signed or signed by an unknown authority.
struct Pair {
    cert: String,
    key: String,
}

fn pair(names: &[&str], years: (i32, i32), is_self_signed: bool) -> Pair {
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
    Pair {
        cert: cert.pem(),
        key: key.serialize_pem(),
    }
}

fn good() -> Pair {
    pair(&["a.test", "*.a.test"], (2020, 4000), true)
}

fn write_pair(place: &Place, pair: &Pair) {
    place.write("x.pem", &pair.cert);
    set_mode(&place.write("x.key", &pair.key), 0o600);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// One site in the clear, and one with certificate files that has only the name of its listener.
const SITES: &str = "[site.\"b.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"www\"\n\
                     [site.\"a.test\"]\nlisten = \"https://127.0.0.2:0\"\nroot = \"www\"\n\
                     tls = { cert = \"x.pem\", key = \"x.key\" }\n";

fn home() -> Place {
    let place = Place::new(&[("www/index.html", "home"), ("rocknet.toml", SITES)]);
    write_pair(&place, &good());
    place
}

/// A name, the change made to the files, and a part of the message about it.
type Broken = (&'static str, fn(&Place), &'static str);

/// Everything that can make the certificate of a site unusable.
fn broken() -> Vec<Broken> {
    vec![
        (
            "the key of another certificate",
            |place| write_key(place, &good().key),
            "the key belongs to another certificate",
        ),
        ("half a key", |place| write_key(place, &half(&good().key)), "x.key"),
        (
            "half a certificate",
            |place| drop(place.write("x.pem", &half(&good().cert))),
            "the certificate cannot be read",
        ),
        (
            "an empty certificate",
            |place| drop(place.write("x.pem", "")),
            "there is no certificate",
        ),
        ("an empty key", |place| write_key(place, ""), "holds no private key"),
        (
            "a key for a certificate",
            |place| drop(place.write("x.pem", &good().key)),
            "there is no certificate",
        ),
        (
            "a key that all may read",
            |place| set_mode(&place.path().join("x.key"), 0o644),
            "every user may read",
        ),
        (
            "no certificate file",
            |place| fs::remove_file(place.path().join("x.pem")).unwrap(),
            "x.pem does not exist",
        ),
        (
            "no key file",
            |place| fs::remove_file(place.path().join("x.key")).unwrap(),
            "x.key does not exist",
        ),
        (
            "authorities of clients without a certificate",
            |place| {
                place.write("ca.pem", "nothing");
                let with = SITES.replace("key = \"x.key\"", "key = \"x.key\", client_ca = \"ca.pem\"");
                place.write("rocknet.toml", &with);
            },
            "ca.pem: there is no certificate",
        ),
    ]
}

fn half(text: &str) -> String {
    text[..text.len() / 2].to_owned()
}

fn write_key(place: &Place, text: &str) {
    set_mode(&place.write("x.key", text), 0o600);
}

#[test]
fn check_loads_what_start_would_load() {
    let place = home();
    let ended = place.run(&["check"]);
    assert!(ended.code == Some(0) && ended.err.is_empty(), "{ended:?}");
    for (what, harm, part) in broken() {
        let place = home();
        harm(&place);
        let ended = place.run(&["check"]);
        assert_eq!(ended.code, Some(78), "{what}: {ended:?}");
        assert!(ended.err.contains(part), "{what}: {ended:?}");
        assert!(
            ended.err.contains("rocknet.toml:7:") && ended.err.contains("help: "),
            "{what}: {ended:?}"
        );
        let ended = place.run(&["check", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(json["errors"].as_u64().map(|errors| errors > 0), Some(true), "{what}");
    }
}

#[test]
fn check_warns_of_certificates_that_clients_reject() {
    for (what, pair, aliases, part) in [
        ("expired", pair(&["a.test"], (2000, 2001), true), "", "has expired on"),
        (
            "not yet valid",
            pair(&["a.test"], (3000, 4000), true),
            "",
            "not valid yet",
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
            "a chain of strangers",
            {
                let leaf = pair(&["a.test"], (2020, 4000), false);
                Pair {
                    cert: leaf.cert + &pair(&["ca.test"], (2020, 4000), true).cert,
                    key: leaf.key,
                }
            },
            "",
            "the chain is incomplete",
        ),
    ] {
        let place = home();
        write_pair(&place, &pair);
        place.write("rocknet.toml", &format!("{SITES}{aliases}"));
        let ended = place.run(&["check"]);
        assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
        assert!(
            ended.err.contains(part) && ended.err.contains("no errors, 1 warning"),
            "{what}: {ended:?}"
        );
    }
}

#[test]
fn start_serves_other_sites_and_names_the_one_without_a_certificate() {
    for (what, harm, part) in broken() {
        let place = home();
        harm(&place);
        let mut server = place.serve(&["run", "--console"]);
        assert!(
            server.told.contains("ERROR: no TLS: ") && server.told.contains(&place.path().display().to_string()),
            "{what}: {}",
            server.told
        );
        let told = server.logged("error: ");
        assert!(told.contains(part), "{what}: {told}");
        let answer = server.get_from("b.test", "/");
        assert!(answer.ends_with("home"), "{what}: {answer}");
        server.type_line("sites");
        let line = server.said("a.test");
        assert!(line.contains("ERROR: no TLS: "), "{what}: {line}");
    }
}

/// Sends a ClientHello and waits for the server to end the connection.
fn greet(address: &str, name: &'static str) {
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
    let place = home();
    place.write("x.pem", "");
    let server = place.serve(&["run"]);
    let (_, rest) = server.told.split_once("https://a.test:").expect("its URL");
    let port: u16 = rest
        .split('/')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    for _ in 0..3 {
        greet(&format!("127.0.0.2:{port}"), "a.test");
    }
    let line = server.logged("a handshake was refused");
    check_parts(&line, &["WARN", "site=a.test", "there is no certificate"]);
    let line = server.logged("more like this in the last second");
    check_parts(&line, &["WARN", "a handshake was refused", "site=a.test"]);
}

#[test]
fn reload_refuses_broken_files_each_time_and_keeps_the_certificate() {
    for (what, harm, part) in broken() {
        let place = home();
        let mut server = place.serve(&["run", "--console"]);
        let changed = format!("{SITES}headers = {{ \"X-New\" = \"yes\" }}\n");
        place.write("rocknet.toml", &changed);
        harm(&place);
        let now = place.read("rocknet.toml");
        if !now.contains("X-New") {
            place.write("rocknet.toml", &format!("{now}headers = {{ \"X-New\" = \"yes\" }}\n"));
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
        server.said("the last reload changed nothing:");
        write_pair(&place, &good());
        place.write("rocknet.toml", &changed);
        server.signal(Signal::HUP);
        server.logged("is reloaded, sites: 2");
    }
}

#[test]
fn a_broken_replacement_on_disk_is_logged_with_its_site() {
    let place = home();
    let server = place.serve(&["run"]);
    place.write("x.pem", "");
    let line = server.logged("there is no certificate");
    check_parts(&line, &["ERROR", "stays in use", "site=a.test", "help="]);
    write_pair(&place, &pair(&["c.test"], (2020, 4000), true));
    let line = server.logged("is not for a.test");
    assert!(line.contains("WARN") && line.contains("site=a.test"), "{line}");
    server.logged("certificate files reloaded");
}

/// The server reads keys as root and then becomes a user who may not read them.
#[test]
fn a_key_that_became_unreadable_does_not_prevent_reloads() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            Need::Root,
            "the server reads the keys as root and then becomes another user",
        );
    }
    let place = home();
    set_mode(place.path(), 0o755);
    let text = format!(
        "[server]\nuser = \"nobody\"\nstate = \"{}/state\"\n{SITES}",
        place.path().display()
    );
    place.write("rocknet.toml", &text);
    let server = place.serve(&["run"]);
    server.signal(Signal::HUP);
    server.logged("is reloaded, sites: 2");
    // After the renewal it is another file, which this user may not read either.
    write_pair(&place, &good());
    server.signal(Signal::HUP);
    let line = server.logged("Permission denied");
    check_parts(&line, &["WARN", "x.key", "stays in use"]);
    // A file known to be broken is refused nevertheless.
    place.write("x.pem", "");
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
    for (what, harm, part) in broken() {
        let place = home();
        harm(&place);
        let ended = place.run(&["doctor"]);
        let line = ended.out.lines().find(|line| line.contains(part)).unwrap_or_default();
        assert!(ended.code == Some(1) && line.starts_with("bad "), "{what}: {ended:?}");
        let ended = place.run(&["explain", "https://a.test:0/"]);
        let line = ended
            .out
            .lines()
            .find(|line| line.starts_with("problem"))
            .unwrap_or_default();
        assert!(line.contains("not served under TLS: "), "{what}: {ended:?}");
    }
}

#[test]
fn a_missing_root_and_an_empty_site_do_not_affect_other_sites() {
    for (what, site, part, fault) in [
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
        let place = Place::new(&[("www/index.html", "home"), ("rocknet.toml", &format!("{other}{site}"))]);
        let ended = place.run(&["check"]);
        assert!(ended.code == Some(78) && ended.err.contains(part), "{what}: {ended:?}");

        let mut server = place.serve(&["run", "--console"]);
        assert!(
            server.told.contains("ERROR: ") && server.told.contains(fault),
            "{what}: {}",
            server.told
        );
        let told = server.logged("error: ");
        assert!(told.contains(part), "{what}: {told}");
        assert!(server.get_from("b.test", "/").ends_with("home"), "{what}");
        let answer = server.get_from("c.test", "/");
        assert!(
            answer.starts_with("HTTP/1.1 404 ") || answer.starts_with("HTTP/1.1 503 "),
            "{what}: {answer}"
        );
        server.type_line("sites");
        assert!(server.said("c.test").contains("ERROR: "), "{what}");

        // The same file is refused by a running server, too.
        server.signal(Signal::HUP);
        server.logged(part);
        server.logged("is not reloaded, nothing has changed: 1 error");
        place.write("rocknet.toml", other);
        server.signal(Signal::HUP);
        server.logged("is reloaded, sites: 1");
        place.write("rocknet.toml", &format!("{other}{site}"));
        server.signal(Signal::HUP);
        server.logged("is not reloaded, nothing has changed: 1 error");
    }
}

#[test]
fn a_site_with_routes_alone_has_no_default_page() {
    let text = "[site.\":0\"]\n[site.\":0\".route.\"/docs/*\"]\nroot = \"www\"\n";
    let place = Place::new(&[("www/docs/index.html", "docs"), ("rocknet.toml", text)]);
    assert_eq!(place.run(&["check"]).code, Some(0));
    let mut server = place.serve(&["run", "--console"]);
    assert!(server.get("/").starts_with("HTTP/1.1 404 "));
    assert!(server.get("/docs/").ends_with("docs"));
    server.type_line("sites");
    let line = server.said(":0 ");
    assert!(line.contains("routes") && !line.contains("ERROR"), "{line}");
    let ended = place.run(&["explain", "/"]);
    assert!(ended.out.contains("404 Not Found"), "{ended:?}");
}
