//! Tests of the refusals by locations and conditions of nginx.

use rocknet_import::Import;

use crate::support::{has, has_note, is_any_weakened, rules, translated_nginx as translated};

#[test]
fn refusals_of_locations_apply_after_rewrites_with_last() {
    let import =
        translated("rewrite ^/docs/(.*)$ /files/$1 last; rewrite ^/x$ /y last; location ~ \\.bak$ { deny all; }");
    assert_eq!(
        rules(&import),
        [
            "path = '/docs/*'; rewrite = '/files/{*}'",
            "path = '/x'; rewrite = '/y'",
            "path = '*.bak'; respond = 403",
        ]
    );
    assert!(
        has_note(&import, "the rules that follow apply too"),
        "{:?}",
        import.notes
    );
    // Rewrites of locations come between two copies, because nginx searches a location before and after them.
    let import = translated("location /a/ { rewrite ^/a/(.*)$ /b/$1 last; } location ~ \\.bak$ { deny all; }");
    assert_eq!(
        rules(&import),
        [
            "path = '*.bak'; respond = 403",
            "path = '/a/*'; rewrite = '/b/{*}'; unless = { path = '*.bak' }"
                .replace(
                    "rewrite = '/b/{*}'; unless = { path = '*.bak' }",
                    "unless = { path = '~\\\\.bak$' }; rewrite = '/b/{*}'"
                )
                .as_str(),
            "path = '*.bak'; respond = 403",
        ]
    );
    // Without refusals, the other rewrites are skipped as in nginx.
    let import = translated("rewrite ^/a$ /b last; rewrite ^/b$ /c last;");
    assert_eq!(
        rules(&import),
        [
            "path = '/a'; rewrite = '/b'; last = true",
            "path = '/b'; rewrite = '/c'; last = true"
        ]
    );
}

#[test]
fn refusals_by_expression_have_the_exceptions_of_nginx() {
    // The front controller comes first, and the other scripts are refused.
    let import = translated(
        "location / { try_files $uri /index.php$is_args$args; } location ~ ^/index\\.php(/|$) { fastcgi_pass \
         unix:/run/php.sock; internal; } location ~ \\.php$ { return 404; }",
    );
    assert_eq!(
        rules(&import),
        [
            "path = '~^/index\\\\.php(/|$)'; respond = 404",
            "path = '*.php'; unless = { path = '~^/index\\\\.php(/|$)' }; respond = 404; resolved = true",
        ]
    );
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
    // An exact path and a prefix with `^~` take precedence over expressions.
    let import = translated(
        "location = /robots.txt { expires 1d; } location ^~ /notes/ { expires 1d; } location ~* \\.(txt|log)$ { deny all; }",
    );
    assert_eq!(
        rules(&import),
        ["path = '~*\\\\.(txt|log)$'; unless = { path = ['/robots.txt', '/notes/*'] }; respond = 403"]
    );
    // Every script is refused in a folder, in upper case too.
    let import = translated("location ~* /(?:uploads|files)/.*\\.php$ { deny all; }");
    assert_eq!(
        rules(&import),
        ["path = '~*/(?:uploads|files)/.*\\\\.php$'; respond = 403"]
    );
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
    // Look-ahead has no counterpart, which the note says.
    let import = translated("location ~ ^/(?!public).*\\.txt$ { deny all; }");
    assert!(is_any_weakened(&import), "{:?}", import.notes);
}

#[test]
fn later_expressions_do_not_open_what_an_earlier_one_restricts() {
    let restricted = "location ~ ^/admin { allow 10.0.0.0/8; deny all; }";
    let import = translated(&format!("{restricted} location ~* \\.(css|json)$ {{ expires 1d; }}"));
    assert!(
        import.toml.contains("route.\"~^/admin\"]\nallow = \"10.0.0.0/8\""),
        "{}",
        import.toml
    );
    // A rule refuses the other clients before the route for the later expression applies.
    let refusal = "path = '~^/admin'; unless = { client = '10.0.0.0/8' }; respond = 403";
    assert_eq!(rules(&import), [refusal]);
    assert!(import.toml.contains("json)$\"]"), "{}", import.toml);
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
    // Passwords have no such rule.
    let password = "location ~ ^/admin { auth_basic x; auth_basic_user_file /u; }";
    let import = translated(&format!("{password} location ~* \\.(css|json)$ {{ expires 1d; }}"));
    assert!(
        !import.toml.contains("json)$\"]") && !import.toml.contains("*.json"),
        "{}",
        import.toml
    );
    assert!(
        has_note(&import, "an earlier expression restricts access"),
        "{:?}",
        import.notes
    );
    // Other beginnings and other endings do not overlap.
    let import = translated(&format!("{restricted} location ~ ^/img/[0-9]+ {{ expires 1d; }}"));
    assert!(import.toml.contains("route.\"~^/img/"), "{}", import.toml);
    // An expression before the restricted one takes precedence in nginx, too.
    let import = translated(&format!("location ~ \\.css$ {{ expires 1d; }} {restricted}"));
    assert!(import.toml.contains("*.css"), "{}", import.toml);
}

