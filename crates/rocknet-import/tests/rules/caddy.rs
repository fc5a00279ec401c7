//! Tests of the rules that matchers and directives of Caddy become.

use rocknet_import::{Import, Language, import};

use crate::support::{is_any_weakened, rules};

fn translated(site: &str) -> Import {
    let text = format!("a.test {{\nroot * /srv\nfile_server\n{site}\n}}\n");
    import(Language::Caddy, "Caddyfile", &text).unwrap()
}

#[test]
fn matchers_become_conditions() {
    for (text, expected) in [
        (
            "@a {\nmethod PUT DELETE\nnot path /dav/*\n}\nrespond @a 405",
            "method = ['PUT', 'DELETE']; unless = { path = '/dav/*' }; respond = 405",
        ),
        (
            "@a path_regexp item ^/item/([0-9]+)$\nrewrite @a /item.html?id={re.item.1}",
            "path = '~^/item/([0-9]+)$'; rewrite = '/item.html?id={1}'",
        ),
        (
            "@a {\nheader_regexp User-Agent (?i)bot\nfile /off.html\n}\nerror @a 503",
            "header = { User-Agent = '~(?i)bot' }; exists = 'file'; exists_at = '/off.html'; respond = 503",
        ),
        (
            "@office {\nremote_ip 192.0.2.0/24\nquery beta=1\n}\nrewrite @office /beta.html",
            "client = '192.0.2.0/24'; query = { beta = '1' }; rewrite = '/beta.html'",
        ),
        (
            "@missing not file\nrewrite @missing /app.html",
            "unless = { exists = ['file', 'folder'] }; rewrite = '/app.html'",
        ),
        (
            "@old path_regexp ^/([0-9]+)/(.*)$\nredir @old /archive/{re.1}/{re.2} 301",
            "",
        ),
        ("uri strip_suffix .html", "path = '~^/(.*)\\\\.html$'; rewrite = '/{1}'"),
    ] {
        let import = translated(text);
        let found = rules(&import);
        let expected: Vec<&str> = Some(expected)
            .filter(|expected| !expected.is_empty())
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{text}\n{}", import.toml);
        assert!(!is_any_weakened(&import), "{text}: {:?}", import.notes);
    }
    let import = translated("@old path_regexp ^/([0-9]+)/(.*)$\nredir @old /archive/{re.1}/{re.2} 301");
    assert!(
        import
            .toml
            .contains("redirects.\"~^/([0-9]+)/(.*)$\" = { to = \"/archive/{1}/{2}\", status = 301 }"),
        "{}",
        import.toml
    );
    // A test that rules do not have leaves a refusal out, which the note says.
    let import = translated("@a expression `{method} == 'X'`\nrespond @a 403");
    assert!(
        rules(&import).is_empty() && is_any_weakened(&import),
        "{:?}",
        import.notes
    );
}

#[test]
fn a_response_to_every_path_becomes_a_rule_unless_it_would_hide_others() {
    for (site, expected) in [
        ("header X-A b\nrespond ok", &["respond = 200; body = 'ok'"][..]),
        ("header X-A b\nrespond 403", &["respond = 403"]),
        ("root * /srv\nfile_server\nrespond ok", &[]),
        (
            "handle /a {\nreverse_proxy 127.0.0.1:9000\n}\nhandle {\nrespond ok\n}",
            &[],
        ),
    ] {
        let text = format!("a.test {{\n{site}\n}}\n");
        let import = import(Language::Caddy, "Caddyfile", &text).unwrap();
        assert_eq!(rules(&import), expected, "{site}\n{}", import.toml);
    }
}

#[test]
fn hidden_names_apply_to_files_and_folders() {
    let hidden = |names: &str| {
        let text = format!("a.test {{\nroot * /srv\nfile_server {{\nhide {names}\n}}\n}}\n");
        rules(&import(Language::Caddy, "Caddyfile", &text).unwrap())
    };
    assert_eq!(
        hidden("build.old *.bak secret*"),
        [
            "path = ['*/build.old', '~/build\\\\.old/', '*.bak', '~/[^/]*\\\\.bak/', '*/secret*', '~/secret[^/]*/']; \
             respond = 404; resolved = true"
        ]
    );
    // Each name has two patterns, and a condition has at most 64.
    let names: Vec<String> = (0..33).map(|number| format!("a{number}")).collect();
    assert_eq!(hidden(&names[..32].join(" ")).len(), 1);
    assert_eq!(hidden(&names.join(" ")).len(), 2);
}

#[test]
fn refusals_apply_to_rewritten_paths() {
    let import = translated("respond /secret/* 403\nrewrite /a /secret/a");
    assert_eq!(
        rules(&import),
        [
            "path = '/secret/*'; respond = 403",
            "path = '/a'; rewrite = '/secret/a'",
            "path = '/secret/*'; respond = 403",
        ]
    );
}

#[test]
fn refusals_of_clients_stay_access_control() {
    for (matcher, expected) in [
        ("not remote_ip 10.0.0.0/8", "allow = \"10.0.0.0/8\""),
        ("not not remote_ip 10.0.0.0/8", "deny = \"10.0.0.0/8\""),
        ("not not not remote_ip 10.0.0.0/8", "allow = \"10.0.0.0/8\""),
        ("{\nnot {\nnot remote_ip 10.0.0.0/8\n}\n}", "deny = \"10.0.0.0/8\""),
    ] {
        let import = translated(&format!("@outside {matcher}\nrespond @outside 403"));
        assert!(import.toml.contains(expected), "{matcher}\n{}", import.toml);
        assert!(rules(&import).is_empty(), "{matcher}\n{}", import.toml);
    }
    // A rule has one negation.
    let import = translated("@a {\nremote_ip 10.0.0.0/8\nnot not remote_ip 10.1.0.0/16\n}\nrespond @a 403");
    assert!(
        rules(&import).is_empty() && is_any_weakened(&import),
        "{:?}\n{}",
        import.notes,
        import.toml
    );
}

