//! Datagrams over the loopback, under both backends: whole, marked, from and to the right address, many for a call.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use rocknet_testing::{Need, skip};

use super::{Datagrams, Departure, Ecn, LARGEST, Room, SEGMENTS};
use crate::runtime::{Runtime, ring_trouble};

/// Runs a test under each backend there is.
fn on_both(test: impl AsyncFn()) {
    Runtime::new(64).expect("a runtime").block_on(test());
    match ring_trouble() {
        None => Runtime::on_ring(64).expect("a ring").block_on(test()),
        Some(trouble) => skip(Need::IoUring, &trouble),
    }
}

fn bind(address: &str) -> Datagrams {
    Datagrams::bind(address.parse().expect("an address"), false).expect("a socket")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

async fn send(socket: &Datagrams, mut departure: Departure<'_>) -> std::io::Result<()> {
    poll_fn(|context| socket.poll_send(context, &mut departure)).await
}

/// So many datagrams, and how many arrivals brought them, with what was told of the first.
async fn receive(socket: &Datagrams, count: usize) -> (Vec<Vec<u8>>, Vec<super::Arrival>) {
    let (mut datagrams, mut told) = (Vec::new(), Vec::new());
    let mut room = Room::default();
    while datagrams.len() < count {
        poll_fn(|context| socket.poll_receive(context, &mut room))
            .await
            .expect("datagrams");
        for (arrival, parts) in room.arrivals() {
            told.push(*arrival);
            datagrams.extend(parts.map(<[u8]>::to_vec));
        }
    }
    (datagrams, told)
}

#[test]
fn marks_and_addresses_go_both_ways() {
    on_both(async || {
        for (ours, theirs, target, from) in [
            ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1", "127.0.0.1"),
            // Of several addresses of this machine the one that was chosen.
            ("0.0.0.0:0", "0.0.0.0:0", "127.0.0.3", "127.0.0.2"),
            ("[::1]:0", "[::1]:0", "::1", "::1"),
            // IPv4 through sockets for both.
            ("[::]:0", "127.0.0.1:0", "127.0.0.5", "127.0.0.1"),
            ("127.0.0.1:0", "[::]:0", "::ffff:127.0.0.1", "127.0.0.4"),
        ] {
            let (ours, theirs) = (bind(ours), bind(theirs));
            for ecn in [Ecn::None, Ecn::Ect0, Ecn::Ect1, Ecn::Congested] {
                let to = SocketAddr::new(ip(target), ours.local_address().expect("bound").port());
                let departure = Departure {
                    to,
                    from: Some(ip(from)),
                    ecn,
                    bytes: b"a datagram",
                    segment: 10,
                };
                send(&theirs, departure).await.expect("sent");
                let (datagrams, told) = receive(&ours, 1).await;
                assert_eq!(datagrams, [b"a datagram"], "{to}");
                assert_eq!(told[0].ecn, ecn, "{to}");
                assert_eq!(told[0].to, Some(ip(target).to_canonical()), "{to}");
                assert_eq!(told[0].from.ip(), ip(from), "{to}");
                assert_eq!(told[0].from.port(), theirs.local_address().expect("bound").port());
            }
        }
    });
}

#[test]
fn many_datagrams_share_a_call_each_way() {
    on_both(async || {
        for (address, segment, count, last) in [
            ("127.0.0.1:0", 1200, 50, 700),
            ("127.0.0.1:0", 1200, SEGMENTS, 1000),
            ("[::1]:0", 1350, 40, 1350),
            ("127.0.0.1:0", 1, SEGMENTS, 1),
        ] {
            let (ours, theirs) = (bind(address), bind(address));
            let bytes: Vec<u8> = (0..segment * (count - 1) + last).map(|at| (at % 251) as u8).collect();
            if bytes.len() > LARGEST {
                continue;
            }
            let departure = Departure {
                to: ours.local_address().expect("bound"),
                from: None,
                ecn: Ecn::Ect0,
                bytes: &bytes,
                segment,
            };
            send(&theirs, departure).await.expect("sent");
            let (datagrams, told) = receive(&ours, count).await;
            assert_eq!(
                datagrams,
                bytes.chunks(segment).collect::<Vec<_>>(),
                "{count} of {segment}"
            );
            assert!(
                told.iter()
                    .all(|arrival| arrival.ecn == Ecn::Ect0 && arrival.segment <= segment)
            );
            // The loopback keeps together what was sent together.
            assert!(
                told.len() * 10 <= count,
                "{} arrivals for {count} datagrams",
                told.len()
            );
        }
    });
}

#[test]
fn without_the_kernels_splitting_they_leave_one_by_one() {
    on_both(async || {
        let (ours, theirs) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        theirs.splits.store(false, std::sync::atomic::Ordering::Relaxed);
        let bytes = [7; 2500];
        let departure = Departure {
            to: ours.local_address().expect("bound"),
            from: None,
            ecn: Ecn::None,
            bytes: &bytes,
            segment: 1200,
        };
        send(&theirs, departure).await.expect("sent");
        let (datagrams, told) = receive(&ours, 3).await;
        let lengths: Vec<_> = datagrams.iter().map(Vec::len).collect();
        assert_eq!((lengths, told.len()), (vec![1200, 1200, 100], 3));
    });
}

#[test]
fn what_cannot_be_sent_is_refused_and_the_socket_goes_on() {
    on_both(async || {
        let (ours, theirs) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let bytes = vec![1; LARGEST + 1];
        let to = ours.local_address().expect("bound");
        for (length, segment) in [(LARGEST + 1, LARGEST), (10, 0), (SEGMENTS + 1, 1)] {
            let departure = Departure {
                to,
                from: None,
                ecn: Ecn::None,
                bytes: &bytes[..length],
                segment,
            };
            let refused = send(&theirs, departure).await.expect_err("too much");
            assert_eq!(
                refused.kind(),
                ErrorKind::InvalidInput,
                "{length} in parts of {segment}"
            );
        }
        // From an address that is not ours, and to a port where nobody is.
        let departure = |to, from| Departure {
            to,
            from,
            ecn: Ecn::None,
            bytes: b"x",
            segment: 1,
        };
        assert!(send(&theirs, departure(to, Some(ip("192.0.2.1")))).await.is_err());
        let nobody = bind("127.0.0.1:0").local_address().expect("bound");
        for _ in 0..3 {
            send(&theirs, departure(nobody, None)).await.expect("nobody tells");
        }
        send(&theirs, departure(to, None)).await.expect("sent");
        assert_eq!(receive(&ours, 1).await.0, [b"x"]);
    });
}
