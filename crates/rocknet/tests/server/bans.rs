//! Bans: offences that lead to them, the clients that they concern, lists in files, and the state folder.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rocknet_control::ban::BanList;
use rocknet_testing::{Need, skip};
use rustix::net::{AddressFamily, SocketType};

use super::access::{auth, basic};
use super::metrics::value;
use super::support::certs::{Authority, Kind};
use super::support::client::request;
use super::support::http2::Http2;
use super::support::upstream::{Next, Upstream, write_to};
use super::support::{Client, DEADLINE, Folder, Running};

const ATTACKER: &str = "198.51.100.1";
const VISITOR: &str = "198.51.100.2";

/// Returns a configuration. Clients name their address as behind a load balancer or proxy. `ban`: keys of `[ban]`.
fn text(server: &str, ban: &str, keys: &str) -> String {
    format!(
        "[server]\nworkers = 2\nblocking_threads = 2\nh2c = true\nstate = \"state\"\n\
         events = {{ wait = \"20ms\", connections = 16 }}\n{server}\n[ban]\n{ban}\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{keys}\n"
    )
}

const BALANCED: &str = "proxy_protocol = [\"127.0.0.0/8\"]";
const FORWARDED: &str = "trusted_proxies = [\"127.0.0.0/8\"]";

fn folder() -> Folder {
    Folder::with(&[("www/index.html", "home"), ("www/login.html", "form")])
}

/// Opens a connection of a client behind a load balancer.
fn connect(server: &Running, address: &str) -> Client {
    let mut client = server.connect();
    client.send(format!("PROXY TCP4 {address} 192.0.2.2 5000 80\r\n"));
    client
}

/// Returns true if the connection of a client is closed without a response.
fn is_closed(server: &Running, address: &str) -> bool {
    let mut client = connect(server, address);
    client.send_anyway(request("GET /", &[]));
    client.rest().is_empty()
}

fn bans(server: &Running) -> BanList {
    server.server().registries().bans.list()
}

/// Returns a field that names the client of a request.
fn from(address: &str) -> String {
    format!("X-Forwarded-For: {address}")
}

#[test]
fn guesses_of_passwords_ban_the_client_and_no_other() {
    let server = Running::start(folder(), &text(BALANCED, "logins = \"3/10m\"", &auth()));
    let mut attacker = connect(&server, ATTACKER);
    // The same wrong password counts once, and no password is no guess.
    assert_eq!(attacker.get("/").status, 401);
    for password in ["a", "a", "a", "b"] {
        assert_eq!(attacker.fetch("GET /", &[&basic("bob", password)]).status, 401);
    }
    assert!(bans(&server).bans.is_empty());
    let mut open = connect(&server, ATTACKER);
    assert_eq!(open.get("/").status, 401);
    assert_eq!(attacker.fetch("GET /", &[&basic("bob", "c")]).status, 401);
    let list = bans(&server);
    assert_eq!(
        (list.total, &*list.bans[0].address, list.bans[0].count),
        (1, ATTACKER, 1)
    );
    assert_eq!(list.bans[0].reason, "failed logins");
    assert_eq!(list.bans[0].until.unwrap() - list.bans[0].since, 3_600);
    // New connections are closed, and an open one is at its next request. The right password does not help.
    assert!(is_closed(&server, ATTACKER));
    open.send(request("GET /", &[&basic("bob", "secret")]));
    assert_eq!(open.response().status, 403);
    open.assert_closed("after a ban");
    let mut visitor = connect(&server, VISITOR);
    assert_eq!(visitor.fetch("GET /", &[&basic("bob", "secret")]).text(), "home");
    assert_eq!(value(&server, "rocknet_bans"), Some(1.0));
    assert_eq!(
        value(&server, "rocknet_bans_begun_total{offence=\"logins\"}"),
        Some(1.0)
    );
    assert_eq!(value(&server, "rocknet_banned_connections_total"), Some(1.0));
    assert_eq!(value(&server, "rocknet_banned_requests_total"), Some(1.0));
    // An operator lifts the ban.
    let registry = &server.server().registries().bans;
    assert_eq!(registry.lift(ATTACKER), Ok((ATTACKER.to_owned(), true)));
    assert_eq!(registry.lift(ATTACKER), Ok((ATTACKER.to_owned(), false)));
    assert_eq!(connect(&server, ATTACKER).get("/").status, 401);
}

