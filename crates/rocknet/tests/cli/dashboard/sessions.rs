//! Sessions of the dashboard: how they begin and end, and what a session of the read token permits.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use super::{Dashboard, PAGES, cookie, link};

#[test]
fn sessions_begin_with_a_token_or_a_link_and_end() {
    let dashboard = Dashboard::start();
    for (body, status, message) in [
        ("", 415, "the body must be application/json"),
        ("{", 400, "the body is not valid"),
        ("{}", 400, "either a token or a code"),
        ("{\"token\":\"a\",\"code\":\"b\"}", 400, "either a token or a code"),
        ("{\"token\":\"\"}", 401, "not a token or the password of this server"),
        (
            "{\"token\":\"0000\"}",
            401,
            "not a token or the password of this server",
        ),
        ("{\"code\":\"\"}", 401, "this link has expired or was used already"),
    ] {
        let reply = match body {
            "" => dashboard.send("POST", "/login", "Content-Type: text/plain\r\n", "x"),
            body => dashboard.login(body),
        };
        assert_eq!(reply.status, status, "{body}: {}", reply.body);
        assert!(
            reply.body.contains(message) && !reply.head.contains("Set-Cookie"),
            "{body}: {}",
            reply.body
        );
    }
    let link = link(&dashboard.dir);
    let (_, code) = link.split_once("/login#").unwrap();
    let body = format!("{{\"code\":\"{code}\"}}");
    let cookie = cookie(&dashboard.login(&body));
    assert_eq!(dashboard.login(&body).status, 401, "a link is valid once");
    // Header fields of a request that a page of the dashboard itself makes.
    let own = format!("{cookie}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(dashboard.send("GET", "/api/config", &own, "").status, 200);

    // The stream of events ends with the session.
    let mut events = BufReader::new(dashboard.connect("GET", "/events", &own, ""))
        .lines()
        .map(Result::unwrap);
    assert!(events.any(|line| line.starts_with("data: {\"status\":{")));
    let logout = dashboard.send("POST", "/logout", &own, "");
    assert!(
        logout.status == 200 && logout.head.contains("; Max-Age=0\r\n"),
        "{}",
        logout.head
    );
    // `count` returns when the stream ends. The limit proves that the stream did not continue after the session.
    assert!(events.count() < 50);
    assert_eq!(dashboard.send("GET", "/", &cookie, "").status, 303);
    assert_eq!(dashboard.send("GET", "/api/config", &own, "").status, 401);

    let wrong: Vec<_> = (0..30)
        .map(|_| dashboard.login("{\"token\":\"0000\"}").status)
        .collect();
    // Attempts with wrong tokens are limited; the right token is still accepted.
    assert_eq!(wrong.last(), Some(&429));
    dashboard.cookie("token");
}

#[test]
fn the_read_token_shows_no_secrets_and_changes_nothing() {
    let dashboard = Dashboard::start();
    let cookie = dashboard.cookie("read-token");
    let own = format!("{cookie}Sec-Fetch-Site: same-origin\r\n");
    for page in PAGES {
        let reply = dashboard.send("GET", page, &cookie, "");
        let is_secret =
            ["/logs", "/settings", "/history", "/explain"].contains(&page) || page.starts_with("/websites/");
        assert_eq!(reply.status, if is_secret { 403 } else { 200 }, "{page}");
        // Controls that change the server, and the text of the configuration.
        let forbidden = [
            "data-do=\"reload\"",
            "data-do=\"stop\"",
            "data-do=\"remove\"",
            "[server]",
        ];
        assert!(
            !forbidden.iter().any(|text| reply.body.contains(text)),
            "{page}: {}",
            reply.body
        );
    }
    for (method, path, expected) in [
        ("GET", "/api/status", 200),
        ("GET", "/api/doctor", 200),
        ("GET", "/api/config", 403),
        ("GET", "/api/logs", 403),
        ("POST", "/api/reload", 403),
        ("POST", "/api/dashboard/link", 403),
    ] {
        assert_eq!(dashboard.send(method, path, &own, "").status, expected, "{path}");
    }
}

#[test]
fn the_number_of_streams_is_bounded() {
    let dashboard = Dashboard::start();
    let cookie = dashboard.cookie("token");
    let own = format!("{cookie}Sec-Fetch-Site: same-origin\r\n");
    let status = |stream: &TcpStream| {
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap())
            .read_line(&mut line)
            .unwrap();
        line[9..12].parse::<u16>().unwrap()
    };
    // The server permits 16 streams.
    let streams: Vec<_> = (0..16).map(|_| dashboard.connect("GET", "/events", &own, "")).collect();
    assert!(streams.iter().all(|stream| status(stream) == 200));
    let refused = dashboard.send("GET", "/events", &own, "");
    assert!(
        refused.status == 503 && refused.body.contains("too many pages"),
        "{}",
        refused.body
    );
    assert_eq!(dashboard.send("GET", "/api/status", &own, "").status, 200);
    drop(streams);
}
