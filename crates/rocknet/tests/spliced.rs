//! Tunnels with large transfers through the built program: splice(2) moves the data through pipes, and no data is lost
//! in a pipe when one side stalls, closes or resets its connection.

mod child;

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{Context, SHA256};
use child::{DEADLINE, Server, Setup};
use rocknet_testing::{Need, skip};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

/// Bytes in each direction, far more than fit into all buffers between the two sides.
const AMOUNT: usize = 64 << 20;
/// Length of the repeated pattern, different from the length of every buffer.
const BLOCK: usize = 1_000_003;
/// Size of the kernel buffers of the test's sockets: small, so that they are full soon after a side stops reading.
const SOCKET_BUFFER: usize = 64 * 1024;
/// Interval at which unused pipes are closed.
const TICK: Duration = Duration::from_millis(20);

/// Returns the I/O back ends that this machine supports.
fn backends() -> Vec<&'static str> {
    match rocknet_io::runtime::io_uring_unavailable() {
        None => vec!["epoll", "io_uring"],
        Some(trouble) => {
            skip(Need::IoUring, &trouble);
            vec!["epoll"]
        }
    }
}

/// Returns pseudo-random bytes, so that lost or reordered data changes the hash.
fn block() -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..BLOCK).map(|_| next()).collect()
}

/// A client, the upstream, and a tunnel between them.
struct TunnelPair {
    server: Server,
    client: TcpStream,
    /// End of the tunnel at the upstream.
    peer: TcpStream,
    /// Number of pipes that the server had before it served the tunnel.
    before: usize,
    /// Memory of the server in KiB, before data was sent.
    memory_before: u64,
}

impl TunnelPair {
    fn new(backend: &str, limits: &str) -> TunnelPair {
        TunnelPair::under(&["env", &format!("ROCKNET_BACKEND={backend}")], limits)
    }