#[test]
fn failed_logins_of_an_application_ban_its_client_behind_a_proxy() {
    let keys = "[[site.default.rule]]\nmethod = \"POST\"\npath = \"/done\"\nredirect = \"/\"\n\
                [[site.default.rule]]\nmethod = \"POST\"\npath = \"/login/*\"\nrespond = 200\n\
                [[site.default.rule]]\nmethod = \"POST\"\npath = \"/login\"\nrespond = 200\n";
    let ban = "logins = \"4/10m\"\nlogin_paths = [\"/login\", \"/done\"]\nexempt = []";
    let server = Running::start(folder(), &text(FORWARDED, ban, keys));
    let (attacker, visitor) = (from(ATTACKER), from(VISITOR));
    let mut client = server.connect();
    // A redirect confirms a login, and requests with GET do not count.
    for _ in 0..10 {
        assert_eq!(client.fetch("POST /done", &[&attacker]).status, 308);
        assert_eq!(client.fetch("GET /login.html", &[&attacker]).status, 200);
    }
    // Other ways to write the path lead to the same form.
    for path in ["/login", "/l%6fgin?x=1", "//login", "/login/extra"] {
        assert!(bans(&server).bans.is_empty(), "{path}");
        client.fetch(&format!("POST {path}"), &[&attacker]);
    }
    assert_eq!(bans(&server).bans[0].address, ATTACKER);
    // The proxy is not banned. Requests that it forwards for the client are refused, and end the connection.
    assert_eq!(client.fetch("GET /", &[&visitor]).text(), "home");
    let refused = client.fetch("GET /", &[&attacker]);
    assert_eq!(refused.status, 403);
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.fetch("GET /", &[&visitor]).text(), "home");
    }
    let forged = from(&format!("{VISITOR}, {ATTACKER}"));
    assert_eq!(client.fetch("GET /", &[&forged]).status, 403);
}

#[test]
fn requests_for_missing_files_and_refused_requests_lead_to_bans() {
    let ban = "not_found = \"5/1m\"\nrefused = \"5/1m\"\ntime = \"1h\"\nmax_time = \"3h\"";
    let keys = "[site.default.route.\"/closed/*\"]\ndeny = \"all\"";
    let server = Running::start(folder(), &text(FORWARDED, ban, keys));
    let mut client = server.connect();
    for (address, path, status, reason) in [
        (ATTACKER, "/missing", 404, "requests for missing files"),
        ("2001:db8::1", "/closed/x", 403, "refused requests"),
    ] {
        let field = from(address);
        for _ in 0..5 {
            assert_eq!(
                client.fetch(&format!("GET {path}"), &[&field]).status,
                status,
                "{address}"
            );
        }
        let list = bans(&server);
        assert!(list.bans.iter().any(|ban| ban.reason == reason), "{list:?}");
    }
    // The first 64 bits of an IPv6 address count as one client.
    assert_eq!(server.connect().fetch("GET /", &[&from("2001:db8::2")]).status, 403);
    assert_eq!(server.connect().fetch("GET /", &[&from("2001:db8:0:1::2")]).status, 200);
    // Clients of private networks are exempt by default.
    let mut local = server.connect();
    for _ in 0..10 {
        assert_eq!(local.fetch("GET /missing", &[&from("10.1.1.1")]).status, 404);
    }
    assert_eq!(bans(&server).total, 2);
    let worst = server.server().registries().bans.worst_clients();
    assert_eq!(
        (&*worst[0].address, worst[0].not_found, worst[0].is_banned),
        ("10.1.1.1", 10, false)
    );
    let attacker = worst.iter().find(|client| client.address == ATTACKER).unwrap();
    assert!(attacker.not_found == 5 && attacker.is_banned);
}

#[test]
fn a_dry_run_bans_nobody() {
    let server = Running::start(folder(), &text(FORWARDED, "not_found = \"2/1m\"\ndry_run = true", ""));
    let mut client = server.connect();
    for _ in 0..4 {
        assert_eq!(client.fetch("GET /missing", &[&from(ATTACKER)]).status, 404);
    }
    assert_eq!(bans(&server).total, 0);
    assert_eq!(value(&server, "rocknet_dry_run_bans_total"), Some(3.0));
}

