//! I/O back ends of the built program: fallback to epoll with the reason in the log, a ring that fails under load, and
//! ten thousand connections on one worker.

mod child;

use std::process::Command;

use child::{Server, Setup};
use rocknet_testing::{Need, skip};

/// Returns true if io_uring is available. Otherwise the test is reported as skipped.
fn has_ring() -> bool {
    match rocknet_io::runtime::io_uring_unavailable() {
        None => true,
        Some(trouble) => {
            skip(Need::IoUring, &trouble);
            false
        }
    }
}

/// Returns a setup, and the strace command that injects `fault` into the system calls of its server.
fn with_fault(backend: &str, fault: &str) -> (Setup, Vec<String>) {
    let setup = Setup::new();
    // strace writes the list of calls to this file, which is not read.
    let nowhere = setup.folder.path().join("calls.txt").display().to_string();
    let (inject, variable) = (format!("inject={fault}"), format!("ROCKNET_BACKEND={backend}"));
    let command = ["strace", "-f", "-qq", "-o", &nowhere, "-E", &variable, "-e", &inject];
    let command = command.iter().map(|&word| word.to_owned()).collect();
    (setup, command)
}

fn start(backend: &str, fault: &str) -> Server {
    let (mut setup, command) = with_fault(backend, fault);
    setup.under = command;
    // The chosen back end and the reason are logged at this level.
    setup.tables.push_str("[log]\nlevel = \"debug\"\n");
    setup.start()
}

/// Failure that strace injects to make io_uring unavailable, and a part of the reason that the server reports.
const NO_RING: &[(&str, &str)] = &[
    ("io_uring_setup:error=ENOSYS", "kernel has no io_uring"),
    ("io_uring_setup:error=EPERM", "kernel.io_uring_disabled"),
    ("io_uring_setup:error=ENOMEM", "LimitMEMLOCK"),
    ("io_uring_register:error=EINVAL", "RockNet needs Linux 6.1 for io_uring"),
];

#[test]
fn requiring_io_uring_fails_with_the_reason_where_it_is_unavailable() {
    if !has_ring() {
        return;
    }
    for (fault, word) in NO_RING {
        let (setup, command) = with_fault("io_uring", fault);
        let file = setup.folder.path().join("rocknet.toml");
        std::fs::write(&file, "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n").expect("a configuration");
        let output = Command::new(&command[0])
            .args(&command[1..])
            .args([env!("CARGO_BIN_EXE_rocknet"), "run", "-c"])
            .arg(&file)
            .output()
            .expect("strace");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{fault}: {message}");
        assert!(
            message.contains("selects io_uring, which is not available") && message.contains(word),
            "{fault}: {message}"
        );
    }
}

#[test]
fn automatic_selection_falls_back_to_epoll_and_logs_the_reason() {
    if !has_ring() {
        return;
    }
    for (fault, word) in NO_RING {
        let server = start("auto", fault);
        assert_eq!(server.get("/small.txt").body, b"Hello, world!", "{fault}");
        let message = server.error_with("io_uring is not available");
        assert!(message.contains(word), "{fault}: {message}");
    }
}

#[test]
fn connections_continue_on_epoll_after_the_ring_fails() {
    const CLIENTS: usize = 20;
    /// Length of each download in bytes.
    const LARGE: usize = 4 << 20;
    if !has_ring() {
        return;
    }
    // Early and late failures, each of them permanent.
    for when in [20, 60, 150] {
        let (mut setup, command) = with_fault("io_uring", &format!("io_uring_enter:error=EBADFD:when={when}+"));
        setup.file("large.bin", vec![b'x'; LARGE]);
        setup.under = command;
        let mut server = setup.start();
        let mut downloads: Vec<_> = (0..3).map(|_| server.connect()).collect();
        for download in &mut downloads {
            let _ = download.send("GET /large.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        }
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| Some(server.connect())).collect();
        let mut cut = 0;
        for _ in 0..20 {
            for client in &mut clients {
                let Some(open) = client else { continue };
                match open.try_get("/small.txt") {
                    Ok(response) => assert_eq!(response.body, b"Hello, world!", "{}", response.head),
                    // The response was under way when the ring failed, and the server cannot learn how much of it
                    // arrived.
                    Err(_) => {
                        *client = None;
                        cut += 1;
                    }
                }
            }
        }
        // The requests are sent one after the other, so at most one response was under way.
        assert!(
            cut <= 1,
            "{cut} connections were cut by call {when}: {}",
            server.errors()
        );
        for download in &mut downloads {
            let response = download.rest().expect("an end");
            assert!(
                response.ends_with(b"xxx") && response.len() > LARGE,
                "{} bytes",
                response.len()
            );
        }
        server.error_with("io_uring failed");
        drop((clients, downloads));
        server.wait_for("connections close", |status| status.open == 0);
        assert_eq!(server.get("/small.txt").body, b"Hello, world!");
        let (status, errors) = server.stop();
        assert!(status.success() && !errors.contains("panic"), "{status}: {errors}");
    }
}

#[test]
fn ten_thousand_connections_share_one_worker() {
    /// Number of connections, unless the limit on descriptors permits fewer.
    const MOST: u64 = 10_000;
    /// Maximum memory of one idle connection in bytes.
    const BYTES: u64 = 1024;
    if !has_ring() {
        return;
    }
    // The limit on descriptors bounds the number of connections, in this process as in the server. 500 descriptors
    // remain for other uses.
    let count = MOST.min(rocknet_io::descriptors::raise().now.saturating_sub(500));
    let mut server = Setup::new()
        .tables("[limits]\nconnections = 20000\nkeep_alive = \"10m\"\nheader_timeout = \"10m\"")
        .under(&["env", "ROCKNET_BACKEND=io_uring"])
        .start();
    let connect = |server: &Server| -> Vec<_> { (0..100).map(|_| server.connect()).collect() };
    let mut clients = connect(&server);
    for client in &mut clients {
        assert_eq!(client.get("/small.txt").status, 200);
    }
    let before = server.memory();
    while (clients.len() as u64) < count {
        for mut client in connect(&server) {
            assert_eq!(client.get("/small.txt").status, 200);
            clients.push(client);
        }
    }
    server.wait_for("all connections are open", |status| status.open >= count);
    let grown = (server.memory() - before) * 1024;
    println!("{} bytes per connection", grown / count);
    assert!(grown <= count * BYTES, "{grown} bytes for {count} connections");
    // All clients send a request before any response is read, and responses are read in reverse order.
    for client in &mut clients {
        client.send("GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n").expect("sent");
    }
    for client in clients.iter_mut().rev() {
        assert_eq!(client.response().expect("a response").body, b"Hello, world!");
    }
    drop(clients);
    server.wait_for("connections close", |status| status.open == 0);
    let (status, errors) = server.stop();
    assert!(
        status.success() && !errors.contains("io_uring failed"),
        "{status}: {errors}"
    );
}
