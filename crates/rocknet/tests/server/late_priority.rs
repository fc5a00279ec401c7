//! HTTP/2 over a slow link: a late response of high priority is sent before most of the other responses.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, sockopt};

use super::support::client::read_some;
use super::support::running::site;
use super::support::{DEADLINE, Folder, Running};
use super::wire::{self, Frame};

const SERVER: &str = "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\n";
/// Number of large responses that the client requests first.
const BACKGROUND: u32 = 20;
/// Length of each of these responses in bytes.
const LENGTH: usize = 1 << 20;
/// Receive buffer of the client in bytes. Linux doubles this value.
const RECEIVE_BUFFER: usize = 16 << 10;
/// Bytes that the client reads before each pause, about 10 Mbit/s.
const STEP: usize = 16 << 10;
/// Pause of the client between two reads.
const PAUSE: Duration = Duration::from_millis(12);
/// Bytes after which the server has measured the link as slow.
const MEASURED_AFTER: usize = 600_000;
/// Maximum number of bytes before the late response: the doubled receive buffer, and three times 64 KiB, the send
/// budget before the first measurement. This leaves room for packets that the kernel has already begun.
const MAX_BEFORE: usize = 2 * RECEIVE_BUFFER + 3 * (64 << 10);

/// A client that reads slowly.
struct Slow {
    socket: TcpStream,
    received: Vec<u8>,
}

impl Slow {
    fn to(address: SocketAddr) -> Slow {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER).expect("an option");
        rustix::net::connect(&socket, &address).expect("connected");
        let socket = TcpStream::from(socket);
        socket.set_read_timeout(Some(DEADLINE)).expect("an option");
        Slow {
            socket,
            received: Vec::new(),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("sent");
    }

    /// Receives up to [`STEP`] bytes and pauses.
    fn step(&mut self) {
        let mut buffer = [0; STEP];
        let got = read_some(&mut self.socket, &mut buffer).expect("received");
        assert!(got > 0, "the server closed");
        self.received.extend_from_slice(&buffer[..got]);
        // The pause simulates the bandwidth of the link. It does not wait for an event.
        sleep(PAUSE);
    }

    fn frames(&self) -> Vec<Frame> {
        wire::frames(&self.received).0
    }
}

#[test]
fn a_late_response_of_high_priority_precedes_most_others() {
    let folder = Folder::with(&[("www/small.txt", "small")]);
    folder.write("www/bulk.bin", vec![b'x'; LENGTH]);
    let server = Running::start(folder, &format!("{SERVER}{}", site("")));
    let mut client = Slow::to(server.address());
    client.send(&wire::open_beginning());
    for number in 0..BACKGROUND {
        let request = wire::request(1 + 2 * number, "GET", "/bulk.bin", &[("priority", "u=5, i")], true);
        client.send(&request);
    }
    while client.received.len() < MEASURED_AFTER {
        client.step();
    }
    let before = client.received.len();
    let late = 1 + 2 * BACKGROUND;
    client.send(&wire::request(late, "GET", "/small.txt", &[("priority", "u=0")], true));
    let has_ended = |frame: &Frame| frame.stream == late && frame.ends_stream();
    while !client.frames().iter().any(has_ended) {
        client.step();
        let waited = client.received.len() - before;
        assert!(
            waited <= MAX_BEFORE,
            "{waited} bytes were sent before the late response"
        );
    }
    assert_eq!(wire::body_of(&client.frames(), late), b"small");
}
