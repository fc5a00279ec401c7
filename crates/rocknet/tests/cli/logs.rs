//! Log lines of a running server: `rocknet logs`, and the stream of the control API.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::program::{ProgramFolder, ProgramOutput};

const SITE: &str = "[log]\naccess = \"access.log\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

/// Maximum wait for anything that the server does, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

fn home() -> ProgramFolder {
    ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", SITE)])
}

/// Asserts that the program succeeded without messages, and returns its output.
#[track_caller]
fn success(output: ProgramOutput) -> String {
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
    output.out
}

/// Stream of log lines.
struct Follower {
    stream: UnixStream,
    received: String,
}

impl Follower {
    fn new(dir: &ProgramFolder, query: &str) -> Follower {
        let mut stream = UnixStream::connect(dir.path().join("control.sock")).unwrap();
        let request = format!("GET /api/logs?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut follower = Follower {
            stream,
            received: String::new(),
        };
        follower.wait_for("\r\n\r\n");
        follower
    }

    /// Reads until a text was received.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.received.contains(text) {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "{text:?} is not in {}", self.received);
            self.received += &String::from_utf8_lossy(&buffer[..count]);
        }
    }

    /// Reads until the server ends the stream, and returns everything that was received.
    fn rest(mut self) -> String {
        self.stream.read_to_string(&mut self.received).unwrap();
        self.received
    }
}

#[test]
fn recent_lines_are_selected() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    success(dir.run(&["reload"]));
    let lines = success(dir.run(&["logs"]));
    assert!(
        lines.contains(" INFO  ") && lines.contains("rocknet.toml is reloaded, sites: 1\n"),
        "{lines}"
    );
    assert!(!lines.contains('\x1B'), "{lines}");
    assert_eq!(
        success(dir.run(&["logs", "--contains", "is reloaded"])).lines().count(),
        1
    );
    assert_eq!(success(dir.run(&["logs", "--level", "error"])), "");
    assert_eq!(success(dir.run(&["logs", "--only", "access"])), "");
    let json = success(dir.run(&["logs", "--json", "--contains", "is reloaded"]));
    assert!(json.starts_with("{\"kind\":\"error\",\"line\":\""), "{json}");
    assert_eq!(dir.run(&["logs", "--level", "loud"]).code, Some(2));
}

#[test]
fn new_lines_of_all_logs_are_followed_until_the_server_stops() {
    let dir = home();
    let server = dir.serve(&["run"]);
    let mut all = Follower::new(&dir, "follow=true");
    assert!(
        all.received.contains("\r\nContent-Type: text/event-stream\r\n"),
        "{}",
        all.received
    );
    let only_access = Follower::new(&dir, "follow=true&kind=access");
    server.get("/seen");
    all.wait_for("\"kind\":\"access\"");
    all.wait_for("/seen");
    success(dir.run(&["reload"]));
    all.wait_for("is reloaded");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    assert!(all.rest().contains("stopping"));
    let access = only_access.rest();
    assert!(access.contains("/seen") && !access.contains("is reloaded"), "{access}");
}

#[test]
fn lines_of_a_site_are_selected() {
    let down = "[site.\"down.test\"]\ntls = \"off\"\nlisten = \"127.0.0.1:0\"\nproxy = \"http://127.0.0.1:1\"\n";
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", &format!("{SITE}{down}"))]);
    let server = dir.serve(&["run"]);
    let mut all = Follower::new(&dir, "follow=true");
    let of_site = Follower::new(&dir, "follow=true&site=down.test");
    server.get("/of-default");
    all.wait_for(r#","site":"default"}"#);
    server.get_from("down.test", "/of-down");
    all.wait_for(r#","site":"down.test"}"#);
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let all = all.rest();
    assert!(all.contains("/of-default") && all.contains("stopping"), "{all}");
    let of_site = of_site.rest();
    let events: Vec<&str> = of_site.lines().filter(|line| line.starts_with("data: ")).collect();
    let is_one = |kind: &str, text: &str| {
        let found = events
            .iter()
            .filter(|event| event.contains(kind) && event.contains(text));
        found.count() == 1
    };
    assert!(is_one(r#""kind":"access""#, "/of-down"), "{of_site}");
    assert!(is_one(r#""kind":"error""#, "127.0.0.1:1"), "{of_site}");
    assert!(
        events.iter().all(|event| event.ends_with(r#","site":"down.test"}"#)),
        "{of_site}"
    );
}

#[test]
fn a_client_that_leaves_does_not_affect_others() {
    let dir = home();
    let server = dir.serve(&["run"]);
    let mut stays = Follower::new(&dir, "follow=true");
    for _ in 0..30 {
        drop(Follower::new(&dir, "follow=true"));
        server.get("/");
    }
    success(dir.run(&["reload"]));
    stays.wait_for("is reloaded");
    let invalid = Follower::new(&dir, "since=yesterday").rest();
    assert!(invalid.starts_with("HTTP/1.1 400 "), "{invalid}");
}

#[test]
fn followers_beyond_the_maximum_are_rejected_until_one_leaves() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    let mut all: Vec<Follower> = (0..16).map(|_| Follower::new(&dir, "follow=true")).collect();
    let rejected = Follower::new(&dir, "follow=true").rest();
    assert!(
        rejected.starts_with("HTTP/1.1 503 ") && rejected.contains("16 clients follow the logs"),
        "{rejected}"
    );
    let recent = Follower::new(&dir, "follow=false").rest();
    assert!(recent.starts_with("HTTP/1.1 200 "), "{recent}");
    drop(all.pop());
    // The server notices the end of a client when it polls the connection.
    let deadline = Instant::now() + TIMEOUT;
    while Follower::new(&dir, "follow=true").received.starts_with("HTTP/1.1 503 ") {
        let limit = TIMEOUT.as_secs();
        assert!(
            Instant::now() < deadline,
            "the place of a client that left is not free after {limit} s"
        );
    }
    success(dir.run(&["reload"]));
    all[0].wait_for("is reloaded");
}
