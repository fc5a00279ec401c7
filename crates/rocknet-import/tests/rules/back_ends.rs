//! Tests of the directives that name back ends of nginx, and of their parameters.

use rocknet_import::{Language, NoteKind, import};

use crate::support::{has, has_note, is_any_weakened, translated_apache, translated_nginx};

#[test]
fn parameters_are_inherited_by_locations_without_own_ones() {
    let app = "location /app/ { fastcgi_pass 127.0.0.1:9000; }";
    let with = "fastcgi = { to = \"127.0.0.1:9000\", params = { A = \"b\" } }";
    has(&translated_nginx(&format!("fastcgi_param A b; {app}")), with);
    has(&translated_nginx(&format!("{app} fastcgi_param A b;")), with);
    let http = format!("fastcgi_param A b; server {{ listen 80; server_name a.test; {app} }}");
    has(&import(Language::Nginx, "site.conf", &http).unwrap(), with);
    // Parameters of a place replace all parameters of the places around it.
    for text in [
        "fastcgi_param A b; location /app/ { fastcgi_pass 127.0.0.1:9000; fastcgi_param C d; }",
        "fastcgi_param A b; location /app/ { include fastcgi_params; fastcgi_pass 127.0.0.1:9000; }",
        "fastcgi_param A b; location /app/ { uwsgi_pass 127.0.0.1:9000; }",
        "fastcgi_param A b;",
    ] {
        let import = translated_nginx(text);
        assert!(!import.toml.contains("A = \"b\""), "{text}\n{}", import.toml);
        let mut about = import.notes.iter().filter(|note| note.directive == "fastcgi_param A b");
        assert!(
            about.any(|note| note.kind == NoteKind::NotNeeded),
            "{text}: {:?}",
            import.notes
        );
    }
    // The address of a php-fpm takes no variables.
    for text in [
        "fastcgi_param A b; location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }",
        "location ~ \\.php$ { fastcgi_param A b; fastcgi_pass unix:/run/php.sock; }",
    ] {
        let import = translated_nginx(text);
        assert!(has_note(&import, "takes no variables"), "{text}: {:?}", import.notes);
    }
    // A location without a back end.
    let import = translated_nginx("location /app/ { fastcgi_param A b; }");
    assert!(has_note(&import, "no `fastcgi_pass`"), "{:?}", import.notes);
}

#[test]
fn parameters_of_named_locations_apply_wherever_they_stand() {
    let with = "fastcgi = { to = \"127.0.0.1:9000\", params = { A = \"b\" } }";
    for text in [
        "location / { try_files $uri @app; } location @app { fastcgi_pass 127.0.0.1:9000; fastcgi_param A b; }",
        "location / { try_files $uri @app; } location @app { fastcgi_param A b; fastcgi_pass 127.0.0.1:9000; }",
        "fastcgi_param A b; location / { try_files $uri @app; } location @app { fastcgi_pass 127.0.0.1:9000; }",
        "fastcgi_param A b; try_files $uri @app; location @app { fastcgi_pass 127.0.0.1:9000; }",
        "fastcgi_param C d; try_files $uri @app; location @app { fastcgi_pass 127.0.0.1:9000; fastcgi_param A b; }",
    ] {
        has(&translated_nginx(text), with);
    }
}

#[test]
fn grpc_needs_no_scheme() {
    for (address, expected) in [
        ("127.0.0.1:50051", "h2c://127.0.0.1:50051"),
        ("grpc://127.0.0.1:50051", "h2c://127.0.0.1:50051"),
        ("grpcs://127.0.0.1:50051", "https://127.0.0.1:50051"),
        ("unix:/run/app.sock", "unix:/run/app.sock"),
    ] {
        let import = translated_nginx(&format!("location / {{ grpc_pass {address}; }}"));
        has(&import, expected);
        has(&import, "http2 = true");
        assert!(!import.toml.contains("deny"), "{}", import.toml);
    }
    let text = "upstream app { server 127.0.0.1:1; server 127.0.0.1:2; } server { listen 80; server_name a.test; location / { \
                grpc_pass app; } }";
    let import = import(Language::Nginx, "site.conf", text).unwrap();
    has(&import, "h2c://127.0.0.1:1");
    has(&import, "h2c://127.0.0.1:2");
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
    for (directive, message) in [
        ("grpc_pass $app;", "the address has variables"),
        ("proxy_pass 127.0.0.1:3000;", "the address is not a URL"),
        ("proxy_pass ftp://127.0.0.1;", "the address is not a URL"),
    ] {
        let import = translated_nginx(&format!("location / {{ {directive} }}"));
        has(&import, "deny = \"all\"");
        assert!(has_note(&import, message), "{directive}: {:?}", import.notes);
    }
}

