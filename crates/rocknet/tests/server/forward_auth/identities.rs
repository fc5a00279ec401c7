//! Identities that an authorization service establishes: fields, variables, cookies, logs and caches.

use super::{folder, service, start};
use crate::access::{SERVER, fetch};
use crate::support::Running;
use crate::support::fastcgi::{self, Peer, SOCKET};
use crate::support::upstream::{Next, Upstream, ok, write_to};

over_http3! {
    identities_replace_the_fields_of_clients,
    cookies_of_the_authorization_service_reach_the_client,
}

#[test]
fn identities_replace_the_fields_of_clients() {
    let (service, upstream) = (service(), Upstream::responding_with(ok("x")));
    let keys = format!(
        "{}\nheaders = {{ \"X-User\" = \"{{user}}\" }}\nrule = [{{ header = {{ \"Remote-Groups\" = \"admin\" }}, respond = 200, body = \"forged\" }}]",
        upstream.key()
    );
    let server = start(&service, &keys, "");
    let forged = [
        "Remote-User: root",
        "remote_user: root",
        "REMOTE_GROUPS: admin",
        "Remote-Groups: admin",
        "Remote-Email: root@test",
    ];
    for (cookie, user, groups) in [
        ("Cookie: session=ann", Some("ann"), Some("a,b")),
        ("Cookie: session=nameless", None, None),
    ] {
        let mut fields = forged.to_vec();
        fields.push(cookie);
        for response in fetch(&server, "GET /", &fields, "") {
            assert_eq!((response.status, &*response.text), (200, "x"));
            assert_eq!(response.field("X-User"), user);
        }
        let (query, sent) = (service.last(), upstream.last());
        assert_eq!(query.field("Remote-User"), None);
        assert_eq!((sent.field("Remote-User"), sent.field("Remote-Groups")), (user, groups));
        for name in ["remote_user", "REMOTE_GROUPS", "Remote-Email", "X-Other"] {
            assert_eq!(sent.field(name), None, "{name}");
        }
    }
}

/// As `copy_headers Remote-User>X-App-User` of Caddy is translated.
#[test]
fn a_proxy_sends_a_field_of_the_identity_under_another_name() {
    let (service, upstream) = (service(), Upstream::responding_with(ok("x")));
    let keys = format!(
        "proxy = {{ to = \"{}\", headers = {{ X-App-User = \"{{request.header.Remote-User}}\" }} }}",
        upstream.url()
    );
    let server = start(&service, &keys, "");
    for (cookie, user) in [("Cookie: session=ann", Some("ann")), ("Cookie: session=nameless", None)] {
        let fields = ["X-App-User: root", "Remote-User: root", cookie];
        for response in fetch(&server, "GET /", &fields, "") {
            assert_eq!((response.status, &*response.text), (200, "x"));
        }
        let sent = upstream.last();
        assert_eq!(sent.field("X-App-User").filter(|sent| !sent.is_empty()), user);
    }
}

#[test]
fn cookies_of_the_authorization_service_reach_the_client() {
    let (service, upstream) = (service(), Upstream::responding_with(ok("x")));
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nauth = {{ forward = \"{}\" }}\n\
         [site.default.route.\"/app/*\"]\n{}\n",
        service.url(),
        upstream.key()
    );
    let server = Running::start(folder(), &text);
    // A file, twice because the second response is a prepared one, and an upstream.
    for path in ["/a.txt", "/a.txt", "/app/", "/"] {
        let response = server.fetch(&format!("GET {path}"), &["Cookie: session=renewed"]);
        let cookies = response
            .fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        let cookies: Vec<_> = cookies.map(|(_, value)| value.as_str()).collect();
        assert_eq!(
            (response.status, cookies),
            (200, vec!["session=new; Path=/", "b=2"]),
            "{path}"
        );
        let other = server.fetch(&format!("GET {path}"), &["Cookie: session=ann"]);
        assert_eq!((other.status, other.field("Set-Cookie")), (200, None), "{path}");
    }
}

#[test]
fn responses_are_not_shared_between_identities() {
    let service = service();
    let upstream = Upstream::start(|request, stream| {
        let user = request.field("Remote-User").unwrap_or("nobody");
        let response = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nContent-Length: {}\r\n\r\n{user}",
            user.len()
        );
        write_to(stream, response);
        Next::Keep
    });
    let server = start(&service, &format!("{}\ncache = true", upstream.key()), "");
    for (cookie, expected) in [
        ("session=ann", "ann"),
        ("session=renewed", "bob"),
        ("session=nameless", "nobody"),
        ("session=ann", "ann"),
    ] {
        let response = server.fetch("GET /", &[&format!("Cookie: {cookie}")]);
        assert_eq!(response.text(), expected);
        let status = response.field("Cache-Status").expect("a status");
        assert!(status.contains("fwd=bypass"), "{status}");
    }
}

