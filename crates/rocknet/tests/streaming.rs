//! Streams large request and response bodies through the proxy of the built program: memory is constant.

mod child;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use child::{DEADLINE, Server, Setup};
use rocknet_testing::{Need, skip};

/// Size of each body in MiB, unless `ROCKNET_STREAMED` sets another. It is large enough to measure a leak of one
/// percent.
const AMOUNT_MIB: u64 = 256;
/// Maximum growth of memory in KiB during a request, for its buffers.
const MAX_KIB: u64 = 1024;
/// Maximum number of bytes in each read or write.
const PIECE: usize = 64 * 1024;

/// Returns the length of each body in bytes.
fn amount() -> u64 {
    let value = std::env::var("ROCKNET_STREAMED").ok();
    value.and_then(|mib| mib.parse().ok()).unwrap_or(AMOUNT_MIB) << 20
}

/// Starts an upstream and returns its port. The upstream sends as many bytes as the path names, or responds to a
/// request body with its length.
fn upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port to listen at");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Serves the requests of a connection. Returns `None` when the connection ends or fails.
fn serve(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::with_capacity(PIECE, stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        loop {
            let mut field = String::new();
            reader.read_line(&mut field).ok()?;
            match field.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().ok()?,
                Some(_) => {}
                None => break,
            }
        }
        if line.starts_with("PUT") {
            let got = std::io::copy(&mut Read::take(&mut reader, length), &mut std::io::sink()).ok()?;
            let output = got.to_string();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{output}",
                output.len()
            )
            .ok()?;
        } else {
            let mut left: u64 = line.split(['/', ' ']).nth(2)?.parse().ok()?;
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n").ok()?;
            let piece = vec![b'x'; PIECE];
            while left > 0 {
                let now = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                stream.write_all(&piece[..now]).ok()?;
                left -= now as u64;
            }
        }
    }
}

/// Reads the next response, passes its body to `seen` in pieces, and returns the length of the body.
fn response(stream: &mut TcpStream, mut seen: impl FnMut(&[u8])) -> u64 {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    let length = head
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let length: u64 = length.and_then(|length| length.parse().ok()).expect("a length");
    let (mut left, mut piece) = (length, vec![0; PIECE]);
    while left > 0 {
        let now = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let got = match stream.read(&mut piece[..now]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            result => result.expect("content"),
        };
        assert!(got > 0, "the response was cut with {left} bytes missing");
        seen(&piece[..got]);
        left -= got as u64;
    }
    length
}

/// Receives a body of `amount` bytes. Calls `sample` with the number of bytes received so far.
fn download(stream: &mut TcpStream, amount: u64, sample: &mut dyn FnMut(u64)) {
    write!(stream, "GET /{amount} HTTP/1.1\r\nHost: a\r\n\r\n").expect("to be sent");
    let mut got = 0;
    let length = response(stream, |piece| {
        assert!(piece.iter().all(|byte| *byte == b'x'));
        got += piece.len() as u64;
        sample(got);
    });
    assert_eq!(length, amount);
}

/// Sends a body of `amount` bytes. Calls `sample` with the number of bytes sent so far.
fn upload(stream: &mut TcpStream, amount: u64, sample: &mut dyn FnMut(u64)) {
    write!(
        stream,
        "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: {amount}\r\n\r\n"
    )
    .expect("to be sent");
    let (piece, mut sent) = (vec![b'y'; PIECE], 0);
    while sent < amount {
        let now = piece.len().min(usize::try_from(amount - sent).unwrap_or(usize::MAX));
        stream.write_all(&piece[..now]).expect("to be sent");
        sent += now as u64;
        sample(sent);
    }
    let mut received = Vec::new();
    response(stream, |piece| received.extend_from_slice(piece));
    assert_eq!(String::from_utf8_lossy(&received), amount.to_string());
}

/// Samples the memory of the server at intervals while data flows, and keeps the maximum.
struct MemoryWatch<'a> {
    server: &'a Server,
    /// Number of bytes of the body at which the next sample is due.
    next: u64,
    /// Maximum so far in KiB.
    peak: u64,
}

impl MemoryWatch<'_> {
    /// Number of bytes between two samples.
    const STEP: u64 = 8 << 20;

    fn sample(&mut self, passed: u64) {
        if passed >= self.next {
            self.next += MemoryWatch::STEP;
            self.peak = self.peak.max(self.server.memory());
        }
    }
}

#[test]
fn memory_is_constant_while_large_bodies_flow_both_ways() {
    let amount = amount();
    for backend in ["epoll", "io_uring"] {
        if backend == "io_uring"
            && let Some(trouble) = rocknet_io::runtime::io_uring_unavailable()
        {
            skip(Need::IoUring, &trouble);
            continue;
        }
        let server = Setup::new()
            .tables("[limits]\nbody_size = \"8GiB\"\n")
            .keys(&format!("proxy = \"http://127.0.0.1:{}\"", upstream()))
            .under(&["env", &format!("ROCKNET_BACKEND={backend}")])
            .start();
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        stream.set_write_timeout(Some(DEADLINE)).expect("a deadline");
        // The first requests make allocations that are kept.
        download(&mut stream, 1000, &mut |_| {});
        upload(&mut stream, 1000, &mut |_| {});
        let idle = server.memory();
        for (way, flow) in [
            ("down", download as fn(&mut TcpStream, u64, &mut dyn FnMut(u64))),
            ("up", upload),
        ] {
            let mut watch = MemoryWatch {
                server: &server,
                next: 0,
                peak: 0,
            };
            flow(&mut stream, amount, &mut |passed| watch.sample(passed));
            let grown = watch.peak.saturating_sub(idle);
            println!(
                "{backend}, {} MiB {way}: {idle} KiB idle, {grown} KiB more",
                amount >> 20
            );
            assert!(grown <= MAX_KIB, "{backend} {way}: {grown} KiB more than {idle}");
        }
    }
}