#[test]
fn connections_of_a_banned_client_are_closed() {
    let server = Running::start(folder(), &text("", "exempt = []", ""));
    let mut open = server.connect();
    assert_eq!(open.get("/").status, 200);
    server.server().registries().bans.add("127.0.0.1", None, "").unwrap();
    assert_eq!(open.get("/").status, 403);
    open.assert_closed("after a ban");
    let mut other = server.connect();
    other.send_anyway(request("GET /", &[]));
    assert!(other.rest().is_empty());
}

#[test]
fn streams_of_other_clients_of_a_proxy_are_served_over_http2() {
    let server = Running::start(folder(), &text(FORWARDED, "", ""));
    server.server().registries().bans.add(ATTACKER, None, "").unwrap();
    let mut client = Http2::to(server.address());
    let get = |address: &str| client.request("GET", "/").header("x-forwarded-for", address);
    let requests = [ATTACKER, VISITOR].map(get);
    let started = requests.map(|request| client.start_request(request, true).0);
    let statuses = started.map(|response| client.response(response).unwrap().status);
    assert_eq!(statuses, [403, 200]);
}

#[test]
fn a_banned_client_gets_no_response_over_quic() {
    fn case() {
        let server = Running::start(folder(), &text("", "exempt = []", ""));
        let registry = &server.server().registries().bans;
        registry.add("127.0.0.1", None, "").unwrap();
        std::thread::scope(|scope| {
            let connected = scope.spawn(|| server.connect().get("/").text());
            let begun = Instant::now();
            while value(&server, "rocknet_banned_connections_total") == Some(0.0) {
                assert!(begun.elapsed() < DEADLINE, "no connection was refused");
                std::thread::yield_now();
            }
            assert_eq!(
                value(&server, "rocknet_connections_total{version=\"3\"}").unwrap_or(0.0),
                0.0
            );
            // The client repeats its first packet, which begins a connection once the ban is lifted.
            registry.lift("127.0.0.1").unwrap();
            assert_eq!(connected.join().unwrap(), "home");
        });
    }
    super::support::version::over_http3(case);
}

#[test]
fn an_operator_bans_a_client_until_a_restart_and_beyond() {
    let config = text(FORWARDED, "time = \"10m\"", "");
    let server = Running::start(folder(), &config);
    let registry = &server.server().registries().bans;
    let mut open = server.connect();
    assert_eq!(open.fetch("GET /", &[&from(ATTACKER)]).status, 200);
    let (address, until) = registry.add(ATTACKER, None, "a \u{1b}bot\nx").unwrap();
    assert!(address == ATTACKER && until.is_some());
    let forever = Some(std::time::Duration::ZERO);
    assert_eq!(
        registry.add("203.0.113.9/24", forever, ""),
        Ok(("203.0.113.0/24".to_owned(), None))
    );
    for refused in ["127.0.0.1", "10.0.0.0/8", "nonsense", "0.0.0.0/0"] {
        assert!(registry.add(refused, None, "").is_err(), "{refused}");
    }
    assert_eq!(open.fetch("GET /", &[&from(ATTACKER)]).status, 403);
    // A reload keeps the bans, and so does a restart.
    server.reload(&config).unwrap();
    let (stopped, folder) = server.take();
    assert!(stopped.stop());
    let server = Running::start(folder, &config);
    for (address, status) in [(ATTACKER, 403), ("203.0.113.77", 403), (VISITOR, 200)] {
        assert_eq!(
            server.connect().fetch("GET /", &[&from(address)]).status,
            status,
            "{address}"
        );
    }
    let reasons: Vec<_> = bans(&server).bans.into_iter().map(|ban| ban.reason).collect();
    assert!(reasons.contains(&"a ?bot?x".to_owned()), "{reasons:?}");
    let registry = &server.server().registries().bans;
    assert!(registry.lift("203.0.113.77").is_err());
    assert_eq!(registry.lift("203.0.113.0/24"), Ok(("203.0.113.0/24".to_owned(), true)));
    assert_eq!(server.connect().fetch("GET /", &[&from("203.0.113.77")]).status, 200);
}