#[test]
fn names_with_a_dot_are_refused_before_upstreams() {
    let proxy = "location / { proxy_pass http://127.0.0.1:3000; }";
    // The rule has the expression and the status of the location, without look-ahead.
    for (location, expected) in [
        (
            "location ~ /\\.(?!well-known) { deny all; }",
            "path = '~/\\\\.(?:$|[^w]|w(?:$|[^e]|e(?:",
        ),
        ("location ~ /\\.ht { return 404; }", "path = '~/\\\\.ht'; respond = 404"),
        (
            "location ~ /\\. { deny all; }",
            "path = '~/\\\\.'; respond = 403; resolved = true",
        ),
        // Every name is refused if the exception has no form.
        (
            "location ~ /\\.(?!(well|known)x) { deny all; }",
            "path = '~/\\\\.'; respond = 403; resolved = true",
        ),
    ] {
        let import = translated(&format!("{location} {proxy}"));
        let rules = rules(&import);
        assert!(
            rules.len() == 1 && rules[0].starts_with(expected),
            "{location}: {rules:?}"
        );
        assert!(!is_any_weakened(&import), "{:?}", import.notes);
    }
    // Files with such names are never served, except those in `/.well-known`.
    for location in [
        "location ~ /\\.(?!well-known) { deny all; }",
        "location ~ /\\.ht { deny all; }",
    ] {
        assert_eq!(rules(&translated(location)), [""; 0], "{location}");
    }
    let import = translated("location ~ /\\. { deny all; }");
    assert_eq!(rules(&import), ["path = '~/\\\\.'; respond = 403; resolved = true"]);
    let import = translated(&format!("location ~ ^/(\\.git|vendor)/ {{ deny all; }} {proxy}"));
    assert_eq!(rules(&import), ["path = ['/.git/*', '/vendor/*']; respond = 403"]);
    let import = translated(&format!(
        "location ~ ^/\\.git/ {{ allow 10.0.0.0/8; deny all; }} {proxy}"
    ));
    let (_, route) = import.toml.split_once("route.\"/.git/*\"]").expect("a route");
    assert!(route.contains("allow = \"10.0.0.0/8\""), "{}", import.toml);
}

#[test]
fn refusals_in_a_location_of_scripts_are_noted() {
    for refusal in [
        "if ($uri ~ /uploads/) { return 403; }",
        "location ~ /files/ { deny all; }",
    ] {
        let import = translated(&format!(
            "location ~ \\.php$ {{ {refusal} fastcgi_pass unix:/run/php.sock; }}"
        ));
        assert!(has_note(&import, "THIS RESTRICTS ACCESS"), "{:?}", import.notes);
        assert!(import.toml.contains("php = \"unix:/run/php.sock\""), "{}", import.toml);
    }
}

#[test]
fn no_prefix_opens_a_path_of_an_expression() {
    // RockNet prefers the route of the prefix, so a rule refuses the other clients.
    for expression in ["^/a/b[0-9]", "^/a/b[0-9]*", "/b[0-9]"] {
        let import = translated(&format!(
            "location ~ {expression} {{ allow 10.0.0.0/8; deny all; }} location /a/ {{ expires 1d; }}"
        ));
        let refuses = |rule: &String| rule.contains("unless = { client = '10.0.0.0/8' }; respond = 403");
        assert!(rules(&import).iter().any(refuses), "{expression}: {}", import.toml);
        assert!(!is_any_weakened(&import), "{expression}: {:?}", import.notes);
    }
    // Passwords have no such rule, so a note names the prefix.
    let import =
        translated("location ~ ^/a/b[0-9] { auth_basic x; auth_basic_user_file /u; } location /a/ { expires 1d; }");
    assert!(is_any_weakened(&import), "{:?}", import.notes);
}

