//! Tests of the directives of nginx that apply to a whole server.

use rocknet_import::{Language, Note};

use crate::support::{has, has_note, rules, translated_nginx as translated};

#[test]
fn a_return_of_the_server_precedes_its_locations() {
    let tls = "listen 443 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem;";
    let to_https = "location / { return 301 https://$host$request_uri; }";
    for text in [
        format!("{tls} return 403; {to_https}"),
        format!("{tls} {to_https} return 403;"),
        format!("return 403; {to_https}"),
        "return 403; location / { return 200 open; }".to_owned(),
        "return 403; location /open/ { return 301 /closed/; }".to_owned(),
        "return 403; return 200 open; if ($arg_a) { return 200 open; } rewrite ^/a$ /b last;".to_owned(),
    ] {
        let import = translated(&text);
        assert_eq!(rules(&import), ["respond = 403"], "{text}: {}", import.toml);
        assert!(!import.toml.contains("redirects."), "{text}: {}", import.toml);
        assert!(
            has_note(&import, "responds to every request"),
            "{text}: {:?}",
            import.notes
        );
    }
    // Without a `return` of the server, the locations apply.
    let import = translated(&format!("{tls} {to_https}"));
    assert!(!import.toml.contains("respond"), "{}", import.toml);
    // A rewrite with `last` leads past the `return`.
    let import = translated("rewrite ^/a$ /b last; return 403; location /b { expires 1d; }");
    assert!(rules(&import).contains(&"respond = 403".to_owned()), "{}", import.toml);
    has(&import, "route.\"/b\"");
    // Neither does a request reach it that ends the evaluation by `break`.
    for (returned, expected) in [
        ("return 403;", "respond = 403"),
        ("return 302 /b;", "redirect = '/b'; status = 302"),
    ] {
        let import = translated(&format!(
            "if ($http_x_a = b) {{ break; }} {returned} location /b {{ expires 1d; }}"
        ));
        let rule = format!("unless = {{ header = {{ X-A = '~^b$' }} }}; {expected}");
        assert_eq!(rules(&import), [rule], "{}", import.toml);
        has(&import, "route.\"/b\"");
    }
    // nginx returns without access control.
    let import = translated("deny 10.0.0.1; return 200 open;");
    assert!(
        has_note(&import, "access control of the site applies first"),
        "{:?}",
        import.notes
    );
    // The files of the site stay closed if the `return` has no counterpart.
    let import = translated("return 200 $unknown; location / { deny all; }");
    has(&import, "deny = \"all\"");
}

#[test]
fn a_server_turns_off_settings_of_http() {
    let auth = "auth_basic x; auth_basic_user_file /u; allow 10.0.0.0/8; deny all;";
    for (http, server, key) in [
        ("autoindex on;", "autoindex off;", "browse"),
        ("gzip off;", "gzip on;", "compress"),
        (&*format!("satisfy any; {auth}"), "satisfy all;", "satisfy"),
    ] {
        let http = |server: &str| {
            let text = format!("http {{ {http} server {{ listen 80; server_name a.test; root /srv; {server} }} }}");
            rocknet_import::import(Language::Nginx, "nginx.conf", &text).unwrap()
        };
        let inherited = http("");
        has(&inherited, &format!("\n{key} = "));
        let import = http(server);
        assert!(!import.toml.contains(&format!("\n{key} = ")), "{}", import.toml);
        assert!(!has_note(&import, "no known counterpart"), "{:?}", import.notes);
    }
}

#[test]
fn servers_inherit_early_data() {
    let tls = "server_name a.test; root /srv; ssl_certificate /c; ssl_certificate_key /k;";
    for (http, server, is_on) in [
        ("ssl_early_data on;", "listen 443 ssl;", true),
        ("ssl_early_data on;", "listen 443 ssl; ssl_early_data off;", false),
        ("ssl_early_data off;", "listen 443 ssl; ssl_early_data on;", true),
        ("ssl_early_data on;", "listen 80;", false),
        ("", "listen 443 ssl;", false),
    ] {
        let text = format!("http {{ {http} server {{ {server} {tls} }} }}");
        let import = rocknet_import::import(Language::Nginx, "nginx.conf", &text).unwrap();
        assert_eq!(
            import.toml.contains("early_data = true"),
            is_on,
            "{text}: {}",
            import.toml
        );
        assert!(import.notes.is_empty(), "{text}: {:?}", import.notes);
    }
}

