//! Tests of access control where nginx prefers another location than RockNet.

use crate::support::{access_of, has, has_note, is_any_weakened, is_weakened, translated_nginx};

#[test]
fn a_location_for_every_path_restricts_the_expressions_that_nginx_does_not_apply() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    let php = "location ~ \\.php$ { fastcgi_pass unix:/php; }";
    let css = "location ~ \\.css$ { expires 1h; }";
    for access in [
        "auth_jwt x;",
        "auth_request /check;",
        "deny all;",
        "allow 10.0.0.0/8; deny all;",
        auth,
    ] {
        for text in [
            format!("location ^~ / {{ {access} }} {php} {css}"),
            format!("{php} {css} location ~ ^/adm/ {{ proxy_pass http://b; }} location ^~ / {{ {access} }}"),
            format!("location / {{ {access} location ~ \\.php$ {{ fastcgi_pass unix:/php; }} }} {php}"),
            format!("location ~ ^/ {{ {access} }} {css}"),
            format!("{access} location ^~ / {{ expires 1d; }} location ~ \\.css$ {{ allow all; auth_basic off; }}"),
        ] {
            let import = translated_nginx(&text);
            for open in ["deny = []", "allow = \"all\"\n\n", "auth = false"] {
                assert!(!import.toml.contains(open), "{text}\n{}", import.toml);
            }
            // A rule refuses every request for `~ ^/` with `deny all`.
            let is_refused = import.toml.contains(".rule]]\nrespond = 403");
            assert!(
                is_refused || has_note(&import, "a location for every path takes precedence"),
                "{text}: {:?}\n{}",
                import.notes,
                import.toml
            );
        }
    }
    // The order of locations for every path does not matter.
    for text in [
        "location ~ ^/ { deny 10.0.0.1; } location / { deny 10.0.0.2; }",
        "location ^~ / { deny 10.0.0.1; } location / { expires 1d; } location ~ ^/ { deny 10.0.0.2; }",
    ] {
        let import = translated_nginx(text);
        assert_eq!(
            access_of(&import, "[site.\"a.test\"]"),
            ["deny = \"10.0.0.1\""],
            "{text}\n{}",
            import.toml
        );
    }
    // The expression has a restriction of its own.
    let import = translated_nginx(&format!(
        "location ^~ / {{ allow 10.0.0.0/8; deny all; }} location ~ \\.css$ {{ {auth} }}"
    ));
    assert!(
        access_of(&import, "route.\"*.css\"]").contains(&"deny = \"all\""),
        "{}",
        import.toml
    );
    // nginx applies these expressions.
    for text in [
        format!("location / {{ {auth} location ~ \\.php$ {{ fastcgi_pass unix:/php; }} }} {css}"),
        format!("{css} location ~ ^/ {{ {auth} }}"),
    ] {
        let import = translated_nginx(&text);
        assert_eq!(
            access_of(&import, "route.\"*.css\"]"),
            ["auth = false"],
            "{text}\n{}",
            import.toml
        );
    }
    // Scripts run below other prefixes.
    let import = translated_nginx(&format!("location ^~ / {{ }} location /app/ {{ }} {php}"));
    has(&import, "route.\"/app/*\"]\nphp = \"unix:/php\"");
}