    /// Starts the server through `command`, such as env or strace, and opens the tunnel.
    fn under(command: &[&str], limits: &str) -> TunnelPair {
        let upstream = TcpListener::bind("127.0.0.1:0").expect("a port to listen at");
        let port = upstream.local_addr().expect("its address").port();
        let server = Setup::new()
            .tables(&format!(
                "events = {{ wait = \"{}ms\" }}\n[limits]\n{limits}",
                TICK.as_millis()
            ))
            .keys(&format!("proxy = \"http://127.0.0.1:{port}\""))
            .under(command)
            .start();
        let before = settled_pipes(&server);
        let mut client = TcpStream::connect(server.address()).expect("a connection");
        sockopt::set_socket_recv_buffer_size(&client, SOCKET_BUFFER).expect("an option");
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: much\r\n\r\n")
            .expect("sent");
        // `accept` has no time limit, so the listener is polled first.
        let mut polled = [PollFd::new(&upstream, PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: DEADLINE.as_secs() as i64,
            tv_nsec: 0,
        };
        assert_eq!(
            poll(&mut polled, Some(&timeout)),
            Ok(1),
            "the upstream received no connection"
        );
        let (mut peer, _) = upstream.accept().expect("a connection");
        for socket in [&client, &peer] {
            socket.set_read_timeout(Some(DEADLINE)).expect("an option");
            socket.set_write_timeout(Some(DEADLINE)).expect("an option");
            sockopt::set_socket_send_buffer_size(socket, SOCKET_BUFFER).expect("an option");
        }
        head(&mut peer);
        peer.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: much\r\n\r\n")
            .expect("sent");
        assert!(head(&mut client).starts_with("HTTP/1.1 101 "));
        TunnelPair {
            memory_before: server.memory(),
            server,
            client,
            peer,
            before,
        }
    }

    /// Opens a tunnel whose client does not read, and sends data to it until all buffers and a pipe of the tunnel are
    /// full. Returns the tunnel and the number of bytes sent.
    fn filled(backend: &str, limits: &str) -> (TunnelPair, usize) {
        let start = Instant::now();
        loop {
            let tunnel = TunnelPair::new(backend, limits);
            let (written, keeps_pipe) = tunnel.fill_buffers();
            if keeps_pipe {
                return (tunnel, written);
            }
            // The tunnel received the last data in small pieces, which it copies. That is correct, but not what these
            // tests need.
            assert!(
                start.elapsed() < DEADLINE,
                "no tunnel uses a pipe after {written} bytes"
            );
        }
    }

    /// Sends data to the client, which does not read, until all buffers are full. Returns the number of bytes sent, and
    /// true if the rest is in a pipe; false if the tunnel has copied it.
    fn fill_buffers(&self) -> (usize, bool) {
        let block = block();
        self.peer
            .set_write_timeout(Some(Duration::from_millis(200)))
            .expect("an option");
        let (mut written, mut keeps_pipe) = (0, false);
        // On a busy machine a write can time out although the server can still move data. Then the pipe empties again.
        for _ in 0..5 {
            while let Ok(more) = (&self.peer).write(&block[written % BLOCK..]) {
                written += more;
                assert!(
                    written < AMOUNT,
                    "the server continues to read, though the client does not"
                );
            }
            keeps_pipe = self.keeps_pipe();
            if keeps_pipe {
                break;
            }
        }
        self.peer.set_write_timeout(Some(DEADLINE)).expect("an option");
        (written, keeps_pipe)
    }

    /// Returns true if the tunnel keeps a pipe for ten ticks, in which an unused pipe would have been closed.
    fn keeps_pipe(&self) -> bool {
        let start = Instant::now();
        while start.elapsed() < 10 * TICK {
            if pipes(&self.server) != self.before + 1 {
                return false;
            }
        }
        true
    }
}

fn wait_for_pipes(server: &Server, count: usize) {
    let start = Instant::now();
    while pipes(server) != count {
        assert!(start.elapsed() < DEADLINE, "the server does not have {count} pipes");
        thread::yield_now();
    }
}

/// Returns the number of pipes once it has not changed for ten ticks. At its start the server may have a pipe for a
/// moment, with which it starts another program.
fn settled_pipes(server: &Server) -> usize {
    let (mut count, mut since, start) = (pipes(server), Instant::now(), Instant::now());
    while since.elapsed() < 10 * TICK {
        assert!(start.elapsed() < DEADLINE, "the number of pipes keeps changing");
        let now = pipes(server);
        if now != count {
            (count, since) = (now, Instant::now());
        }
    }
    count
}

/// Returns the number of pipes that the server has both ends of.
fn pipes(server: &Server) -> usize {
    let folder = format!("/proc/{}/fd", server.pid().as_raw_nonzero());
    let all = fs::read_dir(folder).expect("its descriptors").flatten();
    let names = all.filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut pipes: Vec<_> = names
        .filter(|name| name.to_string_lossy().starts_with("pipe:"))
        .collect();
    pipes.sort();
    pipes.windows(2).filter(|two| two[0] == two[1]).count()
}

fn head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("text")
}

/// Writes this number of bytes of the pattern and closes the sending side.
fn send_pattern(mut stream: &TcpStream, amount: usize) {
    let (block, mut left) = (block(), amount);
    while left > 0 {
        let now = left.min(BLOCK);
        stream.write_all(&block[..now]).expect("written");
        left -= now;
    }
    stream.shutdown(Shutdown::Write).expect("an end");
}

