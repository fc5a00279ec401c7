//! Clients and file systems that mean no good: the server goes on, leaks nothing, and others do not notice.

mod child;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use child::{Client, DEADLINE, Server, Setup};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Resource, Rlimit, prlimit};

const SMALL: &[u8] = b"Hello, world!";

/// A generator of numbers that are the same in every run (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % below.max(1)
    }
}

const GARBAGE_CONNECTIONS: usize = 10_000;
const GARBAGE_THREADS: usize = 4;
/// Resident memory that ten thousand connections may leave behind: caches and buffers, but nothing for each.
const GARBAGE_MEMORY_KIB: u64 = 16 * 1024;

#[test]
fn ten_thousand_connections_of_garbage_leave_nothing_behind() {
    let mut server = Setup::new()
        .tables("[limits]\nheader_timeout = \"2s\"\nbody_idle = \"2s\"\nkeep_alive = \"2s\"")
        .start();
    let seeds = seeds();
    let address = server.address();
    server.get("/small.txt");
    garbage(address, &seeds, 500, 1);
    let before = (server.memory(), server.descriptors());
    thread::scope(|scope| {
        for number in 0..GARBAGE_THREADS {
            let seeds = &seeds;
            scope.spawn(move || garbage(address, seeds, GARBAGE_CONNECTIONS / GARBAGE_THREADS, number as u64 + 2));
        }
        let mut innocent = server.connect();
        for _ in 0..200 {
            match innocent.try_get("/small.txt") {
                Ok(answer) => assert_eq!(answer.body, SMALL),
                Err(error) => panic!("an innocent client was hurt: {error}"),
            }
        }
    });
    let status = server.wait_for("connections close", |status| status.open == 0);
    assert!(status.total as usize >= GARBAGE_CONNECTIONS, "{status:?}");
    let after = (server.memory(), server.descriptors());
    assert!(
        after.0 <= before.0 + GARBAGE_MEMORY_KIB,
        "memory grew from {} to {} KiB",
        before.0,
        after.0
    );
    assert!(after.1 <= before.1 + 4, "{} descriptors, {} before", after.1, before.1);
    assert_eq!(server.get("/small.txt").body, SMALL);
    let (status, errors) = server.stop();
    assert!(status.success(), "{status}");
    assert!(!errors.contains("panic"), "{errors}");
}

/// The seeds of the fuzz targets that begin like requests.
fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/h1_request");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("seeds")
        .map(|entry| entry.expect("a seed").path())
        .collect();
    files.sort();
    assert!(files.len() >= 8, "{} seeds", files.len());
    files.into_iter().map(|file| fs::read(file).expect("a seed")).collect()
}

fn garbage(address: SocketAddr, seeds: &[Vec<u8>], connections: usize, seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut sink = vec![0; 64 * 1024];
    for _ in 0..connections {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        let bytes = one_garbage(seeds, &mut random);
        // The server may close before it has read everything.
        let _ = stream.write_all(&bytes);
        let manner = random.next(4);
        if manner == 0 {
            // Gone without a word: what the server sends is answered with a reset.
            continue;
        }
        // Or the server would wait for more, which is another test's matter.
        let _ = stream.shutdown(Shutdown::Write);
        if manner == 1 {
            let _ = stream.read(&mut sink[..1]);
            continue;
        }
        loop {
            match stream.read(&mut sink) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    panic!("no end after {:?}", String::from_utf8_lossy(&bytes))
                }
                Err(_) => break,
            }
        }
    }
}

fn one_garbage(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.next(4) {
        0 => (0..random.next(2000)).map(|_| random.next(256) as u8).collect(),
        1 => b"GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1 + random.next(20)),
        _ => seeds[random.next(seeds.len())].clone(),
    };
    for _ in 0..random.next(8) {
        let at = random.next(bytes.len() + 1);
        match random.next(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, b"\r\n\0 :;,%\x80/.?"[random.next(12)]),
            2 => {
                let other = &seeds[random.next(seeds.len())];
                let from = random.next(other.len() + 1);
                bytes.splice(at..at, other[from..].iter().copied());
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.next(8);
                }
            }
        }
    }
    bytes
}