#[test]
fn a_final_prefix_restricts_the_expressions_below_it() {
    let text = "expires 1h;";
    for (locations, route, is_kept) in [
        (
            format!("location ^~ /a/ {{ deny all; }} location ~ ^/a/b/ {{ {text} }}"),
            "/a/b/*",
            false,
        ),
        (
            format!("location ^~ /a/ {{ auth_jwt x; }} location ~ ^/a/b$ {{ {text} }}"),
            "/a/b",
            false,
        ),
        (
            format!("location ^~ /a {{ deny all; }} location ~ ^/ab$ {{ {text} }}"),
            "/ab",
            false,
        ),
        (
            format!("location ^~ / {{ deny all; }} location ~ ^/a/ {{ {text} }}"),
            "/a/*",
            false,
        ),
        (
            format!("deny all; location ^~ /a/ {{ {text} }} location ~ ^/a/b/ {{ allow all; }}"),
            "/a/b/*",
            false,
        ),
        // nginx applies these expressions.
        (
            format!("location /a/ {{ deny all; }} location ~ ^/a/b/ {{ {text} }}"),
            "/a/b/*",
            true,
        ),
        (
            format!("location ^~ /a/ {{ deny all; }} location /a/b/ {{ }} location ~ ^/a/b/c/ {{ {text} }}"),
            "/a/b/c/*",
            true,
        ),
        (
            format!("location ^~ /a/ {{ deny all; }} location ~ ^/b/ {{ {text} }}"),
            "/b/*",
            true,
        ),
    ] {
        let import = translated_nginx(&locations);
        let is_found = import.toml.contains(&format!("route.\"{route}\"]"));
        assert_eq!(is_found, is_kept, "{locations}\n{}", import.toml);
        let is_noted = has_note(&import, "`location ^~` takes precedence");
        assert_eq!(is_noted, !is_kept, "{locations}: {:?}", import.notes);
    }
}

#[test]
fn an_expression_inside_a_restricted_prefix_closes_a_shared_route() {
    let php = "fastcgi_pass unix:/php;";
    for (prefix, inner, is_closed) in [
        ("auth_jwt x;", "location ~ \\.php$", true),
        ("auth_jwt x;", "location ~ ^/a/c/.*\\.php$", false),
        ("auth_jwt x;", "location /a/c/", false),
        ("expires 1d;", "location ~ \\.php$", false),
    ] {
        let import = translated_nginx(&format!(
            "location /a/ {{ {prefix} {inner} {{ {php} }} }} location ~ ^/a/b/ {{ expires 1h; }}"
        ));
        let found = access_of(&import, "route.\"/a/b/*\"]");
        assert_eq!(
            found == ["deny = \"all\""],
            is_closed,
            "{prefix} {inner}\n{}",
            import.toml
        );
        let is_noted = has_note(&import, "an expression inside a prefix takes precedence");
        assert_eq!(is_noted, is_closed, "{prefix} {inner}: {:?}", import.notes);
    }
}

#[test]
fn an_expression_inside_a_restricted_prefix_shares_the_simple_access_control_of_the_prefix() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    let lists = "allow 10.0.0.0/8; deny all;";
    let closed = &["deny = \"all\""][..];
    // Directives of the server, of the prefix, of the expression inside it and of the other one.
    for (server, prefix, inner, expression, expected) in [
        (
            "",
            auth,
            "",
            "expires 1h;",
            &["auth = { realm = \"x\", file = \"/u\" }"][..],
        ),
        ("", lists, "", "expires 1h;", &["allow = \"10.0.0.0/8\""]),
        ("", auth, "", lists, closed),
        ("", auth, "", "proxy_pass http://b;", closed),
        ("", auth, "deny 10.0.0.1;", "expires 1h;", closed),
        ("deny 203.0.113.5;", auth, "", "expires 1h;", closed),
        ("", "internal;", "", "expires 1h;", closed),
        (
            "",
            "satisfy any; allow 10.0.0.0/8; deny all; auth_basic x; auth_basic_user_file /u;",
            "",
            "expires 1h;",
            closed,
        ),
    ] {
        let text = format!(
            "{server} location /a/ {{ {prefix} location ~ \\.php$ {{ {inner} fastcgi_pass unix:/php; }} }} \
             location ~ ^/a/b/ {{ {expression} }}"
        );
        let import = translated_nginx(&text);
        assert_eq!(
            access_of(&import, "route.\"/a/b/*\"]"),
            expected,
            "{text}\n{}",
            import.toml
        );
        let is_noted = has_note(&import, "an expression inside a prefix takes precedence");
        assert!(is_noted, "{text}: {:?}", import.notes);
        // Scripts run as in the prefix, and are not sent as text.
        if expected != closed {
            has(&import, "route.\"/a/b/*\"]\nphp = \"unix:/php\"");
        }
    }
}