#[test]
fn servers_of_a_group_have_port_80_by_default() {
    let text = "upstream app { server 10.0.0.1; server 10.0.0.2:9000; server unix:/run/app.sock; } server { listen 80; \
                server_name a.test; location /app/ { fastcgi_pass app; } }";
    let import = import(Language::Nginx, "site.conf", text).unwrap();
    has(
        &import,
        "fastcgi = [\"10.0.0.1:80\", \"10.0.0.2:9000\", \"unix:/run/app.sock\"]",
    );
}

#[test]
fn servers_of_a_group_keep_their_roles_for_applications() {
    for (servers, expected, notes) in [
        ("server a:1; server b:2;", "[\"a:1\", \"b:2\"]", &[][..]),
        ("server a:1 weight=5; server b:2 weight=5;", "[\"a:1\", \"b:2\"]", &[]),
        (
            "server a:1 weight=5; server b:2;",
            "[\"a:1\", \"b:2\"]",
            &["no weights"],
        ),
        ("server a:1; server b:2 backup;", "\"a:1\"", &["no backup servers"]),
        ("server a:1; server b:2 down;", "\"a:1\"", &[]),
        ("server a:1 down; server b:2 backup;", "\"b:2\"", &[]),
        ("server a:1 down;", "\"a:1\"", &["every server of the group"]),
        (
            "ip_hash; server a:1; server b:2;",
            "[\"a:1\", \"b:2\"]",
            &["several servers"],
        ),
        (
            "least_conn; server a:1 max_fails=2 fail_timeout=10s; server b:2;",
            "{ to = [\"a:1\", \"b:2\"], balance = \"least_conn\", fails = 2, fail_time = \"10s\" }",
            &[],
        ),
        ("server a:1 max_conns=9;", "\"a:1\"", &["no limit of connections"]),
    ] {
        for key in ["fastcgi", "uwsgi", "scgi"] {
            let text = format!(
                "upstream app {{ {servers} }} server {{ listen 80; server_name a.test; location /app/ {{ {key}_pass app; }} }}"
            );
            let import = import(Language::Nginx, "site.conf", &text).unwrap();
            has(&import, &format!("{key} = {expected}\n"));
            let of_pass = import.notes.iter().filter(|note| note.directive.contains("_pass"));
            assert_eq!(of_pass.count(), notes.len(), "{text}: {:?}", import.notes);
            assert!(
                notes.iter().all(|note| has_note(&import, note)),
                "{text}: {:?}",
                import.notes
            );
        }
    }
    // PHP takes one address.
    let text = "upstream app { server a:1 down; server b:2 backup; server c:3; } server { listen 80; root /srv; server_name a.test; \
                location ~ \\.php$ { fastcgi_pass app; } }";
    has(&import(Language::Nginx, "site.conf", text).unwrap(), "php = \"c:3\"");
    for (servers, php, is_noted) in [
        ("server a:1 down; server b:2 backup;", "b:2", false),
        ("server b:2 backup; server a:1;", "a:1", false),
        ("server a:1 down; server b:2 down;", "a:1", true),
    ] {
        let location = "location ~ \\.php$ { fastcgi_pass app; }";
        for location in [location.to_owned(), format!("location /a/ {{ {location} }}")] {
            let text = format!(
                "upstream app {{ {servers} }} server {{ listen 80; root /srv; server_name a.test; {location} }}"
            );
            let import = import(Language::Nginx, "site.conf", &text).unwrap();
            has(&import, &format!("php = \"{php}\""));
            let is_found = has_note(&import, "every server of the group is `down`");
            assert_eq!(is_found, is_noted, "{text}: {:?}", import.notes);
        }
    }
    for (server, php) in [
        ("10.0.0.1", "10.0.0.1:80"),
        ("[::1]", "[::1]:80"),
        ("[::1]:9000", "[::1]:9000"),
        ("unix:/run/a.sock", "unix:/run/a.sock"),
    ] {
        let text = format!(
            "upstream app {{ server {server}; }} server {{ listen 80; root /srv; server_name a.test; location ~ \\.php$ {{ \
             fastcgi_pass app; }} location /app/ {{ scgi_pass app; }} }}"
        );
        let import = import(Language::Nginx, "site.conf", &text).unwrap();
        has(&import, &format!("php = \"{php}\""));
        has(&import, &format!("scgi = \"{php}\""));
        assert!(!import.toml.contains("deny"), "{}", import.toml);
    }
}