#[test]
fn responses_of_rules_have_the_cookies_of_the_authorization_service() {
    let service = service();
    let rules = "rule = [{ path = \"/r\", redirect = \"/a.txt\" }, { path = \"/s\", respond = 404 }]";
    let server = start(&service, rules, "");
    for (path, status) in [("/r", 308), ("/s", 404)] {
        let response = server.fetch(&format!("GET {path}"), &["Cookie: session=renewed"]);
        let cookies = response
            .fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        let cookies: Vec<_> = cookies.map(|(_, value)| value.as_str()).collect();
        assert_eq!(
            (response.status, cookies),
            (status, vec!["session=new; Path=/", "b=2"]),
            "{path}"
        );
    }
}

#[test]
fn access_logs_have_the_identity_of_the_authorization_service() {
    let (service, folder) = (service(), folder());
    let log = folder.path("access.log");
    let upstream = Upstream::responding_with(ok("x"));
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nauth = {{ forward = \"{}\" }}\n\
         log = {{ access = \"{}\", format = '{{target}} {{request.header.Remote-Groups}}' }}\n\
         [site.default.route.\"/app/*\"]\n{}\n",
        service.url(),
        log.display(),
        upstream.key()
    );
    let server = Running::start(folder, &text);
    for path in ["/a.txt", "/a.txt", "/app/x", "/none"] {
        server.fetch(&format!("GET {path}"), &["Cookie: session=ann", "Remote-Groups: admin"]);
    }
    let (server, _folder) = server.take();
    server.stop();
    let lines = std::fs::read_to_string(&log).unwrap();
    assert_eq!(lines, "/a.txt a,b\n/a.txt a,b\n/app/x a,b\n/none a,b\n");
}

#[test]
fn applications_get_the_user_and_no_forged_variables() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |request, stream| {
        let names = [
            "REMOTE_USER",
            "AUTH_TYPE",
            "HTTP_REMOTE_USER",
            "HTTP_REMOTE_GROUPS",
            "HTTP_REMOTE_EMAIL",
            // It may be a token for the application, too.
            "HTTP_AUTHORIZATION",
        ];
        let values: Vec<_> = names.iter().map(|name| request.variable(name)).collect();
        let text = format!("Content-Type: text/plain\r\n\r\n{}", values.join("|"));
        fastcgi::write_to(stream, fastcgi::response(text.as_bytes()));
        fastcgi::Next::Keep
    });
    let service = service();
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nfastcgi = \"unix:{SOCKET}\"\nauth = {{ forward = \"{}\" }}\n",
        service.url()
    );
    let server = Running::start(folder, &text);
    let fields = [
        "Cookie: session=ann",
        "Remote_User: root",
        "Remote-Email: root",
        "Remote.Groups: root",
        "Authorization: Bearer token",
    ];
    assert_eq!(server.fetch("GET /", &fields).text(), "ann||ann|a,b||Bearer token");
}

#[test]
fn open_routes_pass_no_forged_identity() {
    let (service, upstream) = (service(), Upstream::responding_with(ok("x")));
    let keys = format!("{}\n[site.default.route.\"/open\"]\nauth = false", upstream.key());
    let server = start(&service, &keys, ", user_field = \"X-Name\"");
    let forged = [
        "Remote-User: root",
        "remote_groups: admin",
        "X.Name: root",
        "X-Name: root",
    ];
    for response in fetch(&server, "GET /open", &forged, "") {
        assert_eq!((response.status, &*response.text), (200, "x"));
        let sent = upstream.last();
        for name in ["Remote-User", "remote_groups", "X.Name", "X-Name"] {
            assert_eq!(sent.field(name), None, "{name}");
        }
    }
    assert_eq!(service.all().len(), 0);
}
