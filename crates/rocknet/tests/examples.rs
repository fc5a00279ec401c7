//! Every folder in `examples/`, served as it stands: the addresses in its comments give the documented responses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rocknet::server::Server;
use rocknet_config::System;
use rocknet_config::model::{Config, Host, Listen};
use rocknet_io::socket::Address;

#[allow(dead_code)] // shared with the tests over sockets, which use more of it
#[path = "server/support/client.rs"]
mod client;

use client::Client;

/// Time limit of any response, far above what is needed on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

const NO_FIELDS: &[&str] = &[];
const JSON: &[&str] = &["Accept: application/json"];
const HTML: &str = "Content-Type: text/html; charset=utf-8";

/// An example, an address as its comments give it, and request fields. Then the response: its status, its header fields
/// (see [`client::Response::expect`]), and parts of its body, in this order.
type Row = (
    &'static str,
    &'static str,
    &'static [&'static str],
    u16,
    &'static [&'static str],
    &'static [&'static str],
);

#[rustfmt::skip] // a row that fits a line is read as a row
const ROWS: &[Row] = &[
    ("cgi", "http://localhost:8080/", NO_FIELDS, 200, &[HTML], &["Harbour programs"]),
    ("cgi", "http://localhost:8080/cgi-bin/date.sh", NO_FIELDS, 200, &["Content-Type: text/plain"], &["The harbour clock says"]),
    ("cgi", "http://localhost:8080/cgi-bin/hello.py?name=Ada", NO_FIELDS, 200, &[HTML], &["Hello, Ada!"]),
    ("cgi", "http://localhost:8080/cgi-bin/path.pl/some/where", NO_FIELDS, 200, &[], &["You are at /some/where"]),
    ("application", "http://localhost:8080/", NO_FIELDS, 200, &[HTML], &["Moorings", "made by an application"]),
    ("php", "http://localhost:8080/", NO_FIELDS, 200, &[], &["Boats for hire", "/boats/heron"]),
    ("php", "http://localhost:8080/boats/heron", NO_FIELDS, 200, &[], &["Heron: two seats"]),
    ("php", "http://localhost:8080/boats/none", NO_FIELDS, 404, &[], &["No such boat"]),
    ("php", "http://localhost:8080/report.php", &["Range: bytes=0-9"], 206,
        &["Content-Disposition: attachment; filename=\"june.csv\"", "Content-Range: bytes 0-9/29"], &["boat,hours"]),
    ("php", "http://localhost:8080/reports/june.csv", NO_FIELDS, 404, &[], &[]),
    ("downloads", "http://localhost:8080/", NO_FIELDS, 200, &[HTML, "Content-Security-Policy"],
        &["<title>Index of /</title>", "?sort=size", "href=\"./2025/\"", "href=\"./README.txt\""]),
    ("downloads", "http://localhost:8080/", JSON, 200, &["Content-Type: application/json"],
        &["\"2025\"", "\"2026\"", "\"manuals\"", "\"maps\"", "\"README.txt\""]),
    ("downloads", "http://localhost:8080/2025/", JSON, 200, &[], &["log-1.txt", "log-2.txt", "log-10.txt", "log-11.txt"]),
    ("downloads", "http://localhost:8080/2025/log-10.txt", NO_FIELDS, 200, &[], &["Boats back: 100"]),
    ("downloads", "http://localhost:8080/2026/levels%20november.csv", NO_FIELDS, 200, &["Content-Type: text/csv; charset=utf-8"], &[","]),
    ("load-balancing", "http://localhost:8080/", NO_FIELDS, 200, &[HTML], &["Server ", "another server may answer"]),
    ("load-balancing", "http://localhost:8083/", NO_FIELDS, 200, &[HTML], &["Server three"]),
    ("grpc", "http://localhost:8080/", NO_FIELDS, 200, &[HTML], &["Echo by gRPC"]),
    // Nothing listens there in this test.
    ("grpc", "http://localhost:8080/example.Echo/Say", NO_FIELDS, 502, &[HTML], &["502"]),
    ("proxy", "http://localhost:8080/", NO_FIELDS, 200, &[HTML, "!X-Answered-By"], &["This page is a file"]),
    ("proxy", "http://localhost:8080/api/tides.json", NO_FIELDS, 200,
        &["Content-Type: application/json", "X-Answered-By: the program behind", "Cache-Control: no-store"], &["06:12"]),
    ("ports", "http://localhost:8081/", NO_FIELDS, 200, &[HTML], &["Harbour Library"]),
    ("ports", "http://localhost:8082/", NO_FIELDS, 200, &[HTML], &["Staff room"]),
    ("spa", "http://localhost:8080/", NO_FIELDS, 200, &[HTML], &["/assets/app-1.js"]),
    ("spa", "http://localhost:8080/tides/ebb", NO_FIELDS, 200, &[HTML, "Cache-Control: no-cache"], &["/assets/app-1.js"]),
    ("spa", "http://localhost:8080/about", NO_FIELDS, 200, &[HTML, "Cache-Control: no-cache"], &["<h1>About</h1>"]),
    ("spa", "http://localhost:8080/assets/app-1.js", NO_FIELDS, 200,
        &["Content-Type: text/javascript; charset=utf-8", "Cache-Control: public, max-age=31536000, immutable"], &["/tides/ebb"]),
    ("spa", "http://localhost:8080/assets/app-0.js", NO_FIELDS, 404, &["!Cache-Control"], &[]),
    ("static", "http://localhost:8080/", NO_FIELDS, 200, &[HTML, "Referrer-Policy: same-origin"], &["Six rowing boats"]),
    ("static", "http://localhost:8080/timetable", NO_FIELDS, 308, &["Location: /opening.html"], &[]),
    ("static", "http://localhost:8080/opening.html", NO_FIELDS, 200, &[HTML], &["closed, we paint"]),
    ("static", "http://localhost:8080/nowhere", NO_FIELDS, 404, &[HTML, "Referrer-Policy: same-origin"], &["Nothing is moored"]),
    ("wordpress", "http://localhost:8080/", NO_FIELDS, 200, &[HTML], &["WordPress goes here"]),
    ("wordpress", "http://localhost:8080/xmlrpc.php", NO_FIELDS, 403, &[], &[]),
    ("wordpress", "http://localhost:8080/ebb-at-noon/", NO_FIELDS, 404, &[], &[]),
    ("websocket", "http://localhost:8080/", NO_FIELDS, 200, &[HTML], &["nothing yet", "new WebSocket"]),
    ("vhosts", "http://a.localhost:8080/", NO_FIELDS, 200, &[HTML], &["Alder Books"]),
    ("vhosts", "http://b.localhost:8080/", NO_FIELDS, 200, &[HTML], &["Birch Bicycles"]),
    ("vhosts", "http://bicycles.localhost:8080/", NO_FIELDS, 200, &[HTML], &["Birch Bicycles"]),
    ("vhosts", "http://c.localhost:8080/", NO_FIELDS, 404, &[HTML], &["No site here is called <code>c.localhost</code>"]),
];

