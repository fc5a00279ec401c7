//! Interim responses: hints that a handler sends reach the client before the final response, over HTTP/1.1 and HTTP/2.

use std::process::Command;
use std::thread;

use super::support::client::request;
use super::support::handlers::{Deferred, PendingRequests};
use super::support::http2::Http2;
use super::support::running::{mount, site};
use super::support::{Folder, Running};
use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture};
use rocknet::interim::MAX_INTERIM_RESPONSES;
use rocknet::response::FieldList;

const SERVER: &str = "[server]\nworkers = 1\nh2c = true\nevents = { wait = \"20ms\", connections = 16 }\n";

/// Handler that sends a number of early hints, one after the other, and responds when the test triggers the response.
struct SendsHints(u8, Deferred);

impl Handler for SendsHints {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        let (count, mut interim) = (self.0, std::mem::take(&mut exchange.interim));
        let waits = self.1.handle(exchange);
        Box::pin(async move {
            for number in 0..count {
                let mut fields = FieldList::default();
                fields.add("Link", format!("</{number}.css>; rel=preload"));
                fields.add("Content-Length", "5");
                fields.add("Bad name", "which is reported to the operator");
                // Only the second hint keeps the field with the invalid name.
                fields.remove(if number == 1 { "nothing" } else { "bad name" });
                interim.send_early_hints(fields).await;
            }
            waits.await
        })
    }
}

/// Starts a server whose handler sends `count` hints for each request. Returns the server and the waiting requests.
fn start(count: u8) -> (Running, PendingRequests) {
    let (waits, waiting) = Deferred::new();
    let folder = Folder::with(&[("www/a.txt", "a")]);
    let text = format!("{SERVER}{}", site(""));
    let mounts = vec![mount("/hints/", SendsHints(count, waits))];
    (Running::start_with(folder, &text, mounts), waiting)
}

/// Expected hints. The second hint is not sent, because it has a field that cannot be encoded.
const HINTS: [&str; 2] = ["</0.css>; rel=preload", "</2.css>; rel=preload"];

#[test]
fn hints_precede_the_response_over_http_1_1() {
    let (server, mut waiting) = start(3);
    let mut client = server.connect();
    client.send(request("GET /hints/x", &[]) + &request("GET /a.txt", &[]));
    for link in HINTS {
        let head = client.head();
        assert_eq!(head, format!("HTTP/1.1 103 Early Hints\r\nLink: {link}\r\n\r\n"));
    }
    // All hints have arrived before the handler responds.
    assert!(waiting.next().respond("at last"));
    assert_eq!(client.response().text(), "at last");
    assert_eq!(client.response().text(), "a", "the pipelined request");
}

#[test]
fn no_hints_are_sent_over_http_1_0() {
    let (server, mut waiting) = start(3);
    let mut client = server.connect();
    client.send("GET /hints/x HTTP/1.0\r\nHost: h\r\n\r\n");
    assert!(waiting.next().respond("alone"));
    let output = String::from_utf8(client.rest()).expect("text");
    assert!(
        output.starts_with("HTTP/1.1 200 OK\r\n") && output.ends_with("alone"),
        "{output}"
    );
}

#[test]
fn hints_precede_the_response_over_http_2() {
    for push in [false, true] {
        let (server, mut waiting) = start(3);
        let mut builder = h2::client::Builder::new();
        builder.enable_push(push);
        let mut client = Http2::with(server.address(), &builder);
        let responder = thread::spawn(move || waiting.next().respond("at last"));
        let page = client.page(client.request("GET", "/hints/x"));
        assert!(responder.join().expect("no panic"));
        let expected = HINTS.map(|link| (103, link.to_owned()));
        assert_eq!(page.hints, expected, "push: {push}");
        assert_eq!(page.response.content, b"at last");
        assert_eq!(client.get("/a.txt").content, b"a");
    }
}

#[test]
fn the_number_of_hints_is_bounded() {
    let (server, mut waiting) = start(MAX_INTERIM_RESPONSES + 5);
    let mut client = server.connect();
    client.send(request("GET /hints/x", &[]));
    // The hint that cannot be encoded counts as well.
    for _ in 1..MAX_INTERIM_RESPONSES {
        assert!(client.head().starts_with("HTTP/1.1 103 "));
    }
    assert!(waiting.next().respond("at last"));
    assert_eq!(client.response().text(), "at last");
}

#[test]
fn curl_receives_the_hints() {
    let (server, mut waiting) = start(1);
    for (version, expected) in [("--http1.1", "HTTP/1.1"), ("--http2-prior-knowledge", "HTTP/2")] {
        let url = format!("http://{}/hints/x", server.address());
        let curl = thread::spawn(move || Command::new("curl").args(["-si", "-m", "20", version, &url]).output());
        assert!(waiting.next().respond("at last"));
        let output = curl.join().expect("no panic").expect("curl, which is installed");
        let output = String::from_utf8_lossy(&output.stdout).to_lowercase();
        let expected = expected.to_lowercase();
        let hints = format!("{expected} 103");
        assert!(output.starts_with(&hints), "{version}: {output}");
        assert!(output.contains("</0.css>"), "{version}: {output}");
        assert!(
            output.contains(&format!("\r\n\r\n{expected} 200")),
            "{version}: {output}"
        );
        assert!(output.ends_with("at last"), "{version}: {output}");
    }
}

over_http3! {
    the_number_of_hints_is_bounded,
}
