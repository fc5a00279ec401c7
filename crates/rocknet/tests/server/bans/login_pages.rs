//! Bans while responses are in progress: a login page under attack, and the moment at which an offence counts.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rocknet_testing::{Need, skip};
use rustix::net::{AddressFamily, SocketType};

use super::{ATTACKER, FORWARDED, bans, folder, from, text};
use crate::support::client::request;
use crate::support::http2::Http2;
use crate::support::upstream::{Next, Upstream, write_to};
use crate::support::{Client, DEADLINE, Running};

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
