//! Tests of hosts on several ports that become one site.

use rocknet_import::{Language, NoteKind, import};

use crate::support::{has, has_note};

#[test]
fn a_joined_site_has_the_settings_of_the_host_with_tls() {
    let nginx = |is_tls| match is_tls {
        true => {
            "server { listen 443 ssl; server_name a.test; root /srv; ssl_certificate /c; ssl_certificate_key /k; \
             ssl_client_certificate /ca; ssl_verify_client on; }\n"
        }
        false => "server { listen 80; server_name a.test; root /srv; }\n",
    };
    let apache = |is_tls| match is_tls {
        true => {
            "<VirtualHost *:443>\nServerName a.test\nDocumentRoot /srv\nSSLEngine on\nSSLCertificateFile /c\n\
             SSLCertificateKeyFile /k\nSSLCACertificateFile /ca\nSSLVerifyClient require\n</VirtualHost>\n"
        }
        false => "<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv\n</VirtualHost>\n",
    };
    let caddy = |is_tls| match is_tls {
        true => "https://a.test {\nroot * /srv\nfile_server\ntls internal {\nprotocols tls1.3\n}\n}\n",
        false => "http://a.test {\nroot * /srv\nfile_server\n}\n",
    };
    let files = "cert = \"/c\", key = \"/k\", hsts = \"0s\", client_ca = \"/ca\"";
    let hosts: [(_, &dyn Fn(bool) -> &'static str, _); 3] = [
        (Language::Nginx, &nginx, files),
        (Language::Apache, &apache, &files.replace("hsts = \"0s\", ", "")),
        (Language::Caddy, &caddy, "issuer = \"local\", min = \"1.3\""),
    ];
    for (language, host, expected) in hosts {
        for is_tls_first in [true, false] {
            let text = [host(is_tls_first), host(!is_tls_first)].concat();
            let import = import(language, "site.conf", &text).unwrap();
            has(&import, &format!("\ntls = {{ {expected}"));
            has(&import, "redirect = false");
        }
    }
}

#[test]
fn a_site_whose_redirect_leads_to_another_host_is_not_served_without_tls() {
    let tls = "listen 443 ssl; server_name a.test; root /srv; ssl_certificate /c; ssl_certificate_key /k;";
    for target in ["$host", "a.test", "b.test"] {
        let clear = format!("listen 80; server_name a.test; return 301 https://{target}$request_uri;");
        let text = format!("server {{ {tls} }}\nserver {{ {clear} }}\n");
        let import = import(Language::Nginx, "site.conf", &text).unwrap();
        has(&import, "\ntls = { cert = \"/c\", key = \"/k\", hsts = \"0s\" }\n");
        assert!(!import.toml.contains("listen"), "{}", import.toml);
        assert_eq!(
            has_note(&import, "is redirected to https://a.test/, not to"),
            target == "b.test"
        );
    }
}

#[test]
fn a_site_of_caddy_that_loses_all_its_addresses_is_left_out() {
    for address in ["a.test:8080-8090", "a.test:0", "a.test/sub"] {
        for (others, is_kept) in [("", false), (", b.test", true), (", :80", true)] {
            let text = format!("{address}{others} {{\nroot * /srv\nfile_server\n}}\n");
            let import = import(Language::Caddy, "Caddyfile", &text).unwrap();
            assert_eq!(import.toml.contains("\n[site."), is_kept, "{}", import.toml);
            assert_eq!(has_note(&import, "the site is left out"), !is_kept, "{text}");
        }
    }
}

#[test]
fn a_redirect_of_every_path_leaves_no_directive_without_a_note() {
    let text = "http://a.test, http://b.test {\nredir https://a.test{uri}\nredir /old /new\n@b host b.test\n\
                handle @b {\nrespond hello\n}\n}\n";
    let import = import(Language::Caddy, "Caddyfile", text).unwrap();
    has(
        &import,
        "redirects.\"/*\" = { to = \"https://a.test/{*}\", status = 302 }",
    );
    let kinds: Vec<_> = import
        .notes
        .iter()
        .map(|note| (note.directive.as_str(), note.kind))
        .collect();
    let (differs, needless) = (NoteKind::Differs, NoteKind::NotNeeded);
    assert_eq!(
        kinds,
        [
            ("redir /old /new", differs),
            ("@b host b.test", needless),
            ("handle @b", needless)
        ]
    );
}

#[test]
fn the_first_redirect_of_every_path_applies() {
    let text = "http://a.test {\nredir https://b.test{uri} 301\nredir https://c.test{uri}\n}\n";
    let import = import(Language::Caddy, "Caddyfile", text).unwrap();
    has(
        &import,
        "redirects.\"/*\" = { to = \"https://b.test/{*}\", status = 301 }",
    );
    let notes: Vec<_> = import
        .notes
        .iter()
        .map(|note| (note.directive.as_str(), note.kind))
        .collect();
    assert_eq!(notes, [("redir https://c.test{uri}", NoteKind::NotNeeded)]);
}

#[test]
fn a_redirect_of_one_listener_is_noted_if_others_served_the_site_without_tls() {
    let tls = "listen 443 ssl; server_name a.test; root /srv; ssl_certificate /c; ssl_certificate_key /k;";
    let redirecting = "server { listen 80; server_name a.test; return 301 https://$host$request_uri; }";
    for (servers, is_noted) in [
        (format!("server {{ {tls} listen 8080; }}"), true),
        (
            format!("server {{ {tls} }} server {{ listen 8080; server_name a.test; root /srv; }}"),
            true,
        ),
        (format!("server {{ {tls} }}"), false),
    ] {
        let import = import(Language::Nginx, "site.conf", &format!("{redirecting} {servers}")).unwrap();
        assert!(!import.toml.contains("redirect = false"), "{}", import.toml);
        let is_found = has_note(&import, "on every port");
        assert_eq!(is_found, is_noted, "{servers}: {:?}", import.notes);
        // The site is not served without TLS.
        assert!(!has_note(&import, "redirect = false"), "{servers}: {:?}", import.notes);
    }
}
