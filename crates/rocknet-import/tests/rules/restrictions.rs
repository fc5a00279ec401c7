//! Tests that every restriction is translated, or has a note that it is missing.

use rocknet_import::{Import, Language, import};

use crate::support::{has, has_note, is_any_weakened, is_weakened, translated_apache};

fn translated(language: Language, text: &str) -> Import {
    import(language, "site.conf", text).unwrap()
}

/// Returns the part of the result that describes a site, with its routes and rules.
fn site<'i>(import: &'i Import, name: &str) -> &'i str {
    let start = import.toml.find(&format!("[site.\"{name}\"]")).unwrap();
    let is_other = |at: &usize| {
        let line = import.toml[*at..].trim_start_matches('[');
        line.starts_with("site.\"") && !line.starts_with(&format!("site.\"{name}\""))
    };
    let mut headers = import.toml[start..].match_indices("\n[").map(|(at, _)| start + at + 1);
    let end = headers.find(is_other).unwrap_or(import.toml.len());
    &import.toml[start..end]
}

#[test]
fn caddy_handles_of_hosts_keep_the_refusals_before_them() {
    let import = translated(
        Language::Caddy,
        "*.example.com {\n\t@outside not remote_ip 10.0.0.0/8\n\thandle @outside {\n\t\trespond 403\n\t}\n\t@a host \
         a.example.com\n\thandle @a {\n\t\treverse_proxy localhost:3000\n\t}\n}\n",
    );
    let a = site(&import, "a.example.com");
    assert!(a.contains("allow = \"10.0.0.0/8\""), "{}", import.toml);
    assert!(a.contains("proxy = \"http://localhost:3000\""), "{}", import.toml);
    for (first, second) in [(0, 1), (1, 0)] {
        let blocks = [
            "handle /private/* {\n\t\trespond 403\n\t}",
            "handle @a {\n\t\troot * /srv/a\n\t\tfile_server\n\t}",
        ];
        let import = translated(
            Language::Caddy,
            &format!(
                "*.example.com {{\n\t@a host a.example.com\n\t{}\n\t{}\n\thandle {{\n\t\trespond 404\n\t}}\n}}\n",
                blocks[first], blocks[second]
            ),
        );
        let a = site(&import, "a.example.com");
        assert!(a.contains("root = \"/srv/a\""), "{}", import.toml);
        assert!(a.contains("path = \"/private/*\"\nrespond = 403"), "{}", import.toml);
        assert!(!a.contains("404"), "{}", import.toml);
    }
    // The path has the content of its own block, not of the block for the host.
    let import = translated(
        Language::Caddy,
        "*.example.com {\n\t@a host a.example.com\n\thandle /api/* {\n\t\troot * /srv/api\n\t\tfile_server\n\t}\n\thandle \
         @a {\n\t\treverse_proxy localhost:3000\n\t}\n\thandle /late/* {\n\t\troot * /srv/late\n\t\tfile_server\n\t}\n}\n",
    );
    let a = site(&import, "a.example.com");
    assert!(a.contains("route.\"/api/*\"]\nroot = \"/srv/api\""), "{}", import.toml);
    assert!(!a.contains("/late/"), "{}", import.toml);
}

#[test]
fn caddy_beginnings_of_names_stay_restricted() {
    let import = translated(
        Language::Caddy,
        "a.test {\n\trespond /admin* 403\n\troot * /srv\n\tfile_server\n}\n",
    );
    has(&import, "path = [\"/admin\", \"/admin/*\", \"/admin*\"]\nrespond = 403");
    assert!(is_weakened(&import, "only begin with the path"), "{:?}", import.notes);
    // An expression is translated as it is.
    let import = translated(
        Language::Caddy,
        "a.test {\n\t@p path_regexp ^/private\n\trespond @p 403\n\troot * /srv\n\tfile_server\n}\n",
    );
    has(&import, "path = \"~^/private\"\nrespond = 403");
    assert!(!is_weakened(&import, "respond @p"), "{:?}", import.notes);
    let import = translated(
        Language::Caddy,
        "a.test {\n\tbasic_auth /admin* {\n\t\tann $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n\t}\n\thandle /open* {\n\t\troot * /srv\n\t\tfile_server\n\t}\n}\n",
    );
    has(&import, "route.\"/admin*\"]\nauth = ");
    assert!(is_weakened(&import, "basic_auth"), "{:?}", import.notes);
    // A place without restrictions gets a note about a difference, not about a weakened restriction.
    assert!(!is_weakened(&import, "handle /open*"), "{:?}", import.notes);
}