#[test]
fn expressions_of_the_server_apply_below_an_inner_final_prefix() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    let import = translated_nginx(&format!(
        "location / {{ location ^~ /a/ {{ }} }} location ~ ^/a/b/ {{ {auth} }}"
    ));
    has(&import, "route.\"/a/b/*\"]\nauth = { realm = \"x\", file = \"/u\" }");
    // Without a route, the rule of the expression applies.
    let import = translated_nginx(
        "location / { location ^~ /a/ { } } location ~ ^/a/b/ { allow 10.0.0.0/8; deny all; } location ~ \\.x$ { }",
    );
    assert!(
        !has_note(&import, "`location ^~` takes precedence"),
        "{:?}",
        import.notes
    );
    has(&import, "route.\"/a/b/*\"]\nallow = \"10.0.0.0/8\"");
    // nginx runs the scripts in `/a/`.
    let php = "location ~ \\.php$ { fastcgi_pass unix:/php; }";
    let import = translated_nginx(&format!("location / {{ location ^~ /a/ {{ }} }} {php}"));
    assert!(!import.toml.contains("php = false"), "{}", import.toml);
    // nginx tries no expression here.
    let import = translated_nginx(&format!("location ^~ / {{ location ^~ /a/ {{ }} }} {php}"));
    has(&import, "route.\"/a/*\"]\nphp = false");
}

#[test]
fn a_location_for_every_path_cancels_no_restriction_of_the_server_for_expressions() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    let lists = "allow 10.0.0.0/8; deny all;";
    let inner = "location ~ ^/z { }";
    // Directives of the server and of `location /`, and true if expressions are closed.
    for (server, root, is_closed) in [
        (auth, "auth_basic off; allow 10.0.0.0/8; deny all;", true),
        (lists, "allow 192.168.0.0/16; deny all;", true),
        (&*format!("{lists} {auth}"), "satisfy any;", true),
        // The restriction of the server remains in effect.
        (auth, lists, false),
        (lists, auth, false),
        (auth, "expires 1d;", false),
        (&format!("satisfy any; {lists} {auth}"), "expires 1d;", false),
        ("", lists, false),
    ] {
        for (expression, table) in [
            ("location ~ \\.css$ { expires 1h; }", "route.\"*.css\"]"),
            (
                "location ~ \\.php$ { fastcgi_pass unix:/x; add_header A b; }",
                "route.\"*.php\"]",
            ),
        ] {
            let text = format!("{server} location / {{ {root} {inner} }} {expression}");
            let import = translated_nginx(&text);
            let access = access_of(&import, table);
            assert_eq!(access.contains(&"deny = \"all\""), is_closed, "{text}\n{}", import.toml);
            // Otherwise, the route inherits everything.
            assert!(is_closed || access.is_empty(), "{text}\n{}", import.toml);
        }
    }
}

#[test]
fn a_prefix_inside_a_final_prefix_is_noted_if_the_rule_of_an_expression_excludes_it() {
    let lists = "allow 10.0.0.0/8; deny all;";
    for (locations, is_noted) in [
        (format!("location /a/b/ {{ }} location ~ ^/a/ {{ {lists} }}"), true),
        (format!("location ~ ^/a/ {{ {lists} }} location /a/b {{ }}"), true),
        (format!("location /a/b/ {{ }} location ~ \\.pdf$ {{ {lists} }}"), true),
        ("location /a/b/ { } location ~ ^/a/b/c/ { deny all; }".to_owned(), true),
        (
            "location /a/b/ { } location ~ ^/a/ { if ($http_x) { return 403; } }".to_owned(),
            true,
        ),
        (
            "location /a/b/ { } location ~ ^/a/ { limit_except GET { deny all; } }".to_owned(),
            true,
        ),
        // The following rules open no path.
        (
            "location /a/b/ { deny all; } location ~ ^/a/ { deny all; }".to_owned(),
            false,
        ),
        (format!("location ~ ^/a/ {{ {lists} }}"), false),
        (format!("location /b/ {{ }} location ~ ^/b/c/ {{ {lists} }}"), false),
        (
            "location /a/b/ { } location ~ ^/a/ { if ($http_x) { return 301 /c; } }".to_owned(),
            false,
        ),
    ] {
        let import = translated_nginx(&format!("location ^~ /a/ {{ }} {locations}"));
        assert_eq!(
            is_weakened(&import, "does not apply in these locations"),
            is_noted,
            "{locations}\n{:?}\n{}",
            import.notes,
            import.toml
        );
    }
    // The exception for `/a` does not include `/ab/`.
    let import = translated_nginx("location ^~ /a { } location /ab/ { } location ~ \\.pdf$ { deny all; }");
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
}