#[test]
fn hundreds_of_slow_clients_are_closed_and_hold_up_nobody() {
    const EACH: usize = 150;
    let setup = Setup::new()
        .tables("[limits]\nheader_timeout = \"1s\"\nbody_idle = \"1s\"\nsend_stall = \"1s\"\nkeep_alive = \"1s\"\nconnections = 2000");
    setup.sparse("large.bin", 64 << 20);
    let mut server = setup.start();
    let kinds = [
        ("half a head", "GET /small.txt HTTP/1.1\r\nHo", Some("408")),
        (
            "half of a content",
            "POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc",
            None,
        ),
        ("no reading", "GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n", None),
        (
            "no second request",
            "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n",
            Some("200"),
        ),
        ("nothing", "", Some("")),
    ];
    let mut slow = Vec::new();
    for _ in 0..EACH {
        for (name, text, status) in kinds {
            let mut client = server.connect();
            client.send(text).expect("sent");
            slow.push((name, status, client));
        }
    }
    let all = slow.len() as u64;
    server.wait_for("all are there", |status| status.total >= all);
    let mut innocent = server.connect();
    let began = Instant::now();
    let mut worst = Duration::ZERO;
    loop {
        let asked = Instant::now();
        if let Ok(answer) = innocent.try_get("/small.txt") {
            assert_eq!(answer.body, SMALL);
            worst = worst.max(asked.elapsed());
        } else {
            panic!("the innocent client was cut");
        }
        if server.status().open <= 1 {
            break;
        }
        assert!(
            began.elapsed() < DEADLINE,
            "still open: {:?}; {}",
            server.status(),
            server.errors()
        );
    }
    assert!(worst < Duration::from_secs(1), "the innocent client waited {worst:?}");
    for (name, status, mut client) in slow {
        if let Some(status) = status {
            let heard = client.rest().expect("an end");
            let heard = String::from_utf8_lossy(&heard);
            assert_eq!(heard.get(9..12).unwrap_or_default(), status, "{name}: {heard}");
        }
    }
}

#[test]
fn connections_beyond_the_descriptors_wait_for_their_turn() {
    // Asking for more than there can be changes nothing.
    for tables in ["", "[limits]\nconnections = 1000"] {
        more_clients_than_descriptors(tables);
    }
}

fn more_clients_than_descriptors(tables: &str) {
    const CLIENTS: usize = 100;
    const LIMIT: usize = 64;
    let script = format!("ulimit -n {LIMIT}; exec \"$@\"");
    let setup = Setup::new().tables(tables).under(&["sh", "-c", &script, "sh"]);
    for number in 0..CLIENTS {
        setup.file(&format!("{number}.txt"), format!("file {number}"));
    }
    let mut server = setup.start();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    let open = server.wait_for("some are accepted", |status| status.open >= 16).open as usize;
    assert!(open < CLIENTS);
    for (number, client) in clients.iter_mut().enumerate() {
        client
            .send(format!(
                "GET /{number}.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
            ))
            .expect("sent");
    }
    // Each that was accepted is answered and closes; so the next one gets its turn.
    for (number, client) in clients.iter_mut().enumerate() {
        let answer = client
            .answer()
            .unwrap_or_else(|error| panic!("client {number}: {error}; {}", server.errors()));
        assert_eq!(
            answer.body,
            format!("file {number}").as_bytes(),
            "client {number}: {}",
            answer.head
        );
    }
    drop(clients);
    server.wait_for("connections close", |status| status.open == 0);
}

