//! Limits of clients after an upgrade: used parts of limits, offences and wrong passwords continue in the new process.
//! A transfer that cannot be used is logged, and the upgrade succeeds.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rocknet_io::fd_channel::{Blocking, FdChannel};
use rocknet_io::machine_clock::machine_uptime_ns;
use rocknet_io::sealed_file;
use rocknet_limit::KeySeed;
use rocknet_limit::transfer::TransferWriter;
use rocknet_testing::{Need, skip};

use crate::load::{TIMEOUT, connect};
use crate::program::{ProgramFolder, Server};
use crate::upgrade::{KillAtEnd, upgrade, wait_for_end};

/// bcrypt hash of a password with the lowest cost.
const HASH: &str = "$2y$04$RwBnJOpDEQZiy2VKUT52Q.YEkrK.DMrhbaOu12VTXkM2GvfW0CUZW";

/// Returns a configuration whose clients are named by `X-Forwarded-For`. `changed`: limit of the route `/changed/*`.
fn text(backend: &str, changed: &str) -> String {
    format!(
        "[server]\nworkers = 2\nbackend = \"{backend}\"\nstate = \"state\"\ntrusted_proxies = [\"127.0.0.0/8\"]\n\
         [ban]\nlogins = \"99/1h\"\nnot_found = \"3/1h\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nlimit = \"3/h\"\n\
         [site.default.route.\"/key/*\"]\nlimit = {{ rate = \"2/h\", key = \"{{request.header.X-Key}}\" }}\n\
         [site.default.route.\"/changed/*\"]\nlimit = \"{changed}\"\n\
         [site.default.route.\"/missing/*\"]\nlimit = false\n\
         [site.default.route.\"/private/*\"]\nlimit = false\nauth = {{ b = \"{HASH}\" }}\n"
    )
}

fn folder(backend: &str) -> ProgramFolder {
    let dir = ProgramFolder::new(&[("rocknet.toml", &text(backend, "3/h"))]);
    for page in ["index", "key/a", "changed/a", "private/a"] {
        dir.write(&format!("www/{page}.html"), "home");
    }
    dir
}

/// Sends a GET request of a client, and returns the head of the response; an empty text if the connection is closed.
fn get(authority: &str, client: &str, path: &str, field: &str) -> String {
    let mut stream = connect(authority);
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {client}\r\n{field}Connection: close\r\n\r\n"
    )
    .expect("a request");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response.split("\r\n\r\n").next().unwrap_or_default().to_owned()
}

/// Sends requests like [`get`] and returns their statuses.
fn statuses(authority: &str, client: &str, path: &str, fields: &[&str]) -> Vec<u16> {
    let status = |field: &&str| {
        let head = get(authority, client, path, field);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("{head:?}"))
    };
    fields.iter().map(status).collect()
}

/// Returns the fields of requests with `count` passwords, from number `first` on. The user and the password have one
/// character each, so that the field is their text in base64 without padding.
fn passwords(first: usize, count: usize) -> Vec<&'static str> {
    const ALL: [&str; 11] = [
        "Authorization: Basic Yjow\r\n",
        "Authorization: Basic Yjox\r\n",
        "Authorization: Basic Yjoy\r\n",
        "Authorization: Basic Yjoz\r\n",
        "Authorization: Basic Yjo0\r\n",
        "Authorization: Basic Yjo1\r\n",
        "Authorization: Basic Yjo2\r\n",
        "Authorization: Basic Yjo3\r\n",
        "Authorization: Basic Yjo4\r\n",
        "Authorization: Basic Yjo5\r\n",
        "Authorization: Basic Yjph\r\n",
    ];
    ALL[first..][..count].to_vec()
}

fn limits_continue(backend: &str) {
    const FIRST: &str = "198.51.100.1";
    const KEYS: [&str; 3] = ["X-Key: one\r\n", "X-Key: one\r\n", "X-Key: two\r\n"];
    let dir = folder(backend);
    let server = dir.serve(&["run"]);
    let _end = KillAtEnd(&dir);
    let authority = server.authority().to_owned();
    let get = |client: &str, path: &str, fields: &[&str]| statuses(&authority, client, path, fields);

    assert_eq!(get(FIRST, "/", &[""; 4]), [200, 200, 200, 429]);
    assert_eq!(get("198.51.100.2", "/", &[""; 2]), [200, 200]);
    assert_eq!(get(FIRST, "/changed/a.html", &[""; 4]), [200, 200, 200, 429]);
    assert_eq!(get("198.51.100.3", "/key/a.html", &KEYS), [200, 200, 200]);

    dir.write("rocknet.toml", &text(backend, "2/h"));
    let mut process = server.id();
    for upgrades in 1..=2 {
        let successor = upgrade(&dir, &[]);
        // Once the old process has ended, the new one serves every request.
        wait_for_end(process);
        process = successor;
        server.logged("limits and offences of clients continue");
        assert_eq!(get(FIRST, "/", &[""; 2]), [429, 429], "after {upgrades} upgrades");
        assert_eq!(get("198.51.100.3", "/key/a.html", &KEYS[..1]), [429]);
    }
    // Other clients and keys have their own rest.
    assert_eq!(get("198.51.100.2", "/", &[""; 2]), [200, 429]);
    assert_eq!(get("198.51.100.3", "/key/a.html", &KEYS[1..]), [429, 200]);
    assert_eq!(get("198.51.100.3", "/key/a.html", &KEYS[2..]), [429]);
    assert_eq!(get("198.51.100.6", "/", &[""]), [200]);
    // The settings of this limit have changed, so it begins again.
    assert_eq!(get(FIRST, "/changed/a.html", &[""; 3]), [200, 200, 429]);
}