#[test]
fn examples_respond_as_their_comments_document() {
    for example in examples() {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| row.0 == example).collect();
        assert!(!rows.is_empty(), "examples/{example} has no row");
        let running = Example::start(&example);
        for row in rows {
            running.check(row);
        }
    }
}

#[test]
fn rows_and_readme_name_every_example_and_every_address() {
    let there = examples();
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(rows, there, "the rows, and the folders in examples/");
    let readme = text(&repository().join("README.md"));
    for example in there {
        let comments = text(&file(&example));
        for url in comments.lines().filter(|line| line.starts_with('#')).flat_map(urls_in) {
            let tested = ROWS.iter().any(|row| row.0 == example && row.1 == url);
            assert!(tested, "examples/{example} promises {url}, and no row asks for it");
        }
        let command = format!("cargo run --release -- run -c examples/{example}/rocknet.toml");
        assert!(comments.contains(&command), "examples/{example} does not say {command}");
        let link = format!("[{example}](examples/{example}/rocknet.toml)");
        assert!(readme.contains(&link), "README.md does not say {link}");
    }
}

#[test]
fn the_two_ports_have_threads_of_their_own() {
    let running = Example::start("ports");
    let workers: Vec<usize> = running.server().listeners().iter().map(|listener| listener.2).collect();
    assert_eq!(workers.len(), 2);
    assert!(workers.iter().all(|&workers| workers >= 1), "{workers:?}");
}

#[test]
fn requests_take_turns_among_the_three_servers() {
    let running = Example::start("load-balancing");
    let mut client = Client::to(running.ports[&8080]);
    let mut found = BTreeSet::new();
    for _ in 0..40 {
        let text = client.get("/").text();
        found.extend(
            ["one", "two", "three"]
                .into_iter()
                .filter(|name| text.contains(&format!("Server {name}"))),
        );
    }
    assert_eq!(found.len(), 3, "{found:?}");
}

