//! Mirrored requests: the mirror receives copies, and the original requests do not depend on the mirror.

use std::io::Read;
use std::net::TcpStream;
use std::sync::mpsc;

use super::support::client::request;
use super::support::upstream::{Next, ReceivedRequest, Upstream, ok, write_to};
use super::support::{DEADLINE, Folder, Running};

/// Starts an upstream that reports each request to the test.
fn reporting() -> (Upstream, mpsc::Receiver<ReceivedRequest>) {
    let (seen, all) = mpsc::channel();
    let upstream = Upstream::start(move |incoming, stream| {
        let _ = seen.send(incoming.clone());
        write_to(stream, ok("of the copy"));
        Next::Keep
    });
    (upstream, all)
}

fn mirrored(upstream: &Upstream, mirror: &str) -> Running {
    let keys = format!(
        "proxy = {{ to = \"{}\", strip = \"/api\", mirror = {mirror} }}",
        upstream.url()
    );
    Running::site(Folder::with(&[("www/x", "")]), &keys)
}

#[test]
fn mirrors_get_exact_copies() {
    let upstream = Upstream::responding_with(ok("real"));
    let (copies, seen) = reporting();
    let server = mirrored(
        &upstream,
        &format!("{{ to = \"{}\", content = \"1KiB\" }}", copies.url()),
    );
    let mut client = server.connect();
    for (line, fields, content, copied) in [
        ("GET /api/x?y=1", &["X-A: 1"][..], "", true),
        ("POST /p", &["Content-Length: 5"], "hello", true),
        ("POST /none", &["Content-Length: 0"], "", true),
        (
            "PUT /c",
            &["Transfer-Encoding: chunked"],
            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            true,
        ),
        // These bodies exceed the limit for copies, with and without a length.
        ("POST /long", &["Content-Length: 1025"], &"x".repeat(1025), false),
        (
            "POST /long",
            &["Transfer-Encoding: chunked"],
            &format!("500\r\n{}\r\n0\r\n\r\n", "x".repeat(0x500)),
            false,
        ),
        ("HEAD /h", &[], "", true),
    ] {
        client.send(request(line, fields));
        client.send(content);
        if line.starts_with("HEAD") {
            assert!(client.head().starts_with("HTTP/1.1 200 "));
        } else {
            assert_eq!(client.response().text(), "real", "{line}");
        }
        if copied {
            let copy = seen
                .recv_timeout(DEADLINE)
                .unwrap_or_else(|_| panic!("no copy of {line}"));
            let real = upstream.last();
            assert_eq!(
                (copy.line, copy.fields, copy.content),
                (real.line, real.fields, real.content),
                "{line}"
            );
        }
    }
    // Copies arrive in order here, so a copy of a long request would have arrived before the last copy.
    assert!(seen.try_recv().is_err(), "a request that is too long was copied");
}

#[test]
fn requests_do_not_wait_for_mirrors() {
    let upstream = Upstream::responding_with(ok("real"));
    let silent = Upstream::raw(|mut stream: TcpStream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    for to in [
        silent.url(),
        "http://127.0.0.1:1".to_owned(),
        "http://no-such-name.invalid".to_owned(),
    ] {
        let server = mirrored(&upstream, &format!("\"{to}\""));
        let mut client = server.connect();
        // The number of requests exceeds the number of copies that may be in progress at the same time.
        for _ in 0..200 {
            assert_eq!(client.get("/").expect(&to, 200, &[]).text(), "real");
        }
    }
}

#[test]
fn a_share_of_requests_is_mirrored() {
    let upstream = Upstream::responding_with(ok("real"));
    let (copies, seen) = reporting();
    let server = mirrored(&upstream, &format!("{{ to = \"{}\", share = \"50%\" }}", copies.url()));
    let mut client = server.connect();
    const ALL: usize = 200;
    for _ in 0..ALL {
        client.get("/").expect("a request", 200, &[]);
    }
    // About half of the requests are copied. The test waits only for a fifth, which must arrive.
    let mut count = 0;
    while seen.recv_timeout(DEADLINE).is_ok() {
        count += 1;
        if count >= ALL / 5 {
            break;
        }
    }
    assert!(count >= ALL / 5, "{count} of {ALL} were copied");
    drop(server);
    // Further copies may have arrived since, but fewer than four fifths of all requests.
    let rest = std::iter::from_fn(|| seen.try_recv().ok()).count();
    assert!(count + rest < ALL * 4 / 5, "{} of {ALL} were copied", count + rest);
}

over_http3! {
    mirrors_get_exact_copies,
    a_share_of_requests_is_mirrored,
}