#[test]
fn limits_continue_with_epoll() {
    limits_continue("epoll");
}

#[test]
fn limits_continue_with_the_automatic_backend() {
    limits_continue("auto");
}

#[test]
fn limits_continue_with_io_uring() {
    match rocknet_io::runtime::io_uring_unavailable() {
        None => limits_continue("io_uring"),
        Some(trouble) => skip(Need::IoUring, &trouble),
    }
}

#[test]
fn offences_and_wrong_passwords_continue() {
    const GUESSER: &str = "198.51.100.1";
    const SCANNER: &str = "198.51.100.2";
    let dir = folder("auto");
    let server = dir.serve(&["run"]);
    let _end = KillAtEnd(&dir);
    let authority = server.authority().to_owned();
    let get = |client: &str, path: &str, fields: &[&str]| statuses(&authority, client, path, fields);
    assert_eq!(get(SCANNER, "/missing/a", &[""; 2]), [404, 404]);
    assert_eq!(get(GUESSER, "/private/a.html", &passwords(0, 9)), [401; 9]);
    upgrade(&dir, &[]);
    wait_for_end(server.id());
    // A password that is known to be wrong is no new guess. After the tenth guess, the client is throttled.
    assert_eq!(get(GUESSER, "/private/a.html", &passwords(0, 1)), [401]);
    assert_eq!(get(GUESSER, "/private/a.html", &passwords(9, 2)), [401, 429]);
    // The third missing file leads to a ban.
    assert_eq!(get(SCANNER, "/missing/a", &[""; 2]), [404, 403]);
}

#[test]
fn bans_of_the_old_process_continue_in_the_new_one() {
    const SCANNER: &str = "198.51.100.2";
    const OTHER: &str = "198.51.100.3";
    const PAGE: &str = "/missing/page.html";
    let dir = folder("auto");
    // The incomplete requests must not time out before the upgrade has ended.
    let slow = text("auto", "3/h").replace("[ban]", "[limits]\nheader_timeout = \"10m\"\n[ban]");
    dir.write("rocknet.toml", &slow);
    // This route has no limit. Requests that a limit refuses could lead to a ban, too.
    dir.write("www/missing/page.html", "page");
    let mut server = dir.serve(&["run"]);
    let _end = KillAtEnd(&dir);
    let authority = server.authority().to_owned();
    let get = |client: &str, path: &str| statuses(&authority, client, path, &[""])[0];
    // The connections have incomplete requests, which the old process receives after the upgrade.
    let mut connections: Vec<_> = (0..4).map(|_| connect(&authority)).collect();
    for connection in &mut connections {
        let head = format!("GET /missing/a HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {SCANNER}\r\n");
        connection.write_all(head.as_bytes()).expect("a part of a request");
    }
    // Once a request on a later connection of each worker has its response, the parts have been received.
    for _ in 0..16 {
        assert_eq!(get(OTHER, PAGE), 200);
    }
    let successor = upgrade(&dir, &[]);
    assert_eq!(get(SCANNER, PAGE), 200);
    let last = connections.split_off(3);
    for mut connection in connections {
        connection.write_all(b"\r\n").expect("the end of a request");
        let mut response = String::new();
        connection.read_to_string(&mut response).expect("a response");
        assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
    }
    let until = Instant::now() + TIMEOUT;
    while get(SCANNER, PAGE) != 403 {
        assert!(Instant::now() < until, "the new process does not get the ban");
    }
    assert_eq!(get(OTHER, PAGE), 200);
    // The ban is stored, so that a kill does not lift it.
    let bans = || fs::read_to_string(dir.path().join("state/bans/bans")).expect("stored bans");
    assert!(bans().contains(SCANNER) && !dir.path().join("state/bans/passed").exists());
    drop(last);
    assert_eq!(server.wait_for_exit(), Some(0));
    assert_eq!(get(SCANNER, PAGE), 403);
    assert!(
        bans().starts_with(&format!("rocknet-bans 1 {successor}-")),
        "{}",
        bans()
    );
}

