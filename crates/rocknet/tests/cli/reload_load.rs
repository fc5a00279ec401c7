//! Many reloads under load: no request fails, no connection is cut, and memory stays flat.

use std::fs;
use std::io::{Read, Write};
use std::thread;
use std::time::Instant;

use crate::load::{Load, TIMEOUT, connect};
use crate::program::ProgramFolder;

/// Number of sites in the configuration, large enough that a snapshot that is not freed shows in the memory.
const SITES: usize = 100;
/// Number of reloads before memory is measured for the first time.
const WARM_UP: usize = 10;
/// Number of reloads after the first measurement of memory.
const RELOADS: usize = 100;
/// Number of last reloads after each of which memory is measured. The smallest value counts, because a stopping worker
/// and the snapshot that it uses are freed some time after the reload.
const MEASURED: usize = 20;
/// Maximum growth of the resident memory in KiB. A leak of one snapshot for each reload exceeds it many times.
const MAX_GROWTH: u64 = 12 << 10;
/// Size in bytes of the file whose download outlasts all reloads. It is larger than the socket buffers.
const LARGE: u64 = 64 << 20;

/// Number of workers in the configuration of a reload.
fn workers(number: usize) -> usize {
    1 + number % 4
}

/// Number of threads that serve the port.
fn threads(process: u32, port: &str) -> usize {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("the threads of a process");
    let names = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with(&format!("rn-{port}-"))).count()
}

/// Returns the configuration that reload `number` loads. From one configuration to the next, a Unix socket is
/// added, replaced by another one, or removed. The server is started with configuration 0.
fn text(number: usize) -> String {
    // The timeout is long, because a connection without a request must outlast all reloads.
    let limits = "[limits]\nheader_timeout = \"10m\"\n";
    let mut text = format!("[server]\nworkers = {}\nstate = \"state\"\n{limits}", workers(number));
    for site in 0..SITES {
        let name = match site {
            0 => "default".to_owned(),
            site => format!("s{site}.test"),
        };
        text += &format!("[site.\"{name}\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"www\"\n");
        text += &format!("headers = {{ \"X-Reload\" = \"{number}\" }}\n");
    }
    match number % 3 {
        0 => {}
        socket => text += &format!("[site.other]\nlisten = \"unix:{socket}.sock\"\nroot = \"www\"\n"),
    }
    text
}

/// Returns the resident memory of a process in KiB.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("its memory");
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn a_hundred_reloads_lose_no_request_and_no_memory() {
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", &text(0))]);
    let large = fs::File::create(dir.path().join("www/large.bin")).expect("a file");
    large.set_len(LARGE).expect("a sparse file");
    let server = dir.serve(&["run"]);
    let port = server.authority().rsplit_once(':').expect("a port").1;
    let authority = format!("127.0.0.1:{port}");
    let load = Load::default();
    thread::scope(|scope| {
        let clients = load.start(scope, &authority);
        let mut download = connect(&authority);
        write!(
            download,
            "GET /large.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .expect("a request");
        download.read_exact(&mut [0; 1000]).expect("a part of the response");
        let mut idle = connect(&authority);
        let (mut before, mut after) = (0, u64::MAX);
        for number in 1..=WARM_UP + RELOADS {
            dir.write("rocknet.toml", &text(number));
            let output = dir.run(&["reload"]);
            assert_eq!(output.code, Some(0), "{output:?}");
            let socket = number % 3;
            for other in [1, 2] {
                let exists = dir.path().join(format!("{other}.sock")).exists();
                assert_eq!(exists, other == socket, "reload {number}, socket {other}");
            }
            // A thread that has just been started may not have its name yet.
            let deadline = Instant::now() + TIMEOUT;
            while threads(server.id(), port) < workers(number) {
                assert!(Instant::now() < deadline, "reload {number}: too few workers");
                thread::yield_now();
            }
            load.wait_for_requests();
            if number == WARM_UP {
                before = resident(server.id());
            }
            if number > WARM_UP + RELOADS - MEASURED {
                after = after.min(resident(server.id()));
            }
        }
        assert!(after < before + MAX_GROWTH, "{before} KiB became {after} KiB");
        let last = format!("X-Reload: {}\r\n", WARM_UP + RELOADS);
        assert!(server.get_from("localhost", "/").contains(&last));
        // The connection was opened before all reloads.
        write!(idle, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("a request");
        let mut response = String::new();
        idle.read_to_string(&mut response).expect("a response");
        assert!(response.contains(&last), "{response}");
        let rest = std::io::copy(&mut download, &mut std::io::sink()).expect("the rest of the response");
        assert!(rest > LARGE - 1000, "{rest}");
        drop(clients);
        // Removed workers end with their last connection.
        let deadline = Instant::now() + TIMEOUT;
        while threads(server.id(), port) != workers(WARM_UP + RELOADS) {
            assert!(Instant::now() < deadline, "removed workers do not end");
            thread::yield_now();
        }
    });
}