/// Reads until the end or an error. Returns the number of bytes, their hash and the result.
fn receive(mut stream: &TcpStream) -> (usize, Vec<u8>, io::Result<()>) {
    let (mut hash, mut room, mut all) = (Context::new(&SHA256), vec![0; 100_000], 0);
    let end = loop {
        match stream.read(&mut room) {
            Ok(0) => break Ok(()),
            Ok(got) => {
                hash.update(&room[..got]);
                all += got;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    (all, hash.finish().as_ref().to_vec(), end)
}

/// Returns the hash of this number of bytes of the pattern.
fn hash_of(amount: usize) -> Vec<u8> {
    let (block, mut hash, mut left) = (block(), Context::new(&SHA256), amount);
    while left > 0 {
        let now = left.min(BLOCK);
        hash.update(&block[..now]);
        left -= now;
    }
    hash.finish().as_ref().to_vec()
}

/// Sends `up` bytes from the client and `down` bytes from the upstream at the same time, and checks what is received.
fn exchange(tunnel: &TunnelPair, up: usize, down: usize) {
    let (client, peer) = (&tunnel.client, &tunnel.peer);
    thread::scope(|scope| {
        scope.spawn(|| send_pattern(client, up));
        scope.spawn(|| send_pattern(peer, down));
        for (stream, amount) in [(client, down), (peer, up)] {
            scope.spawn(move || {
                let (received, hash, end) = receive(stream);
                assert!(end.is_ok(), "cut after {received} bytes: {end:?}");
                assert_eq!(received, amount);
                assert!(hash == hash_of(amount), "changed on its way");
            });
        }
    });
}

/// Returns the sum of the results of all splice(2) calls in the output of strace. A byte counts twice: into a pipe and
/// out of it.
fn bytes_spliced(trace: &str) -> usize {
    let calls = trace.lines().filter(|line| line.contains("splice"));
    let results = calls.filter_map(|line| line.rsplit_once(" = ")?.1.split(' ').next()?.parse::<usize>().ok());
    results.sum()
}

/// Sends 64 MiB in each direction while strace traces splice(2) and injects `fault`, if given. Returns the sum of
/// [`bytes_spliced`].
fn transfer_under_strace(backend: &str, fault: Option<&str>) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("calls.txt");
    let (name, variable) = (trace.display().to_string(), format!("ROCKNET_BACKEND={backend}"));
    let traced = "trace=splice,pipe2";
    let mut command = vec!["strace", "-f", "-qq", "-o", &name, "-E", &variable, "-e", traced];
    let inject = fault.map(|fault| format!("inject={fault}"));
    if let Some(inject) = &inject {
        command.extend(["-e", inject]);
    }
    let tunnel = TunnelPair::under(&command, "");
    exchange(&tunnel, AMOUNT, AMOUNT);
    let TunnelPair { server, .. } = tunnel;
    let (_folder, status, errors) = server.end();
    assert!(status.success() && !errors.contains("panic"), "{status}: {errors}");
    let moved = bytes_spliced(&fs::read_to_string(&trace).expect("the output of strace"));
    println!("{backend}, {fault:?}: {moved} bytes moved");
    moved
}

#[test]
fn the_kernel_moves_large_transfers() {
    for backend in backends() {
        let moved = transfer_under_strace(backend, None);
        // Each byte counts twice. Small pieces are copied, such as the first ones, so the sum is not exact.
        assert!(moved > 2 * (2 * AMOUNT) * 8 / 10, "{backend}: {moved} bytes");
        assert!(moved <= 2 * (2 * AMOUNT), "{backend}: {moved} bytes");
    }
}

#[test]
fn failing_splice_calls_fall_back_to_copying() {
    // A row has the fault, and true if splice(2) still moves data.
    for (fault, is_moved) in [
        ("pipe2:error=EMFILE", false),
        ("splice:error=EINVAL", false),
        ("splice:error=EINTR:when=2+3", true),
    ] {
        for backend in backends() {
            let moved = transfer_under_strace(backend, Some(fault));
            assert_eq!(moved > 0, is_moved, "{fault} by {backend}: {moved} bytes");
        }
    }
}

#[test]
fn an_idle_tunnel_uses_no_pipe() {
    for backend in backends() {
        let tunnel = TunnelPair::new(backend, "");
        let (mut client, mut peer) = (&tunnel.client, &tunnel.peer);
        let mut room = vec![0; BLOCK];
        for _ in 0..3 {
            thread::scope(|scope| {
                let block = block();
                let sending = scope.spawn(move || (0..20).try_for_each(|_| peer.write_all(&block)));
                for _ in 0..20 {
                    client.read_exact(&mut room).expect("bytes in time");
                }
                sending.join().expect("a writer").expect("written");
            });
            wait_for_pipes(&tunnel.server, tunnel.before);
            // Small messages are copied and use no pipe.
            for number in 0..100_u32 {
                peer.write_all(&number.to_be_bytes()).expect("written");
                client.read_exact(&mut room[..4]).expect("bytes in time");
                assert_eq!(room[..4], number.to_be_bytes());
            }
        }
        exchange(&tunnel, 10, BLOCK);
        wait_for_pipes(&tunnel.server, tunnel.before);
    }
}

#[test]
fn the_end_of_data_is_sent_after_the_bytes_in_a_pipe() {
    for backend in backends() {
        let (tunnel, written) = TunnelPair::filled(backend, "");
        tunnel.peer.shutdown(Shutdown::Write).expect("an end");
        // The other direction still works.
        let mut word = [0; 4];
        (&tunnel.client).write_all(b"word").expect("written");
        (&tunnel.peer).read_exact(&mut word).expect("bytes in time");
        let (received, hash, end) = receive(&tunnel.client);
        assert!(
            end.is_ok(),
            "{backend}: cut after {received} of {written} bytes: {end:?}"
        );
        assert_eq!(received, written, "{backend}");
        assert!(hash == hash_of(written), "{backend}: changed on its way");
        wait_for_pipes(&tunnel.server, tunnel.before);
        send_pattern(&tunnel.client, 3 * BLOCK);
        let (received, hash, end) = receive(&tunnel.peer);
        assert!(
            end.is_ok() && received == 3 * BLOCK && hash == hash_of(received),
            "{backend}"
        );
    }
}

#[test]
fn a_side_that_does_not_read_times_out_while_a_pipe_is_full() {
    for backend in backends() {
        // The timeout is longer than filling all buffers takes.
        let (tunnel, _) = TunnelPair::filled(backend, "send_stall = \"5s\"");
        let grown = tunnel.server.memory().saturating_sub(tunnel.memory_before);
        assert!(grown < 1024, "{backend}: {grown} KiB for bytes that are not read");
        // The peer is disconnected when the tunnel times out.
        let end = (&tunnel.peer).read(&mut [0]);
        let end = end.map_err(|error| error.kind());
        assert!(
            matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)),
            "{backend}: no end: {end:?}"
        );
        wait_for_pipes(&tunnel.server, tunnel.before);
    }
}

#[test]
fn a_reset_of_one_side_closes_the_other() {
    let reset = |stream: TcpStream| {
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("an option");
    };
    for backend in backends() {
        // The side that does not read resets its connection.
        let (tunnel, _) = TunnelPair::filled(backend, "");
        let TunnelPair {
            server,
            client,
            mut peer,
            before,
            ..
        } = tunnel;
        reset(client);
        wait_for_pipes(&server, before);
        let end = peer.read(&mut [0]).map_err(|error| error.kind());
        assert!(
            matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)),
            "{backend}: no end: {end:?}"
        );
        // The side that sent the data resets its connection: the received part is correct, and it does not end like a
        // complete transfer.
        let (tunnel, written) = TunnelPair::filled(backend, "");
        let TunnelPair {
            server,
            client,
            peer,
            before,
            ..
        } = tunnel;
        reset(peer);
        let (received, hash, end) = receive(&client);
        let kind = end.map_err(|error| error.kind());
        assert_eq!(
            kind,
            Err(ErrorKind::ConnectionReset),
            "{backend}: {received} of {written} bytes"
        );
        assert!(
            received <= written && hash == hash_of(received),
            "{backend}: changed on its way"
        );
        wait_for_pipes(&server, before);
    }
}
