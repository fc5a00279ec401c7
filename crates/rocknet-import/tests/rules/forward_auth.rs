//! Tests of `auth_request` of nginx, as the documentation of authorization services writes it.

use rocknet_import::{Import, Language, import};

use crate::support::{has, has_note, is_any_weakened};

fn translated(server: &str) -> Import {
    let text = format!("server {{\nserver_name a.test;\n{server}\n}}\nupstream two {{ server a:1; server b:1; }}\n");
    import(Language::Nginx, "site.conf", &text).expect("a translation")
}

const OAUTH2_PROXY: &str = r#"
location /oauth2/ {
    proxy_pass http://127.0.0.1:4180;
    proxy_set_header Host $host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Auth-Request-Redirect $request_uri;
}
location = /oauth2/auth {
    proxy_pass http://127.0.0.1:4180;
    proxy_set_header Host $host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Forwarded-Uri $request_uri;
    proxy_set_header Content-Length "";
    proxy_pass_request_body off;
}
location / {
    auth_request /oauth2/auth;
    error_page 401 = @oauth2_signin;
    auth_request_set $user $upstream_http_x_auth_request_user;
    auth_request_set $email $upstream_http_x_auth_request_email;
    proxy_set_header X-User $user;
    proxy_set_header X-Email $email;
    auth_request_set $token $upstream_http_x_auth_request_access_token;
    proxy_set_header X-Access-Token $token;
    auth_request_set $auth_cookie $upstream_http_set_cookie;
    add_header Set-Cookie $auth_cookie;
    auth_request_set $auth_cookie_name_upstream_1 $upstream_cookie_auth_cookie_name_1;
    if ($auth_cookie ~* "(; .*)") {
        set $auth_cookie_name_0 $auth_cookie;
        set $auth_cookie_name_1 "auth_cookie_name_1=$auth_cookie_name_upstream_1$1";
    }
    if ($auth_cookie_name_upstream_1) {
        add_header Set-Cookie $auth_cookie_name_0;
        add_header Set-Cookie $auth_cookie_name_1;
    }
    proxy_pass http://127.0.0.1:3000/;
}
location @oauth2_signin { return 302 /oauth2/sign_in?rd=$scheme://$host$request_uri; }
"#;

const AUTHELIA: &str = r#"
set $upstream_authelia http://127.0.0.1:9091/api/authz/auth-request;
location /internal/authelia/authz {
    internal;
    proxy_pass $upstream_authelia;
    proxy_set_header X-Original-Method $request_method;
    proxy_set_header X-Original-URL $scheme://$http_host$request_uri;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header Content-Length "";
    proxy_set_header Connection "";
    proxy_pass_request_body off;
    proxy_next_upstream error timeout invalid_header http_500 http_502 http_503;
    proxy_redirect http:// $scheme://;
    proxy_http_version 1.1;
    proxy_cache_bypass $cookie_session;
    proxy_no_cache $cookie_session;
    proxy_buffers 4 32k;
    client_body_buffer_size 128k;
    send_timeout 5m;
    proxy_read_timeout 240;
}
location / {
    auth_request /internal/authelia/authz;
    auth_request_set $user $upstream_http_remote_user;
    auth_request_set $groups $upstream_http_remote_groups;
    proxy_set_header Remote-User $user;
    proxy_set_header Remote-Groups $groups;
    auth_request_set $redirection_url $upstream_http_location;
    error_page 401 =302 $redirection_url;
    proxy_set_header Host $host;
    proxy_pass http://127.0.0.1:3000;
}
"#;

const AUTHENTIK: &str = r#"
location / {
    proxy_pass http://127.0.0.1:3000;
    proxy_set_header Host $host;
    auth_request /outpost.goauthentik.io/auth/nginx;
    error_page 401 = @goauthentik_proxy_signin;
    auth_request_set $auth_cookie $upstream_http_set_cookie;
    add_header Set-Cookie $auth_cookie;
    auth_request_set $authentik_username $upstream_http_x_authentik_username;
    auth_request_set $authentik_groups $upstream_http_x_authentik_groups;
    proxy_set_header X-authentik-username $authentik_username;
    proxy_set_header X-authentik-groups $authentik_groups;
}
location /outpost.goauthentik.io {
    proxy_pass http://127.0.0.1:9000/outpost.goauthentik.io;
    proxy_set_header Host $host;
    proxy_set_header X-Original-URL $scheme://$http_host$request_uri;
    add_header Set-Cookie $auth_cookie;
    auth_request_set $auth_cookie $upstream_http_set_cookie;
    proxy_pass_request_body off;
    proxy_set_header Content-Length "";
}
location @goauthentik_proxy_signin {
    internal;
    add_header Set-Cookie $auth_cookie;
    return 302 /outpost.goauthentik.io/start?rd=$scheme://$http_host$request_uri;
}
"#;

#[test]
fn documented_configurations_are_translated() {
    for (server, auth, rest) in [
        (
            OAUTH2_PROXY,
            "auth = { forward = \"http://127.0.0.1:4180/oauth2/auth\", headers = [\"X-Auth-Request-Access-Token\", \
             \"X-Auth-Request-Email\", \"X-Auth-Request-User\"], user_field = \"X-Auth-Request-User\", sign_in = \
             \"/oauth2/sign_in?rd={scheme}://{host}{target}\" }",
            "X-User = \"{request.header.X-Auth-Request-User}\"",
        ),
        (
            AUTHELIA,
            "auth = { forward = \"http://127.0.0.1:9091/api/authz/auth-request\", headers = [\"Remote-Groups\", \
             \"Remote-User\"], user_field = \"Remote-User\", sign_in = \"{location}\" }",
            "internal = true",
        ),
        (
            AUTHENTIK,
            "auth = { forward = \"http://127.0.0.1:9000/outpost.goauthentik.io/auth/nginx\", headers = \
             [\"X-Authentik-Groups\", \"X-Authentik-Username\"], user_field = \"X-Authentik-Username\", sign_in = \
             \"/outpost.goauthentik.io/start?rd={scheme}://{authority}{target}\" }",
            "route.\"/outpost.goauthentik.io/*\"]\nproxy = { to = \"http://127.0.0.1:9000\"",
        ),
    ] {
        let import = translated(server);
        has(&import, auth);
        has(&import, rest);
        assert!(!import.toml.contains("deny = \"all\""), "{}", import.toml);
        assert!(!is_any_weakened(&import), "{:?}", import.notes);
        // The pages of the service are open.
        let open = server.contains("/oauth2/") || server.contains("goauthentik");
        assert_eq!(
            import.toml.contains("auth = false"),
            open || server.contains("internal;"),
            "{}",
            import.toml
        );
    }
}

#[test]
fn an_authorization_service_without_a_counterpart_closes_the_place() {
    let verify = "location = /verify { internal; proxy_pass http://a:1/verify; }";
    for (server, is_closed) in [
        (format!("auth_request /verify; {verify}"), false),
        ("auth_request /verify;".to_owned(), true),
        (
            "auth_request /verify; location = /verify { proxy_pass http://$host:1/; }".to_owned(),
            true,
        ),
        (
            "auth_request /verify; location = /verify { proxy_pass http://two; }".to_owned(),
            true,
        ),
        (
            "auth_request /verify; location = /verify { proxy_pass http://a; if ($a) { return 401; } }".to_owned(),
            true,
        ),
        (
            "auth_request /verify; location = /verify { return 204; }".to_owned(),
            true,
        ),
        (
            "auth_request /verify; set $a http://a; if ($b) { set $a http://b; } location = /verify { proxy_pass $a; }"
                .to_owned(),
            true,
        ),
        (
            format!("auth_request /verify; {verify} location ~ verify {{ proxy_pass http://b; }}"),
            false,
        ),
        (
            "auth_request /verify; location /verify { proxy_pass http://a; } location ~ y$ { proxy_pass http://b; }"
                .to_owned(),
            true,
        ),
        // Both have to apply.
        (
            format!("auth_request /verify; {verify} auth_basic x; auth_basic_user_file /u;"),
            true,
        ),
        (
            format!("auth_request /verify; {verify} location /a/ {{ auth_basic x; auth_basic_user_file /u; }}"),
            true,
        ),
        (
            format!("auth_basic x; auth_basic_user_file /u; {verify} location /a/ {{ auth_request /verify; }}"),
            true,
        ),
    ] {
        let import = translated(&server);
        assert_eq!(
            import.toml.contains("deny = \"all\""),
            is_closed,
            "{server}\n{}",
            import.toml
        );
    }
    // Turning off passwords leaves the service in effect, and vice versa.
    for server in [
        format!("auth_request /verify; {verify} location /a/ {{ auth_basic off; expires 1d; }}"),
        format!("auth_basic x; auth_basic_user_file /u; {verify} location /a/ {{ auth_request off; expires 1d; }}"),
    ] {
        let import = translated(&server);
        let route = import.toml.split_once("route.\"/a/*\"]").expect("a route").1;
        let route = route.split_once("\n\n").map_or(route, |(route, _)| route);
        assert!(!route.contains("auth = false"), "{}", import.toml);
    }
    // Without an authorization service, a field of the client does not become an identity.
    let import = translated(
        "auth_request_set $user $upstream_http_x_user; location / { proxy_set_header X-User $user; proxy_pass http://a; }",
    );
    assert!(!import.toml.contains("request.header"), "{}", import.toml);
}

#[test]
fn pages_for_signing_in_become_redirects() {
    let server = |page: &str, more: &str| {
        translated(&format!(
            "auth_request /verify; error_page {page}; location = /verify {{ proxy_pass http://a:1; }} {more}"
        ))
    };
    let sign_in = |import: &Import| {
        let (_, rest) = import.toml.split_once("sign_in = \"")?;
        rest.split_once('"').map(|(page, _)| page.to_owned())
    };
    for (page, more, expected, differs) in [
        (
            "401 =302 https://l.test/?to=$request_uri",
            "",
            Some("https://l.test/?to={target}"),
            false,
        ),
        ("401 https://l.test/", "", Some("https://l.test/"), false),
        (
            "401 403 = @l",
            "location @l { return 302 $scheme://$host/login; }",
            Some("/login"),
            false,
        ),
        ("401 = @l", "location @l { proxy_pass http://a; }", None, true),
        ("401 = /login", "", Some("/login"), true),
        (
            "401 =403 /o/in",
            "location /o/ { proxy_set_header X-Auth-Request-Redirect $request_uri; proxy_pass http://a; }",
            Some("/o/in?rd={target}"),
            true,
        ),
        ("401 /401.html", "", None, false),
        ("401 =302 $unknown", "", None, true),
    ] {
        let import = server(page, more);
        assert_eq!(sign_in(&import).as_deref(), expected, "{page}: {}", import.toml);
        let has_difference = has_note(&import, "redirected to the page") || has_note(&import, "write `auth.sign_in`");
        assert_eq!(has_difference, differs, "{page}: {:?}", import.notes);
    }
    has(&server("401 /401.html", ""), "errors.\"401\" = \"/401.html\"");
}

#[test]
fn longer_paths_of_an_internal_authorization_service_stay_internal() {
    let server = "auth_request /auth; location /auth { internal; proxy_pass http://a:1; }";
    let import = translated(server);
    has(&import, "route.\"~^/auth\"]\ninternal = true");
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
    let import = translated(&format!("{server} location /auth-data/ {{ expires 1d; }}"));
    has(&import, "route.\"/auth/*\"]\ninternal = true");
    assert!(is_any_weakened(&import), "{:?}", import.notes);
}

#[test]
fn fields_that_only_nginx_sends_are_noted() {
    for (field, is_noted) in [
        ("proxy_set_header X-Required-Group admins;", true),
        ("proxy_set_header X-Bypass \"\";", true),
        ("proxy_set_header X-Real-IP 127.0.0.1;", true),
        ("proxy_set_header X-Original-Method GET;", true),
        ("proxy_pass_request_headers off;", true),
        ("proxy_pass_request_headers on;", false),
        (
            "proxy_set_header X-Real-IP $remote_addr; proxy_set_header Content-Length \"\";",
            false,
        ),
        ("proxy_set_header Cookie $http_cookie;", false),
    ] {
        let in_location = format!("auth_request /v; location = /v {{ internal; {field} proxy_pass http://a:1; }}");
        let inherited = format!("auth_request /v; {field} location = /v {{ internal; proxy_pass http://a:1; }}");
        for server in [in_location, inherited] {
            let import = translated(&server);
            assert_eq!(is_any_weakened(&import), is_noted, "{server}\n{:?}", import.notes);
        }
        let server =
            "server { server_name a.test; auth_request /v; location = /v { internal; proxy_pass http://a:1; } }";
        let text = format!("http {{ {field} {server} }}");
        let import = import(Language::Nginx, "nginx.conf", &text).expect("a translation");
        assert_eq!(is_any_weakened(&import), is_noted, "{text}\n{:?}", import.notes);
    }
}

#[test]
fn a_variable_whose_name_begins_an_address_is_kept() {
    let import = translated(
        "set $to http://b:1; set $to_auth http://a:1; auth_request /v;
         location = /v { internal; proxy_pass $to_auth; } location / { proxy_pass $to; }",
    );
    assert!(has_note(&import, "") && import.notes.iter().any(|note| note.directive.starts_with("set $to ")));
    assert!(
        !import
            .notes
            .iter()
            .any(|note| note.directive.starts_with("set $to_auth"))
    );
}

#[test]
fn the_page_of_a_server_belongs_to_the_query_of_a_location() {
    let server = |more: &str| {
        translated(&format!(
            "error_page 401 =302 https://l.test/; location = /verify {{ internal; proxy_pass http://a:1; }} location /a/ {{ \
             auth_request /verify; }} {more}"
        ))
    };
    let has_page_note = |import: &Import| import.notes.iter().any(|note| note.directive.starts_with("error_page"));
    let import = server("");
    has(&import, "sign_in = \"https://l.test/\"");
    assert!(!has_page_note(&import), "{:?}", import.notes);
    // nginx redirects clients without a password, too.
    let import = server("location /b/ { auth_basic x; auth_basic_user_file /u; }");
    assert!(has_page_note(&import), "{:?}", import.notes);
}
