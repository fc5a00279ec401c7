//! Spools large request bodies to disk in the built program: memory is constant, and no file remains after a complete
//! or an aborted request.

mod child;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use child::{DEADLINE, Server, Setup};
use rustix::process::Signal;

/// Size of the body in MiB, unless `ROCKNET_SPOOLED` sets another. It is large enough to measure a leak of a few
/// percent.
const AMOUNT_MIB: u64 = 128;
/// Maximum growth of memory in KiB during a request, for its buffers.
const MAX_KIB: u64 = 2048;
/// Number of bytes in each write of a client.
const PIECE: usize = 64 * 1024;

/// Returns the length of the large body in bytes.
fn amount() -> u64 {
    let value = std::env::var("ROCKNET_SPOOLED").ok();
    value.and_then(|mib| mib.parse().ok()).unwrap_or(AMOUNT_MIB) << 20
}

/// Returns a setup with a CGI program that counts its input, and with a spool folder.
fn setup() -> Setup {
    let setup = Setup::new();
    fs::create_dir(setup.path("cgi-bin")).expect("a folder");
    let program =
        "#!/bin/sh\ncount=$(wc -c)\nprintf 'Content-Type: text/plain\\n\\n%s %s\\n' \"$CONTENT_LENGTH\" \"$count\"\n";
    setup.file("cgi-bin/count.sh", program);
    fs::set_permissions(setup.path("cgi-bin/count.sh"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let spool = setup.folder.path().join("spool");
    fs::create_dir(&spool).expect("a folder");
    setup
        .tables(&format!(
            "spool = {{ folder = \"{}\" }}\n[limits]\nbody_size = \"4GiB\"\n",
            spool.display()
        ))
        .keys("cgi = \"/cgi-bin\"")
}

/// Sends the head of a request whose body has `length` bytes.
fn begin(server: &Server, length: u64) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let head = format!(
        "POST /cgi-bin/count.sh HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("to be sent");
    stream
}

fn send(stream: &mut TcpStream, length: u64) {
    let (piece, mut left) = (vec![b'x'; PIECE], length);
    while left > 0 {
        let now = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        stream.write_all(&piece[..now]).expect("to be sent");
        left -= now as u64;
    }
}

fn response(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    // An error after the response, such as a reset, is ignored.
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

/// Returns the number of unlinked spool files that the server has open, according to `/proc`.
fn open_files(server: &Server) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("its descriptors");
    let links = descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let spool = server.setup.folder.path().join("spool");
    links.filter(|link| link.starts_with(&spool)).count()
}

#[track_caller]
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the number of files that have a name in the spool folder.
fn named_files(server: &Server) -> usize {
    let folder = fs::read_dir(server.setup.folder.path().join("spool"));
    folder.expect("the folder").count()
}

#[test]
fn a_large_body_uses_little_memory_and_leaves_no_file() {
    let server = setup().start();
    // The first request starts threads and allocates buffers that are kept.
    let first = 1 << 20;
    let mut stream = begin(&server, first);
    send(&mut stream, first);
    assert!(response(stream).contains(&format!("{first} {first}\n")));
    wait_for("the first file is closed", || open_files(&server) == 0);
    let (peak, descriptors) = (server.peak(), server.descriptors());

    let amount = amount();
    let begun = Instant::now();
    let mut stream = begin(&server, amount);
    send(&mut stream, amount);
    let output = response(stream);
    assert!(output.contains(&format!("{amount} {amount}\n")), "{output}");
    let taken = begun.elapsed();
    let grown = server.peak().saturating_sub(peak);
    println!(
        "{} MiB in {taken:?}: the peak of memory grew from {} KiB by {grown} KiB",
        amount >> 20,
        peak
    );
    assert!(grown <= MAX_KIB, "{grown} KiB");
    wait_for("all descriptors are back", || {
        server.descriptors() <= descriptors && open_files(&server) == 0
    });
    assert_eq!(named_files(&server), 0);
}

#[test]
fn an_incomplete_body_leaves_no_file() {
    let mut server = setup().start();
    let mut streams: Vec<TcpStream> = (0..20).map(|_| begin(&server, 10 << 20)).collect();
    streams.iter_mut().for_each(|stream| send(stream, 1 << 20));
    wait_for("a file for each request", || open_files(&server) == streams.len());
    assert_eq!(named_files(&server), 0, "spool files must have no names");
    drop(streams);
    wait_for("the files are closed", || open_files(&server) == 0);
    server.wait_for("connections close", |status| status.open == 0);
    // A killed server leaves no file either.
    let mut stream = begin(&server, 10 << 20);
    send(&mut stream, 1 << 20);
    wait_for("a file", || open_files(&server) == 1);
    server.signal(Signal::KILL);
    server.wait();
    assert_eq!(named_files(&server), 0);
}

#[test]
fn failing_writes_are_reported_by_a_status_and_a_log_line() {
    let version = Command::new("strace").arg("-V").output();
    assert!(
        version.is_ok_and(|output| output.status.success()),
        "strace is missing: apt-get install strace"
    );
    for (fault, status, line) in [
        ("pwrite64:error=ENOSPC", 507, "refused with 507"),
        ("pwrite64:error=EDQUOT", 507, "refused with 507"),
        ("pwrite64:error=EIO", 500, "refused with 500"),
        // The first writes succeed, and then the disk is full.
        ("pwrite64:error=ENOSPC:when=3+", 507, "refused with 507"),
        // Every second write is interrupted, and the server repeats it.
        ("pwrite64:error=EINTR:when=1+2", 200, ""),
    ] {
        let setup = setup();
        let inject = format!("inject={fault}");
        let trace = setup.folder.path().join("calls.txt").display().to_string();
        let spool = setup.folder.path().join("spool").display().to_string();
        let server = setup
            .under(&["strace", "-f", "-qq", "-o", &trace, "-e", &inject])
            .start();
        let length = 1 << 20;
        let mut stream = begin(&server, length);
        // The server may refuse the request before the whole body was sent.
        let piece = vec![b'x'; PIECE];
        for _ in 0..length / PIECE as u64 {
            if stream.write_all(&piece).is_err() {
                break;
            }
        }
        let output = response(stream);
        assert!(output.starts_with(&format!("HTTP/1.1 {status} ")), "{fault}: {output}");
        if !line.is_empty() {
            let message = server.error_with(line);
            assert!(message.contains(&spool), "{fault}: {message}");
        }
        wait_for("the file is closed", || open_files(&server) == 0);
    }
}
