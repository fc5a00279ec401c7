//! The access log of a site: each response has one line with its status and the bytes sent, whatever the request
//! contains.

use std::fs;

use super::access::{auth, basic};
use super::support::fastcgi::{Next, Peer, SOCKET, response, write_to};
use super::support::folder::Folder;
use super::support::running::Running;

/// Size of a file that exceeds the kernel buffers of both sides.
const LARGE: u64 = 64 << 20;

/// Starts a server, runs `send_requests`, stops the server and returns the lines of its log.
fn lines(format: &str, send_requests: impl FnOnce(&Running)) -> Vec<String> {
    let folder = Folder::with(&[("www/a.txt", "hello"), ("www/index.html", "<p>home")]);
    folder.sparse("www/large.bin", LARGE);
    let log = folder.path("access.log");
    let keys = format!("log = {{ access = \"{}\", format = \"{format}\" }}", log.display());
    let server = Running::site(folder, &keys);
    send_requests(&server);
    let (server, _folder) = server.take();
    server.stop();
    fs::read_to_string(&log)
        .expect("an access log")
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_response_is_logged() {
    let records = lines("combined", |server| {
        let mut client = server.connect();
        client.get("/a.txt").expect("from the disk", 200, &[]);
        client.get("/a.txt").expect("from memory", 200, &[]);
        client.fetch("HEAD /a.txt", &[]).expect("no content", 200, &[]);
        client.get("/none?x=1").expect("missing", 404, &[]);
        client
            .fetch("GET /a.txt", &["Referer: http://r/", "User-Agent: Me \"x\""])
            .expect("fields", 200, &[]);
        client
            .fetch("GET /a.txt", &["Range: bytes=1-2"])
            .expect("a part", 206, &[]);
        assert_eq!(client.get("/large.bin").body.len() as u64, LARGE);
    });
    let rest: Vec<&str> = records
        .iter()
        .map(|line| line.split_once("] ").expect("a time").1)
        .collect();
    assert!(
        records.iter().all(|line| line.starts_with("127.0.0.1 - - [")),
        "{records:?}"
    );
    // The length of the error page does not matter here, so only a minimum is checked.
    let missing = rest[3].split(' ').nth(4).and_then(|bytes| bytes.parse::<u64>().ok());
    assert!(
        rest[3].starts_with("\"GET /none?x=1 HTTP/1.1\" 404 ") && missing > Some(100),
        "{}",
        rest[3]
    );
    let expected = [
        "\"GET /a.txt HTTP/1.1\" 200 5 \"-\" \"-\"",
        "\"GET /a.txt HTTP/1.1\" 200 5 \"-\" \"-\"",
        "\"HEAD /a.txt HTTP/1.1\" 200 - \"-\" \"-\"",
        rest[3],
        "\"GET /a.txt HTTP/1.1\" 200 5 \"http://r/\" \"Me \\x22x\\x22\"",
        "\"GET /a.txt HTTP/1.1\" 206 2 \"-\" \"-\"",
        "\"GET /large.bin HTTP/1.1\" 200 67108864 \"-\" \"-\"",
    ];
    assert_eq!(rest.len(), expected.len(), "{rest:#?}");
    // The log may escape a quote as `\"` or as `\x22`.
    for (line, expected) in rest.iter().zip(expected) {
        assert_eq!(line.replace("\\\"", "\\x22"), expected.replace("\\\"", "\\x22"));
    }
}

#[test]
fn the_client_address_is_that_named_by_a_trusted_proxy() {
    // A row has the keys of `[server]`, the fields of the request, and the client address in the log.
    for (server, fields, expected) in [
        ("", &["X-Forwarded-For: 192.0.2.1"][..], "127.0.0.1"),
        (
            "trusted_proxies = [\"127.0.0.1\"]",
            &["X-Forwarded-For: 192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "trusted_proxies = [\"127.0.0.1\"]",
            &["Forwarded: for=192.0.2.1"],
            "127.0.0.1",
        ),
        (
            "trusted_proxies = [\"192.0.2.1\"]",
            &["X-Forwarded-For: 192.0.2.1"],
            "127.0.0.1",
        ),
        (
            "trusted_proxies = [\"127.0.0.1\"]\ntrusted_field = \"forwarded\"",
            &["Forwarded: for=192.0.2.1, for=\"[2001:db8::1]:80\""],
            "2001:db8::1",
        ),
    ] {
        let folder = Folder::with(&[("www/a.txt", "hello")]);
        let log = folder.path("access.log");
        let text = format!(
            "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n{server}\n[site.default]\nlisten = \"127.0.0.1:0\"\n\
             root = \"www\"\nlog = {{ access = \"{}\", format = \"common\" }}\n",
            log.display()
        );
        let running = Running::start(folder, &text);
        let mut client = running.connect();
        // The first response comes from disk and the others from the cache. The third request is without the field.
        for fields in [fields, fields, &[], fields] {
            client.fetch("GET /a.txt", fields).expect(server, 200, &[]);
        }
        drop(client);
        let (running, _folder) = running.take();
        running.stop();
        let records = fs::read_to_string(&log).expect("an access log");
        let clients: Vec<&str> = records.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(clients, [expected, expected, "127.0.0.1", expected], "{server}");
    }
}

#[test]
fn a_cut_response_is_logged_with_the_bytes_sent() {
    let records = lines("common", |server| {
        let mut client = server.connect();
        client.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        client.bytes(1000);
        drop(client);
        server.wait_until_idle();
    });
    assert_eq!(records.len(), 1, "{records:?}");
    let bytes = records[0]
        .rsplit(' ')
        .next()
        .and_then(|bytes| bytes.parse::<u64>().ok());
    // The client has read 1,000 bytes with the head, which has fewer than 300. The log counts the body alone.
    assert!(
        records[0].contains("\" 200 ") && bytes >= Some(700) && bytes < Some(LARGE),
        "{records:?}"
    );
}

#[test]
fn refused_requests_are_logged_without_their_contents() {
    let many = "X: y\r\n".repeat(200);
    let rows = [
        ("GET /a\u{7f} HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("\x1b[31m\" 200 5\r\nforged - - [\r\n\r\n".to_owned(), 400),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000)), 414),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431),
    ];
    for format in ["combined", "json"] {
        let records = lines(format, |server| {
            for (bytes, status) in &rows {
                let mut client = server.connect();
                client.send(bytes);
                client.response().expect("refused", *status, &["Connection: close"]);
            }
        });
        assert_eq!(records.len(), rows.len(), "{records:#?}");
        for (line, (_, status)) in records.iter().zip(&rows) {
            let (start, end) = match format {
                "json" => (
                    "\"client\":\"127.0.0.1\",\"user\":null,\"protocol\":\"\",\"tls\":null,\"method\":\"\",\"target\":\"\"",
                    "null}",
                ),
                _ => ("127.0.0.1 - - [", " \"-\" \"-\""),
            };
            let code = match format {
                "json" => format!("\"status\":{status},"),
                _ => format!("] \"-\" {status} "),
            };
            assert!(
                line.contains(start) && line.contains(&code) && line.ends_with(end),
                "{line}"
            );
            assert!(!line.contains("forged"), "{line}");
        }
    }
}

