//! Server push and Early Hints: the resources of a page are pushed once, or announced to clients that disable push.

use h2::Reason;
use h2::client::Builder;
use http::StatusCode;

use super::support::handlers::Deferred;
use super::support::http2::Http2;
use super::support::running::{mount, site};
use super::support::{Folder, Running};
use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet::snapshot::Mount;
use rocknet_proto::status::Status;

const SERVER: &str = "[server]\nworkers = 1\nh2c = true\nevents = { wait = \"20ms\", connections = 16 }\n";
const PUSH: &str = "push = { \"/\" = [\"/style.css\", \"/app.js\"], \"/blog/*\" = [\"/style.css\", \"/blog.css\"], \
                    \"/odd.html\" = [\"/missing.css\", \"/huge.bin\", \"/a b.js\"], \"/waits/*\" = \"/app.js\" }";

fn text(push: &str) -> String {
    format!("{SERVER}{}", site(push))
}

fn start(mounts: Vec<Mount>) -> Running {
    let folder = Folder::with(&[
        ("www/index.html", "page"),
        ("www/blog/index.html", "blog"),
        ("www/odd.html", "odd"),
        ("www/app.js", "app"),
        ("www/blog.css", "blog style"),
        ("www/a b.js", "ab"),
    ]);
    folder.write("www/style.css", "body { color: black }\n".repeat(100));
    folder.write("www/huge.bin", vec![0; 600 * 1024]);
    Running::start_with(folder, &text(PUSH), mounts)
}

fn without_push() -> Builder {
    let mut builder = Builder::new();
    builder.enable_push(false);
    builder
}

/// Sends requests one after the other on one connection. Each has a path, and the paths that the server must push with
/// its response.
fn check(server: &Running, builder: &Builder, requests: &[(&str, &[&str])]) {
    let mut client = Http2::with(server.address(), builder);
    for (path, promised) in requests {
        let page = client.page(client.request("GET", path));
        assert_eq!(page.promised(), *promised, "{path} of {requests:?}");
        assert_eq!(page.hints, [], "{path}");
        assert!(page.response.status.is_success(), "{path}: {}", page.response.status);
    }
}

#[test]
fn the_resources_of_a_page_are_pushed() {
    let server = start(Vec::new());
    // The first round loads the files from disk, the second from the cache.
    for _ in 0..2 {
        let mut client = Http2::to(server.address());
        let page = client.page(client.request("GET", "/"));
        assert_eq!(page.response.content, b"page");
        assert_eq!(page.promised(), ["/style.css", "/app.js"]);
        for (pushed, expected) in page
            .pushed
            .iter()
            .zip(["body { color: black }\n".repeat(100), "app".into()])
        {
            let uri = pushed.request.uri();
            assert_eq!(
                uri.authority().map(|authority| authority.as_str()),
                Some(&*server.address().to_string())
            );
            assert_eq!(
                (uri.scheme_str(), pushed.request.method().as_str()),
                (Some("http"), "GET")
            );
            let response = pushed.response.as_ref().expect("a response");
            assert_eq!(
                (response.status, &*response.content),
                (StatusCode::OK, expected.as_bytes())
            );
            assert!(response.fields.contains_key("etag"));
        }
    }
}

