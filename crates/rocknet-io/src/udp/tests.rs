//! Tests of datagrams over loopback with both I/O back ends: lengths, marks, addresses, and many datagrams per call.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use rocknet_testing::{Need, skip};

use super::{Ecn, MAX_SEGMENTS, MAX_TRANSMIT_BYTES, RecvBuffers, Transmit, UdpSocket};
use crate::runtime::{Runtime, io_uring_unavailable};
use crate::socket::Address;

/// Maximum number of events that a runtime reads in one poll. Any value serves in these tests.
const MAX_EVENTS: usize = 64;

/// Runs a test with each I/O back end that is available.
fn on_both(test: impl AsyncFn()) {
    Runtime::new(MAX_EVENTS).expect("a runtime").block_on(test());
    match io_uring_unavailable() {
        None => Runtime::with_io_uring(MAX_EVENTS).expect("a ring").block_on(test()),
        Some(reason) => skip(Need::IoUring, &reason),
    }
}

/// Binds a socket. `[::]` stands for all addresses of both IP versions.
fn bind(address: &str) -> UdpSocket {
    let address: SocketAddr = address.parse().expect("an address");
    let address = Address::Tcp {
        ip: Some(address.ip()).filter(|ip| *ip != IpAddr::from(Ipv6Addr::UNSPECIFIED)),
        port: address.port(),
    };
    let socket = super::bind(&address, 1).expect("a socket").pop();
    UdpSocket::new(socket.expect("one socket")).expect("a socket")
}

/// Parses an IP address.
fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Sends all datagrams of `transmit`.
async fn send(socket: &UdpSocket, mut transmit: Transmit<'_>) -> std::io::Result<()> {
    poll_fn(|context| socket.poll_send(context, &mut transmit)).await
}

/// Receives `count` datagrams; returns them and the metadata of their batches.
async fn receive(socket: &UdpSocket, count: usize) -> (Vec<Vec<u8>>, Vec<super::RecvMeta>) {
    let (mut datagrams, mut metas) = (Vec::new(), Vec::new());
    let mut buffers = RecvBuffers::default();
    while datagrams.len() < count {
        poll_fn(|context| socket.poll_receive(context, &mut buffers))
            .await
            .expect("datagrams");
        for (batch, parts) in buffers.batches() {
            metas.push(*batch);
            datagrams.extend(parts.map(<[u8]>::to_vec));
        }
    }
    (datagrams, metas)
}

#[test]
fn marks_and_addresses_are_sent_and_received() {
    on_both(async || {
        // Receiving socket, sending socket, destination of the datagrams, and source of the datagrams.
        for (ours, theirs, target, from) in [
            ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1", "127.0.0.1"),
            // Several local addresses, of which the sender chooses one.
            ("0.0.0.0:0", "0.0.0.0:0", "127.0.0.3", "127.0.0.2"),
            ("[::1]:0", "[::1]:0", "::1", "::1"),
            // IPv4 through IPv6 sockets.
            ("[::]:0", "127.0.0.1:0", "127.0.0.5", "127.0.0.1"),
            ("127.0.0.1:0", "[::]:0", "::ffff:127.0.0.1", "127.0.0.4"),
        ] {
            let (ours, theirs) = (bind(ours), bind(theirs));
            for ecn in [Ecn::None, Ecn::Ect0, Ecn::Ect1, Ecn::Congested] {
                let to = SocketAddr::new(ip(target), ours.local_address().expect("bound").port());
                let transmit = Transmit {
                    destination: to,
                    source: Some(ip(from)),
                    ecn,
                    bytes: b"a datagram",
                    segment: 10,
                };
                send(&theirs, transmit).await.expect("sent");
                let (datagrams, metas) = receive(&ours, 1).await;
                assert_eq!(datagrams, [b"a datagram"], "{to}");
                assert_eq!(metas[0].ecn, ecn, "{to}");
                assert_eq!(metas[0].destination, Some(ip(target).to_canonical()), "{to}");
                assert_eq!(metas[0].source.ip(), ip(from), "{to}");
                assert_eq!(metas[0].source.port(), theirs.local_address().expect("bound").port());
            }
        }
    });
}