#[test]
fn without_descriptors_open_connections_go_on_and_files_are_503() {
    let setup = Setup::new();
    for name in ["first.txt", "second.txt"] {
        setup.file(name, name);
    }
    let mut server = setup.start();
    let mut client = server.connect();
    assert_eq!(client.get("/small.txt").body, SMALL);
    let before = prlimit(
        Some(server.pid()),
        Resource::Nofile,
        Rlimit {
            current: Some(0),
            maximum: limit(&server),
        },
    )
    .expect("the right to limit a child");

    // Nobody can open anything now: not the server a file, not the kernel a socket for it.
    let mut waiting = server.connect();
    waiting
        .send("GET /second.txt HTTP/1.1\r\nHost: h\r\n\r\n")
        .expect("the kernel takes it");
    let began = Instant::now();
    let mut rounds = 0;
    // Longer than anything in memory is believed without another look at the disk.
    while began.elapsed() < Duration::from_secs(2) {
        let kept = client.get("/small.txt");
        assert_eq!(kept.status, 200, "round {rounds}, after {:?}", began.elapsed());
        let unknown = client.get(if rounds % 2 == 0 { "/first.txt" } else { "/missing.txt" });
        assert_eq!(unknown.status, 503, "round {rounds}: {}", unknown.head);
        rounds += 1;
    }
    assert_eq!(server.status().open, 1, "one was accepted without a descriptor");

    prlimit(Some(server.pid()), Resource::Nofile, before).expect("the right to limit a child");
    assert_eq!(waiting.answer().expect("an answer").body, b"second.txt");
    assert_eq!(client.get("/first.txt").body, b"first.txt");
    assert_eq!(client.get("/missing.txt").status, 404);
    let told = server.errors().lines().count();
    assert!(told < 20, "{told} lines tell of one shortage, met {rounds} times");
}

/// The hard limit of a server's descriptors.
fn limit(server: &Server) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/limits", server.pid().as_raw_nonzero())).expect("limits");
    let line = text
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .expect("the limit of files");
    line.split_whitespace().nth(4).and_then(|hard| hard.parse().ok())
}

#[test]
fn a_link_that_changes_between_look_and_open_leads_nowhere_outside() {
    const FILES: usize = 1000;
    let setup = Setup::new();
    let (inside, outside) = (setup.path("inside"), setup.folder.path().join("outside"));
    for (folder, text) in [(&inside, "inside"), (&outside, "SECRET")] {
        fs::create_dir(folder).expect("a folder");
        for number in 0..FILES {
            fs::write(folder.join(format!("{number}.txt")), text).expect("a file");
        }
    }
    let (link, other, spare) = (setup.path("link"), setup.path("other"), setup.path("spare"));
    symlink("inside", &link).expect("a link");
    let server = setup.start();
    let (done, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                for target in [&outside, Path::new("inside")] {
                    symlink(target, &other).expect("a link");
                    fs::rename(&other, &link).expect("a link to move");
                    swaps.fetch_add(1, Relaxed);
                }
                // The folder itself changes places with a link, too.
                fs::rename(&inside, &spare).expect("a folder to move");
                symlink(&outside, &inside).expect("a link");
                fs::remove_file(&inside).expect("a link to remove");
                fs::rename(&spare, &inside).expect("a folder to move");
            }
        });
        let mut client = server.connect();
        let mut statuses = [0; 2];
        for number in 0..FILES {
            for folder in ["link", "inside"] {
                let answer = client.get(&format!("/{folder}/{number}.txt"));
                assert_ne!(answer.body, b"SECRET", "{folder}/{number}.txt");
                statuses[usize::from(answer.status == 200)] += 1;
                let known = matches!(answer.status, 200 | 404 | 403 | 503);
                assert!(
                    known && (answer.status != 200 || answer.body == b"inside"),
                    "{}",
                    answer.head
                );
            }
        }
        done.store(true, Relaxed);
        println!("{statuses:?} without and with content, {} swaps", swaps.load(Relaxed));
        assert!(
            statuses[1] > 0 && swaps.load(Relaxed) > 10,
            "{statuses:?} after {swaps:?} swaps: no race took place"
        );
    });
}

