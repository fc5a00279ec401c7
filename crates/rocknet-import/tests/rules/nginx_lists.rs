//! Tests of `allow`, `deny` and `satisfy` of nginx, and of what levels inherit of them.

use rocknet_import::{Language, import};

use crate::support::{access_of, has_note, is_weakened, translated_nginx};

const EVERY_CLIENT: &str = "allow = [\"0.0.0.0/0\", \"::/0\", \"unix\"]";

#[test]
fn passwords_or_addresses_are_translated() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    for (lists, expected) in [
        ("allow 10.0.0.0/8; deny all;", &["allow = \"10.0.0.0/8\""][..]),
        (
            "deny 10.0.0.1; allow 10.0.0.0/8; deny all;",
            &["allow = \"10.0.0.0/8\"", "deny = \"10.0.0.1\""],
        ),
        // Without `deny all`, the other clients need a password, too.
        ("allow 10.0.0.0/8;", &["allow = \"10.0.0.0/8\""]),
        // Every client needs a password, and a denied one too.
        ("deny all;", &["allow = \"all\""]),
        ("deny 10.0.0.1;", &["allow = \"all\""]),
        // Only a denied client needs a password.
        ("allow all;", &[EVERY_CLIENT]),
        ("allow 10.0.0.1; allow all; deny all;", &[EVERY_CLIENT]),
        ("deny 10.0.0.1; allow all;", &[EVERY_CLIENT, "deny = \"10.0.0.1\""]),
        // The exception closes the site.
        ("allow 10.0.0.1; deny 10.0.0.0/8; allow all;", &["deny = \"all\""]),
    ] {
        let import = translated_nginx(&format!("satisfy any; {lists} {auth}"));
        for line in expected.iter().chain(&["satisfy = \"any\""]) {
            assert!(import.toml.contains(line), "{lists}: {line}\n{}", import.toml);
        }
        let count = ["\nallow", "\ndeny"]
            .map(|key| import.toml.matches(key).count())
            .iter()
            .sum::<usize>();
        assert_eq!(count, expected.len(), "{lists}: {}", import.toml);
    }
}

#[test]
fn a_location_may_need_no_password_by_the_lists_of_its_server() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    // Directives of the server and of the location, and the settings of its route.
    for (server, location, expected) in [
        (
            "satisfy any; allow all;",
            auth,
            &[EVERY_CLIENT, "auth = { realm = \"x\", file = \"/u\" }"][..],
        ),
        (
            "satisfy any; deny 10.0.0.1; allow all;",
            auth,
            &[
                EVERY_CLIENT,
                "deny = \"10.0.0.1\"",
                "auth = { realm = \"x\", file = \"/u\" }",
            ],
        ),
        (&*format!("satisfy any; {auth}"), "allow all;", &[EVERY_CLIENT]),
        (
            &format!("allow all; {auth}"),
            "satisfy any;",
            &[EVERY_CLIENT, "satisfy = \"any\""],
        ),
        (
            &format!("satisfy any; allow all; {auth}"),
            "satisfy all;",
            &["allow = \"all\"", "satisfy = \"all\""],
        ),
        (
            &format!("satisfy any; allow all; {auth}"),
            "auth_basic off;",
            &["allow = \"all\"", "auth = false"],
        ),
        // Every client needs a password, also by lists of the server.
        (
            "satisfy any;",
            &format!("deny all; {auth}"),
            &["allow = \"all\"", "auth = { realm = \"x\", file = \"/u\" }"],
        ),
        (
            "satisfy any; deny all;",
            auth,
            &[
                "allow = \"all\"",
                "deny = []",
                "auth = { realm = \"x\", file = \"/u\" }",
            ],
        ),
        // A list without `deny all` makes an exception from the password, too.
        (
            auth,
            "satisfy any; allow 10.0.0.1;",
            &["allow = \"10.0.0.1\"", "satisfy = \"any\""],
        ),
        (
            &format!("satisfy any; {auth}"),
            "allow 10.0.0.1;",
            &["allow = \"10.0.0.1\""],
        ),
        // A denied client of the server needs the password.
        (
            "deny 10.0.0.1; allow 10.0.0.0/8; deny all;",
            &format!("satisfy any; {auth}"),
            &[
                "allow = \"10.0.0.0/8\"",
                "deny = \"10.0.0.1\"",
                "auth = { realm = \"x\", file = \"/u\" }",
                "satisfy = \"any\"",
            ],
        ),
        // The server stays closed, because its password file is not known.
        ("satisfy any; auth_basic x;", "allow all;", &["deny = \"all\""]),
    ] {
        let import = translated_nginx(&format!("{server} location /x/ {{ {location} }}"));
        let (_, route) = import.toml.split_once("route.\"/x/*\"]\n").unwrap();
        let lines: Vec<&str> = route.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, expected, "{server} {location}: {}", import.toml);
    }
}