/// The old process of an upgrade, which the test imitates.
struct OldProcess {
    channel: FdChannel,
    server: Server,
    authority: String,
    _dir: ProgramFolder,
}

impl OldProcess {
    /// Starts a successor, and passes it a socket and these secrets of the tables of clients.
    fn start(secrets: Option<&[u8]>) -> OldProcess {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let authority = socket.local_addr().expect("an address").to_string();
        let dir = ProgramFolder::new(&[("www/index.html", "home")]);
        let text = format!(
            "[server]\nworkers = 1\n[site.default]\nlisten = \"{authority}\"\nroot = \"www\"\nlimit = \"3/h\"\n"
        );
        dir.write("rocknet.toml", &text);
        let (channel, input) = FdChannel::pair().expect("a channel");
        let server = dir.serve_after(&["run"], input);
        let old = OldProcess {
            channel,
            server,
            authority,
            _dir: dir,
        };
        old.send(b"begin 1 1 0", None);
        let folder = format!("state {}", old._dir.path().join("state").display());
        old.send(folder.as_bytes(), None);
        if let Some(secrets) = secrets {
            old.send(&[b"optional limit-secrets 1 ", secrets].concat(), None);
        }
        let message = format!("socket sites stream {}", old.authority);
        old.send(message.as_bytes(), Some(socket.as_fd()));
        old.send(b"end", None);
        assert_eq!(old.receive(), b"prepared");
        old
    }

    fn send(&self, message: &[u8], file: Option<BorrowedFd<'_>>) {
        self.channel
            .send(message, file, Blocking::Yes)
            .expect("a message is sent");
    }

    fn receive(&self) -> Vec<u8> {
        assert!(self.channel.wait_readable(TIMEOUT), "no message");
        let mut buffer = [0; 8192];
        let message = self.channel.recv(&mut buffer, Blocking::No).expect("a message");
        buffer[..message.expect("an open channel").size].to_vec()
    }

    /// Lets the successor serve, and returns its log up to then. Its limits have to begin at 0.
    fn finish(self) -> String {
        self.send(b"go", None);
        assert_eq!(self.receive(), b"ready");
        let log = self.server.logged_until("has taken over");
        let expected = [200, 200, 200, 429];
        assert_eq!(statuses(&self.authority, "198.51.100.1", "/", &[""; 4]), expected);
        log
    }
}

#[test]
fn a_transfer_that_cannot_be_used_does_not_stop_an_upgrade() {
    const LOGGED: &str = "the counts of all limits begin at 0";
    let secrets = [7; 48];
    let seed = |byte| KeySeed::new(&[byte; KeySeed::SIZE]);
    let transfer = |seed: &KeySeed, clock| TransferWriter::new(seed, clock).finish();
    let now = machine_uptime_ns();
    let whole = transfer(&seed(7), now);
    let rows: [(&[u8], &str); 6] = [
        (b"", "they are incomplete"),
        (b"other bytes, which are no transfer", "they are in another format"),
        (&whole[..whole.len() - 1], "they are incomplete"),
        (&transfer(&seed(8), now), "their keys have another seed"),
        (&transfer(&seed(7), now + (1 << 50)), "their time is in the future"),
        (&whole, ""),
    ];
    for (content, expected) in rows {
        let old = OldProcess::start(Some(&secrets));
        let file: File = sealed_file::create(content).expect("a file");
        old.send(b"optional limits 1", Some(file.as_fd()));
        let log = old.finish();
        match expected {
            "" => assert!(!log.contains(LOGGED), "{log}"),
            _ => assert!(log.contains(LOGGED) && log.contains(expected), "{expected}: {log}"),
        }
    }
    let old = OldProcess::start(Some(&secrets));
    old.send(b"optional limits 1", None);
    let log = old.finish();
    assert!(log.contains(LOGGED) && log.contains("they were not received"), "{log}");
}

#[test]
fn predecessors_of_other_versions_are_replaced() {
    let file = sealed_file::create(b"a format of the future").expect("a file");
    for (secrets, message) in [
        // A version without the transfer, and one with another.
        (None, None),
        (Some(&[7; 20][..]), Some("optional limits 2")),
        (None, Some("optional limits 2")),
    ] {
        let old = OldProcess::start(secrets);
        if let Some(message) = message {
            old.send(message.as_bytes(), Some(file.as_fd()));
        }
        let log = old.finish();
        assert!(!log.contains("begin at 0") && !log.contains("continue:"), "{log}");
    }
}
