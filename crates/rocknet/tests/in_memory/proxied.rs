//! Proxying without a socket, over virtual time: balancing, retries, breakers and queues.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rocknet::clock::TimeSource;
use rocknet::proxy::Dialer;
use rocknet::registries::Registries;
use rocknet_io::link::Link;
use rocknet_io::sim::{self, SimPeer};

use crate::test_server::{TestClient, TestServer};

const FIRST: &str = "http://10.0.0.1:80";
const SECOND: &str = "http://10.0.0.2:80";
const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

/// Upstream ends of all links. They remain on the thread of the worker, which is the thread of the test.
#[derive(Default)]
struct Upstreams {
    /// Name of the upstream that refuses connections.
    down: Option<&'static str>,
    /// Connection attempts, with the peer of each that succeeded.
    dialed: Vec<(String, Option<SimPeer>)>,
}

thread_local! {
    static UPSTREAMS: RefCell<Upstreams> = RefCell::default();
}

/// Dialer that opens simulated links in place of sockets.
pub struct Dials;

impl Dialer for Dials {
    fn dial(&self, upstream: &str) -> io::Result<Box<dyn Link>> {
        UPSTREAMS.with_borrow_mut(|all| {
            if all.down == Some(upstream) {
                all.dialed.push((upstream.to_owned(), None));
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (link, peer) = sim::pair();
            all.dialed.push((upstream.to_owned(), Some(peer)));
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }
}

struct Proxied {
    server: TestServer,
    uptime_ms: Arc<AtomicU64>,
}

impl Proxied {
    fn new(keys: &str) -> Proxied {
        // The clock does not start at 0, because some fields use 0 for never.
        let uptime_ms = Arc::new(AtomicU64::new(1_000));
        let registries = Registries::simulated(TimeSource::Virtual(Arc::clone(&uptime_ms)), Arc::new(Dials));
        let proxy = format!("proxy = {{ to = [\"{FIRST}\", \"{SECOND}\"], balance = \"round_robin\", {keys} }}\n");
        let server = TestServer::with(registries, "", &format!("[site.\":0\"]\n{proxy}"), &[]);
        Proxied { server, uptime_ms }
    }

    /// Advances the clock and the timer wheel tick by tick.
    fn pass(&self, ms: u64) {
        let tick = u64::try_from(self.server.worker.wheel.tick_length().as_millis()).expect("a short tick");
        for _ in 0..ms.div_ceil(tick) {
            self.uptime_ms.fetch_add(tick, Ordering::SeqCst);
            self.server.worker.tick();
        }
    }

    /// Connects a client that sends a request.
    fn client(&self) -> TestClient {
        let mut client = self.server.connect();
        client.peer.send(GET.as_bytes());
        client.settle();
        client
    }

    /// Sends a request from a new client and returns the name of the upstream that responds.
    fn serving_upstream(&self) -> String {
        let mut client = self.client();
        let name = respond(&mut client);
        let received = client.received();
        assert!(
            received.starts_with("HTTP/1.1 200 ") && received.ends_with(&name),
            "{received}"
        );
        name
    }

    fn serving_in_turn(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.serving_upstream()).collect()
    }
}

/// Returns the name of the only upstream that has received a request.
fn chosen_upstream() -> Option<String> {
    UPSTREAMS.with_borrow(|all| {
        let open = all
            .dialed
            .iter()
            .filter_map(|(name, peer)| Some((name, peer.as_ref()?)));
        let mut chosen = open.filter(|(_, peer)| !peer.received().is_empty());
        let name = chosen.next().map(|(name, _)| name.clone());
        assert!(chosen.next().is_none(), "more than one upstream received a request");
        name
    })
}

/// Makes the upstream that received a request respond with its name.
fn respond(client: &mut TestClient) -> String {
    let name = chosen_upstream().expect("a request");
    UPSTREAMS.with_borrow(|all| {
        let open = all.dialed.iter().filter_map(|(_, peer)| peer.as_ref());
        let peer = open
            .into_iter()
            .find(|peer| !peer.received().is_empty())
            .expect("its peer");
        peer.take_received();
        let length = name.len();
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}").as_bytes());
    });
    client.settle();
    name
}

/// Makes this upstream refuse connections, and closes its open ones.
fn take_down(name: &'static str) {
    UPSTREAMS.with_borrow_mut(|all| {
        all.down = Some(name);
        for (_, peer) in all.dialed.iter().filter(|(other, _)| other == name) {
            for peer in peer.iter() {
                let _ = peer.end();
            }
        }
    });
}

/// Returns the number of connection attempts that were refused.
fn refused() -> usize {
    UPSTREAMS.with_borrow(|all| all.dialed.iter().filter(|(_, peer)| peer.is_none()).count())
}

#[test]
fn a_failed_upstream_is_paused_and_then_probed_by_one_request() {
    let proxied = Proxied::new("fails = 1, fail_time = \"10s\"");
    assert_eq!(proxied.serving_in_turn(4), [FIRST, SECOND, FIRST, SECOND]);
    take_down(FIRST);
    // The request whose connection was refused is sent to the other upstream.
    assert_eq!((proxied.serving_in_turn(4), refused()), (vec![SECOND.to_owned(); 4], 1));
    proxied.pass(9_500);
    assert_eq!((proxied.serving_in_turn(4), refused()), (vec![SECOND.to_owned(); 4], 1));
    proxied.pass(1_000);
    // One request probes the upstream and fails, so the pause doubles.
    assert_eq!((proxied.serving_in_turn(4), refused()), (vec![SECOND.to_owned(); 4], 2));
    UPSTREAMS.with_borrow_mut(|all| all.down = None);
    proxied.pass(19_000);
    assert_eq!(proxied.serving_in_turn(4), [SECOND; 4]);
    proxied.pass(1_500);
    let mut upstreams = proxied.serving_in_turn(4);
    upstreams.sort();
    assert_eq!(
        (upstreams, refused()),
        ([FIRST, FIRST, SECOND, SECOND].map(str::to_owned).into(), 2)
    );
}

#[test]
fn requests_beyond_the_limit_wait_for_a_slot_or_their_timeout() {
    let proxied = Proxied::new("connections = 1, queue = \"2s\"");
    let mut first = proxied.client();
    // Discards the request that the first upstream has received, so that `chosen_upstream` finds the next request. With
    // one request each, both upstreams are at their limit.
    UPSTREAMS.with_borrow(|all| {
        all.dialed.iter().for_each(|(_, peer)| {
            assert!(!peer.as_ref().expect("a peer").take_received().is_empty());
        });
    });
    let mut second = proxied.client();
    let name = chosen_upstream().expect("the other upstream");
    assert_eq!((UPSTREAMS.with_borrow(|all| all.dialed.len()), &*name), (2, SECOND));
    let mut waits = proxied.client();
    let mut gives_up = proxied.client();
    proxied.pass(1_000);
    waits.settle();
    gives_up.settle();
    assert_eq!((waits.received(), gives_up.received()), (String::new(), String::new()));
    // The permit of a finished request passes to the request that has waited longest.
    assert_eq!(respond(&mut second), SECOND);
    waits.settle();
    assert_eq!(chosen_upstream().as_deref(), Some(SECOND));
    proxied.pass(900);
    gives_up.settle();
    assert_eq!(gives_up.received(), "");
    proxied.pass(500);
    gives_up.settle();
    assert!(
        gives_up.received().starts_with("HTTP/1.1 503 "),
        "{}",
        gives_up.received()
    );
    assert_eq!(respond(&mut waits), SECOND);
    assert!(waits.received().starts_with("HTTP/1.1 200 "), "{}", waits.received());
    first.settle();
    assert_eq!(first.received(), "");
}