#[test]
fn requests_without_a_site_are_logged_by_the_first_site() {
    let folder = Folder::with(&[("www/index.html", "home")]);
    let log = folder.path("access.log");
    let site = |name: &str| {
        format!(
            "[site.\"{name}\"]\nroot = \"www\"\nlisten = \"http://127.0.0.1:0\"\nlog = {{ access = \"{}\", format = \"common\" }}\n",
            log.display()
        )
    };
    let server = Running::start(folder, &(site("a.test") + &site("b.test")));
    server
        .fetch("GET /x", &["Host: c.test"])
        .expect("a name of no site", 404, &[]);
    let mut client = server.connect();
    client.send("nonsense\r\n\r\n");
    client.response().expect("no request", 400, &[]);
    let (server, _folder) = server.take();
    server.stop();
    let records = fs::read_to_string(&log).expect("an access log");
    let records: Vec<&str> = records
        .lines()
        .map(|line| line.split_once("] ").expect("a time").1)
        .collect();
    assert_eq!(records.len(), 2, "{records:?}");
    assert!(records[0].starts_with("\"GET /x HTTP/1.1\" 404 "), "{records:?}");
    assert!(records[1].starts_with("\"-\" 400 "), "{records:?}");
}

#[test]
fn a_response_that_is_not_read_is_logged_when_it_times_out() {
    let folder = Folder::with(&[]);
    folder.sparse("www/large.bin", LARGE);
    let log = folder.path("access.log");
    let keys = format!("log = {{ access = \"{}\", format = \"common\" }}", log.display());
    let text = format!(
        "[limits]\nsend_stall = \"200ms\"\n{}",
        super::support::running::site(&keys)
    );
    let server = Running::start(folder, &text);
    let mut client = server.connect();
    client.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    client.bytes(1000);
    server.wait_until_idle();
    let (server, _folder) = server.take();
    server.stop();
    let records = fs::read_to_string(&log).expect("an access log");
    assert!(
        records.lines().count() == 1 && records.contains("\"GET /large.bin HTTP/1.1\" 200 "),
        "{records:?}"
    );
}