#[test]
fn no_later_location_opens_a_path_of_an_earlier_expression() {
    let admin = "location ~ ^/admin { allow 10.0.0.0/8; deny all; }";
    // Locations, and the pattern of the route that could take precedence. A rule refuses the other clients, or the
    // route is left out.
    for (text, pattern) in [
        (
            "location ~ \\.js$ { allow 10.0.0.0/8; deny all; } location ~ \\.min\\.js$ { expires 1d; }".to_owned(),
            "*.min.js",
        ),
        (
            format!("{admin} location ~ \\.php$ {{ add_header X-A b always; fastcgi_pass unix:/run/php.sock; }}"),
            "*.php",
        ),
        (
            format!(
                "{admin} location / {{ allow 192.168.0.0/16; deny all; }} location ~ \\.css$ {{ access_log off; }}"
            ),
            "*.css",
        ),
        (
            "allow 10.0.0.0/8; deny all; location ~ ^/admin { expires 2d; } location ~ \\.css$ { allow all; }"
                .to_owned(),
            "*.css",
        ),
    ] {
        let import = translated(&text);
        let refuses = |rule: &String| rule.contains("unless = { client = '10.0.0.0/8' }; respond = 403");
        assert!(
            !import.toml.contains(&format!("route.\"{pattern}\"")) || rules(&import).iter().any(refuses),
            "{text}: {}",
            import.toml
        );
    }
    // Without an earlier expression, these routes are written.
    for text in [
        "location ~ \\.css$ { expires 1d; }",
        "location ~ \\.php$ { add_header X-A b always; fastcgi_pass unix:/run/php.sock; }",
    ] {
        assert!(translated(text).toml.contains("route.\"*."), "{text}");
    }
}

#[test]
fn refusals_by_parameters_and_targets_have_a_note_if_they_are_weaker() {
    // Texts of tests, and true if a refusal by the test applies to fewer requests.
    for (test, weakens) in [
        ("$arg_debug = 1", true),
        ("$arg_token != secret", true),
        ("$arg_debug", true),
        ("$cookie_debug", true),
        ("$request_uri != /open", true),
        ("$request_uri = /secret", false),
        ("$uri != /open", false),
        ("!-f $document_root/open$request_uri", true),
        ("-f $document_root/secret$request_uri", true),
        ("-f $document_root/secret$uri", false),
        ("$request_uri ~ ^/secret/", false),
        // An unescaped dot also matches a digit, as in 100.1.1.1.
        ("$remote_addr ~ ^10.", true),
        ("$remote_addr ~* ^10\\.1.", true),
        ("$remote_addr !~ ^10.", false),
        ("$remote_addr ~ ^10\\.1\\.", false),
        ("$remote_addr ~ ^10.1.1.1$", false),
    ] {
        let import = translated(&format!("if ({test}) {{ return 403; }}"));
        assert_eq!(rules(&import).len(), 1, "{test}: {}", import.toml);
        assert_eq!(is_any_weakened(&import), weakens, "{test}: {:?}", import.notes);
    }
    for test in ["$request_uri ~ ^/a[^b]+c", "$request_uri ~ ^/a.+c"] {
        let import = translated(&format!("if ({test}) {{ return 403; }}"));
        assert!(rules(&import).is_empty(), "{test}: {}", import.toml);
        assert!(is_any_weakened(&import), "{:?}", import.notes);
    }
}

#[test]
fn inner_expressions_may_begin_in_the_prefix() {
    let inner = |expression: &str| translated(&format!("location /app/ {{ location ~ {expression} {{ deny all; }} }}"));
    assert_eq!(
        rules(&inner("/config")),
        ["path = '~^/app(?:/.*?)?(?:/config)'; respond = 403; resolved = true"]
    );
    for expression in ["(^|/)secret", "^/.*secret", "app/secret", "[^/]+/secret"] {
        let found = rules(&inner(expression));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("unless"), "{found:?}");
    }
    for (refusal, status) in [
        ("return 404;", 404),
        ("return 444;", 444),
        ("deny all; return 404;", 404),
    ] {
        let import = translated(&format!("location /app/ {{ location ~ /config {{ {refusal} }} }}"));
        let expected = format!("path = '~^/app(?:/.*?)?(?:/config)'; respond = {status}; resolved = true");
        assert_eq!(rules(&import), [expected]);
    }
    // The index of a folder is refused, too.
    assert!(rules(&inner("\\.html$"))[0].ends_with("respond = 403; resolved = true"));
    assert!(rules(&inner("\\.secret$"))[0].ends_with("respond = 403"));
}

#[test]
fn refusals_of_scripts_leave_the_front_controller_open() {
    let import = translated(
        "location / { try_files $uri /index.php$is_args$args; } location ~ ^/index\\.php(/|$) { fastcgi_pass \
         unix:/run/php.sock; internal; } location ~ \\.php$ { return 404; }",
    );
    assert!(!import.toml.contains("route.\"*.php\"]"), "{}", import.toml);
    // The index of a folder is still refused, and the front controller is excepted.
    let expected = "path = '*.php'; unless = { path = '~^/index\\\\.php(/|$)' }; respond = 404; resolved = true";
    assert!(rules(&import).contains(&expected.to_owned()), "{:?}", rules(&import));
}

