//! Counts system calls of the built server with strace. With epoll, a cached response costs one read, one write and a
//! share of a poll; with io_uring it costs two calls, which concurrent requests share.

mod child;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use child::{ReceivedResponse, Server, Setup};
use rocknet_testing::{Need, skip};

/// Batches of requests in each row. Strace stops the server twice at every call, which dominates the duration.
const BATCHES: u64 = 1000;
/// Maximum number of calls per row that its requests do not explain, such as timer ticks and the warm-up.
const SLACK: u64 = 60;
/// Number of system calls of a lookup on disk.
const LOOKUP_CALLS: u64 = 8;
/// Shortest interval between two lookups of a cached file, regardless of the number of requests.
const LOOKUP_INTERVAL: Duration = Duration::from_millis(400);

/// Names of the system calls that read.
const READS: &[&str] = &["read", "recvfrom", "recvmsg", "readv"];
/// Names of the system calls that write.
const WRITES: &[&str] = &["write", "sendto", "sendmsg", "writev", "sendfile", "sendfile64"];
/// Names of the system calls that poll.
const POLLS: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// Name of the system call that submits to a ring and waits for it.
const ENTERS: &[&str] = &["io_uring_enter"];
/// Names of the system calls of a lookup on disk.
const LOOKUPS: &[&str] = &["openat2", "fstat", "close"];
/// Calls of threads that sleep and wake independently of requests. They are not counted.
const IDLE: &[&str] = &["futex", "clock_nanosleep", "restart_syscall"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Calls {
    reads: u64,
    writes: u64,
    polls: u64,
    /// Calls of io_uring_enter.
    enters: u64,
    others: u64,
    /// Calls of disk lookups beyond what the elapsed time allows.
    excess_lookup_calls: u64,
}

/// Maximum cost of a request with io_uring, in hundredths of a call: one io_uring_enter and one poll of the runtime's
/// events, plus a tenth for timer ticks on a slow machine.
const RING_CALLS: u64 = 220;
/// Connections that send at the same time, so that their responses share calls.
const CROWD: usize = 32;
/// Maximum cost of a round with one request on each of these connections, in hundredths of a call.
const CROWD_CALLS: u64 = 800;

#[test]
fn with_io_uring_a_response_costs_two_calls_shared_by_concurrent_requests() {
    if let Some(trouble) = rocknet_io::runtime::io_uring_unavailable() {
        skip(Need::IoUring, &trouble);
        return;
    }
    for (connections, most) in [(1, RING_CALLS), (CROWD, CROWD_CALLS)] {
        let rounds = BATCHES / connections as u64;
        let count = |rounds| calls("io_uring", |server| request_together(server, connections, rounds));
        // The calls of a server that serves only the additional round at the start are subtracted.
        let (none, all) = (count(0), count(rounds));
        let requests = rounds * connections as u64;
        let sum = |calls: &Calls| {
            calls.reads + calls.writes + calls.polls + calls.enters + calls.others + calls.excess_lookup_calls
        };
        let cost = sum(&all.0).saturating_sub(sum(&none.0));
        println!(
            "{connections} connections: {cost} calls for {requests} requests, {:?}",
            all.0
        );
        assert!(
            cost <= rounds * most / 100 + SLACK,
            "{connections} connections: {cost} calls for {requests} requests\n{:?}\n{:?}",
            all.1,
            none.1
        );
        assert!(all.0.enters > none.0.enters, "io_uring is not used: {:?}", all.1);
        assert!(
            all.0.reads + all.0.writes <= none.0.reads + none.0.writes + SLACK,
            "{:?}",
            all.1
        );
    }
}

/// Sends a request on each connection and then reads all responses, in each round. The server is stopped while requests
/// are sent, so that it finds all of them in one poll.
fn request_together(server: &Server, connections: usize, rounds: u64) {
    const REQUEST: &str = "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut clients: Vec<_> = (0..connections).map(|_| server.connect()).collect();
    // One round is added at the start, in which connections are accepted and the file is looked up.
    for _ in 0..=rounds {
        let mut send = || {
            for client in &mut clients {
                client.send(REQUEST).expect("sent");
            }
        };
        match connections {
            1 => send(),
            _ => server.stopped(send),
        }
        for client in &mut clients {
            assert_eq!(client.response().expect("a response").status, 200);
        }
    }
}

#[test]
fn cached_responses_cost_one_read_one_write_and_a_share_of_a_poll() {
    let version = Command::new("strace").arg("-V").output();
    assert!(
        version.is_ok_and(|output| output.status.success()),
        "strace is missing: apt-get install strace"
    );

    // A row has a name, the path, further header fields, the number of requests in a batch, and the writes that a batch
    // may cost.
    let rows = [
        ("keep-alive", "/small.txt", "", 1, 1),
        ("missing", "/missing", "", 1, 1),
        ("not modified", "/small.txt", "If-None-Match: *\r\n", 1, 1),
        ("40 KB out of memory", "/page.bin", "", 1, 1),
        ("100 KB out of a file", "/large.bin", "", 1, 2),
        ("16 pipelined", "/small.txt", "", 16, 1),
    ];
    let mut failures = Vec::new();
    for (name, path, fields, at_once, writes) in rows {
        let count = |batches| calls("epoll", |server| fetch(server, path, fields, at_once, batches));
        // The calls of a server that gets only the first requests of `fetch` are subtracted.
        let (none, all) = (count(0), count(BATCHES));
        let difference = |which: fn(&Calls) -> u64| which(&all.0).saturating_sub(which(&none.0));
        let cost = Calls {
            reads: difference(|calls| calls.reads),
            writes: difference(|calls| calls.writes),
            polls: difference(|calls| calls.polls),
            enters: difference(|calls| calls.enters),
            others: difference(|calls| calls.others),
            excess_lookup_calls: difference(|calls| calls.excess_lookup_calls),
        };
        println!("{name}: {cost:?} for {BATCHES} batches of {at_once}");
        let most = BATCHES + SLACK;
        let good = cost.reads <= most && cost.writes <= BATCHES * writes + SLACK && cost.polls <= most;
        if !good || cost.others + cost.excess_lookup_calls > SLACK {
            failures.push(format!(
                "{name}: {cost:?} for {BATCHES} batches\n{:?}\n{:?}",
                all.1, none.1
            ));
        }
        assert!(
            cost.reads + SLACK >= BATCHES,
            "{name}: {cost:?}: the reads were not counted"
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Starts a server with this I/O back end, runs `fetch`, and returns the system calls of the server from start to
/// exit, as sums and by name.
fn calls(backend: &str, fetch: impl FnOnce(&Server)) -> (Calls, BTreeMap<String, u64>) {
    let setup = Setup::new();
    setup.file("page.bin", vec![b'x'; 40_000]);
    setup.file("large.bin", vec![b'x'; 100_000]);
    let table = setup.folder.path().join("calls.txt");
    let variable = format!("ROCKNET_BACKEND={backend}");
    let table_name = table.display().to_string();
    let server = setup
        .under(&["strace", "-f", "-c", "-o", &table_name, "-E", &variable])
        .start();
    let start = Instant::now();
    fetch(&server);
    let expected_lookups = (start.elapsed().as_millis() / LOOKUP_INTERVAL.as_millis()) as u64;
    let (folder, status, errors) = server.end();
    assert!(status.success(), "{status}: {errors}");
    let text = fs::read_to_string(&table).expect("strace's table");
    drop(folder);
    let counts = parse(&text);
    let sum = |names: &[&str]| names.iter().filter_map(|name| counts.get(*name)).sum::<u64>();
    let (reads, writes, polls) = (sum(READS), sum(WRITES), sum(POLLS));
    assert!(polls > 0, "no poll in {text}");
    let enters = sum(ENTERS);
    let lookups = sum(LOOKUPS);
    let others = counts.values().sum::<u64>() - reads - writes - polls - enters - lookups - sum(IDLE);
    (
        Calls {
            reads,
            writes,
            polls,
            enters,
            others,
            excess_lookup_calls: lookups.saturating_sub(expected_lookups * LOOKUP_CALLS),
        },
        counts,
    )
}

/// Sends batches of `at_once` pipelined requests, after a few requests that bring the file into the cache.
fn fetch(server: &Server, path: &str, fields: &str, at_once: usize, batches: u64) {
    let mut client = server.connect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    let mut one = || -> ReceivedResponse {
        client.send(&request).expect("sent");
        client.response().expect("a response")
    };
    let expected = one();
    for _ in 0..10 {
        assert_eq!(one().body.len(), expected.body.len());
    }
    let requests = request.repeat(at_once);
    for _ in 0..batches {
        client.send(&requests).expect("sent");
        for _ in 0..at_once {
            assert_eq!(client.response().expect("a response").status, expected.status);
        }
    }
}

/// Parses the table of `strace -c`, with the columns share, seconds, microseconds per call, calls, errors (empty if
/// none) and name.
fn parse(text: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, calls) = (words.last()?, words.get(3)?.parse().ok()?);
        (*name != "total").then(|| ((*name).to_owned(), calls))
    });
    rows.collect()
}