#[test]
fn snippets_without_a_name_or_arguments_are_no_error() {
    for text in [
        "() {\nrespond 403\n}\na.test {\nimport\n}\n",
        "&() {\nrespond 403\n}\na.test {\ninvoke\n}\n",
    ] {
        let import = import(Language::Caddy, "Caddyfile", text).unwrap();
        assert!(
            import.toml.contains("respond = 403") || import.toml.contains("deny = \"all\""),
            "{}",
            import.toml
        );
    }
}

#[test]
fn directives_become_settings() {
    for (text, expected) in [
        (
            "handle_errors {\nrewrite * /{err.status_code}.html\nfile_server\n}",
            "errors.\"404\" = \"/404.html\"",
        ),
        (
            "handle_errors 502 503 {\nrewrite * /down.html\nfile_server\n}",
            "errors.\"503\" = \"/down.html\"",
        ),
        (
            "handle /api/* {\nrequest_header X-Api v1\nuri strip_prefix /api\nreverse_proxy localhost:3000\n}",
            "strip = \"/api\", headers = { X-Api = \"v1\" }",
        ),
    ] {
        let import = translated(text);
        assert!(import.toml.contains(expected), "{text}\n{}", import.toml);
    }
    let text = "{\nservers {\nprotocols h1 h2\ntrusted_proxies static 10.0.0.0/8\ntimeouts {\nread_header 5s\n}\n}\n}\n&(app) \
                {\nreverse_proxy localhost:3000\n}\na.test {\ninvoke app\n}\n";
    let import = import(Language::Caddy, "Caddyfile", text).unwrap();
    for expected in [
        "http3 = false",
        "trusted_proxies = [\"10.0.0.0/8\"]",
        "header_timeout = \"5s\"",
        "proxy = \"http://localhost:3000\"",
    ] {
        assert!(import.toml.contains(expected), "{expected}\n{}", import.toml);
    }
}

#[test]
fn blocks_for_endings_do_not_become_settings_of_the_site() {
    for text in [
        "handle *.js {\nheader X-A b\n}",
        "handle {\nhandle *.js {\nheader X-A b\n}\n}",
        "@js path *.js\nhandle {\nhandle @js {\nheader X-A b\n}\n}",
        "@js path *.js\nroute /app/* {\nhandle @js {\nheader X-A b\n}\n}",
        "handle_path /app/* {\nhandle *.js {\nheader X-A b\n}\n}",
        "handle a.js {\nheader X-A b\n}",
    ] {
        let import = translated(text);
        let (site, routes) = import.toml.split_once(".route.").unwrap_or((&import.toml, ""));
        assert!(!site.contains("headers."), "{text}\n{}", import.toml);
        let is_written = routes.starts_with("\"*.js\"]\nheaders.\"X-A\" = \"b\"");
        assert!(is_written || !import.notes.is_empty(), "{text}\n{}", import.toml);
    }
    let import = translated("handle /api/* {\nreverse_proxy localhost:3000\n}\nhandle {\nheader X-A b\nfile_server\n}");
    let inherited = "the field is added in the routes of other blocks too";
    assert!(
        import.notes.iter().any(|note| note.message == inherited),
        "{:?}",
        import.notes
    );
}

#[test]
fn authorization_services_are_translated_unless_passwords_apply_too() {
    let forward = "forward_auth a:9091 {\nuri /verify\ncopy_headers Remote-User Remote-Groups\n}";
    let password = "basic_auth {\nbob $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}";
    let auth = "auth = { forward = \"http://a:9091/verify\", headers = [\"Remote-User\", \"Remote-Groups\"] }";
    let import = translated(forward);
    assert!(
        import.toml.contains(auth) && !import.toml.contains("deny"),
        "{}",
        import.toml
    );
    // The configuration that oauth2-proxy documents.
    let import = translated(
        "handle /oauth2/* {\nreverse_proxy localhost:4180 {\nheader_up X-Real-IP {remote_host}\nheader_up X-Forwarded-Uri \
         {uri}\n}\n}\nhandle {\nforward_auth localhost:4180 {\nuri /oauth2/auth\nheader_up X-Real-IP {remote_host}\n@error status \
         401\nhandle_response @error {\nredir * /oauth2/sign_in?rd={scheme}://{host}{uri}\n}\n}\nreverse_proxy localhost:3000\n}",
    );
    let auth = "auth = { forward = \"http://localhost:4180/oauth2/auth\", headers = [], sign_in = \
                \"/oauth2/sign_in?rd={scheme}://{host}{target}\" }";
    assert!(
        import.toml.contains(auth) && import.toml.contains("auth = false") && !import.toml.contains("deny"),
        "{}",
        import.toml
    );
    for text in [
        format!("{forward}\n{password}"),
        format!("{password}\n{forward}"),
        "forward_auth a:9091 {\nuri /verify\ncopy_headers A>\n}".to_owned(),
        "forward_auth a:9091 {\nuri /verify?{query}\n}".to_owned(),
        "forward_auth a:9091".to_owned(),
        "forward_auth a:9091 {\nuri /verify\nhandle_response @other {\nredir /login\n}\n}".to_owned(),
        "forward_auth a:9091 {\nuri /verify\n@ok status 200\n}".to_owned(),
    ] {
        let import = translated(&text);
        assert!(import.toml.contains("deny = \"all\""), "{text}\n{}", import.toml);
    }
}