#[test]
fn nginx_locations_with_one_pattern_keep_the_restriction_that_applies() {
    for (locations, route) in [
        (
            "location /a { root /srv; } location /a/ { deny all; }",
            "route.\"/a/*\"]\ndeny = \"all\"",
        ),
        (
            "location /a/ { deny all; } location /a { root /srv; }",
            "route.\"/a/*\"]\ndeny = \"all\"",
        ),
        (
            "location /admin { proxy_pass http://127.0.0.1:3000; } location = /admin { deny all; }",
            "route.\"/admin\"]\ndeny = \"all\"",
        ),
        (
            "location /a/ { root /srv; } location ~ ^/a/ { allow 10.0.0.0/8; deny all; }",
            "route.\"/a/*\"]\nallow = \"10.0.0.0/8\"",
        ),
        (
            "location ^~ /a/ { root /srv; } location ~ ^/a/ { autoindex on; }",
            "route.\"/a/*\"]\nroot = \"/srv\"",
        ),
    ] {
        let import = translated(
            Language::Nginx,
            &format!("server {{ server_name a.test; {locations} }}"),
        );
        has(&import, route);
        assert!(!is_weakened(&import, "takes precedence"), "{:?}", import.notes);
    }
    // The rest of a path keeps the settings of its location.
    let text =
        "server { server_name a.test; location /admin { proxy_pass http://b; } location = /admin { deny all; } }";
    has(
        &translated(Language::Nginx, text),
        "route.\"/admin/*\"]\nproxy = \"http://b\"",
    );
    // Two expressions: the first one applies, and the second one may still match other paths.
    let text = "server { server_name a.test; location ~ ^/a { autoindex on; } location ~ ^/a { allow 10.0.0.0/8; deny all; } }";
    let import = translated(Language::Nginx, text);
    assert!(is_weakened(&import, "location ~^/a"), "{:?}", import.notes);
}

#[test]
fn nginx_revocation_lists_are_those_of_client_certificates() {
    const TLS: &str =
        "listen 443 ssl; server_name a.test; root /srv; ssl_certificate /c.pem; ssl_certificate_key /c.key;";
    const VERIFY: &str = "ssl_client_certificate /ca.pem; ssl_verify_client";
    let is_closed = |import: &Import| import.toml.contains("deny = \"all\"");
    for (http, server, list, closed, has_crl_note) in [
        (
            "",
            format!("{VERIFY} on; ssl_crl /r.pem;"),
            Some("/r.pem"),
            false,
            false,
        ),
        (
            "",
            format!("{VERIFY} optional; ssl_crl /r.pem;"),
            Some("/r.pem"),
            false,
            false,
        ),
        (
            "ssl_crl /http.pem;",
            format!("{VERIFY} on;"),
            Some("/http.pem"),
            false,
            false,
        ),
        (
            "ssl_crl /http.pem;",
            format!("{VERIFY} on; ssl_crl /r.pem;"),
            Some("/r.pem"),
            false,
            false,
        ),
        // The list has no effect.
        ("", "ssl_crl /r.pem;".to_owned(), None, false, true),
        ("", format!("{VERIFY} off; ssl_crl /r.pem;"), None, false, true),
        // The authority, or the list, has no counterpart.
        ("", "ssl_verify_client on; ssl_crl /r.pem;".to_owned(), None, true, true),
        ("", format!("{VERIFY} on; ssl_crl $list;"), None, true, true),
    ] {
        let text = format!("http {{ {http} server {{ {TLS} {server} }} }}");
        let import = translated(Language::Nginx, &text);
        let found = import
            .toml
            .split_once("crl = \"")
            .and_then(|(_, rest)| rest.split_once('"'));
        assert_eq!(found.map(|(file, _)| file), list, "{server}\n{}", import.toml);
        assert_eq!(is_closed(&import), closed, "{server}\n{}", import.toml);
        let is_noted = import.notes.iter().any(|note| note.directive.starts_with("ssl_crl"));
        assert_eq!(is_noted, has_crl_note, "{server}: {:?}", import.notes);
        assert!(!is_any_weakened(&import), "{server}: {:?}", import.notes);
    }
    let text = format!("server {{ {TLS} {VERIFY} optional_no_ca; ssl_crl /r.pem; }}");
    let import = translated(Language::Nginx, &text);
    assert!(
        is_weakened(&import, "ssl_verify_client") && is_weakened(&import, "ssl_crl"),
        "{:?}",
        import.notes
    );
}