#[test]
fn a_location_without_lists_has_those_of_its_server() {
    // Directives of the server and of `location /`, and the access control of another location.
    for (server, root, expected) in [
        (
            "deny 203.0.113.5;",
            "allow 10.0.0.0/8; deny all;",
            &["allow = \"all\"", "deny = \"203.0.113.5\""][..],
        ),
        (
            "allow 10.0.0.0/8; deny all;",
            "deny 10.0.0.1; allow all;",
            &["allow = \"10.0.0.0/8\"", "deny = []"],
        ),
        (
            "deny all;",
            "allow 10.0.0.0/8; deny all;",
            &["allow = \"all\"", "deny = \"all\""],
        ),
        ("", "allow 10.0.0.0/8; deny all;", &["allow = \"all\""]),
        // The site becomes one without `allow`.
        (
            "allow 10.0.0.0/8; deny all;",
            "deny all;",
            &["allow = \"10.0.0.0/8\"", "deny = []"],
        ),
        // One list is the same in `location /`, and remains inherited.
        (
            "allow 10.0.0.0/8; deny all;",
            "deny 10.0.0.1; allow 10.0.0.0/8; deny all;",
            &["deny = []"],
        ),
        (
            "deny 203.0.113.5;",
            "deny 203.0.113.5; allow 10.0.0.0/8; deny all;",
            &["allow = \"all\""],
        ),
    ] {
        let import = translated_nginx(&format!(
            "{server} location / {{ {root} }} location /x/ {{ expires 1d; }}"
        ));
        assert_eq!(
            access_of(&import, "route.\"/x/*\"]"),
            expected,
            "{server} {root}: {}",
            import.toml
        );
    }
}

#[test]
fn lists_of_a_level_replace_those_of_the_outer_one() {
    // Directives of the outer and of the inner level, and the access control of the site.
    for (outer, inner, expected) in [
        ("deny all;", "allow 10.0.0.0/8;", &["allow = \"all\""][..]),
        ("deny all;", "allow 10.0.0.0/8; deny all;", &["allow = \"10.0.0.0/8\""]),
        ("deny 10.0.0.1;", "allow all;", &["allow = \"all\""]),
        (
            "allow 10.0.0.0/8; deny all;",
            "deny 10.0.0.1;",
            &["allow = \"all\"", "deny = \"10.0.0.1\""],
        ),
        ("allow 10.0.0.0/8; deny all;", "deny all;", &["deny = \"all\""]),
        ("deny 10.0.0.1;", "", &["deny = \"10.0.0.1\""]),
        // The restriction has no counterpart.
        ("auth_jwt x;", "allow all;", &["deny = \"all\""]),
    ] {
        for text in [
            format!("http {{ {outer} server {{ server_name a.test; {inner} }} }}"),
            format!("server {{ server_name a.test; {outer} location / {{ {inner} }} }}"),
        ] {
            let import = import(Language::Nginx, "nginx.conf", &text).unwrap();
            assert_eq!(
                access_of(&import, "[site.\"a.test\"]"),
                expected,
                "{text}\n{}",
                import.toml
            );
        }
    }
}

#[test]
fn a_closed_location_for_other_paths_closes_no_other_location() {
    // Directives of the server, of `location /` and of another location, and the access control of the latter.
    for (server, root, inner, expected) in [
        ("", "auth_jwt x;", "expires 1d;", &["deny = []"][..]),
        (
            "",
            "auth_jwt x;",
            "allow 10.0.0.0/8; deny all;",
            &["allow = \"10.0.0.0/8\"", "deny = []"],
        ),
        ("", "proxy_pass http://$up;", "expires 1d;", &["deny = []"]),
        ("deny 10.0.0.1;", "auth_jwt x;", "expires 1d;", &["deny = \"10.0.0.1\""]),
        (
            "allow 10.0.0.0/8; deny all;",
            "auth_jwt x;",
            "expires 1d;",
            &["allow = \"10.0.0.0/8\"", "deny = []"],
        ),
        ("", "auth_jwt x;", "auth_jwt x; allow all;", &["deny = \"all\""]),
        // The restriction of the server applies to each location.
        ("auth_jwt x;", "expires 1d;", "allow all;", &["deny = \"all\""]),
        ("auth_jwt x;", "auth_jwt x;", "allow all;", &["deny = \"all\""]),
        ("auth_jwt x;", "allow all;", "expires 1d;", &[]),
    ] {
        let text = format!("{server} location / {{ {root} }} location /x/ {{ {inner} }}");
        let import = translated_nginx(&text);
        assert_eq!(access_of(&import, "[site.\"a.test\"]"), ["deny = \"all\""], "{text}");
        assert_eq!(
            access_of(&import, "route.\"/x/*\"]"),
            expected,
            "{text}\n{}",
            import.toml
        );
    }
    // nginx prefers an expression to prefixes.
    let import = translated_nginx("location ~ ^/ { auth_jwt x; } location /x/ { expires 1d; }");
    assert_eq!(
        access_of(&import, "[site.\"a.test\"]"),
        ["deny = \"all\""],
        "{}",
        import.toml
    );
    assert!(!import.toml.contains("deny = []"), "{}", import.toml);
    // Scripts have their own location, too.
    let import = translated_nginx("location / { auth_jwt x; } location ~ \\.php$ { fastcgi_pass unix:/php; }");
    assert_eq!(access_of(&import, "route.\"*.php\"]"), ["deny = []"], "{}", import.toml);
}

