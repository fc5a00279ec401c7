//! Phases after the handler: every response has the fields of its route, its error page and its content coding.

use http::Request;
use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;

use super::support::client::request;
use super::support::fastcgi::{Next, Peer, SOCKET, record, response as fastcgi_response, write_to};
use super::support::handlers::Panics;
use super::support::http2::Http2;
use super::support::running::mount;
use super::support::{Folder, Running};

const SITE: &str = r#"[server]
h2c = true
workers = 1
events = { wait = "20ms" }
[site.default]
listen = "127.0.0.1:0"
root = "www"
headers = { X-Site = "yes" }
errors = { 400 = "/page.html", 404 = "/page.html", 405 = "/page.html", 413 = "/page.html", 500 = "/page.html", 501 = "/page.html", 503 = "/page.html", 504 = "/page.html" }
limits = { body_size = 100 }
redirects = { "/old" = "/new" }
rule = [{ path = "/gone", respond = 404 }]
[site.default.route."/app/*"]
fastcgi = "unix:php.sock"
limits = { answer_timeout = "100ms" }
[site.default.route."/nowhere/*"]
proxy = "http://127.0.0.1:1"
errors = { 502 = "/page.html" }
[site.default.route."/inside/*"]
internal = true
[site.default.route."/other/*"]
headers = { X-Site = "other" }
"#;

/// Sends the same request with a body of `body` bytes over HTTP/1.1 and HTTP/2. Asserts the status, that the field
/// `X-Site` has the value `site`, and that the body is the error page exactly if `has_page` is set.
fn check(server: &Running, method: &str, path: &str, body: usize, status: u16, site: &str, has_page: bool) {
    let what = format!("{method} {path} with {body} bytes");
    let length = format!("Content-Length: {body}");
    let fields: &[&str] = if body > 0 { &[&length] } else { &[] };
    let mut client = server.connect();
    client.send_anyway(request(&format!("{method} {path}"), fields) + &"x".repeat(body));
    let response = client.response_to(method);
    response.expect(&what, status, &[&format!("X-Site: {site}"), "Server: RockNet"]);
    assert_eq!(response.text() == "the page", has_page, "{what}: {}", response.text());

    let mut h2 = Http2::to(server.address());
    let mut builder: http::request::Builder = Request::builder().method(method).uri(format!("http://localhost{path}"));
    if body > 0 {
        builder = builder.header("content-length", body);
    }
    let over_h2 = h2.send(builder, "x".repeat(body).as_bytes()).expect("a response");
    assert_eq!(over_h2.status.as_u16(), status, "{what} over HTTP/2");
    let field = over_h2.fields.get("x-site").and_then(|value| value.to_str().ok());
    assert_eq!(field, Some(site), "{what} over HTTP/2");
    assert_eq!(&over_h2.content[..] == b"the page", has_page, "{what} over HTTP/2");
}

#[test]
fn every_response_has_the_fields_and_the_page_of_its_route() {
    let folder = Folder::with(&[
        ("www/page.html", "the page"),
        ("www/a.html", "a file"),
        ("www/inside/a.html", "a file"),
    ]);
    let _peer = Peer::start(&folder.path(SOCKET), |_, stream| {
        // The application sends nothing until the server closes the connection.
        let _ = record(stream);
        Next::Close
    });
    let server = Running::start_with(folder, SITE, vec![mount("/panic/", Panics)]);
    for (method, path, body, status, site, has_page) in [
        ("GET", "/a.html", 0, 200, "yes", false),
        // The second response comes from the worker cache.
        ("GET", "/a.html", 0, 200, "yes", false),
        ("GET", "/old", 0, 308, "yes", false),
        ("GET", "/missing", 0, 404, "yes", true),
        ("GET", "/missing", 0, 404, "yes", true),
        ("GET", "/inside/a.html", 0, 404, "yes", true),
        ("GET", "/gone", 0, 404, "yes", true),
        ("GET", "/%zz", 0, 400, "yes", true),
        ("POST", "/a.html", 10, 405, "yes", true),
        ("POST", "/a.html", 101, 413, "yes", true),
        ("POST", "/other/a.html", 101, 413, "other", true),
        ("POST", "/app/a", 101, 413, "yes", true),
        ("GET", "/app/a", 0, 504, "yes", true),
        ("GET", "/nowhere/a", 0, 502, "yes", true),
        ("GET", "/panic/now", 0, 500, "yes", true),
        ("GET", "/panic/later", 0, 500, "yes", true),
    ] {
        check(&server, method, path, body, status, site, has_page);
    }
}

#[test]
fn responses_of_every_handler_are_compressed() {
    const SITE: &str = r#"[server]
h2c = true
[site.default]
listen = "127.0.0.1:0"
root = "www"
[site.default.route."/app/*"]
fastcgi = "unix:php.sock"
[site.default.route."/plain/*"]
fastcgi = "unix:php.sock"
compress = false
"#;
    let folder = Folder::with(&[("www/a.html", "a file")]);
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let length = incoming.variable("QUERY_STRING").parse().unwrap_or(0);
        let text = format!("Content-Type: text/html\r\n\r\n{}", "x".repeat(length));
        write_to(stream, fastcgi_response(text.as_bytes()));
        Next::Keep
    });
    let server = Running::start_with(folder, SITE, vec![mount("/embedded/", Text)]);
    for (path, accept, coding, vary) in [
        ("/app/a?4000", "gzip", Some("gzip"), true),
        ("/app/a?4000", "br, gzip", Some("br"), true),
        ("/app/a?4000", "identity", None, true),
        ("/plain/a?4000", "gzip", None, false),
        ("/embedded/a", "zstd", Some("zstd"), true),
    ] {
        let what = format!("{path} for {accept}");
        let accept_field = format!("Accept-Encoding: {accept}");
        let response = server.connect().fetch(&format!("GET {path}"), &[&accept_field]);
        assert_eq!(response.status, 200, "{what}");
        assert_eq!(response.field("Content-Encoding"), coding, "{what}");
        assert_eq!(response.field("Vary") == Some("Accept-Encoding"), vary, "{what}");
        assert_eq!(response.body.len() < 1000, coding.is_some(), "{what}");
        let mut h2 = Http2::to(server.address());
        let builder: http::request::Builder = Request::builder()
            .uri(format!("http://localhost{path}"))
            .header("accept-encoding", accept);
        let over_h2 = h2.send(builder, b"").expect("a response");
        let found = over_h2
            .fields
            .get("content-encoding")
            .and_then(|value| value.to_str().ok());
        assert_eq!(found, coding, "{what} over HTTP/2");
    }
}

/// Responds with a text that is worth compressing.
struct Text;

impl Handler for Text {
    fn handle(&self, _: Exchange) -> HandlerFuture {
        let response = Response::new(Status::OK).with("Content-Type", "text/plain");
        respond_with(async move { response.body(vec![b'y'; 20_000]) })
    }
}

over_http3! {
    every_response_has_the_fields_and_the_page_of_its_route,
    responses_of_every_handler_are_compressed,
}