#[test]
fn apache_client_certificates_and_their_restrictions_have_notes() {
    let tls = "SSLEngine on\nSSLCertificateFile /c.pem\n";
    let host = |directives: &str| {
        let text = format!("<VirtualHost *:443>\nServerName a.test\nDocumentRoot /srv\n{directives}</VirtualHost>\n");
        translated(Language::Apache, &text)
    };
    let is_closed = |import: &Import| import.toml.contains("deny = \"all\"");
    let is_noted = |import: &Import, name: &str| import.notes.iter().any(|note| note.directive.starts_with(name));
    // Every restriction counts, not only the first.
    let import = host(&format!(
        "{tls}SSLCARevocationFile /r.pem\nSSLRequire %{{SSL_CLIENT_S_DN_O}} eq \"x\"\n"
    ));
    assert!(is_closed(&import), "{}", import.toml);
    assert!(
        is_noted(&import, "SSLRequire") && is_noted(&import, "SSLCARevocationFile"),
        "{:?}",
        import.notes
    );
    let import = host(&format!(
        "{tls}SSLVerifyClient require\nSSLCACertificateFile /ca.pem\nSSLCARevocationFile /r.pem\n"
    ));
    assert!(
        !is_closed(&import) && import.toml.contains("crl = \"/r.pem\""),
        "{}",
        import.toml
    );
    assert!(is_noted(&import, "SSLCARevocationFile"), "{:?}", import.notes);
    let import = host(&format!(
        "{tls}SSLVerifyClient require\nSSLCACertificateFile /ca.pem\nSSLCARevocationFile /r.pem\nSSLCARevocationCheck chain\n"
    ));
    assert!(import.toml.contains("crl = \"/r.pem\""), "{}", import.toml);
    assert!(!is_noted(&import, "SSLCARevocation"), "{:?}", import.notes);
    for rest in [
        "SSLCACertificateFile /ca.pem\nSSLCARevocationPath /r\n",
        "SSLCARevocationFile /r.pem\n",
        "SSLCACertificateFile /ca.pem\nSSLCARevocationFile ${list}\n",
    ] {
        let import = host(&format!("{tls}SSLVerifyClient require\n{rest}"));
        assert!(is_closed(&import), "{rest}\n{}", import.toml);
        assert!(is_noted(&import, "SSLCARevocation"), "{:?}", import.notes);
    }
    for rest in [
        "SSLCACertificateFile /ca.pem\n",
        "SSLCARevocationPath /r\n",
        "SSLCARevocationFile /r.pem\n",
    ] {
        let import = host(&format!("{tls}{rest}"));
        assert!(
            !is_closed(&import) && is_noted(&import, rest.trim()),
            "{:?}",
            import.notes
        );
    }
    let import = host("SSLVerifyClient require\nSSLCACertificateFile /ca.pem\nSSLRequire true\n");
    assert!(is_weakened(&import, "SSLVerifyClient"), "{:?}", import.notes);
    assert!(
        is_noted(&import, "SSLRequire") && is_noted(&import, "SSLCACertificateFile"),
        "{:?}",
        import.notes
    );
    let import = host(&format!("{tls}SSLVerifyClient require\nSSLCACertificateFile /ca.pem\n"));
    assert!(
        !is_closed(&import) && import.toml.contains("client_ca = \"/ca.pem\""),
        "{}",
        import.toml
    );
    assert!(!is_noted(&import, "SSLCACertificateFile"), "{:?}", import.notes);
}