#[test]
fn dots_that_may_be_missing_do_not_hide_names() {
    for expression in ["/\\.?(git|svn)", "/\\.*git", "/\\.{0,1}git"] {
        let import = translated(&format!("location ~ \"{expression}\" {{ deny all; }}"));
        assert_eq!(rules(&import).len(), 1, "{expression} {}", import.toml);
    }
}

#[test]
fn only_translated_responses_open_a_path() {
    let server = |text: &str| {
        translated(&format!(
            "deny all; auth_basic x; auth_basic_user_file /u; location = /a {{ {text} }}"
        ))
    };
    let opens = |import: &Import| import.toml.contains("allow = \"all\"") || import.toml.contains("auth = false");
    let import = server("return 200 ok;");
    assert!(opens(&import), "{}", import.toml);
    let import = server("return 200 $unknown;");
    assert!(!opens(&import), "{}", import.toml);
}

#[test]
fn a_return_of_a_location_does_not_apply_after_a_break() {
    let get = "if ($request_method = GET) { break; }";
    for (location, expected) in [
        (
            format!("location /a/ {{ {get} return 403; }}"),
            "path = '/a/*'; unless = { method = 'GET' }; respond = 403",
        ),
        (
            format!("location = /a {{ {get} return 302 /b; }}"),
            "path = '/a'; unless = { method = 'GET' }; redirect = '/b'; status = 302",
        ),
        (
            format!("location ~ ^/a {{ {get} return 410; }}"),
            "path = '~^/a'; unless = { method = 'GET' }; respond = 410",
        ),
    ] {
        let import = translated(&location);
        assert_eq!(rules(&import), [expected], "{location}: {}", import.toml);
        assert!(!import.toml.contains("deny ="), "{}", import.toml);
        assert!(!is_any_weakened(&import), "{:?}", import.notes);
    }
    // The order applies.
    let import = translated(&format!("location /a/ {{ return 403; {get} }}"));
    has(&import, "deny = \"all\"");
    // Requests after the `break` need access control, so the path is not opened.
    let import = translated(&format!("deny all; location = /a {{ {get} return 302 /b; }}"));
    assert!(!import.toml.contains("allow = \"all\""), "{}", import.toml);
    let import = translated(&format!(
        "deny all; location / {{ allow all; }} location /a/ {{ {get} return 403; }}"
    ));
    has(&import, "route.\"/a/*\"]\ndeny = \"all\"");
    // The exception may apply to more requests than in nginx.
    let import = translated("location /a/ { if ($arg_x = 1) { break; } return 403; }");
    assert!(is_any_weakened(&import), "{:?}", import.notes);
}

#[test]
fn a_file_in_the_folder_of_an_exception_is_refused() {
    for (file, resolved) in [("", ""), ("$uri/readme.txt", "; resolved = true")] {
        let import = translated(&format!(
            "location = /x {{ try_files $uri {file} =404; }} location ~ ^/ {{ return 403; }}"
        ));
        assert_eq!(
            rules(&import),
            [format!("unless = {{ path = '/x' }}; respond = 403{resolved}")],
            "{}",
            import.toml
        );
    }
}

#[test]
fn a_longer_prefix_does_not_override_an_exact_path() {
    let restricted = "{ allow 10.0.0.0/8; deny all; }";
    for (expression, prefix, is_overridden) in [
        ("^/a$", "/a/b/", false),
        ("^/a$", "/ab/", false),
        ("^/a$", "/a", false),
        ("^/(a|b)$", "/b/c/", false),
        ("^/a/", "/a/b/", true),
        ("\\.pdf$", "/a/b/", true),
    ] {
        let import = translated(&format!(
            "location ~ {expression} {restricted} location {prefix} {{ expires 1d; }}"
        ));
        // A rule refuses the other clients where the route of the prefix takes precedence.
        assert_eq!(
            !rules(&import).is_empty(),
            is_overridden,
            "{expression} {prefix}\n{}",
            import.toml
        );
        has(&import, "allow = \"10.0.0.0/8\"");
        let import = translated(&format!(
            "location ~ {expression} {{ auth_basic x; auth_basic_user_file /u; }} location {prefix} {{ expires 1d; }}"
        ));
        assert_eq!(
            is_any_weakened(&import),
            is_overridden,
            "{expression} {prefix}: {:?}",
            import.notes
        );
        has(&import, "auth = { realm = \"x\", file = \"/u\" }");
    }
}