over_http3! {
    the_client_address_is_that_named_by_a_trusted_proxy,
    a_cut_response_is_logged_with_the_bytes_sent,
}

#[test]
fn a_line_can_be_a_text_of_the_operator() {
    let format = r#"{client.ip} {peer.ip} {site} \"{request.header.X-Id}\" {method} {target} {path} {status} {bytes.sent} {tls.version} {request.cookie.a} {nothing}"#;
    let format = format.replace(" {nothing}", " {request.id}");
    let records = lines(&format, |server| {
        let mut client = server.connect();
        for _ in 0..2 {
            let fields = ["X-Id: a \"b\"", "Cookie: a=1 2"];
            client.fetch("GET /%61.txt?q", &fields).expect("a file", 200, &[]);
        }
        client.get("/none").expect("missing", 404, &[]);
        client.send("nonsense\r\n\r\n");
        client.response().expect("no request", 400, &[]);
    });
    assert_eq!(records.len(), 4, "{records:?}");
    for record in &records[..2] {
        let (line, id) = record.rsplit_once(' ').expect("several values");
        assert_eq!(
            line,
            r#"127.0.0.1 127.0.0.1 default "a \x22b\x22" GET /%61.txt?q /a.txt 200 5 - 1\x202"#
        );
        assert!(
            id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{id}"
        );
    }
    assert!(
        records[2].starts_with("127.0.0.1 127.0.0.1 default \"-\" GET /none /none 404 "),
        "{records:?}"
    );
    // Nothing is known of bytes that are not a request.
    assert!(records[3].starts_with("127.0.0.1 - - \"-\" - - - 400 "), "{records:?}");
}

#[test]
fn a_line_can_be_json_of_the_operator() {
    let format = r#"{\"ip\":{client.ip},\"status\":{status},\"user\":{user},\"agent\":\"{request.header.User-Agent}\",\"seconds\":{duration}}"#;
    let records = lines(format, |server| {
        server
            .fetch("GET /a.txt", &["User-Agent: \"x\\y\""])
            .expect("a file", 200, &[]);
    });
    let record: serde_json::Value = serde_json::from_str(&records[0]).expect("JSON");
    assert_eq!(record["ip"], "127.0.0.1");
    assert_eq!(record["status"], 200);
    assert_eq!(record["user"], serde_json::Value::Null);
    assert_eq!(record["agent"], "\"x\\y\"");
    assert!(
        record["seconds"].as_f64().is_some_and(|seconds| seconds < 60.0),
        "{record}"
    );
}

#[test]
fn the_user_whom_the_route_of_a_script_admits_is_logged() {
    let folder = Folder::with(&[("www/b/index.php", "<?php")]);
    let log = folder.path("access.log");
    let _peer = Peer::start(&folder.path(SOCKET), |_, stream| {
        write_to(stream, response(b"A: b\r\n\r\nhello"));
        Next::Keep
    });
    // The rule lets the request wait for a lookup before its handler is known.
    let keys = format!(
        "php = \"unix:{SOCKET}\"\nlog = {{ access = \"{}\" }}\n\
         rule = [{{ path = \"/b/*\", exists = \"nothing\", rewrite = \"/none\" }}]\n\
         [site.default.route.\"/b/index.php\"]\n{}\n",
        log.display(),
        auth()
    );
    let server = Running::site(folder, &keys);
    for _ in 0..2 {
        assert_eq!(server.fetch("GET /b/", &[&basic("bob", "secret")]).text(), "hello");
    }
    let (server, _folder) = server.take();
    server.stop();
    let text = fs::read_to_string(&log).expect("an access log");
    assert_eq!(text.matches(" - bob [").count(), 2, "{text}");
}