/// The program of an example, on a port chosen by the kernel.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Beside {
    /// Starts the program of an example, and the example with the program's address in place of the configured one.
    fn start(example: &str, program: &str, address: &str) -> (Beside, Example) {
        let folder = repository().join("examples").join(example);
        let mut child = Command::new("python3")
            .arg(folder.join(program))
            .arg("0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3, which `cargo xtask test` installs");
        let said = child.stdout.take().expect("a pipe");
        let beside = Beside(child);
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).expect("a line");
        let port = line.trim().rsplit(' ').next().expect("a port").to_owned();
        let written = text(&file(example));
        assert!(written.contains(address));
        let running = Example::of(example, &written.replace(address, &format!("127.0.0.1:{port}")));
        (beside, running)
    }
}

#[test]
fn the_application_is_reached_over_scgi() {
    let (_beside, running) = Beside::start("application", "app.py", "127.0.0.1:9002");
    let mut client = Client::to(running.ports[&8080]);
    for (path, status, content) in [
        ("/moorings/", 200, "<a href=\"/moorings/heron\">heron</a>"),
        ("/moorings/heron", 200, "north pier"),
        ("/moorings/%3Cb%3E", 404, "&lt;b&gt;"),
    ] {
        let answer = client.get(path);
        answer.expect(path, status, &[HTML]);
        assert!(answer.text().contains(content), "{path}: {answer:?}");
    }
}

#[test]
fn the_websocket_example_echoes() {
    let (_beside, running) = Beside::start("websocket", "echo.py", "127.0.0.1:9001");
    let mut client = Client::to(running.ports[&8080]);
    let answer = client.ask(
        "GET /echo",
        &[
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ],
    );
    answer.expect(
        "a handshake",
        101,
        &["Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="],
    );
    for length in [0, 1, 125, 126, 65_535, 65_536, 200_000_usize] {
        for first in [0x81, 0x82, 0x89] {
            // Ping frames are short (RFC 6455 §5.5).
            let length = if first == 0x89 { length.min(125) } else { length };
            let content: Vec<u8> = (0..length).map(|at| b'a' + (at % 23) as u8).collect();
            client.send([&frame_head(first, length, 0x80)[..], &[0; 4], &content].concat());
            let back = if first == 0x89 { 0x8a } else { first };
            let expected = [&frame_head(back, length, 0)[..], &content].concat();
            assert!(client.bytes(expected.len()) == expected, "{first:x} of {length}");
        }
    }
    client.send([0x88, 0x80, 0, 0, 0, 0]);
    assert_eq!(client.bytes(2), [0x88, 0]);
    client.assert_closed("a farewell");
}

/// Head of a WebSocket frame.
fn frame_head(first: u8, length: usize, mask: u8) -> Vec<u8> {
    match u16::try_from(length) {
        Ok(short @ 0..126) => vec![first, mask | short as u8],
        Ok(short) => [&[first, mask | 126][..], &short.to_be_bytes()].concat(),
        Err(_) => [&[first, mask | 127][..], &(length as u64).to_be_bytes()].concat(),
    }
}

/// An example on ports chosen by the kernel.
struct Example {
    /// `None` after it was stopped.
    server: Option<Server>,
    /// Current address of each port that the example names.
    ports: BTreeMap<u16, SocketAddr>,
}

impl Example {
    fn start(name: &str) -> Example {
        Example::of(name, &text(&file(name)))
    }

