//! Requests with every combination of the name in the handshake (SNI) and the host in the request.

use std::net::SocketAddr;

use rustls::version::{TLS12, TLS13};

use super::certs::{Authority, Kind};
use super::client::{TlsClient, tool};
use super::support::{Folder, Running};

/// Starts a server with several sites on one port. `a` and `both` present the same certificate, and `b` another one.
/// `vip` uses the certificate files of `a`, but requests a client certificate.
fn start(authority: &Authority, with_default: bool) -> Running {
    let folder = Folder::with(&[
        ("a/x", "a"),
        ("b/x", "b"),
        ("both/x", "both"),
        ("vip/x", "vip"),
        ("d/x", "d"),
    ]);
    folder.write("root.pem", &authority.pem);
    authority
        .leaf(Kind::Ecdsa, &["a.test", "both.test", "vip.test"])
        .write(&folder, "a");
    authority.leaf(Kind::Ecdsa, &["b.test", "*.b.test"]).write(&folder, "b");
    authority.leaf(Kind::Ecdsa, &["d.test"]).write(&folder, "d");
    let site = |name: &str, folder: &str, cert: &str, more: &str| {
        format!(
            "[site.{name}]\nlisten = \"https://127.0.0.1:0\"\nroot = \"{folder}\"\n\
             headers = {{ X-Site = \"{folder}\" }}\n\
             tls = {{ cert = \"{cert}.pem\", key = \"{cert}.key\"{more} }}\n"
        )
    };
    let mut text = site("\"a.test\"", "a", "a", "")
        + &site("\"both.test\"", "both", "a", "")
        + &site(
            "\"vip.test\"",
            "vip",
            "a",
            ", client_ca = \"root.pem\", client = \"optional\"",
        )
        + &site("\"b.test\"", "b", "b", "").replace("root =", "aliases = [\"*.b.test\"]\nroot =");
    if with_default {
        text += &site("default", "d", "d", "");
    }
    Running::start(folder, &text)
}

/// Hosts of the requests in each row of the tables below.
const HOSTS: [&str; 9] = [
    "a.test",
    "A.TEST:443",
    "both.test",
    "vip.test",
    "b.test",
    "w.b.test",
    "d.test",
    "unknown.test",
    "127.0.0.1",
];

/// A row has the SNI, and for each host the site that responds. `""` is a client without SNI, `-` is status 421, and
/// `x` is a failed handshake.
#[rustfmt::skip] // keeps the columns aligned
const WITHOUT_DEFAULT: &[(&str, &str)] = &[
    //               a    A    both  vip  b  w.b  d  unknown  address
    ("a.test",       "a    a    both  -    -  -    -  -        -"),
    ("both.test",    "a    a    both  -    -  -    -  -        -"),
    ("vip.test",     "-    -    -     vip  -  -    -  -        -"),
    ("b.test",       "-    -    -     -    b  b    -  -        -"),
    ("w.b.test",     "-    -    -     -    b  b    -  -        -"),
    ("x.w.b.test",   "-    -    -     -    b  b    -  -        -"),
    ("unknown.test", "x    x    x     x    x  x    x  x        x"),
    ("",             "x    x    x     x    x  x    x  x        x"),
];
/// The same rows for a server with a default site, which presents a certificate for `d.test`.
#[rustfmt::skip]
const WITH_DEFAULT: &[(&str, &str)] = &[
    ("a.test",       "a    a    both  -    -  -    -  -        -"),
    ("both.test",    "a    a    both  -    -  -    -  -        -"),
    ("vip.test",     "-    -    -     vip  -  -    -  -        -"),
    ("b.test",       "-    -    -     -    b  b    -  -        -"),
    ("w.b.test",     "-    -    -     -    b  b    -  -        -"),
    ("x.w.b.test",   "-    -    -     -    b  b    -  -        -"),
    ("d.test",       "-    -    -     -    -  -    d  d        d"),
    ("unknown.test", "-    -    -     -    -  -    d  d        d"),
    ("",             "-    -    -     -    -  -    d  d        d"),
];

#[test]
fn a_request_reaches_only_sites_of_its_handshake() {
    let authority = Authority::new("root");
    for (with_default, rows) in [(false, WITHOUT_DEFAULT), (true, WITH_DEFAULT)] {
        let server = start(&authority, with_default);
        for (sni, expected) in rows {
            for version in ["1.1", "2"] {
                let expected: Vec<&str> = expected.split_whitespace().collect();
                assert_eq!(
                    fetch_all(server.address(), sni, version),
                    expected,
                    "SNI {sni:?}, HTTP/{version}, default {with_default}"
                );
            }
        }
    }
}