#[test]
fn lists_in_files_are_read_again_when_they_change() {
    let folder = folder();
    folder.write(
        "bans.txt",
        "# bad networks\n198.51.100.0/24 ; scanner\nnonsense\n10.0.0.0/8\n",
    );
    let server = Running::start(folder, &text(FORWARDED, "files = [\"bans.txt\"]", ""));
    let status = |address: &str| server.connect().fetch("GET /", &[&from(address)]).status;
    // An exempt client is not banned by a list either.
    assert_eq!([ATTACKER, "203.0.113.9", "10.1.1.1"].map(status), [403, 200, 200]);
    let list = bans(&server);
    assert_eq!(
        (list.files[0].entries, list.files[0].skipped_lines, list.total),
        (2, 1, 0)
    );
    assert!(
        server
            .server()
            .registries()
            .bans
            .lift(ATTACKER)
            .unwrap_err()
            .contains("bans.txt")
    );
    server.folder.write("bans.txt", "203.0.113.9\n");
    let begun = Instant::now();
    while status("203.0.113.9") != 403 {
        assert!(begun.elapsed() < DEADLINE, "the file was not read again");
        std::thread::yield_now();
    }
    assert_eq!(status(ATTACKER), 200);
    server.reload(&text(FORWARDED, "", "")).unwrap();
    assert_eq!(status("203.0.113.9"), 200);
}

#[test]
fn failed_handshakes_lead_to_a_ban() {
    let folder = folder();
    let authority = Authority::new("bans");
    authority.leaf(Kind::Ecdsa, &["localhost"]).write(&folder, "site");
    let config = text(
        BALANCED,
        "handshakes = \"3/1m\"",
        "tls = { cert = \"site.pem\", key = \"site.key\" }",
    );
    let config = config.replace("\"127.0.0.1:0\"", "\"https://127.0.0.1:0\"");
    let server = Running::start(folder, &config.replace("h2c = true\n", ""));
    for _ in 0..3 {
        assert!(bans(&server).bans.is_empty());
        let mut client = connect(&server, ATTACKER);
        client.send("\x16\x03\x01\0\x05nonsense");
        client.rest();
    }
    let begun = Instant::now();
    while bans(&server).bans.is_empty() {
        assert!(begun.elapsed() < DEADLINE, "the client was not banned");
        std::thread::yield_now();
    }
    assert_eq!(bans(&server).bans[0].reason, "failed TLS handshakes");
    assert!(is_closed(&server, ATTACKER));
}

over_http3! {
    failed_logins_of_an_application_ban_its_client_behind_a_proxy,
    requests_for_missing_files_and_refused_requests_lead_to_bans,
    a_dry_run_bans_nobody,
}

/// Opens a connection from an address of this machine, such as 127.0.0.2.
fn stream_from(source: &str, server: SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let source = SocketAddr::new(source.parse().expect("an address"), 0);
    rustix::net::bind(&socket, &source).expect("an address of this machine");
    rustix::net::connect(&socket, &server).expect("a server that listens");
    TcpStream::from(socket)
}