#[test]
fn a_mirror_is_one_server_of_a_group() {
    for (servers, expected, is_noted) in [
        ("server 10.0.0.1:81;", "10.0.0.1:81", false),
        ("server 10.0.0.1; server 10.0.0.2;", "10.0.0.1", true),
        (
            "server 10.0.0.1 down; server 10.0.0.2 backup; server 10.0.0.3;",
            "10.0.0.3",
            true,
        ),
        ("server 10.0.0.1 down; server 10.0.0.2 backup;", "10.0.0.2", true),
        ("server 10.0.0.1 down; server 10.0.0.2 down;", "10.0.0.1", true),
    ] {
        let text = format!(
            "upstream copies {{ {servers} }} server {{ listen 80; server_name a.test; location / {{ mirror /copy; \
             proxy_pass http://b; }} location = /copy {{ internal; proxy_pass http://copies$request_uri; }} }}"
        );
        let import = import(Language::Nginx, "site.conf", &text).unwrap();
        has(&import, &format!("mirror = \"http://{expected}\""));
        assert_eq!(has_note(&import, "takes one server"), is_noted, "{:?}", import.notes);
        let are_all_down = servers.matches("server").count() == servers.matches("down").count();
        let is_found = has_note(&import, "every server of the group is `down`");
        assert_eq!(is_found, are_all_down, "{servers}: {:?}", import.notes);
    }
    let text = "upstream copies { server unix:/run/copy.sock; } server { listen 80; server_name a.test; location / { mirror \
                /copy; proxy_pass http://b; } location = /copy { internal; proxy_pass http://copies; } }";
    has(
        &import(Language::Nginx, "site.conf", text).unwrap(),
        "mirror = \"unix:/run/copy.sock\"",
    );
}

#[test]
fn parameters_that_only_some_applications_know_are_passed_on() {
    let app = "location /app/ { fastcgi_pass 127.0.0.1:9000; fastcgi_param modHeadersAvailable true; }";
    has(&translated_nginx(app), "params = { modHeadersAvailable = \"true\" }");
}

#[test]
fn directives_of_proxies_without_a_proxy_have_notes() {
    for (path, more, is_noted) in [
        ("/", "", true),
        ("/a/", "", true),
        ("/", "proxy_pass http://b;", false),
        ("/", "try_files $uri @b;", false),
        ("/", "location /a/ { proxy_pass http://b; }", false),
        ("/a/", "location /a/b/ { proxy_pass http://b; }", false),
        ("/", "location /a/ { expires 1d; }", true),
    ] {
        let import = translated_nginx(&format!(
            "location {path} {{ proxy_set_header X-A b; {more} }} location @b {{ proxy_pass http://b; }}"
        ));
        assert_eq!(
            has_note(&import, "has no `proxy_pass`"),
            is_noted,
            "{path} {more}: {:?}",
            import.notes
        );
    }
}

#[test]
fn parts_of_a_request_that_nginx_does_not_forward_have_notes() {
    let pass = "proxy_pass http://b; proxy_set_header Host $host;";
    for part in ["headers", "body"] {
        let (off, on) = (
            format!("proxy_pass_request_{part} off;"),
            format!("proxy_pass_request_{part} on;"),
        );
        for (text, is_lost) in [
            (format!("location / {{ {pass} {off} }}"), true),
            (format!("{off} location / {{ {pass} }}"), true),
            (format!("{on} location / {{ {pass} {off} }}"), true),
            (format!("{off} location / {{ {pass} {on} }}"), false),
            (format!("location / {{ {pass} {on} }}"), false),
        ] {
            let import = translated_nginx(&text);
            assert_eq!(
                has_note(&import, "the upstream gets"),
                is_lost,
                "{text}: {:?}",
                import.notes
            );
            let is_weakened = is_lost && part == "headers";
            assert_eq!(is_any_weakened(&import), is_weakened, "{text}: {:?}", import.notes);
        }
    }
}