#[test]
fn scripts_have_the_access_control_of_their_server() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    let auth_key = "auth = { realm = \"x\", file = \"/u\" }";
    // Directives of the server, of `location /` and of the location for PHP, and the access control of scripts.
    for (server, root, php, expected) in [
        (
            "allow 10.0.0.0/8; deny all;",
            "allow all;",
            "",
            &["allow = \"10.0.0.0/8\""][..],
        ),
        (auth, "auth_basic off; try_files $uri /index.php;", "", &[auth_key]),
        (auth, "auth_basic off;", "auth_basic off;", &["auth = false"]),
        ("", auth, "", &["auth = false"]),
        (
            "",
            "allow 10.0.0.0/8; deny all;",
            "deny 10.0.0.1;",
            &["allow = \"all\"", "deny = \"10.0.0.1\""],
        ),
        ("deny 10.0.0.1;", "allow all;", "", &["deny = \"10.0.0.1\""]),
        // The scripts inherit the `allow` of the server.
        (
            "allow 10.0.0.0/8; deny all;",
            "deny 10.0.0.1; allow 10.0.0.0/8; deny all;",
            "",
            &["deny = []"],
        ),
        ("deny 10.0.0.1;", "", "allow all;", &["allow = \"all\"", "deny = []"]),
        // The site becomes one without `allow`.
        (
            "allow 10.0.0.0/8; deny all;",
            "deny all;",
            "",
            &["allow = \"10.0.0.0/8\"", "deny = []"],
        ),
        (
            "allow 10.0.0.0/8; deny all;",
            "deny all;",
            "deny 10.0.0.1;",
            &["allow = \"all\"", "deny = \"10.0.0.1\""],
        ),
    ] {
        let php = format!("location ~ \\.php$ {{ {php} fastcgi_pass unix:/x; }}");
        for text in [
            format!("{server} location / {{ {root} }} {php}"),
            format!("{server} {php} location / {{ {root} }}"),
        ] {
            let import = translated_nginx(&text);
            assert_eq!(
                access_of(&import, "route.\"*.php\"]"),
                expected,
                "{text}\n{}",
                import.toml
            );
        }
    }
    // The other scripts are files of `location /`.
    let import = translated_nginx(&format!(
        "location / {{ {auth} }} location ~ ^/index\\.php$ {{ fastcgi_pass unix:/x; }}"
    ));
    assert!(!import.toml.contains("auth = false"), "{}", import.toml);
    // The list of the server is not cancelled for the other scripts, so it applies to these, too.
    for (root, php, is_list_noted, is_root_noted) in [
        ("", "allow 10.0.0.0/8; deny all;", true, false),
        (auth, "allow 10.0.0.0/8; deny all;", false, true),
        ("", "deny 10.0.0.1;", false, false),
    ] {
        let import = translated_nginx(&format!(
            "deny 203.0.113.5; location / {{ {root} }} location ~ ^/index\\.php$ {{ {php} fastcgi_pass unix:/x; }}"
        ));
        assert_eq!(
            (
                has_note(&import, "the lists of the site apply too"),
                is_weakened(&import, "scripts have the access control of")
            ),
            (is_list_noted, is_root_noted),
            "{root} {php}: {:?}",
            import.notes
        );
    }
    // Such a route could take precedence over the location with a password.
    let import = translated_nginx(&format!(
        "location ~ ^/admin {{ {auth} }} allow 10.0.0.0/8; deny all; location / {{ allow all; }} \
         location ~ \\.php$ {{ fastcgi_pass unix:/x; }}"
    ));
    assert!(
        is_weakened(&import, "scripts have the access control of"),
        "{:?}",
        import.notes
    );
}

#[test]
fn scripts_open_no_path_that_an_earlier_expression_restricts() {
    let auth = |file: &str| format!("auth_basic x; auth_basic_user_file {file};");
    for php in ["", "deny 203.0.113.5;"] {
        let import = translated_nginx(&format!(
            "location / {{ {} }} location ~ ^/admin {{ {} }} location ~ \\.php$ {{ {php} fastcgi_pass unix:/x; }}",
            auth("/u"),
            auth("/admins")
        ));
        assert!(!import.toml.contains("auth = false"), "{php}\n{}", import.toml);
        let message = "an earlier expression restricts access too";
        let is_route_added = import.toml.contains("route.\"*.php\"]");
        assert_eq!(
            (is_route_added, is_weakened(&import, message)),
            (!php.is_empty(), !php.is_empty()),
            "{php}: {:?}",
            import.notes
        );
    }
}
