//! Servers that are killed, stopped or suspended by a signal, and servers whose log cannot be written.

mod child;

use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use child::{Server, Setup};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, test_kill_process, waitpid};

/// Size in bytes of a file that exceeds the kernel buffers of both sides, so its download is still in progress when
/// the server stops.
const LARGE: u64 = 64 << 20;

#[test]
fn a_killed_server_can_be_restarted_on_its_port_immediately() {
    let mut setup = Setup::new();
    for round in 0..5 {
        let server = setup.start();
        let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
        for client in &mut clients {
            assert_eq!(client.get("/small.txt").body, b"Hello, world!", "round {round}");
        }
        let port = server.address().port();
        setup = server.kill();
        // The connections of the killed server still exist in the kernel and use the port.
        setup.port = port;
    }
}

#[test]
fn php_fpm_exits_when_its_server_is_killed() {
    let mut setup = Setup::new();
    setup.tables = "state = \"state\"\n".to_owned();
    setup.keys = "php = \"auto\"\n".to_owned();
    // PHP runs as an unprivileged user, who needs access to the folder.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(setup.folder.path(), open).expect("an open folder");
    setup.file("master.php", "<?php echo posix_getppid(); error_log('went wrong');");
    for _ in 0..2 {
        let server = setup.start();
        let mut client = server.connect();
        let master = String::from_utf8(client.get("/master.php").body).expect("a number");
        let master = Pid::from_raw(master.parse().expect("a number")).expect("a process");
        let errors = server.error_with("went wrong");
        let line = errors.lines().find(|line| line.contains("went wrong")).expect("a line");
        assert!(line.contains("default") && line.contains("/master.php"), "{line}");
        setup = server.kill();
        let deadline = Instant::now() + child::DEADLINE;
        while test_kill_process(master).is_ok() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(
            test_kill_process(master).is_err(),
            "php-fpm still runs after its server was killed"
        );
        // Each server removes the files of the killed one, so only one entry remains.
        let entries = std::fs::read_dir(setup.folder.path().join("state/php")).expect("a folder");
        assert_eq!(entries.count(), 1);
    }
}

#[test]
fn responses_in_progress_are_completed_at_a_stop() {
    const CLIENTS: usize = 8;
    let setup = Setup::new();
    setup.sparse("large.bin", LARGE);
    let mut server = setup.start();
    let mut downloads: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for download in &mut downloads {
        download
            .send("GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .expect("sent");
        download.head().expect("the beginning");
    }
    let address = server.address();
    let begun = Barrier::new(CLIENTS + 1);
    let served: usize = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let begun = &begun;
                scope.spawn(move || {
                    let mut client = child::Client::to(address);
                    for _ in 0..20 {
                        client.get("/small.txt");
                    }
                    begun.wait();
                    let mut served = 0;
                    while let Ok(response) = client.try_get("/small.txt") {
                        assert_eq!(response.body, b"Hello, world!");
                        served += 1;
                    }
                    assert_eq!(client.received(), "", "a response was cut");
                    served
                })
            })
            .collect();
        begun.wait();
        server.signal(Signal::TERM);
        let clients = clients
            .into_iter()
            .map(|client| client.join().expect("a client that received whole responses"));
        clients.sum()
    });
    println!("{served} responses after the stop");
    assert!(
        TcpStream::connect(address).is_err(),
        "the stopped server still accepts connections"
    );
    for download in &mut downloads {
        let rest = download.rest().expect("an end");
        assert_eq!(rest.len() as u64, LARGE, "cut");
    }
    let status = server.wait();
    assert!(status.success(), "{status}; {}", server.errors());
}

#[test]
fn a_suspended_server_resumes() {
    let mut server = Setup::new().start();
    let mut before = server.connect();
    before.get("/small.txt");
    server.signal(Signal::STOP);
    let suspended = waitpid(Some(server.pid()), WaitOptions::UNTRACED).expect("a process to wait for");
    assert!(
        suspended.is_some_and(|(_, status)| WaitStatus::stopped(status)),
        "{suspended:?}"
    );
    let request = "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    before.send(request).expect("the kernel accepts it");
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(request).expect("the kernel accepts it");
    }
    server.signal(Signal::CONT);
    for client in clients.iter_mut().chain([&mut before]) {
        assert_eq!(client.response().expect("a response").status, 200);
    }
    drop((clients, before));
    server.wait_for("connections close", |status| status.open == 0);
}

#[test]
fn a_full_disk_of_the_log_delays_no_request_and_is_reported() {
    let mut server = Setup::new().tables("[log]\naccess = \"/dev/full\"").start();
    let mut client = server.connect();
    let target = format!("/small.txt?{}", "x".repeat(2000));
    // About 40 MB of lines, more than all buffers can store.
    for round in 0..20_000 {
        assert_eq!(client.get(&target).status, 200, "request {round}");
    }
    server.wait_for("lost records are counted", |status| status.lost_records > 0);
    assert_eq!(client.get("/small.txt").status, 200);
    let (status, errors) = server.stop();
    assert!(status.success(), "{status}");
    assert!(errors.contains("/dev/full"), "nothing was logged: {errors}");
}

#[test]
fn a_log_pipe_that_is_not_read_delays_no_request() {
    // A pipe whose reader does not read is full after 64 KiB.
    let setup = Setup::new().tables("[log]\naccess = \"log.fifo\"");
    let fifo = setup.folder.path().join("log.fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .expect("a FIFO");
    // Opening a FIFO only for reading would wait for a writer.
    let reader = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&fifo)
        .expect("a reader that never reads");
    let server = setup.start();
    let mut client = server.connect();
    let target = format!("/small.txt?{}", "x".repeat(2000));
    for round in 0..2_000 {
        assert_eq!(client.get(&target).status, 200, "request {round}");
    }
    let (status, errors) = server.stop();
    assert!(status.success(), "{status}; {errors}");
    drop(reader);
}

impl Server {
    /// Kills the server with SIGKILL and returns its setup.
    fn kill(mut self) -> Setup {
        self.signal(Signal::KILL);
        self.wait();
        std::mem::replace(&mut self.setup, Setup::new())
    }
}