#[test]
fn apache_folders_at_an_alias_keep_their_restrictions() {
    let import = translated(
        Language::Apache,
        "Alias /shared /srv/shared\n<Directory /srv/shared>\nRequire ip 10.0.0.0/8\n</Directory>\n<VirtualHost \
         *:80>\nServerName a.example.com\nDocumentRoot /srv/www\nAlias /img/ /srv/pictures/\nAlias /icon.ico \
         /srv/icons/round.ico\n<Directory /srv/pictures/private>\nRequire all denied\n</Directory>\n<Location \
         /img/staff/>\nRequire ip 192.0.2.0/24\n</Location>\n</VirtualHost>\n",
    );
    let a = site(&import, "a.example.com");
    for expected in [
        "route.\"/shared/*\"]\nalias = \"/srv/shared\"\nallow = \"10.0.0.0/8\"",
        "route.\"/img/*\"]\nalias = \"/srv/pictures\"\n",
        "route.\"/img/private/*\"]\nalias = \"/srv/pictures/private\"\ndeny = \"all\"",
        "route.\"/img/staff/*\"]\nalias = \"/srv/pictures/staff\"\nallow = \"192.0.2.0/24\"",
        "route.\"/icon.ico\"]\nalias = \"/srv/icons/round.ico\"",
    ] {
        assert!(a.contains(expected), "{expected}\n{}", import.toml);
    }
}

#[test]
fn lists_of_nginx_do_not_open_a_place_with_an_unknown_restriction() {
    for text in [
        "auth_jwt x; deny 192.0.2.1;",
        "auth_jwt x; location / { deny 192.0.2.1; }",
        "location / { auth_jwt x; allow all; deny 192.0.2.1; }",
        "auth_jwt x; allow 10.0.0.0/8; location / { allow 192.0.2.0/24; deny all; }",
    ] {
        let import = translated(Language::Nginx, &format!("server {{ server_name a.test; {text} }}"));
        has(&import, "\ndeny = \"all\"\n");
        assert!(!import.toml.contains("192.0.2"), "{text}\n{}", import.toml);
    }
}

#[test]
fn proxies_of_apache_keep_the_restrictions_of_the_sections_around_them() {
    for pass in [
        "ProxyPass /a/b http://127.0.0.1:3000/a/b",
        "RewriteEngine On\nRewriteRule ^/a/b/(.*)$ http://127.0.0.1:3000/a/b/$1 [P]",
        "ProxyPass /a/b !\nProxyPass / http://127.0.0.1:3000/",
        "<Location /a/b>\nProxyPass http://127.0.0.1:3000/a/b\n</Location>",
    ] {
        for (access, expected) in [
            ("Require ip 10", "allow = \"10.0.0.0/8\""),
            ("Require all denied", "deny = \"all\""),
            (
                "AuthType Basic\nAuthName x\nAuthUserFile /u\nRequire valid-user",
                "auth = { realm = \"x\", file = \"/u\" }",
            ),
        ] {
            for path in ["/a", "/a/"] {
                let import = translated(
                    Language::Apache,
                    &format!(
                        "<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv\n{pass}\n<Location \
                         {path}>\n{access}\n</Location>\n</VirtualHost>\n"
                    ),
                );
                let start = import
                    .toml
                    .find("route.\"/a/b/*\"]")
                    .unwrap_or_else(|| panic!("{}", import.toml));
                let route = import.toml[start..].split("\n\n").next().unwrap_or_default();
                assert!(route.contains(expected), "{pass} {access}\n{}", import.toml);
            }
        }
    }
    // Apache applies the sections of folders to files only.
    for (sections, is_noted) in [
        ("<Directory /srv/a>\nRequire ip 10\n</Directory>", true),
        ("<Location /a>\nRequire ip 10\n</Location>", false),
        ("<Directory /srv/a>\nOptions Indexes\n</Directory>", false),
    ] {
        let import = translated_apache(&format!("{sections}\nProxyPass /a/b http://127.0.0.1:3000/a/b"));
        let is_found = has_note(&import, "the access control of `<Directory>` applies here too");
        assert_eq!(is_found, is_noted, "{sections}: {:?}", import.notes);
    }
}
