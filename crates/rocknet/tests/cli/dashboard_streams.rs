//! The dashboard open in many browsers: each one follows the state of the server and the logs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::dashboard_client::{DASHBOARD_CONFIG, DashboardClient};

/// Number of browsers.
const BROWSERS: usize = 10;

/// Maximum wait for an event, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A stream of server-sent events that a browser follows.
struct EventStream {
    stream: TcpStream,
    received: String,
}

impl EventStream {
    fn open(client: &DashboardClient, cookie: &str, path: &str) -> EventStream {
        let mut stream = client.connect();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let address = stream.peer_addr().unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n");
        let request = format!("{head}Sec-Fetch-Site: same-origin\r\n{cookie}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        EventStream {
            stream,
            received: String::new(),
        }
    }

    /// Reads until the stream has this number of occurrences of a text.
    #[track_caller]
    fn wait_for(&mut self, text: &str, count: usize) {
        let mut buffer = [0; 16 * 1024];
        while self.received.matches(text).count() < count {
            let read = self.stream.read(&mut buffer);
            let read = read.unwrap_or_else(|error| panic!("{text:?}: {error} after {}", self.received));
            assert!(read > 0, "the stream ended: {}", self.received);
            self.received += &String::from_utf8_lossy(&buffer[..read]);
        }
    }
}

#[test]
fn ten_browsers_get_every_state_and_log_line() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    // Each browser has signed in for itself.
    let cookies: Vec<String> = (0..BROWSERS).map(|_| client.session("token")).collect();
    let mut states: Vec<EventStream> = cookies
        .iter()
        .map(|cookie| EventStream::open(&client, cookie, "/events"))
        .collect();
    let mut logs: Vec<EventStream> = cookies
        .iter()
        .map(|cookie| EventStream::open(&client, cookie, "/api/logs?follow=true"))
        .collect();
    for log in &mut logs {
        log.wait_for("\r\n\r\n", 1);
    }
    let reload = client.dir.run(&["reload"]);
    assert_eq!(reload.code, Some(0), "{reload:?}");
    for log in &mut logs {
        log.wait_for("is reloaded", 1);
    }
    for state in &mut states {
        state.wait_for("\"status\":{", 3);
        assert!(state.received.starts_with("HTTP/1.1 200 "), "{}", state.received);
    }
    // Pages and the website are served beside the streams.
    let began = Instant::now();
    for cookie in &cookies {
        assert_eq!(client.send("GET", "/websites", cookie, "").status, 200);
        assert!(client.server.get("/").ends_with("home"));
    }
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
}