#[test]
fn a_location_turns_compression_on_again() {
    let route = "route.\"/x/*\"]\ncompress = true\n";
    for (server, is_on) in [
        ("gzip off; location /x/ { gzip on; }", true),
        ("gzip off; location /x/ { brotli on; } location / { expires 1d; }", true),
        ("location / { gzip off; } location /x/ { gzip on; }", true),
        ("gzip on; location / { gzip off; } location /x/ { }", true),
        ("gzip off; location / { gzip on; } location /x/ { expires 1d; }", false),
        ("location /x/ { gzip on; }", false),
        ("gzip on; location /x/ { gzip on; }", false),
    ] {
        let import = translated(server);
        assert_eq!(import.toml.contains(route), is_on, "{server}: {}", import.toml);
    }
    let import = translated("gzip off; location / { gzip on; } location /x/ { expires 1d; }");
    has(&import, "route.\"/x/*\"]\ncompress = false\n");
    let import = translated("gzip off; location ~ \\.php$ { gzip on; fastcgi_pass unix:/x; }");
    has(&import, "route.\"*.php\"]\ncompress = true\n");
    // Settings of `location /` are those of the site, and scripts do not inherit them.
    for (php, is_on) in [("gzip on;", true), ("", true), ("gzip off;", false)] {
        let php = format!("location ~ \\.php$ {{ {php} fastcgi_pass unix:/x; }}");
        for server in [
            format!("location / {{ gzip off; }} {php}"),
            format!("{php} location / {{ gzip off; }}"),
        ] {
            has(&translated(&server), &format!("route.\"*.php\"]\ncompress = {is_on}\n"));
        }
    }
    // Such a route could take precedence over a restriction.
    let import = translated(
        "location ~ ^/admin { auth_basic x; auth_basic_user_file /u; } location / { gzip off; } \
         location ~ \\.php$ { fastcgi_pass unix:/x; }",
    );
    assert!(!import.toml.contains("route.\"*.php"), "{}", import.toml);
    let text = "http { gzip off; server { listen 80; server_name a.test; root /srv; location /x/ { gzip on; } } }";
    has(
        &rocknet_import::import(Language::Nginx, "nginx.conf", text).unwrap(),
        route,
    );
    // Without an effect, the directive adds no route that could take precedence.
    assert!(!translated("location ~ \\.js$ { gzip on; }").toml.contains("compress ="));
}

#[test]
fn rewrites_of_named_locations_have_notes() {
    for (rewrite, expected) in [
        ("rewrite ^ /index.php last;", "the script reads the path"),
        ("rewrite ^/(.*)$ /app.html?p=$1 last;", "exists = \"nothing\""),
        ("rewrite ^ /x.php last; proxy_pass http://b;", "exists = \"nothing\""),
    ] {
        let import = translated(&format!(
            "location / {{ try_files $uri @rewritten; }} location @rewritten {{ {rewrite} }}"
        ));
        let is_noted = |note: &Note| note.directive.starts_with("rewrite") && note.message.contains(expected);
        assert!(import.notes.iter().any(is_noted), "{rewrite}: {:?}", import.notes);
    }
}

#[test]
fn only_add_header_ends_the_inheritance_of_fields() {
    for (directives, is_noted) in [
        ("expires 1d;", false),
        ("etag off;", false),
        ("proxy_pass http://b; proxy_hide_header X-Powered-By;", false),
        ("add_header X-A own always;", false),
        ("add_header X-B b always;", true),
        ("add_header X-B $unknown always;", true),
        ("expires 1d; add_header X-B b always;", true),
    ] {
        let import = translated(&format!("add_header X-A a always; location /x/ {{ {directives} }}"));
        assert_eq!(
            has_note(&import, "nginx drops them here"),
            is_noted,
            "{directives}: {:?}",
            import.notes
        );
    }
    // `expires` of the server is inherited.
    let import = translated("expires 1d; location /x/ { add_header X-B b always; }");
    assert!(!has_note(&import, "nginx drops them here"), "{:?}", import.notes);
    for (server, is_inherited) in [
        ("", true),
        ("expires 1d;", true),
        ("proxy_hide_header X-Powered-By;", true),
        ("add_header X-B b always;", false),
        ("add_header X-B $unknown always;", false),
    ] {
        let text = format!(
            "http {{ add_header X-A a always; etag off; server {{ listen 80; server_name a.test; root /srv; {server} }} }}"
        );
        let import = rocknet_import::import(Language::Nginx, "nginx.conf", &text).unwrap();
        assert_eq!(
            import.toml.contains("headers.\"X-A\" = "),
            is_inherited,
            "{server}: {}",
            import.toml
        );
        has(&import, "headers.\"ETag\" = \"\"");
    }
}

#[test]
fn rules_before_a_redirect_to_https_have_notes() {
    let tls = "listen 443 ssl; server_name a.test; root /srv; ssl_certificate /c.pem; ssl_certificate_key /k.pem;";
    for names in ["server_name a.test;", ""] {
        let text = format!(
            "server {{ listen 80; {names} if ($http_x_a = b) {{ return 403; }} return 301 https://$host$request_uri; }} \
             server {{ {tls} }}"
        );
        let import = rocknet_import::import(Language::Nginx, "site.conf", &text).unwrap();
        assert!(rules(&import).is_empty(), "{}", import.toml);
        let is_noted =
            |note: &Note| note.directive == "return 403" && note.message.contains("redirected to HTTPS first");
        assert!(import.notes.iter().any(is_noted), "{names}: {:?}", import.notes);
    }
}