    /// Starts the example with these settings, in its own folder.
    fn of(name: &str, settings: &str) -> Example {
        let loaded = rocknet_config::parse(settings, &file(name), &System);
        let loaded = loaded.unwrap_or_else(|report| panic!("{name}: {report:?}"));
        assert!(loaded.warnings.is_empty(), "{name}: {:?}", loaded.warnings);
        let mut config = loaded.config;
        let moved = move_away(&mut config);
        let mut again = config.clone();
        let server =
            Server::start(config, Vec::new(), &mut || Ok(())).unwrap_or_else(|error| panic!("{name}: {error}"));
        let bound: BTreeMap<Address, Address> = server
            .listeners()
            .into_iter()
            .map(|(asked, bound, _)| (asked, bound))
            .collect();
        let ports = moved.into_iter().map(|(port, asked)| match bound.get(&asked) {
            Some(Address::Tcp {
                ip: Some(ip),
                port: now,
            }) => (port, SocketAddr::new(*ip, *now)),
            other => panic!("{name}: port {port} became {other:?}"),
        });
        let ports: BTreeMap<u16, SocketAddr> = ports.collect();
        if follow(&mut again, &ports) {
            server.reload(again).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        Example {
            ports,
            server: Some(server),
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("a server that was not stopped")
    }

    #[track_caller]
    fn check(&self, (example, url, fields, status, answer_fields, content): &Row) {
        let what = format!("examples/{example}, {url} {fields:?}");
        let (authority, path) = split(url);
        let port: u16 = authority
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok())
            .unwrap_or_else(|| panic!("{what}: no port"));
        let address = self.ports.get(&port).unwrap_or_else(|| panic!("{what}: nobody there"));
        let host = format!("Host: {authority}");
        let fields: Vec<&str> = fields.iter().copied().chain([host.as_str()]).collect();
        let answer = Client::to(*address).ask(&format!("GET {path}"), &fields);
        let text = answer.expect(&what, *status, answer_fields).text();
        let mut rest = text.as_str();
        for part in *content {
            let at = rest
                .find(part)
                .unwrap_or_else(|| panic!("{what}: no {part:?} in order in {text}"));
            rest = &rest[at + part.len()..];
        }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

/// Gives every port of the configuration a loopback address with a port that the kernel chooses. Sites that share a
/// port continue to share one, and others never do. Returns the new address of each port.
fn move_away(config: &mut Config) -> BTreeMap<u16, Address> {
    let mut moved = BTreeMap::new();
    let mut free = (1..=u8::MAX).map(|last| Ipv4Addr::new(127, 0, 0, last));
    for listen in config.sites.iter_mut().flat_map(|site| &mut site.listen) {
        let Listen::Tcp { address: None, port } = *listen else {
            panic!("an example takes a port of every address, so that it runs anywhere: {listen:?}");
        };
        let asked = moved.entry(port).or_insert_with(|| Address::Tcp {
            ip: free.next().map(Into::into),
            port: 0,
        });
        if let Address::Tcp { ip, port } = asked {
            *listen = Listen::Tcp {
                address: *ip,
                port: *port,
            };
        }
    }
    moved
}

/// Redirects proxies that point to sites of the same example to their current addresses. Returns true if there are any.
fn follow(config: &mut Config, ports: &BTreeMap<u16, SocketAddr>) -> bool {
    let mut follows = false;
    for site in &mut config.sites {
        let settings = site.routes.iter_mut().map(|route| &mut route.settings);
        for proxy in settings
            .chain([&mut site.settings])
            .filter_map(|settings| settings.proxy.as_mut())
        {
            for to in &mut proxy.to {
                if let Host::Address(ip, port) = &mut to.upstream.host
                    && let Some(now) = ports.get(port)
                {
                    (*ip, *port) = (now.ip(), now.port());
                    follows = true;
                }
            }
        }
    }
    follows
}

/// Names of the folders in `examples/`.
fn examples() -> BTreeSet<String> {
    let folder = repository().join("examples");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let entries = entries.map(|entry| entry.expect("an entry"));
    // Controllers have to be built first: their own tests request them.
    let folders = entries.filter(|entry| entry.path().is_dir() && entry.file_name() != "controllers");
    folders
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn file(example: &str) -> PathBuf {
    repository().join("examples").join(example).join("rocknet.toml")
}

fn repository() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    above.expect("a crate below the repository").to_owned()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn urls_in(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace().filter(|word| word.starts_with("http://"))
}

/// Splits a URL into authority, and path with query.
fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    rest.split_at(rest.find('/').unwrap_or_else(|| panic!("{url} has no path")))
}

/// A reader who copies the line after "Run:" gets a response only if the required program, library or language is
/// installed.
#[test]
fn examples_document_their_prerequisites() {
    const NEEDING: [&str; 7] = ["controller", "php", "cgi", "fastcgi", "scgi", "uwsgi", ".py"];
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (mut looked, mut needing) = (0, 0);
    let folders = [top.clone(), top.join("controllers")];
    for entry in folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("examples"))
    {
        let folder = entry.expect("an entry").path();
        let Ok(text) = fs::read_to_string(folder.join("rocknet.toml")) else {
            continue;
        };
        let keys = text
            .lines()
            .filter_map(|line| Some(line.split_once(" = ")?.0.trim_matches('"')));
        let mut words: BTreeSet<&str> = keys.filter(|key| !key.starts_with('#')).collect();
        let has_program = fs::read_dir(&folder).expect("a folder").flatten().any(|entry| {
            let path = entry.path();
            path.extension().is_some_and(|extension| extension == "py")
        });
        words.extend(has_program.then_some(".py"));
        looked += 1;
        if !NEEDING.iter().any(|word| words.contains(word)) {
            continue;
        }
        needing += 1;
        let comments: Vec<_> = text.lines().take_while(|line| line.starts_with('#')).collect();
        let is_told = comments.iter().any(|line| line.to_lowercase().contains("first"));
        assert!(is_told, "{}: {comments:?}", folder.display());
    }
    assert!(looked >= 12 && needing >= 9, "{looked} {needing}");
}