/// A login form that confirms the password `right` by a redirect. It responds to held requests once it is opened.
struct LoginForm {
    upstream: Upstream,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl LoginForm {
    fn start() -> LoginForm {
        let gate = Arc::<(Mutex<bool>, Condvar)>::default();
        let own = Arc::clone(&gate);
        let upstream = Upstream::start(move |request, stream| {
            if request.field("X-Held").is_some() {
                let (is_open, opened) = &*own;
                let is_open = is_open.lock().unwrap();
                drop(
                    opened
                        .wait_timeout_while(is_open, DEADLINE, |is_open| !*is_open)
                        .unwrap(),
                );
            }
            let response = match (&*request.line, &request.content[..]) {
                ("GET /login HTTP/1.1", _) => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nform",
                (_, b"right") => "HTTP/1.1 303 See Other\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong",
            };
            write_to(stream, response);
            Next::Keep
        });
        LoginForm { upstream, gate }
    }

    fn open(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    /// Returns the number of guesses from an address that the form has received.
    fn guesses(&self, address: &str) -> usize {
        let all = self.upstream.all();
        let guesses = all
            .iter()
            .filter(|request| request.line.starts_with("POST") && request.field("X-Forwarded-For") == Some(address));
        guesses.count()
    }
}

#[test]
fn a_login_page_stays_usable_while_the_attacker_is_banned() {
    const STREAMS: usize = 40;
    const ATTACKERS: [&str; 2] = ["127.0.0.2", "127.0.0.3"];
    const VISITORS: [&str; 3] = ["127.0.0.4", "127.0.0.5", "127.0.0.6"];
    for backend in ["epoll", "io_uring"] {
        if backend == "io_uring"
            && let Some(trouble) = rocknet_io::runtime::io_uring_unavailable()
        {
            skip(Need::IoUring, &trouble);
            continue;
        }
        let form = LoginForm::start();
        let ban = "logins = \"5/10m\"\nlogin_paths = [\"/login\"]\nexempt = []";
        let config = text(&format!("backend = \"{backend}\""), ban, &form.upstream.key());
        let server = Running::start(folder(), &config);
        let address = server.address();
        let log_in = |client: &mut Client, content: &str| {
            let length = format!("Content-Length: {}", content.len());
            client.send(request("POST /login", &[&length]) + content);
            client.response().status
        };
        // Visitors are on connections that are open during the attack, and on new ones.
        let visit = |client: &mut Client, visitor: &str| {
            assert_eq!(client.get("/login").text(), "form", "{visitor}");
            assert_eq!(log_in(client, "wrong"), 200, "{visitor}");
            for _ in 0..6 {
                assert_eq!(log_in(client, "right"), 303, "{visitor}");
            }
        };
        let mut open: Vec<_> = VISITORS.map(|source| Client::over(stream_from(source, address))).into();
        for (client, visitor) in open.iter_mut().zip(VISITORS) {
            visit(client, visitor);
        }
        // Many guesses at once: those that may fail before the ban reach the form, and no other.
        let mut attacks: Vec<_> = ATTACKERS
            .iter()
            .map(|source| {
                let stream = stream_from(source, address);
                let mut client = Http2::over(stream, address, &h2::client::Builder::new());
                let responses: Vec<_> = (0..STREAMS)
                    .map(|_| {
                        let guess = client.request("POST", "/login").header("x-held", "1");
                        client.start_request(guess, true).0
                    })
                    .collect();
                (client, responses)
            })
            .collect();
        for (client, responses) in &mut attacks {
            for response in responses.split_off(5) {
                let response = client.response(response).unwrap();
                assert_eq!(response.status, 429, "{backend}");
                assert!(response.fields.contains_key("retry-after"));
            }
        }
        // The guesses are in progress, and the page is there for all other clients.
        for (client, visitor) in open.iter_mut().zip(VISITORS) {
            assert_eq!(client.get("/login").text(), "form", "{visitor}");
            assert_eq!(log_in(client, "right"), 303, "{visitor}");
        }
        form.open();
        for (client, responses) in attacks {
            for response in responses {
                let status = client.response(response).unwrap().status;
                assert!(status == 200 || status == 403, "{backend}: {status}");
            }
        }
        let begun = Instant::now();
        while bans(&server).total < 2 {
            assert!(begun.elapsed() < DEADLINE, "{backend}: {:?}", bans(&server));
            std::thread::yield_now();
        }
        for attacker in ATTACKERS {
            assert_eq!(form.guesses(attacker), 5, "{backend}: {attacker}");
            let mut client = Client::over(stream_from(attacker, address));
            client.send_anyway(request("GET /login", &[]));
            assert!(client.rest().is_empty(), "{backend}: {attacker}");
        }
        for (client, visitor) in open.iter_mut().zip(VISITORS) {
            assert_eq!(log_in(client, "right"), 303, "{visitor}");
            let mut new = Client::over(stream_from(visitor, address));
            assert_eq!(log_in(&mut new, "right"), 303, "{visitor}");
        }
        let reasons: Vec<_> = bans(&server).bans.into_iter().map(|ban| ban.reason).collect();
        assert_eq!(reasons, ["failed logins"; 2], "{backend}");
    }
}

#[test]
fn an_offence_counts_when_its_response_begins() {
    let gate = Arc::<(Mutex<bool>, Condvar)>::default();
    let own = Arc::clone(&gate);
    let upstream = Upstream::start(move |_, stream| {
        write_to(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nbegin");
        let (is_open, opened) = &*own;
        let is_open = is_open.lock().unwrap();
        drop(
            opened
                .wait_timeout_while(is_open, DEADLINE, |is_open| !*is_open)
                .unwrap(),
        );
        write_to(stream, "ended");
        Next::Keep
    });
    let server = Running::start(folder(), &text(FORWARDED, "not_found = \"2/1m\"", &upstream.key()));
    let mut clients = [server.connect(), server.connect()];
    for client in &mut clients {
        client.send(request("GET /x", &[&from(ATTACKER)]));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    }
    assert_eq!(bans(&server).total, 1);
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    for client in &mut clients {
        assert_eq!(client.bytes(10), b"beginended");
    }
    // The end of a response counts no second offence.
    let worst = server.server().registries().bans.worst_clients();
    assert_eq!(worst[0].not_found, 2);
}