#[test]
fn no_resource_is_pushed_twice_or_to_clients_that_have_it() {
    let server = start(Vec::new());
    let default = Builder::new();
    for incoming in [
        &[
            ("/", &["/style.css", "/app.js"][..]),
            ("/", &[]),
            ("/blog/", &["/blog.css"]),
            ("/blog/x/../", &[]),
        ][..],
        // Resources that the client has requested itself are not pushed.
        &[("/blog/", &["/style.css", "/blog.css"]), ("/app.js", &[]), ("/", &[])],
        &[("/?query", &["/style.css", "/app.js"])],
    ] {
        check(&server, &default, incoming);
    }
    let head = server.connect().fetch("HEAD /", &[]);
    let tag = head.field("ETag").expect("a tag").to_owned();
    for (method, field, value) in [
        ("GET", "if-none-match", &*tag),
        ("GET", "if-none-match", "\"other\""),
        ("GET", "if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("GET", "range", "bytes=0-1"),
        ("HEAD", "accept", "*/*"),
    ] {
        for builder in [Builder::new(), without_push()] {
            let mut client = Http2::with(server.address(), &builder);
            let page = client.page(client.request(method, "/").header(field, value));
            assert_eq!(
                (page.pushed.len(), page.hints.len()),
                (0, 0),
                "{method} {field}: {value}"
            );
        }
    }
}

#[test]
fn a_client_without_pushes_gets_early_hints_once() {
    let server = start(Vec::new());
    let link = "</style.css>; rel=preload; as=style, </app.js>; rel=preload; as=script";
    for _ in 0..2 {
        let mut client = Http2::with(server.address(), &without_push());
        for hints in [vec![(103, link.to_owned())], vec![]] {
            let page = client.page(client.request("GET", "/"));
            assert_eq!((page.hints, page.pushed.len()), (hints, 0));
            assert_eq!(page.response.content, b"page");
        }
        let page = client.page(client.request("GET", "/blog/"));
        assert_eq!(page.hints.len(), 1, "only the file that is new must be announced");
    }
}

#[test]
fn missing_or_large_resources_are_cancelled() {
    let server = start(Vec::new());
    let mut client = Http2::to(server.address());
    let page = client.page(client.request("GET", "/odd.html"));
    assert_eq!(page.response.content, b"odd");
    assert_eq!(page.promised(), ["/missing.css", "/huge.bin", "/a%20b.js"]);
    let reasons: Vec<_> = page
        .pushed
        .iter()
        .map(|pushed| pushed.response.as_ref().err().and_then(h2::Error::reason))
        .collect();
    assert_eq!(reasons, [Some(Reason::CANCEL), Some(Reason::CANCEL), None]);
    assert_eq!(client.get("/app.js").content, b"app");
}

#[test]
fn the_client_limits_the_number_of_pushes() {
    let server = start(Vec::new());
    let mut one = Builder::new();
    one.max_concurrent_streams(1);
    check(&server, &one, &[("/", &["/style.css"])]);
    let mut none = Builder::new();
    none.max_concurrent_streams(0);
    let mut client = Http2::with(server.address(), &none);
    let page = client.page(client.request("GET", "/"));
    assert_eq!(
        (page.pushed.len(), page.hints.len()),
        (0, 1),
        "the resources must be announced by Early Hints"
    );
}

/// Responds with these Link header fields and this status.
struct Links(&'static [&'static str], Status);

impl Handler for Links {
    fn handle(&self, _: Exchange) -> HandlerFuture {
        let response = Response::new(self.1).body("made");
        let response = self
            .0
            .iter()
            .fold(response, |response, link| response.with("Link", *link));
        respond_with(async move { response })
    }
}

#[test]
fn link_fields_of_handlers_are_pushed() {
    let links = &[
        "</app.js>; rel=preload; as=script, </style.css>; rel=preload; nopush",
        "</blog.css>; rel=preload, <//evil.test/x>; rel=preload, <https://evil.test/>; rel=preload, </x>; rel=next",
        "</bad path>; rel=preload, </odd.html?a=b>; rel=preload",
    ];
    let server = start(vec![
        mount("/made/", Links(links, Status::OK)),
        mount("/blog/made/", Links(links, Status::OK)),
        mount("/failed/", Links(links, Status::NOT_FOUND)),
    ]);
    let default = Builder::new();
    check(
        &server,
        &default,
        &[("/made/", &["/app.js", "/blog.css", "/odd.html?a=b"]), ("/made/", &[])],
    );
    check(
        &server,
        &default,
        &[("/blog/made/", &["/style.css", "/blog.css", "/app.js", "/odd.html?a=b"])],
    );
    let mut client = Http2::to(server.address());
    assert_eq!(client.page(client.request("GET", "/failed/")).pushed.len(), 0);
    // A client that disables push reads the Link fields in the response, so no Early Hints are needed.
    let mut client = Http2::with(server.address(), &without_push());
    let page = client.page(client.request("GET", "/made/"));
    assert_eq!((page.hints.len(), page.pushed.len()), (0, 0));
    assert_eq!(page.response.fields.get_all("link").iter().count(), 3);
}

#[test]
fn hints_are_sent_while_a_handler_works() {
    let (waits, mut waiting) = Deferred::new();
    let server = start(vec![mount("/waits/", waits)]);
    let mut client = Http2::with(server.address(), &without_push());
    let (mut response, _) = client.start_request(client.request("GET", "/waits/1"), true);
    let incoming = waiting.next();
    let interim = client.wait(std::future::poll_fn(|context| response.poll_informational(context)));
    let interim = interim.expect("a hint").expect("no error");
    assert_eq!(interim.status().as_u16(), 103);
    assert_eq!(interim.headers()["link"], "</app.js>; rel=preload; as=script");
    assert!(incoming.respond("at last"));
    assert_eq!(client.response(response).expect("a response").content, b"at last");
}

#[test]
fn a_reload_changes_what_is_pushed() {
    let server = start(Vec::new());
    let default = Builder::new();
    check(&server, &default, &[("/", &["/style.css", "/app.js"])]);
    server
        .reload(&text("push = { \"/\" = \"/blog.css\" }"))
        .expect("a good configuration");
    check(&server, &default, &[("/", &["/blog.css"]), ("/blog/", &[])]);
    server.reload(&text("")).expect("a good configuration");
    check(&server, &default, &[("/", &[])]);
}

over_http3! {
    no_resource_is_pushed_twice_or_to_clients_that_have_it,
}
