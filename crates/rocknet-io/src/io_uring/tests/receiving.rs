//! Tests that received data is complete and in order, and is not read for tasks that do not receive.

use std::future::poll_fn;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::task::Poll;
use std::thread;

use super::{on_ring, once, pair, pattern, queue_of, receive, receive_all, send};
use crate::io_uring::Driver;
use crate::link::Link;
use crate::runtime::drain_events;

#[test]
fn all_data_arrives_in_order_for_every_buffer_size() {
    // Size of the receive buffer, length of the data, and size of the peer's writes, in bytes.
    for (offered, length, piece) in [
        (1, 3000, 7),
        (100, 100_000, 9000),
        (8192, 300_000, 8192),
        (65_536, 3_000_000, 100_000),
    ] {
        on_ring(async |driver| {
            let (mut link, mut peer) = pair(&driver);
            let sender = thread::spawn(move || {
                for piece in pattern(length).chunks(piece) {
                    peer.write_all(piece).expect("sent");
                }
            });
            let received = receive_all(&mut link, offered).await;
            sender.join().expect("a sender");
            assert!(received == pattern(length), "{offered} offered");
        });
    }
}

#[test]
fn an_end_that_arrives_with_data_is_reported() {
    // Length of the data, and whether the link waits for data before it is sent.
    for (length, is_waiting) in [(1, true), (3000, true), (1, false), (3000, false), (100_000, false)] {
        on_ring(async |driver| {
            let (mut link, mut peer) = pair(&driver);
            // Without this call, the first receive would be tried by `recv(2)`.
            link.wait_for_first_receive();
            if is_waiting {
                // The receive operation is submitted before anything is sent.
                let mut buffer = [0; 1];
                poll_fn(|context| {
                    assert!(link.poll_recv(context, &mut buffer).is_pending());
                    Poll::Ready(())
                })
                .await;
                drain_events().await;
            }
            peer.write_all(&pattern(length)).expect("sent");
            drop(peer);
            let received = receive_all(&mut link, 65_536).await;
            assert!(received == pattern(length), "{length} bytes, waiting: {is_waiting}");
        });
    }
}

#[test]
fn data_that_exceeds_all_buffers_arrives() {
    const LINKS: usize = 150;
    /// Number of bytes sent to each link. All links together receive far more than the provided buffers hold.
    const EACH: usize = 100_000;
    on_ring(async |driver| {
        let (mut links, mut peers): (Vec<_>, Vec<_>) = (0..LINKS).map(|_| pair(&driver)).unzip();
        // All receive operations are submitted before anything is sent, so that all need buffers in the same turn.
        for link in &mut links {
            let mut buffer = [0; 1];
            poll_fn(|context| {
                assert!(link.poll_recv(context, &mut buffer).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        drain_events().await;
        for peer in &mut peers {
            peer.write_all(&pattern(EACH)).expect("sent");
        }
        drop(peers);
        for (number, link) in links.iter_mut().enumerate() {
            assert!(receive_all(link, 65_536).await == pattern(EACH), "link {number}");
        }
    });
}

#[test]
fn no_data_is_read_for_a_task_that_does_not_receive() {
    on_ring(async |driver| {
        let (mut link, mut peer) = pair(&driver);
        peer.write_all(b"first").expect("sent");
        assert_eq!(receive(&mut link, 100).await.expect("bytes"), b"first");
        // From now on a receive operation of the ring waits for data, but the task does not receive.
        let mut buffer = [0; 1];
        assert!(
            once(|context| link.poll_recv(context, &mut buffer).map(drop))
                .await
                .is_pending()
        );
        peer.set_nonblocking(true).expect("an option");
        let (content, mut sent) = (pattern(50_000_000), 0);
        let mut blocked_writes = 0;
        while blocked_writes < 10 {
            match peer.write(&content[sent..]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => blocked_writes += 1,
                Err(error) => panic!("{error}"),
            }
            drain_events().await;
        }
        // The buffers of both sockets hold far less than 4 MB.
        assert!(
            sent < 4_000_000,
            "{sent} bytes were accepted although none was received"
        );
        drop(peer);
        assert!(receive_all(&mut link, 65_536).await == content[..sent]);
    });
}

#[test]
fn large_transfers_use_large_receives_and_small_ones_do_not() {
    /// Returns whether any connection of the ring uses large receives.
    fn receives_large(driver: &Driver) -> bool {
        driver.with_state(|state| state.slots.iter().any(|(_, slot)| slot.receive_mode.is_large()))
    }
    /// More bytes than fit into a socket, so that they arrive in many pieces.
    const LENGTH: usize = 1_000_000;
    // True if the link receives small messages before the first large transfer.
    for small_before in [false, true] {
        on_ring(async |driver| {
            let (mut link, mut peer) = pair(&driver);
            let send_word = |peer: &mut UnixStream| peer.write_all(b"word").expect("sent");
            for _ in 0..20 * usize::from(small_before) {
                send_word(&mut peer);
                assert_eq!(receive(&mut link, 65_536).await.expect("bytes"), b"word");
                assert!(!receives_large(&driver));
            }
            for _ in 0..3 {
                let sender = thread::spawn(move || {
                    peer.write_all(&pattern(LENGTH)).expect("sent");
                    peer
                });
                let mut all = Vec::new();
                while all.len() < LENGTH {
                    all.extend(receive(&mut link, 65_536).await.expect("bytes"));
                }
                assert!(all == pattern(LENGTH));
                assert!(receives_large(&driver), "the data was received in small pieces");
                peer = sender.join().expect("a sender");
                // More small receives than it takes to turn large receives off.
                for _ in 0..20 {
                    send_word(&mut peer);
                    assert_eq!(receive(&mut link, 65_536).await.expect("bytes"), b"word");
                }
                assert!(!receives_large(&driver), "large receives are still on");
            }
        });
    }
}

#[test]
fn large_receives_report_ends_and_resets() {
    for reset in [false, true] {
        on_ring(async |driver| {
            let (mut link, mut peer) = pair(&driver);
            // More bytes than one receive reads, so that some remain in the socket.
            peer.write_all(&pattern(100_000)).expect("sent");
            let first = receive(&mut link, 65_536).await.expect("bytes");
            assert!(first == pattern(100_000)[..first.len()]);
            if reset {
                // A Unix socket that closes with unread data resets the connection.
                send(&mut link, &mut queue_of(b"unread")).await.expect("sent");
            }
            drop(peer);
            let mut total = first.len();
            let end = loop {
                match receive(&mut link, 65_536).await {
                    Ok(some) if !some.is_empty() => total += some.len(),
                    end => break end.map_err(|error| error.kind()),
                }
            };
            match reset {
                false => assert_eq!((total, end), (100_000, Ok(Vec::new()))),
                true => assert_eq!(end, Err(ErrorKind::ConnectionReset)),
            }
        });
    }
}
