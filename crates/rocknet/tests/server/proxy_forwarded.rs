//! Header fields that describe the client to upstreams, such as `X-Forwarded-For`, and proxies that are trusted to set
//! them.

use super::proxy::folder;
use super::support::Running;
use super::support::upstream::{Upstream, ok};

/// Starts a server that trusts this machine as a proxy in front of it. `server`: further keys of `[server]`. `proxy`:
/// further keys of the table `proxy`.
fn behind_a_proxy(upstream: &Upstream, server: &str, proxy: &str) -> Running {
    let text = format!(
        "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\ntrusted_proxies = [\"127.0.0.0/8\"]\n{server}\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = \"{}\", {proxy} }}\n",
        upstream.url()
    );
    Running::start(folder(), &text)
}

#[test]
fn the_configured_fields_describe_the_client() {
    let upstream = Upstream::responding_with(ok("hello"));
    let fields = [
        "Host: a.test",
        "X-Forwarded-For: 192.0.2.1, 2001:db8::1",
        "X-Forwarded-For: nonsense",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: shown.test:444",
        "Forwarded: for=198.51.100.1;proto=http, for=\"[2001:db8::2]:80\"",
        "Forwarded: for=\"198.51.100.9",
    ];
    let own = "for=127.0.0.1;host=a.test;proto=http";
    let translated =
        format!("for=192.0.2.1;host=\"shown.test:444\";proto=https, for=\"[2001:db8::1]\", for=unknown, {own}");
    let kept = format!("for=198.51.100.1;proto=http, for=\"[2001:db8::2]:80\", {own}");
    let listed = "192.0.2.1, 2001:db8::1, nonsense, 127.0.0.1";
    for (server, proxy, x_forwarded, forwarded) in [
        (
            "",
            "forwarded = \"x-forwarded\"",
            Some((listed, "https", "shown.test:444")),
            None,
        ),
        ("", "forwarded = \"forwarded\"", None, Some(&*translated)),
        (
            "",
            "forwarded = \"both\"",
            Some((listed, "https", "shown.test:444")),
            Some(&translated),
        ),
        ("", "forwarded = false", None, None),
        (
            "trusted_field = \"forwarded\"",
            "forwarded = \"both\"",
            Some(("198.51.100.1, 2001:db8::2, 127.0.0.1", "http", "a.test")),
            Some(&kept),
        ),
    ] {
        let server = behind_a_proxy(&upstream, server, proxy);
        server.fetch("GET /", &fields).expect(proxy, 200, &[]);
        let incoming = upstream.last();
        for (name, expected) in [
            ("X-Forwarded-For", x_forwarded.map(|(list, ..)| list)),
            ("X-Forwarded-Proto", x_forwarded.map(|(_, proto, _)| proto)),
            ("X-Forwarded-Host", x_forwarded.map(|(.., host)| host)),
            ("Forwarded", forwarded),
        ] {
            assert_eq!(incoming.field(name), expected, "{proxy}: {name}");
        }
    }
    // Fields of an untrusted client are not forwarded.
    let server = Running::site(
        folder(),
        &format!("proxy = {{ to = \"{}\", forwarded = \"both\" }}", upstream.url()),
    );
    server.fetch("GET /", &fields).expect("an untrusted client", 200, &[]);
    let incoming = upstream.last();
    assert_eq!(incoming.field("X-Forwarded-For"), Some("127.0.0.1"));
    assert_eq!(incoming.field("Forwarded"), Some(own));
}

#[test]
fn fields_of_trusted_proxies_are_used() {
    let upstream = Upstream::responding_with(ok("hello"));
    let server = behind_a_proxy(&upstream, "", "connect = \"3s\"");
    let fields = [
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-For: 10.0.0.1, 10.0.0.2",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: shown.test",
        "X-Real-IP: 192.0.2.1",
    ];
    server.fetch("GET /", &fields).expect("trusted", 200, &[]);
    let incoming = upstream.last();
    for (name, value) in [
        ("X-Forwarded-For", "192.0.2.1, 10.0.0.1, 10.0.0.2, 127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "shown.test"),
        ("X-Real-IP", "192.0.2.1"),
        ("Host", "localhost"),
    ] {
        assert_eq!(incoming.field(name), Some(value), "{incoming:?}");
    }
}

#[test]
fn fields_that_could_spoof_those_of_the_proxy_are_dropped() {
    let upstream = Upstream::responding_with(ok("hello"));
    // CGI-like gateways map `-` and `_` of a field name to the same variable.
    let fields = [
        "X_Forwarded_For: 192.0.2.1",
        "X_FORWARDED-PROTO: https",
        "X-Forwarded_Host: evil.test",
        "x_real_ip: 192.0.2.1",
        "X_User: root",
        "X-Team_Name: root",
        "Content_Length: 5",
        "Transfer_Encoding: chunked",
        "X_Own: kept",
    ];
    let headers = "headers = { \"X-User\" = \"\", \"X-Team-Name\" = \"web\" }";
    let untrusted = Running::site(
        folder(),
        &format!("proxy = {{ to = \"{}\", {headers} }}", upstream.url()),
    );
    let trusted = behind_a_proxy(&upstream, "", headers);
    for server in [untrusted, trusted] {
        server.fetch("GET /", &fields).expect("a request", 200, &[]);
        let incoming = upstream.last();
        let strange: Vec<_> = incoming.fields.iter().filter(|(name, _)| name.contains('_')).collect();
        assert_eq!(strange, [&("X_Own".to_owned(), "kept".to_owned())], "{incoming:?}");
        assert_eq!(incoming.field("X-Forwarded-For"), Some("127.0.0.1"));
        assert_eq!(incoming.field("X-Team-Name"), Some("web"));
    }
}

over_http3! {
    fields_of_trusted_proxies_are_used,
}
