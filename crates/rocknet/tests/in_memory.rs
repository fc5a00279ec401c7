//! HTTP/1 connections without a socket: in every split of the bytes they answer the same, and time passes when told to.

use std::fmt::Write;
use std::io::ErrorKind;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rocknet::blocking::Pool;
use rocknet::cache::Cache;
use rocknet::exchange::{Client, Exchange};
use rocknet::handler::{Answering, Handler};
use rocknet::log::Logger;
use rocknet::metrics::Metrics;
use rocknet::protocol::h1::Connection;
use rocknet::response::Response;
use rocknet::snapshot::{Mount, Snapshot};
use rocknet::worker::{Shared, Worker};
use rocknet_config::System;
use rocknet_config::model::Pattern;
use rocknet_io::runtime::Runtime;
use rocknet_io::sim::{self, Peer, Sim};
use rocknet_proto::status::Status;

/// A file that is not kept in memory: it goes out piece by piece.
const LARGE: usize = 70_000;
/// Longest real time for a look at the disk.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says back what it was sent.
struct Echo;

impl Handler for Echo {
    fn answer(&self, mut exchange: Exchange) -> Answering {
        Box::pin(async move {
            let mut content = Vec::new();
            loop {
                match exchange.content.chunk().await {
                    Ok(Some(chunk)) => content.extend_from_slice(&chunk),
                    Ok(None) => return Response::new(Status::OK).body(content),
                    Err(_) => return Response::new(Status::BAD_REQUEST),
                }
            }
        })
    }
}

/// Never answers.
struct Silent;

impl Handler for Silent {
    fn answer(&self, _exchange: Exchange) -> Answering {
        Box::pin(std::future::pending())
    }
}

/// Panics, before or while it answers.
struct Panics {
    at_once: bool,
}

impl Handler for Panics {
    fn answer(&self, _exchange: Exchange) -> Answering {
        assert!(!self.at_once, "as told");
        Box::pin(async { panic!("as told") })
    }
}

struct Woken {
    flag: AtomicBool,
    thread: Thread,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A worker on this thread, and a folder it serves.
struct World {
    worker: Rc<Worker>,
    _folder: tempfile::TempDir,
}

impl World {
    fn new(limits: &str) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("small.txt"), "Hello, world!").expect("written");
        let large: Vec<u8> = (0..LARGE).map(|at| b'a' + (at % 23) as u8).collect();
        std::fs::write(folder.path().join("large.bin"), large).expect("written");
        let text = format!(
            "[server]\nworkers = 1\n[limits]\n{limits}\n[site.\":0\"]\nroot = \"{}\"\n",
            folder.path().display()
        );
        let config = rocknet_config::parse(&text, Path::new("rocknet.toml"), &System)
            .unwrap_or_else(|report| panic!("{report:?}"))
            .config;
        let mount = |path: &str, handler: Arc<dyn Handler>| Mount {
            site: config.sites[0].name.clone(),
            pattern: Pattern::Exact(path.into()),
            handler,
        };
        let mounts = [
            mount("/echo", Arc::new(Echo)),
            mount("/silent", Arc::new(Silent)),
            mount("/panic-at-once", Arc::new(Panics { at_once: true })),
            mount("/panic", Arc::new(Panics { at_once: false })),
        ];
        let logger = Logger::start(&config.log).expect("a log");
        let snapshot = Arc::new(Snapshot::new(config, &mounts, &logger).expect("a snapshot"));
        let pool = Pool::new(2);
        let cache = Cache::start(64 << 20, pool.clone()).expect("a cache");
        let address = snapshot.listeners.keys().next().expect("an address").clone();
        let shared = Shared { pool, cache, logger };
        let worker = Worker::new(address, shared, Metrics::default().enrol(), &snapshot);
        World {
            worker,
            _folder: folder,
        }
    }

    fn connect(&self) -> Conversation {
        let (link, peer) = sim::pipe();
        let woken = Arc::new(Woken {
            flag: AtomicBool::new(true),
            thread: thread::current(),
        });
        let connection = Connection::new(&self.worker, link, Client::Local, None);
        Conversation {
            connection: Some(Box::pin(connection)),
            peer,
            waker: Waker::from(Arc::clone(&woken)),
            woken,
        }
    }

    /// Everything this world has is asked for once, so that no answer has to wait for the disk.
    fn warm(self) -> World {
        for path in ["small.txt", "large.bin", "missing"] {
            let mut client = self.connect();
            client
                .peer
                .say(format!("GET /{path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").as_bytes())
                .end();
            client.run_to_end();
            assert!(client.peer.heard().starts_with(b"HTTP/1.1 "), "{path}");
        }
        self
    }

    /// Time passes for this worker.
    fn pass(&self, ticks: u32) {
        for _ in 0..ticks {
            self.worker.wheel.advance();
        }
    }
}