/// Requests all hosts twice over one connection. The second responses come from the worker cache.
fn fetch_all(address: SocketAddr, sni: &str, version: &str) -> Vec<String> {
    let port = address.port();
    let name = if sni.is_empty() { "127.0.0.1" } else { sni };
    let (url, resolve) = (format!("https://{name}:{port}/x"), format!("{name}:{port}:127.0.0.1"));
    let http = format!("--http{version}");
    let fields = HOSTS.map(|host| format!("Host: {host}"));
    let mut arguments = Vec::new();
    for field in fields.iter().chain(&fields) {
        // Option -k: the certificate need not be valid for the name.
        arguments.extend([
            "--next",
            "-sko",
            "/dev/null",
            &http,
            "--resolve",
            &resolve,
            "-H",
            field,
            &url,
        ]);
        arguments.extend(["-w", "%header{x-site} %{http_code} %{http_version} %{num_connects}\n"]);
    }
    // The first request has no `--next`.
    let output = tool("curl", &arguments[1..], "");
    let mut connections = 0;
    let mut found: Vec<String> = output
        .lines()
        .map(|line| {
            let (response, rest) = line.split_once(' ').unwrap_or_default();
            let words: Vec<&str> = rest.split(' ').collect();
            let [status, spoken, connects] = words[..] else {
                panic!("curl printed {line:?} in {output:?}");
            };
            connections += connects.parse::<u32>().expect("a number");
            match status {
                "000" => "x".to_owned(),
                "421" if spoken == version => "-".to_owned(),
                "200" if spoken == version => response.to_owned(),
                _ => line.to_owned(),
            }
        })
        .collect();
    if found.iter().all(|response| response != "x") {
        assert_eq!(connections, 1, "{output}");
    }
    assert_eq!(found.len(), 2 * HOSTS.len(), "{output}");
    let again = found.split_off(HOSTS.len());
    assert_eq!(found, again, "the cached result differs");
    found
}

/// SNI must not contain an IP address (RFC 6066 §3), so a client that sends one is served like a client without SNI.
#[test]
fn an_address_in_the_handshake_is_ignored() {
    let authority = Authority::new("root");
    // Alert 112 is unrecognized_name.
    for (with_default, expected) in [(true, "\r\n\r\nd"), (false, "alert number 112")] {
        let server = start(&authority, with_default);
        let place = server.address().to_string();
        let output = tool(
            "openssl",
            &["s_client", "-connect", &place, "-servername", "127.0.0.1", "-ign_eof"],
            "GET /x HTTP/1.1\r\nHost: d.test\r\nConnection: close\r\n\r\n",
        );
        assert!(output.contains(expected), "{with_default}: {output}");
    }
}

/// The minimum TLS version of a site also applies to requests whose handshake was for another site.
#[test]
fn the_minimum_version_of_a_site_applies_to_every_handshake() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("a/x", "a"), ("strict/x", "strict")]);
    let names = ["a.test", "strict.test"];
    authority.leaf(Kind::Ecdsa, &names).write(&folder, "a");
    let site = |name: &str, min: &str| {
        format!(
            "[site.\"{name}.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"{name}\"\n\
             tls = {{ cert = \"a.pem\", key = \"a.key\", min = \"{min}\" }}\n"
        )
    };
    let server = Running::start(folder, &(site("a", "1.2") + &site("strict", "1.3")));
    for (version, sni, host, status) in [
        (&TLS12, "a.test", "a.test", 200),
        (&TLS12, "a.test", "strict.test", 421),
        (&TLS13, "a.test", "strict.test", 200),
        (&TLS13, "strict.test", "a.test", 200),
    ] {
        let client_config = TlsClient {
            only: Some(version),
            ..TlsClient::new(authority.roots(), sni)
        };
        let mut client = client_config.client(server.address());
        let response = client.fetch("GET /x", &[&format!("Host: {host}")]);
        assert_eq!(response.status, status, "{version:?} {sni} {host}");
    }
}

#[test]
fn an_unknown_or_missing_name_is_refused_without_a_default_site() {
    let authority = Authority::new("root");
    for (with_default, name, sni) in [(false, "unknown.test", true), (false, "a.test", false)] {
        let server = start(&authority, with_default);
        let client_config = TlsClient {
            sni,
            ..TlsClient::new(authority.roots(), name)
        };
        let error = client_config
            .open(server.address())
            .err()
            .expect("a refusal")
            .to_string();
        assert!(error.contains("UnrecognisedName"), "{name}: {error}");
    }
    let server = start(&authority, true);
    let error = TlsClient::new(authority.roots(), "unknown.test")
        .open(server.address())
        .err()
        .unwrap();
    // The certificate of the default site was presented, which is valid for another name.
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[test]
fn the_certificate_matches_the_name() {
    let authority = Authority::new("root");
    let server = start(&authority, true);
    for name in ["a.test", "both.test", "b.test", "w.b.test", "d.test"] {
        // The client verifies the certificate, so the right one was presented.
        let response = TlsClient::new(authority.roots(), name)
            .client(server.address())
            .fetch("GET /x", &[&format!("Host: {name}")]);
        response.expect(name, 200, &["Content-Length"]);
    }
}

/// A request for a site other than the one of its handshake is also refused if it has a body.
#[test]
fn a_misdirected_request_with_a_body_is_refused() {
    let authority = Authority::new("root");
    let server = start(&authority, false);
    let mut client = TlsClient::new(authority.roots(), "a.test").client(server.address());
    client.send("POST /x HTTP/1.1\r\nHost: nobody.test\r\nContent-Length: 5\r\n\r\nhello");
    let response = client.response();
    assert!(
        response.status == 421 && response.text().contains("new window"),
        "{}",
        response.text()
    );
}