#[test]
fn a_file_cut_short_while_it_is_sent_cuts_its_answer_alone() {
    const SIZE: u64 = 64 << 20;
    const CUT: u64 = 1 << 20;
    let setup = Setup::new();
    setup.sparse("large.bin", SIZE);
    let server = setup.start();
    let (mut other, mut client) = (server.connect(), server.connect());
    client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n").expect("sent");
    let head = client.head().expect("a head");
    assert!(head.contains(&format!("Content-Length: {SIZE}\r\n")), "{head}");
    // By now the socket is full: more than its buffers hold is still in the file.
    fs::OpenOptions::new()
        .write(true)
        .open(server.setup.path("large.bin"))
        .and_then(|file| file.set_len(CUT))
        .expect("cut");
    let received = client.rest().expect("an end").len() as u64;
    assert!(received < SIZE, "{received} bytes of a file cut short");
    assert_eq!(other.get("/small.txt").body, SMALL);
    let (status, errors) = server.stop();
    assert!(status.success(), "{status}");
    assert!(errors.contains("cut short"), "nothing was told: {errors}");
}

#[test]
fn what_is_no_file_is_neither_served_nor_waited_for() {
    let setup = Setup::new();
    mknodat(CWD, setup.path("fifo"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    fs::create_dir(setup.path("folder")).expect("a folder");
    mknodat(CWD, setup.path("folder/index.html"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    mknodat(CWD, setup.path("small.txt.br"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    let _socket = UnixListener::bind(setup.path("socket")).expect("a socket file");
    symlink("/dev/zero", setup.path("zero")).expect("a link");
    symlink("loop", setup.path("loop")).expect("a link");
    let mut server = setup.keys("symlinks = \"all\"").start();
    let mut clients = Vec::new();
    for path in [
        "/fifo",
        "/folder/",
        "/socket",
        "/zero",
        "/loop",
        "/loop/x",
        "/small.txt/x",
    ] {
        let mut client = server.connect();
        client
            .send(format!("GET {path} HTTP/1.1\r\nHost: h\r\nAccept-Encoding: br\r\n\r\n"))
            .expect("sent");
        clients.push((path, client));
    }
    for (path, client) in &mut clients {
        let status = client.answer().map(|answer| answer.status);
        assert!(matches!(status, Ok(404 | 403)), "{path}: {status:?}");
    }
    let mut client = server.connect();
    client
        .send("GET /small.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: br\r\n\r\n")
        .expect("sent");
    assert_eq!(client.answer().expect("an answer").body, SMALL);
    drop((clients, client));
    server.wait_for("connections close", |status| status.open == 0);
}

#[test]
fn a_client_that_pipelines_and_never_reads_fills_no_memory() {
    const CLIENTS: usize = 8;
    // What the kernel may take on both sides, and more.
    const MOST: usize = 32 << 20;
    let setup = Setup::new();
    setup.file("page.bin", vec![b'x'; 3_000]);
    let server = setup.start();
    let address = server.address();
    server.get("/page.bin");
    let before = server.memory();
    let requests = "GET /page.bin HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000);
    let clients: Vec<TcpStream> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect(address).expect("a connection");
                    // A server that takes nothing for so long has stopped reading, as it must.
                    stream
                        .set_write_timeout(Some(Duration::from_millis(500)))
                        .expect("an option");
                    let mut sent = 0;
                    while stream.write_all(requests.as_bytes()).is_ok() {
                        sent += requests.len();
                        assert!(sent < MOST, "the server reads on, though nobody takes its answers");
                    }
                    stream
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client that was stopped"))
            .collect()
    });
    assert_eq!(server.get("/small.txt").body, SMALL);
    let after = server.memory();
    assert!(after <= before + 16 * 1024, "memory grew from {before} to {after} KiB");
    drop(clients);
}

#[test]
fn a_client_of_ours_tells_cuts_from_ends() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let mut client = Client::to(listener.local_addr().expect("an address"));
    let (mut stream, _) = listener.accept().expect("a connection");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        .expect("sent");
    drop(stream);
    assert_eq!(
        client.answer().map_err(|error| error.kind()),
        Err(ErrorKind::UnexpectedEof)
    );
    assert_eq!(client.received(), "half");
}