/// One connection and its client.
struct Conversation {
    connection: Option<Pin<Box<Connection<Sim>>>>,
    peer: Peer,
    waker: Waker,
    woken: Arc<Woken>,
}

impl Conversation {
    /// Runs until the connection waits for something from outside.
    fn settle(&mut self) -> &mut Conversation {
        while self.woken.flag.swap(false, Ordering::AcqRel) {
            let Some(connection) = &mut self.connection else { break };
            if let Poll::Ready(()) = connection.as_mut().poll(&mut Context::from_waker(&self.waker)) {
                self.connection = None;
            }
        }
        self
    }

    /// Runs until the connection is over, however long the disk takes.
    fn run_to_end(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.settle().is_over() {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "still open: {:?}",
                String::from_utf8_lossy(&self.peer.heard())
            );
            thread::park_timeout(left);
        }
    }

    fn is_over(&self) -> bool {
        self.connection.is_none()
    }

    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.peer.heard()).into_owned()
    }
}

/// Requests of every kind, one after the other; the last one ends the connection.
fn requests(large: bool) -> Vec<u8> {
    let mut all = Vec::new();
    let mut say = |text: &str| all.extend_from_slice(text.as_bytes());
    say("GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    say("HEAD /small.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    say("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz");
    say("GET /missing HTTP/1.1\r\nHost: h\r\n\r\n");
    say("GET /small.txt HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n");
    say(
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n8;a=b\r\n, chunks\r\n0\r\nX: y\r\n\r\n",
    );
    say("POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nunwanted!");
    say("PUT /small.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    say("\r\nGET /small.txt HTTP/1.1\r\nHost: h\r\nRange: bytes=7-\r\n\r\n");
    say("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    if large {
        say("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    say("GET /small.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    all
}

/// How the same bytes may come in.
#[derive(Debug, Clone, Copy)]
enum Arrival {
    Lent,
    Held,
    Paused,
}

fn ask(world: &World, requests: &[u8], chunk: usize, arrival: Arrival) -> Conversation {
    let client = world.connect();
    for piece in requests.chunks(chunk) {
        match arrival {
            Arrival::Lent => client.peer.say(piece),
            Arrival::Held => client.peer.say_held(piece),
            Arrival::Paused => client.peer.say(piece).pause(),
        };
    }
    client.peer.end();
    client
}

fn reference(world: &World, requests: &[u8]) -> Vec<u8> {
    let mut client = ask(world, requests, usize::MAX, Arrival::Lent);
    client.settle();
    assert!(client.is_over(), "{}", client.heard());
    client.peer.take_heard()
}

#[test]
fn answers_are_the_expected_ones() {
    let world = World::new("").warm();
    let heard = reference(&world, &requests(true));
    let text = String::from_utf8_lossy(&heard);
    let statuses: Vec<&str> = text
        .match_indices("HTTP/1.1 ")
        .map(|(at, found)| text[at + found.len()..].split(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(
        statuses,
        [
            "200", "200", "200", "404", "304", "200", "405", "405", "206", "204", "200", "200"
        ]
    );
    for expected in [
        "abcdefghijklmnopqrstuvwxyz",
        "Hello, chunks",
        "\r\n\r\nworld!",
        "Connection: close",
    ] {
        assert!(text.contains(expected), "{expected:?} is missing");
    }
    assert!(text.ends_with("Hello, world!"));
    assert_eq!(text.matches("Hello, world!").count(), 2, "HEAD and 304 have no content");
}

#[test]
fn any_split_of_the_input_gives_the_same_output() {
    let world = World::new("").warm();
    let requests = requests(true);
    let expected = reference(&world, &requests);
    for arrival in [Arrival::Lent, Arrival::Held, Arrival::Paused] {
        for chunk in (1..64).chain([97, 256, 300, 511, requests.len() - 1, usize::MAX]) {
            let mut client = ask(&world, &requests, chunk, arrival);
            client.settle();
            assert!(client.is_over(), "{arrival:?} in pieces of {chunk}: {}", client.heard());
            assert!(
                *client.peer.heard() == expected[..],
                "{arrival:?} in pieces of {chunk}: {}",
                client.heard()
            );
        }
    }
    for cut in 1..requests.len() {
        let mut client = world.connect();
        client
            .peer
            .say(&requests[..cut])
            .pause()
            .say_held(&requests[cut..])
            .end();
        client.settle();
        assert!(
            client.is_over() && *client.peer.heard() == expected[..],
            "cut at {cut}: {}",
            client.heard()
        );
    }
}

#[test]
fn a_stop_at_any_byte_of_the_output_gives_the_same_output() {
    let world = World::new("").warm();
    let requests = requests(false);
    let expected = reference(&world, &requests);
    for chunk in [1, 40, usize::MAX] {
        for stop in 0..expected.len() {
            let mut client = ask(&world, &requests, chunk, Arrival::Lent);
            client.peer.take(stop);
            client.settle();
            assert!(!client.is_over(), "over before its answers were taken at {stop}");
            assert_eq!(client.peer.heard().len(), stop);
            client.peer.take_all();
            client.settle();
            assert!(
                client.is_over() && *client.peer.heard() == expected[..],
                "stop at {stop}: {}",
                client.heard()
            );
        }
    }
}

#[test]
fn short_writes_and_small_windows_give_the_same_output() {
    let world = World::new("").warm();
    let requests = requests(true);
    let expected = reference(&world, &requests);
    for (step, window) in [
        (1, usize::MAX),
        (3, 1000),
        (4096, 4095),
        (usize::MAX, 10_000),
        (1000, 777),
    ] {
        let mut client = ask(&world, &requests, usize::MAX, Arrival::Lent);
        client.peer.step(step);
        let mut rounds = 0;
        while !client.is_over() {
            client.peer.take(window);
            client.settle();
            rounds += 1;
            assert!(rounds < 1000, "step {step}, window {window}: never ends");
        }
        assert!(*client.peer.heard() == expected[..], "step {step}, window {window}");
    }
}

#[test]
fn a_client_that_waits_for_continue_gets_it_once_and_only_where_content_is_wanted() {
    let world = World::new("").warm();
    let mut client = world.connect();
    client
        .peer
        .say(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    client.settle();
    assert_eq!(client.heard(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.peer.say(b"hel").pause().say(b"lo");
    client.settle();
    assert!(
        client
            .heard()
            .starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"),
        "{}",
        client.heard()
    );
    assert!(client.heard().ends_with("\r\n\r\nhello"), "{}", client.heard());

    let mut client = world.connect();
    client
        .peer
        .say(b"POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    client.settle();
    assert!(client.heard().starts_with("HTTP/1.1 405 "), "{}", client.heard());
}

#[test]
fn a_client_that_leaves_in_the_middle_ends_the_connection_and_nothing_else() {
    let world = World::new("").warm();
    let requests = requests(true);
    for cut in (0..requests.len()).step_by(3) {
        for error in [None, Some(ErrorKind::ConnectionReset)] {
            let mut client = world.connect();
            client.peer.say(&requests[..cut]);
            match error {
                Some(error) => client.peer.fail(error),
                None => client.peer.end(),
            };
            client.settle();
            assert!(client.is_over() && client.peer.is_gone(), "{error:?} at {cut}");
        }
        let mut client = world.connect();
        client.peer.say(&requests).take(cut);
        client.settle();
        client.peer.refuse(ErrorKind::BrokenPipe);
        client.settle();
        assert!(client.is_over() && client.peer.is_gone(), "cut while sending at {cut}");
    }
    assert_eq!(world.worker.connections(), 0);
    assert_eq!(world.worker.counters.panics.get(), 0);
    assert!(world.worker.wheel.is_empty(), "a deadline outlived its connection");
}

#[test]
fn a_handler_that_panics_ends_its_own_exchange_with_500() {
    let world = World::new("").warm();
    for path in ["/panic", "/panic-at-once"] {
        let mut client = world.connect();
        client
            .peer
            .say(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes())
            .end();
        client.settle();
        assert!(
            client.heard().starts_with("HTTP/1.1 500 "),
            "{path}: {}",
            client.heard()
        );
        assert!(client.is_over(), "{path}");
    }
    let mut client = world.connect();
    client.peer.say(b"GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n").end();
    client.settle();
    assert!(client.heard().starts_with("HTTP/1.1 200 "), "{}", client.heard());
    assert_eq!(world.worker.counters.panics.get(), 2);
}

const GET: &str = "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n";
const LIMITS: &str = "header_timeout = \"10s\"\nbody_idle = \"5s\"\nbody_rate = 100\nsend_stall = \"20s\"\n\
                      keep_alive = \"30s\"\nconnection_age = \"1h\"";
const TICKS_A_SECOND: u32 = 4;

/// What a client does, second by second.
#[derive(Clone, Copy)]
enum Act {
    Say(&'static str),
    /// Lets seconds pass.
    Seconds(u32),
    /// One byte a second.
    Trickle(&'static str),
    /// So many bytes are taken from now on.
    Take(usize),
    /// So many bytes more are taken in each of these seconds.
    TakeEachSecond(usize, u32),
    End,
}

/// The statuses of all answers, and whether the connection is over in the end.
fn outcome(acts: &[Act]) -> (String, bool) {
    let world = World::new(LIMITS).warm();
    let mut client = world.connect();
    let second = |client: &mut Conversation| {
        for _ in 0..TICKS_A_SECOND {
            world.pass(1);
            client.settle();
        }
    };
    client.settle();
    for act in acts {
        match *act {
            Act::Say(text) => {
                client.peer.say(text.as_bytes());
                client.settle();
            }
            Act::Seconds(seconds) => (0..seconds).for_each(|_| second(&mut client)),
            Act::Trickle(text) => {
                for byte in text.bytes() {
                    client.peer.say(&[byte]);
                    client.settle();
                    second(&mut client);
                }
            }
            Act::Take(bytes) => {
                client.peer.take(bytes);
                client.settle();
            }
            Act::TakeEachSecond(bytes, seconds) => {
                for _ in 0..seconds {
                    client.peer.take(bytes);
                    client.settle();
                    second(&mut client);
                }
            }
            Act::End => {
                client.peer.end();
                client.settle();
            }
        }
    }
    let heard = client.heard();
    let statuses: Vec<_> = heard
        .match_indices("HTTP/1.1 ")
        .map(|(at, _)| heard[at + 9..].get(..3).unwrap_or(""))
        .collect();
    (statuses.join(" "), client.is_over())
}

#[test]
fn every_wait_has_its_deadline_from_both_sides() {
    use Act::{End, Say, Seconds, Take, TakeEachSecond, Trickle};
    const POST: &str = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const UNWANTED: &str = "POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const LARGE: &str = "GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n";
    // One tick of 250 ms may be lost to rounding, and a deadline may be late by one.
    let rows: &[(&str, &[Act], &str, bool)] = &[
        ("silence", &[Seconds(9)], "", false),
        ("silence", &[Seconds(11)], "", true),
        ("half a head", &[Say("GET / HT"), Seconds(9)], "", false),
        ("half a head", &[Say("GET / HT"), Seconds(11), End], "408", true),
        ("a head byte by byte", &[Trickle("GET / HTT")], "", false),
        ("a head byte by byte", &[Trickle("GET / HTTP/")], "408", false),
        (
            "a head byte by byte, later",
            &[Say(GET), Trickle("GET / HTTP/")],
            "200 408",
            false,
        ),
        (
            "a client that stays after 408",
            &[Say("GET / HT"), Seconds(14)],
            "408",
            true,
        ),
        ("keep-alive", &[Say(GET), Seconds(29), Say(GET)], "200 200", false),
        ("keep-alive", &[Say(GET), Seconds(31)], "200", true),
        (
            "keep-alive begins anew",
            &[Say(GET), Seconds(25), Say(GET), Seconds(25), Say(GET)],
            "200 200 200",
            false,
        ),
        ("content stops", &[Say(POST), Seconds(4)], "", false),
        ("content stops", &[Say(POST), Seconds(6), End], "408", true),
        ("content trickles", &[Say(POST), Trickle("01234")], "", false),
        ("content trickles", &[Say(POST), Trickle("012345")], "408", false),
        ("unwanted content stops", &[Say(UNWANTED), Seconds(4)], "405", false),
        ("unwanted content stops", &[Say(UNWANTED), Seconds(6)], "405", true),
        (
            "unwanted content trickles",
            &[Say(UNWANTED), Trickle("0123456789")],
            "405",
            true,
        ),
        ("nothing taken", &[Take(100), Say(LARGE), Seconds(19)], "200", false),
        ("nothing taken", &[Take(100), Say(LARGE), Seconds(21)], "200", true),
        (
            "little taken",
            &[Take(100), Say(LARGE), TakeEachSecond(2, 45)],
            "200",
            true,
        ),
        (
            "enough taken",
            &[Take(100), Say(LARGE), TakeEachSecond(150, 90)],
            "200",
            false,
        ),
        (
            "a handler takes its time",
            &[Say("GET /silent HTTP/1.1\r\nHost: h\r\n\r\n"), Seconds(200)],
            "",
            false,
        ),
        (
            "a refused client that stays",
            &[Say("BAD\r\n\r\n"), Seconds(1)],
            "400",
            false,
        ),
        (
            "a refused client that stays",
            &[Say("BAD\r\n\r\n"), Seconds(3)],
            "400",
            true,
        ),
    ];
    let mut wrong = String::new();
    for (number, (name, acts, statuses, over)) in rows.iter().enumerate() {
        let (found, ended) = outcome(acts);
        if (&*found, ended) != (*statuses, *over) {
            let _ = writeln!(
                wrong,
                "row {number}, {name}: {found:?}, over: {ended}; not {statuses:?}, over: {over}"
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_connection_past_its_age_closes_with_its_next_answer() {
    let world = World::new("keep_alive = \"2h\"\nconnection_age = \"1m\"").warm();
    let mut client = world.connect();
    client.peer.say(GET.as_bytes());
    client.settle();
    assert!(!client.heard().contains("Connection: close"), "{}", client.heard());
    world.pass(62 * TICKS_A_SECOND);
    client.settle();
    assert!(!client.is_over(), "age alone closes nothing");
    client.peer.take_heard();
    client.peer.say(GET.as_bytes());
    client.settle();
    assert!(
        client.heard().contains("Connection: close") && client.peer.is_shut_down(),
        "{}",
        client.heard()
    );
}

#[test]
fn a_worker_that_stops_answers_what_has_come_and_closes_the_idle() {
    let world = World::new("").warm();
    let (mut idle, mut asking, mut half) = (world.connect(), world.connect(), world.connect());
    idle.peer.say(GET.as_bytes());
    half.peer.say(b"GET /small.txt HT");
    for client in [&mut idle, &mut asking, &mut half] {
        client.settle();
    }
    asking.peer.say(GET.as_bytes());
    // A stop lets the loop take one more look at the sockets before it wakes who seems idle.
    let runtime = Runtime::new(64).expect("a loop");
    runtime.block_on(async {
        world.worker.stop();
        for _ in 0..1000 {
            if idle.woken.flag.load(Ordering::Acquire) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("a stop wakes nobody");
    });
    for client in [&mut idle, &mut asking, &mut half] {
        client.settle();
    }
    assert!(
        idle.is_over() && idle.heard().matches("200 OK").count() == 1,
        "{}",
        idle.heard()
    );
    assert!(asking.peer.is_shut_down(), "{}", asking.heard());
    assert!(
        asking.heard().contains("200 OK") && asking.heard().contains("Connection: close"),
        "{}",
        asking.heard()
    );
    assert!(!half.is_over());
    half.peer.say(b"TP/1.1\r\nHost: h\r\n\r\n");
    half.settle();
    assert!(
        half.peer.is_shut_down() && half.heard().contains("Connection: close"),
        "{}",
        half.heard()
    );
}
