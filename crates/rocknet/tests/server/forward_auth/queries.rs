//! Queries to an authorization service: their fields, and the routes that send them.

use super::{service, start};
use crate::access::{SERVER, fetch};
use crate::support::upstream::{Upstream, ok};
use crate::support::{Folder, Running};

#[test]
fn queries_have_neither_body_nor_conditions() {
    let (service, upstream) = (service(), Upstream::responding_with(ok("done")));
    let server = start(&service, &upstream.key(), "");
    let fields = [
        "Cookie: session=ann",
        "Content-Type: text/plain",
        "If-None-Match: \"x\"",
        "Range: bytes=0-1",
        "X-Forwarded-Uri: /forged",
        "X_Forwarded_Uri: /forged",
        "X-Original-URL: http://forged/",
        "X-Forwarded-Host: forged",
        "X-Forwarded-For: 192.0.2.1",
        "X-Real-IP: 192.0.2.1",
    ];
    for response in fetch(&server, "POST /public/../form", &fields, "the body") {
        assert_eq!((response.status, &*response.text), (200, "done"));
        let (query, sent) = (service.last(), upstream.last());
        for name in [
            "Content-Type",
            "Content-Length",
            "If-None-Match",
            "Range",
            "X_Forwarded_Uri",
        ] {
            assert_eq!(query.field(name), None, "{name}");
        }
        assert_eq!(query.field("X-Forwarded-Method"), Some("POST"));
        assert_eq!(query.field("X-Forwarded-Uri"), Some("/form"));
        assert!(query.field("X-Original-URL").is_some_and(|url| url.ends_with("/form")));
        assert_ne!(query.field("X-Forwarded-Host"), Some("forged"));
        assert_eq!(query.field("X-Forwarded-For"), Some("127.0.0.1"));
        assert_eq!(query.field("X-Real-IP"), Some("127.0.0.1"));
        assert_eq!(
            (&sent.content[..], sent.field("Range")),
            (&b"the body"[..], Some("bytes=0-1"))
        );
    }
}

#[test]
fn each_route_of_a_request_queries_its_authorization_service() {
    let (open, strict) = (service(), service());
    let folder = Folder::with(&[("www/index.html", "home"), ("www/in/a.txt", "inside")]);
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nauth = {{ forward = \"{}\" }}\n\
         rule = [{{ path = \"/other\", rewrite = \"/in/a.txt\" }}]\n\
         [site.default.route.\"/in/*\"]\nauth = {{ forward = \"{}\" }}\n",
        open.url(),
        strict.url()
    );
    let server = Running::start(folder, &text);
    for response in fetch(&server, "GET /other", &["Cookie: session=ann"], "") {
        assert_eq!((response.status, &*response.text), (200, "inside"));
    }
    assert_eq!((open.all().len(), strict.all().len()), (2, 2));
    assert_eq!(strict.last().field("X-Forwarded-Uri"), Some("/other"));
}

#[test]
fn routes_with_one_authorization_service_query_it_once() {
    let service = service();
    let folder = Folder::with(&[
        ("www/in/index.html", "inside"),
        ("www/other/a.txt", "other"),
        ("www/deep/x.txt", "deep"),
    ]);
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nfallback = \"/in/index.html\"\n\
         auth = {{ forward = \"{}\" }}\nrule = [{{ path = \"/old\", rewrite = \"/other/a.txt\" }}]\n\
         [site.default.route.\"/in/*\"]\ncompress = false\n\
         [site.default.route.\"/other/*\"]\ndeny = \"192.0.2.1\"\n",
        service.url()
    );
    let server = Running::start(folder, &text);
    let cookie = "Cookie: session=renewed";
    for (path, expected) in [
        ("/deep/x.txt", "deep"),
        ("/in/", "inside"),
        ("/none", "inside"),
        ("/old", "other"),
        ("/old", "other"),
    ] {
        let before = service.all().len();
        let response = server.fetch(&format!("GET {path}"), &[cookie]);
        assert_eq!((response.status, &*response.text()), (200, expected), "{path}");
        assert_eq!(service.all().len(), before + 1, "{path}");
        let cookies = response
            .fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        assert_eq!(cookies.count(), 2, "{path}");
    }
    assert_eq!(server.fetch("GET /old", &["Cookie: status=500"]).status, 500);
}

#[test]
fn the_authorization_service_gets_the_query_of_a_target_without_a_path() {
    let service = service();
    let server = start(&service, "", "");
    let mut client = server.connect();
    client.send("GET http://localhost?secret=1 HTTP/1.1\r\nHost: localhost\r\nCookie: session=ann\r\n\r\n");
    assert_eq!(client.response().text(), "home");
    let seen = service.last();
    assert_eq!(seen.field("X-Forwarded-Uri"), Some("/?secret=1"));
    assert_eq!(seen.field("X-Original-URL"), Some("http://localhost/?secret=1"));
}

#[test]
fn clients_remove_no_field_of_the_server() {
    let (service, upstream) = (service(), Upstream::responding_with(ok("x")));
    let server = start(&service, &upstream.key(), "");
    let fields = [
        "Cookie: session=ann",
        "Connection: X-Forwarded-Uri, X-Original-URI, Remote-Groups, X-Hop",
        "X-Hop: 1",
    ];
    assert_eq!(server.fetch("GET /admin", &fields).status, 200);
    let (query, sent) = (service.last(), upstream.last());
    assert_eq!(query.field("X-Forwarded-Uri"), Some("/admin"));
    assert_eq!(query.field("X-Original-URI"), Some("/admin"));
    assert_eq!(sent.field("Remote-Groups"), Some("a,b"));
    assert_eq!((query.field("X-Hop"), sent.field("X-Hop")), (None, None));
}
