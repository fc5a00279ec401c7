//! Tests of the client side of a session against a rustls server: splits of the bytes, and ends with and without
//! close_notify.

use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, ServerConnection};

use super::{NAME, TlsConfigs, configs, context, pattern};
use crate::link::Link;
use crate::queue::SendQueue;
use crate::sim::{self, SimLink, SimPeer};
use crate::tls::{ClientSide, Tls, TlsBuffers};
use crate::wheel::Wheel;

/// The client side of a session over a link in memory.
type Client = Tls<SimLink, ClientSide>;

/// A server, and the way in which its bytes are split.
struct Server {
    tls: ServerConnection,
    peer: SimPeer,
    /// Maximum number of bytes that arrive at once.
    split: usize,
    /// Plaintext received from the client.
    received: Vec<u8>,
}

impl Server {
    /// Creates a server, and a client at the other end of the link.
    fn new(configs: &TlsConfigs, split: usize) -> (Server, Client) {
        let (link, peer) = sim::pair();
        // Ticks of 250 ms, and memory for one deadline. The test never advances the wheel.
        let wheel = Wheel::new(Duration::from_millis(250), 1);
        let buffers: Rc<TlsBuffers> = TlsBuffers::new(&wheel);
        let name = ServerName::try_from(NAME).unwrap();
        let client = Tls::connect(link, Arc::clone(&configs.client), name, &buffers).unwrap();
        let server = Server {
            tls: ServerConnection::new(Arc::clone(&configs.server)).unwrap(),
            peer,
            split,
            received: Vec::new(),
        };
        (server, client)
    }

    /// Transfers the bytes that each side has sent to the other.
    fn transfer(&mut self) -> Result<(), rustls::Error> {
        let bytes = self.peer.take_received();
        let mut rest = &bytes[..];
        let mut result = Ok(());
        while !rest.is_empty() && result.is_ok() {
            self.tls.read_tls(&mut rest).unwrap();
            result = self.tls.process_new_packets().map(drop);
            let mut room = vec![0; 64 * 1024];
            while let Ok(got) = self.tls.reader().read(&mut room) {
                if got == 0 {
                    break;
                }
                self.received.extend_from_slice(&room[..got]);
            }
        }
        let mut sent = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut sent).unwrap();
        }
        for part in sent.chunks(self.split) {
            self.peer.send(part);
        }
        result
    }

    /// Drives the handshake of the client until it is complete or fails.
    fn handshake(&mut self, client: &mut Client) -> io::Result<()> {
        loop {
            match client.poll_handshake(&mut context()) {
                Poll::Ready(done) => return done,
                // Errors of the server are ignored, because the client fails too and reports the cause.
                Poll::Pending => drop(self.transfer()),
            }
        }
    }

    /// Makes the client receive `count` bytes with a buffer of `room` bytes.
    fn receive(&mut self, client: &mut Client, count: usize, room: usize) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), vec![0; room]);
        while all.len() < count {
            match client.poll_recv(&mut context(), &mut buffer) {
                Poll::Ready(received) => {
                    let received = received.unwrap();
                    assert!(!received.is_empty(), "ended after {} of {count}", all.len());
                    all.extend_from_slice(&received);
                }
                Poll::Pending => self.transfer().unwrap(),
            }
        }
        all
    }
}

#[test]
fn any_split_gives_the_same_result() {
    for version in [&TLS13, &TLS12] {
        let configs = configs(version);
        // Maximum bytes that arrive at once, and size of the receive buffer.
        for (split, room) in [(1, 7), (5, 64 * 1024), (1000, 100), (usize::MAX, 64 * 1024)] {
            let (mut server, mut client) = Server::new(&configs, split);
            server.handshake(&mut client).unwrap();
            assert_eq!(client.negotiated().alpn, Some(&b"x/1"[..]));
            assert!(client.negotiated().peer.is_some_and(|chain| chain.len() == 1));
            for length in [1, 300, 40_000] {
                let content = pattern(length);
                let mut queue = SendQueue::default();
                queue.buffer().extend_from_slice(&content);
                while client
                    .poll_send(&mut context(), &mut queue)
                    .map(Result::unwrap)
                    .is_pending()
                {
                    server.transfer().unwrap();
                }
                server.transfer().unwrap();
                assert!(std::mem::take(&mut server.received) == content, "{length} out, {split}");
                server.tls.writer().write_all(&content).unwrap();
                assert!(
                    server.receive(&mut client, length, room) == content,
                    "{length} in, {split}"
                );
            }
            // A connection that waits for data stores neither incomplete records nor plaintext.
            assert!(client.poll_recv(&mut context(), &mut [0; 10]).is_pending());
            assert_eq!((client.partial.capacity(), client.unread.capacity()), (0, 0));
        }
    }
}

#[test]
fn a_second_session_resumes_the_first() {
    for version in [&TLS13, &TLS12] {
        let configs = configs(version);
        let resumed: Vec<_> = (0..2)
            .map(|_| {
                let (mut server, mut client) = Server::new(&configs, usize::MAX);
                server.handshake(&mut client).unwrap();
                server.tls.writer().write_all(b"x").unwrap();
                server.receive(&mut client, 1, 10);
                assert_eq!(
                    client.negotiated().resumed,
                    server.tls.handshake_kind() == Some(HandshakeKind::Resumed)
                );
                client.negotiated().resumed
            })
            .collect();
        assert_eq!(resumed, [false, true], "{version:?}");
    }
}

#[test]
fn an_end_requires_close_notify() {
    // `Ok(0)` is the proper end of a stream.
    for (has_close_notify, expected) in [(true, Ok(0)), (false, Err(io::ErrorKind::UnexpectedEof))] {
        let (mut server, mut client) = Server::new(&configs(&TLS13), usize::MAX);
        server.handshake(&mut client).unwrap();
        server.transfer().unwrap();
        server.tls.writer().write_all(b"answer").unwrap();
        if has_close_notify {
            server.tls.send_close_notify();
        }
        server.transfer().unwrap();
        server.peer.end();
        assert_eq!(server.receive(&mut client, 6, 100), b"answer");
        let mut room = [0; 10];
        let Poll::Ready(end) = client.poll_recv(&mut context(), &mut room) else {
            panic!("no end");
        };
        assert_eq!(end.map(|rest| rest.len()).map_err(|error| error.kind()), expected);
    }
}

#[test]
fn an_untrusted_server_gets_an_alert_and_no_data() {
    let (mine, mut theirs) = (configs(&TLS13), configs(&TLS13));
    // The client trusts only the certificate of `mine`, but the server presents that of `theirs`.
    theirs.client = Arc::clone(&mine.client);
    let (mut server, mut client) = Server::new(&theirs, usize::MAX);
    let error = server.handshake(&mut client).expect_err("an unknown certificate");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    assert!(matches!(inner, Some(rustls::Error::InvalidCertificate(_))), "{inner:?}");
    assert!(server.transfer().is_err(), "the server received no alert");
    assert!(server.received.is_empty());
}

#[test]
fn a_server_that_does_not_start_the_handshake_is_an_error() {
    for sent in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        // A fatal alert, handshake_failure.
        b"\x15\x03\x03\x00\x02\x02\x28",
        // The server closes the connection immediately.
        b"",
    ] {
        let (server, mut client) = Server::new(&configs(&TLS13), usize::MAX);
        server.peer.send(sent);
        server.peer.end();
        let polled = client.poll_handshake(&mut context());
        assert!(matches!(polled, Poll::Ready(Err(_))), "{sent:?}");
    }
}
