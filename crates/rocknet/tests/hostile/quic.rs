//! Attacks below HTTP/3: amplification, handshakes that are never completed, and garbage.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::child::DEADLINE;
use crate::initials::{Handshakes, INITIAL_LENGTH, Packet, drain, packet, socket};
use crate::secure::{NAME, SecureServer};

/// Handshakes in progress above which a client has to prove its address, for each worker.
const RETRY_THRESHOLD: usize = 256;
/// Maximum number of handshakes in progress, for each worker.
const MAX_HANDSHAKES: usize = 1024;
/// Maximum growth of the server's memory in KiB for all handshakes in progress: 64 KiB for each.
const HANDSHAKES_KIB: u64 = 64 * 1024;
/// Number of half-open handshakes. A debug build needs more time for each.
const HALF_OPEN: usize = if cfg!(debug_assertions) { 2_000 } else { 10_000 };

#[test]
fn an_unvalidated_address_gets_at_most_three_times_what_it_sent() {
    // A certificate that does not fit into three datagrams.
    let names: Vec<String> = (0..250).map(|number| format!("name-{number}.of.a.site.test")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push(NAME);
    let server = SecureServer::start_with("", &names);
    let target = &server.target;
    let mut handshakes = Handshakes::new(&target.tls(), target.address);
    // Number of times that the client sends its Initial packet.
    for copies in 1..4 {
        let socket = socket();
        // Servers of other tests may still send to a client that had the same port.
        socket.connect(target.address).expect("a server");
        let half_open = handshakes.begin();
        for _ in 0..copies {
            socket.send(&half_open.initial).expect("sent");
        }
        let sent = copies * INITIAL_LENGTH;
        let received = target.beside(|| {
            let (mut received, began) = (0, Instant::now());
            // The server repeats its packets after about a second. The repetitions must not exceed the limit either.
            while began.elapsed() < Duration::from_millis(1500) {
                received += drain(&socket).iter().map(Vec::len).sum::<usize>();
            }
            received
        });
        assert!(received <= 3 * sent, "{received} bytes for {sent}");
        assert!(
            received > 2 * sent,
            "{received} bytes for {sent}: the limit was not reached"
        );
    }
}

#[test]
fn half_open_handshakes_are_bounded_and_other_clients_are_served() {
    let server = SecureServer::start("header_timeout = \"5s\"\nkeep_alive = \"1s\"");
    let target = &server.target;
    let before = server.warm();
    let mut handshakes = Handshakes::new(&target.tls(), target.address);
    target.beside(|| {
        // The server first accepts handshakes directly, and then requires address validation.
        let mut accepted = 0;
        let (mut half_open, socket, retry) = loop {
            let (half_open, socket) = (handshakes.begin(), socket());
            socket.send_to(&half_open.initial, target.address).expect("sent");
            let first = receive(&socket);
            if packet(&first) == Packet::Retry {
                break (half_open, socket, first);
            }
            accepted += 1;
            // On a slow machine, some may have timed out.
            assert!(accepted <= 2 * RETRY_THRESHOLD, "{accepted} handshakes without a proof");
        };
        // The handshakes of the innocent clients count too, so the threshold may be reached earlier.
        assert!(accepted >= RETRY_THRESHOLD / 2, "a proof after {accepted} handshakes");
        // A client that does not respond to Retry costs the server only that packet.
        let spoofed = self::socket();
        let mut retries = 0;
        for number in 0..HALF_OPEN {
            spoofed
                .send_to(&handshakes.begin().initial, target.address)
                .expect("sent");
            if number % 8 == 0 {
                let received = drain_now(&spoofed);
                retries += received.iter().filter(|one| packet(one) == Packet::Retry).count();
            }
        }
        assert!(retries > 0);
        // A client that responds to Retry is accepted.
        let initial = handshakes.answer_retry(&mut half_open, &retry);
        socket.send_to(&initial, target.address).expect("sent");
        assert_eq!(handshakes.refusal(&mut half_open, &receive(&socket)), None);
    });
    server.finish(before, HANDSHAKES_KIB);
}

#[test]
fn handshakes_of_validated_addresses_are_bounded() {
    let server = SecureServer::start("header_timeout = \"60s\"");
    let target = &server.target;
    let before = server.warm();
    let mut handshakes = Handshakes::new(&target.tls(), target.address);
    let mut count = 0;
    let refusal = loop {
        let (mut half_open, socket) = (handshakes.begin(), socket());
        socket.send_to(&half_open.initial, target.address).expect("sent");
        let mut first = receive(&socket);
        if packet(&first) == Packet::Retry {
            let initial = handshakes.answer_retry(&mut half_open, &first);
            socket.send_to(&initial, target.address).expect("sent");
            first = receive(&socket);
        }
        if let Some(refusal) = handshakes.refusal(&mut half_open, &first) {
            break refusal;
        }
        count += 1;
        assert!(count <= MAX_HANDSHAKES, "{count} handshakes in progress");
    };
    assert_eq!(count, MAX_HANDSHAKES);
    // The connection is closed with the transport error CONNECTION_REFUSED (RFC 9000 §20.1).
    assert!(
        refusal.contains("CONNECTION_REFUSED") || refusal.contains("refused"),
        "{refusal}"
    );
    let peak = server.server.peak();
    assert!(
        peak <= before + HANDSHAKES_KIB,
        "memory grew from {before} KiB, to {peak} at the most"
    );
}

#[test]
fn garbage_is_ignored_and_other_clients_are_served() {
    const DATAGRAMS: usize = 20_000;
    let server = SecureServer::start("keep_alive = \"1s\"");
    let target = &server.target;
    let before = server.warm();
    let mut handshakes = Handshakes::new(&target.tls(), target.address);
    let initial = handshakes.begin().initial;
    let (sent, received) = target.beside(|| {
        let socket = socket();
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let (mut sent, mut received) = (0, 0);
        for number in 0..DATAGRAMS {
            let mut bytes = Vec::new();
            while bytes.len() < INITIAL_LENGTH {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                bytes.extend_from_slice(&random.to_ne_bytes());
            }
            match number % 5 {
                // Any length.
                0 => bytes.truncate(random as usize % INITIAL_LENGTH + 1),
                // A short header, as if it belonged to a lost connection.
                1 => bytes[0] = 0x40 | bytes[0] & 0x3f,
                // An unknown version.
                2 => bytes[0] |= 0x80,
                // An Initial packet whose content is not authentic.
                3 => {
                    let kept = random as usize % 60;
                    bytes[..kept].copy_from_slice(&initial[..kept]);
                }
                // An Initial packet with one wrong bit.
                _ => {
                    bytes = initial.clone();
                    bytes[random as usize % INITIAL_LENGTH] ^= 1 << (random >> 32 & 7);
                }
            }
            sent += bytes.len();
            socket.send_to(&bytes, target.address).expect("sent");
            if number % 64 == 0 {
                received += drain_now(&socket).iter().map(Vec::len).sum::<usize>();
            }
        }
        received += drain(&socket).iter().map(Vec::len).sum::<usize>();
        (sent, received)
    });
    // Version Negotiation and stateless resets are shorter than what they reply to.
    assert!(received < sent, "{received} bytes for {sent}");
    server.finish(before, HANDSHAKES_KIB);
}

/// Receives a datagram.
fn receive(socket: &UdpSocket) -> Vec<u8> {
    let (began, mut buffer) = (Instant::now(), [0; 2048]);
    loop {
        if let Ok(length) = socket.recv(&mut buffer) {
            return buffer[..length].to_vec();
        }
        assert!(began.elapsed() < DEADLINE, "no datagram");
    }
}

/// Receives the datagrams that have arrived.
fn drain_now(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_nonblocking(true).expect("an option");
    let all = drain(socket);
    socket.set_nonblocking(false).expect("an option");
    all
}