#[test]
fn names_that_begin_with_a_prefix_are_noted_if_the_expression_has_no_route() {
    // Directives of the server, of `location ^~ /`, and other locations.
    for (server, root, locations, is_noted) in [
        (
            "deny 10.0.0.1;",
            "allow all;",
            "location /a/b { } location ~ ^/a/ { expires 1d; }",
            true,
        ),
        (
            "deny 10.0.0.1;",
            "allow all;",
            "location /a/b/ { } location ~ ^/a/ { expires 1d; }",
            false,
        ),
        (
            "deny 10.0.0.1;",
            "allow all;",
            "location /b { } location ~ ^/a/ { expires 1d; }",
            false,
        ),
        (
            "deny 10.0.0.1;",
            "allow all;",
            "location /a/b { } location ~ ^/a/ { allow all; }",
            false,
        ),
        ("", "", "location /a/b { } location ~ ^/a/ { expires 1d; }", false),
    ] {
        let text = format!("{server} location ^~ / {{ {root} }} {locations}");
        let import = translated_nginx(&text);
        assert!(!import.toml.contains("route.\"/a/*\"]"), "{text}\n{}", import.toml);
        assert_eq!(
            is_weakened(&import, "not for names that begin with these paths"),
            is_noted,
            "{text}\n{:?}",
            import.notes
        );
    }
}

#[test]
fn a_prefix_that_cancels_a_restriction_of_the_server_for_an_expression_is_noted() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    let php = "location ~ \\.php$ { fastcgi_pass unix:/x; }";
    let css = "location ~ \\.css$ { expires 1d; }";
    let off = "location /b/ { auth_basic off; }";
    for (text, is_noted) in [
        (format!("{auth} {off} {php}"), true),
        (format!("{auth} {css} {off}"), true),
        (format!("{auth} {off} location ~ \\.css$ {{ }}"), true),
        (format!("{auth} {off} location ~ ^/b/c/ {{ }}"), true),
        (format!("deny 10.0.0.1; location /b {{ allow all; }} {php}"), true),
        (
            format!("{auth} {off} location ~ \\.pdf$ {{ allow 10.0.0.0/8; deny all; }}"),
            true,
        ),
        // The route of the expression takes precedence.
        (format!("{auth} {off} location ~ ^/b/c/ {{ expires 1d; }}"), false),
        (format!("{auth} {off} location ~ ^/b/ {{ }}"), false),
        // The expression is open, too.
        (
            format!("{auth} {off} location ~ \\.css$ {{ auth_basic off; expires 1d; }}"),
            false,
        ),
        (format!("{off} {php}"), false),
        // No restriction is cancelled.
        (format!("{auth} location /b/ {{ expires 1d; }} {php} {css}"), false),
        (
            format!("{auth} location ^~ /b/ {{ auth_basic off; }} {php} {css}"),
            false,
        ),
        (format!("{auth} location /b/ {{ deny all; }} {php} {css}"), false),
    ] {
        let import = translated_nginx(&text);
        assert_eq!(
            is_any_weakened(&import),
            is_noted,
            "{text}\n{:?}\n{}",
            import.notes,
            import.toml
        );
    }
}