#[test]
fn a_port_that_is_in_use_is_not_bound_for_ipv4_alone() {
    on_both(async || {
        let any_port = Address::Tcp {
            ip: Some(Ipv6Addr::UNSPECIFIED.into()),
            port: 0,
        };
        // This socket uses its port for IPv6 only, so an IPv4 socket could use the same port.
        let other = super::bind(&any_port, 1).expect("bound");
        let bound = socket2::SockRef::from(&other[0]).local_addr().expect("an address");
        let port = bound.as_socket().expect("an IP address").port();
        // `bind` must not fall back to IPv4, as it does on a machine without IPv6.
        let error = super::bind(&Address::Tcp { ip: None, port }, 1).expect_err("a port in use");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    });
}

#[test]
fn many_datagrams_share_one_call() {
    on_both(async || {
        // Address of both sockets, length of a datagram, number of datagrams, and length of the last one.
        for (address, segment, count, last) in [
            ("127.0.0.1:0", 1200, 50, 700),
            ("127.0.0.1:0", 1000, MAX_SEGMENTS, 900),
            ("[::1]:0", 1350, 40, 1350),
            ("127.0.0.1:0", 1, MAX_SEGMENTS, 1),
        ] {
            let (ours, theirs) = (bind(address), bind(address));
            let bytes: Vec<u8> = (0..segment * (count - 1) + last).map(|at| (at % 251) as u8).collect();
            let transmit = Transmit {
                destination: ours.local_address().expect("bound"),
                source: None,
                ecn: Ecn::Ect0,
                bytes: &bytes,
                segment,
            };
            send(&theirs, transmit).await.expect("sent");
            let (datagrams, metas) = receive(&ours, count).await;
            assert_eq!(
                datagrams,
                bytes.chunks(segment).collect::<Vec<_>>(),
                "{count} of {segment}"
            );
            assert!(
                metas
                    .iter()
                    .all(|batch| batch.ecn == Ecn::Ect0 && batch.segment <= segment)
            );
            // Over loopback, the datagrams of one send arrive together.
            assert!(
                metas.len() * 10 <= count,
                "{} batches for {count} datagrams",
                metas.len()
            );
        }
    });
}

#[test]
fn without_segmentation_offload_datagrams_are_sent_one_by_one() {
    on_both(async || {
        let (ours, theirs) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        theirs
            .kernel_segments
            .store(false, std::sync::atomic::Ordering::Relaxed);
        let bytes = [7; 2500];
        let transmit = Transmit {
            destination: ours.local_address().expect("bound"),
            source: None,
            ecn: Ecn::None,
            bytes: &bytes,
            segment: 1200,
        };
        send(&theirs, transmit).await.expect("sent");
        let (datagrams, metas) = receive(&ours, 3).await;
        let lengths: Vec<_> = datagrams.iter().map(Vec::len).collect();
        assert_eq!((lengths, metas.len()), (vec![1200, 1200, 100], 3));
    });
}

#[test]
fn invalid_sends_fail_and_the_socket_stays_usable() {
    on_both(async || {
        let (ours, theirs) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let bytes = vec![1; MAX_TRANSMIT_BYTES + 1];
        let to = ours.local_address().expect("bound");
        // Total length in bytes, and length of a datagram.
        for (length, segment) in [
            (MAX_TRANSMIT_BYTES + 1, MAX_TRANSMIT_BYTES),
            (10, 0),
            (MAX_SEGMENTS + 1, 1),
        ] {
            let transmit = Transmit {
                destination: to,
                source: None,
                ecn: Ecn::None,
                bytes: &bytes[..length],
                segment,
            };
            let refused = send(&theirs, transmit).await.expect_err("an invalid send");
            assert_eq!(
                refused.kind(),
                ErrorKind::InvalidInput,
                "{length} in parts of {segment}"
            );
        }
        // From an address that is not local, and to a port that is not bound.
        let transmit = |to, from| Transmit {
            destination: to,
            source: from,
            ecn: Ecn::None,
            bytes: b"x",
            segment: 1,
        };
        assert!(send(&theirs, transmit(to, Some(ip("192.0.2.1")))).await.is_err());
        // The socket is dropped at the end of the statement, so its port is no longer bound.
        let unbound = bind("127.0.0.1:0").local_address().expect("bound");
        for _ in 0..3 {
            send(&theirs, transmit(unbound, None))
                .await
                .expect("sending to an unbound port succeeds");
        }
        send(&theirs, transmit(to, None)).await.expect("sent");
        assert_eq!(receive(&ours, 1).await.0, [b"x"]);
    });
}
