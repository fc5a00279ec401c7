//! The name in the handshake and the name in the request, in every combination.

use super::certs::{Authority, Kind};
use super::client::Wish;
use super::support::{Client, Folder, Running};

/// Three sites on one port: `a` and `both` show the same certificate, `b` its own; `vip` asks for a certificate of the
/// client's own with the files of `a`.
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

#[test]
fn a_request_goes_to_a_site_that_the_handshake_was_for() {
    let authority = Authority::new("root");
    // SNI ("" for none), Host, what answers. With a default site, every other name is its.
    for (with_default, rows) in [
        (
            false,
            &[
                ("a.test", "a.test", Ok("a")),
                ("a.test", "A.TEST", Ok("a")),
                ("a.test", "a.test:443", Ok("a")),
                ("a.test", "both.test", Ok("both")),
                ("both.test", "a.test", Ok("a")),
                ("a.test", "b.test", Err(421)),
                ("b.test", "a.test", Err(421)),
                ("b.test", "w.b.test", Ok("b")),
                ("w.b.test", "b.test", Ok("b")),
                ("a.test", "vip.test", Err(421)),
                ("vip.test", "vip.test", Ok("vip")),
                ("vip.test", "a.test", Err(421)),
                ("a.test", "unknown.test", Err(421)),
            ][..],
        ),
        (
            true,
            &[
                ("a.test", "a.test", Ok("a")),
                ("d.test", "d.test", Ok("d")),
                ("d.test", "unknown.test", Ok("d")),
                ("d.test", "a.test", Err(421)),
                ("a.test", "unknown.test", Err(421)),
                ("", "d.test", Ok("d")),
                ("", "b.test", Err(421)),
            ][..],
        ),
    ] {
        let server = start(&authority, with_default);
        for (sni, host, expected) in rows {
            let wish = Wish {
                sni: !sni.is_empty(),
                ..Wish::new(authority.roots(), if sni.is_empty() { "d.test" } else { sni })
            };
            let mut client: Client = wish.client(server.address());
            // A second time from what the worker remembers.
            for _ in 0..2 {
                let answer = client.ask("GET /x", &[&format!("Host: {host}")]);
                let text = answer.text();
                let found = if answer.status == 200 {
                    Ok(&*text)
                } else {
                    Err(answer.status)
                };
                assert_eq!(found, *expected, "SNI {sni:?}, Host {host:?}");
            }
        }
    }
}

#[test]
fn a_name_that_nobody_has_is_refused_unless_a_site_answers_to_all() {
    let authority = Authority::new("root");
    for (with_default, name, sni) in [(false, "unknown.test", true), (false, "a.test", false)] {
        let server = start(&authority, with_default);
        let wish = Wish {
            sni,
            ..Wish::new(authority.roots(), name)
        };
        let error = wish.open(server.address()).err().expect("a refusal").to_string();
        assert!(error.contains("UnrecognisedName"), "{name}: {error}");
    }
    let server = start(&authority, true);
    let error = Wish::new(authority.roots(), "unknown.test")
        .open(server.address())
        .err()
        .unwrap();
    // The default's certificate was shown, and it is for another name.
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[test]
fn the_certificate_is_that_of_the_name() {
    let authority = Authority::new("root");
    let server = start(&authority, true);
    for name in ["a.test", "both.test", "b.test", "w.b.test", "d.test"] {
        // It verifies, so it is the right one.
        let answer = Wish::new(authority.roots(), name)
            .client(server.address())
            .ask("GET /x", &[&format!("Host: {name}")]);
        answer.expect(name, 200, &["Content-Length"]);
    }
}
