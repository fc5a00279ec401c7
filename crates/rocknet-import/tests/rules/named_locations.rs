//! Tests of the named location to which `try_files` of nginx leads.

use rocknet_import::{Language, import};

use crate::support::translated_nginx;

#[test]
fn a_named_location_opens_no_place() {
    const VERIFY: &str = "location = /verify { internal; proxy_pass http://a:1/verify; }
        location = /other { internal; proxy_pass http://a:1/other; }";
    const PASSWORD: &str = "auth_basic x; auth_basic_user_file /u;";
    for (place, named, has_auth, is_closed) in [
        ("auth_request /verify;", "auth_request off;", true, false),
        ("auth_request /verify;", "auth_request /verify;", true, false),
        ("auth_request /verify;", "auth_request /other;", false, true),
        ("auth_request /verify;", PASSWORD, false, true),
        ("auth_request /verify;", "allow all; satisfy any;", true, false),
        ("auth_request /verify;", "deny 10.0.0.1;", false, true),
        ("", "auth_request /verify;", true, false),
        ("auth_request off;", "auth_request /verify;", true, false),
        ("", PASSWORD, true, false),
        (PASSWORD, "auth_basic off;", true, false),
        (PASSWORD, PASSWORD, true, false),
        (PASSWORD, "auth_basic x; auth_basic_user_file /others;", false, true),
        (PASSWORD, "auth_request /verify;", false, true),
        ("deny all;", "allow all;", false, true),
        (
            "allow 10.0.0.0/8; deny all;",
            "allow 192.168.0.0/16; deny all;",
            false,
            true,
        ),
        ("", "deny all;", false, true),
    ] {
        let location = |place: &str| {
            format!("location / {{ {place} try_files $uri @app; }} location @app {{ {named} proxy_pass http://b; }}")
        };
        let mut servers = vec![format!("{} {VERIFY}", location(place))];
        // The location inherits what the server contains.
        if !place.is_empty() && !place.ends_with("off;") {
            servers.push(format!("{place} {} {VERIFY}", location("")));
        }
        for server in servers {
            let import = translated_nginx(&server);
            let toml = &import.toml;
            assert_eq!(toml.contains("deny = \"all\""), is_closed, "{server}\n{toml}");
            let site = toml.split("route.").next().unwrap_or_default();
            assert!(!site.contains("auth = false"), "{server}\n{toml}");
            assert!(!has_auth || site.contains("auth = {"), "{server}\n{toml}");
        }
    }
}

#[test]
fn a_named_location_inherits_the_access_control_of_its_server() {
    const AUTH: &str = "auth_basic x; auth_basic_user_file /u;";
    const LISTS: &str = "allow 10.0.0.0/8; deny all;";
    const APP: &str = "location @app { proxy_pass http://b; }";
    let auth = "auth = { realm = \"x\", file = \"/u\" }";
    let lists = "allow = \"10.0.0.0/8\"";
    // A server, and the access control of its place `/public/`.
    for (server, expected) in [
        (
            format!("{LISTS} location /public/ {{ allow all; try_files $uri @app; }} {APP}"),
            &[lists][..],
        ),
        (
            format!("{AUTH} location /public/ {{ auth_basic off; try_files $uri @app; }} {APP}"),
            &[auth],
        ),
        (
            format!("{LISTS} {AUTH} location /public/ {{ allow all; try_files $uri @app; }} {APP}"),
            &["allow = \"all\"", "deny = \"all\""],
        ),
        // Lists of the named location replace those of the server, and the place keeps its own.
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} \
                 location @app {{ allow all; proxy_pass http://b; }}"
            ),
            &["allow = \"all\""],
        ),
        (
            format!("{LISTS} location /public/ {{ deny 10.0.0.1; try_files $uri @app; }} {APP}"),
            &["allow = \"all\"", "deny = \"all\""],
        ),
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} \
                 location @app {{ {AUTH} proxy_pass http://b; }}"
            ),
            &[lists, auth],
        ),
        // nginx leaves the named location before its access control, for a path that the place admits, too.
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} \
                 location @app {{ rewrite ^/(.*)$ /index.php?q=$1 last; }} location / {{ allow all; }}"
            ),
            &["allow = \"all\""],
        ),
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} \
                 location @app {{ return 302 https://b.test/; }}"
            ),
            &["allow = \"all\""],
        ),
        // The target has the lists of the server.
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} \
                 location @app {{ rewrite ^ /index.php last; }}"
            ),
            &[lists],
        ),
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} location @app {{ rewrite ^ /index.php \
                 last; }} location / {{ allow all; }} location ~ \\.php$ {{ fastcgi_pass unix:/x; }}"
            ),
            &[lists],
        ),
        // nginx stays in these.
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} \
                 location @app {{ rewrite ^ /index.php break; }} location / {{ allow all; }}"
            ),
            &[lists],
        ),
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} \
                 location @app {{ rewrite ^/a /index.php last; }} location / {{ allow all; }}"
            ),
            &[lists],
        ),
        (
            format!(
                "{LISTS} location /public/ {{ allow all; try_files $uri @app; }} location @app {{ if ($arg_a) {{ break; \
                 }} return 302 https://b.test/; }} location / {{ allow all; }}"
            ),
            &[lists],
        ),
    ] {
        let import = translated_nginx(&server);
        let (_, route) = import.toml.split_once("route.\"/public/*\"]\n").unwrap();
        let keys = ["allow", "deny", "auth", "satisfy"];
        let is_access = |line: &&str| keys.iter().any(|key| line.starts_with(&format!("{key} = ")));
        let found: Vec<&str> = route.lines().filter(is_access).collect();
        assert_eq!(found, expected, "{server}\n{}", import.toml);
    }
    // The server is the place.
    for (server, expected) in [
        (
            format!(
                "satisfy any; deny 10.0.0.1; {LISTS} {AUTH} try_files $uri @app; \
                 location @app {{ auth_basic off; proxy_pass http://b; }}"
            ),
            &["deny = \"all\"", auth, "satisfy = \"any\""][..],
        ),
        (
            format!(
                "satisfy any; allow all; {AUTH} try_files $uri @app; \
                 location @app {{ allow 10.0.0.1; proxy_pass http://b; }}"
            ),
            &["allow = \"10.0.0.1\"", auth, "satisfy = \"any\""],
        ),
        (
            format!("satisfy all; try_files $uri @app; location @app {{ {LISTS} {AUTH} proxy_pass http://b; }}"),
            &[lists, auth],
        ),
    ] {
        let text = format!("http {{ satisfy any; server {{ server_name a.test; {server} }} }}");
        let import = import(Language::Nginx, "nginx.conf", &text).expect("a translation");
        let keys = ["allow", "deny", "auth", "satisfy"];
        let is_access = |line: &&str| keys.iter().any(|key| line.starts_with(&format!("{key} = ")));
        let found: Vec<&str> = import.toml.lines().filter(is_access).collect();
        assert_eq!(found, expected, "{server}\n{}", import.toml);
    }
}