#[test]
fn proxies_of_sections_of_apache_have_the_path_of_the_section() {
    // Directives, a part of the result, and the start and the kind of their notes.
    for (host, expected, notes) in [
        (
            "<Location /app/>\nProxyPass http://127.0.0.1:1/app/\nProxyPassReverse http://b.test/\n</Location>",
            Some("redirects = { \"http://b.test/\" = \"/app/\" }"),
            &[("ProxyPass http", NoteKind::Differs)][..],
        ),
        (
            "<Location /app/>\nProxyPass http://127.0.0.1:1/app/\nProxyPassReverse http://127.0.0.1:1/app/\n</Location>",
            Some("proxy = \"http://127.0.0.1:1\""),
            &[
                ("ProxyPass http", NoteKind::Differs),
                ("ProxyPassReverse", NoteKind::NotNeeded),
            ],
        ),
        // Apache takes the expression as the beginning of a path.
        (
            "<LocationMatch ^/app/>\nProxyPass http://127.0.0.1:1/app/\nProxyPassReverse http://b.test/\n</LocationMatch>",
            None,
            &[
                ("ProxyPass ", NoteKind::NotTranslated),
                ("ProxyPassReverse", NoteKind::NotTranslated),
            ],
        ),
        (
            "<Location ~ ^/app/>\nProxyPass http://127.0.0.1:1/app/\n</Location>",
            None,
            &[("ProxyPass ", NoteKind::NotTranslated)],
        ),
        // An expression without operators is the path.
        (
            "<LocationMatch \"/app/\">\nProxyPass http://127.0.0.1:1/app/\nRequire ip 10.0.0.0/8\n</LocationMatch>",
            Some("route.\"/app/*\"]\nproxy = \"http://127.0.0.1:1\"\nallow = \"10.0.0.0/8\""),
            // The first note is one about every route of an expression.
            &[("route ~/app/", NoteKind::Differs), ("ProxyPass ", NoteKind::Differs)],
        ),
        (
            "<LocationMatch app/>\nProxyPass http://127.0.0.1:1/app/\n</LocationMatch>",
            None,
            &[("ProxyPass ", NoteKind::NotTranslated)],
        ),
        // No proxy has the path.
        (
            "ProxyPass /app/ http://127.0.0.1:1/app/\nProxyPassReverse /other/ http://b.test/\n\
             ProxyPassReverse / http://127.0.0.1:1/",
            Some("proxy = \"http://127.0.0.1:1\""),
            &[
                ("ProxyPass /app/", NoteKind::Differs),
                ("ProxyPassReverse /other/", NoteKind::NotTranslated),
                ("ProxyPassReverse / ", NoteKind::NotNeeded),
            ],
        ),
    ] {
        let import = translated_apache(host);
        match expected {
            Some(expected) => has(&import, expected),
            None => assert!(!import.toml.contains("route."), "{}", import.toml),
        }
        let found: Vec<_> = import.notes.iter().collect();
        assert_eq!(found.len(), notes.len(), "{host}: {found:?}");
        for (note, (start, kind)) in found.iter().zip(notes) {
            assert!(
                note.directive.starts_with(start) && note.kind == *kind,
                "{host}: {found:?}"
            );
        }
    }
}

#[test]
fn fields_of_proxies_of_apache_that_differ_have_notes() {
    let pass = "ProxyPreserveHost On\nProxyPass / http://127.0.0.1:3000/";
    for (directive, kind, is_removed) in [
        ("ProxyVia Block", None, true),
        ("ProxyVia Off", Some(NoteKind::Differs), false),
        ("ProxyVia On", Some(NoteKind::NotNeeded), false),
        ("ProxyVia full", Some(NoteKind::NotNeeded), false),
        ("ProxyBadHeader IsError", Some(NoteKind::NotNeeded), false),
        ("ProxyBadHeader Ignore", Some(NoteKind::Differs), false),
        ("ProxyBadHeader StartBody", Some(NoteKind::Differs), false),
    ] {
        let import = translated_apache(&format!("{directive}\n{pass}"));
        let note = import.notes.iter().find(|note| note.directive == directive);
        assert_eq!(note.map(|note| note.kind), kind, "{:?}", import.notes);
        let has_field = import.toml.contains("headers = { Via = \"\" }");
        assert_eq!(has_field, is_removed, "{directive}\n{}", import.toml);
    }
}
