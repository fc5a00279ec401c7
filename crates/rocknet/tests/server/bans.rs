//! Bans: offences that lead to them, and the clients that they concern.

mod lists;
mod login_pages;

use std::time::Instant;

use rocknet_control::ban::BanList;

use super::access::{auth, basic};
use super::metrics::value;
use super::support::certs::{Authority, Kind};
use super::support::client::request;
use super::support::http2::Http2;
use super::support::{Client, DEADLINE, Folder, Running};

over_http3! {
    failed_logins_of_an_application_ban_its_client_behind_a_proxy,
    requests_for_missing_files_and_refused_requests_lead_to_bans,
    a_dry_run_bans_nobody,
}

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
fn a_busy_route_bans_no_client() {
    // Only the limit of a client is the client's fault, and not the limit of the route as a whole.
    for (key, expected) in [("{client.ip}", 1), ("all", 0)] {
        let keys = format!("limit = {{ rate = \"1/h\", key = \"{key}\" }}");
        let server = Running::start(folder(), &text(FORWARDED, "refused = \"5/1m\"", &keys));
        let mut client = server.connect();
        assert_eq!(client.fetch("GET /", &[&from(ATTACKER)]).status, 200, "{key}");
        for _ in 0..5 {
            assert_eq!(client.fetch("GET /", &[&from(ATTACKER)]).status, 429, "{key}");
        }
        assert_eq!(bans(&server).total, expected, "{key}");
    }
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
