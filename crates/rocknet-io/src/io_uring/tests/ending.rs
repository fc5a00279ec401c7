//! Tests of links that are dropped, and of peers that close, at any moment.

use std::future::{Future, poll_fn};
use std::io::{ErrorKind, Read, Write};
use std::pin::pin;
use std::task::Poll;

use super::{on_ring, once, pair, pattern, queue_of, receive, receive_all, send};
use crate::io_uring::UringStream;
use crate::link::Link;
use crate::runtime::drain_events;

#[test]
fn a_link_can_be_dropped_at_any_moment() {
    /// Acts as a connection does: receives one message, sends three, and repeats.
    async fn talk(mut link: UringStream) {
        for _ in 0..4 {
            if receive(&mut link, 100).await.is_err() {
                return;
            }
            for _ in 0..2 {
                if send(&mut link, &mut queue_of(&pattern(5000))).await.is_err() {
                    return;
                }
            }
            // This message is larger than the room in the socket.
            if send(&mut link, &mut queue_of(&pattern(400_000))).await.is_err() {
                return;
            }
        }
    }
    // Number of polls of the connection before it is dropped.
    for polls in 0..12 {
        on_ring(async |driver| {
            let before = driver.counts();
            for peer_ends_first in [false, true] {
                let (link, mut peer) = pair(&driver);
                let mut talk = Box::pin(talk(link));
                peer.set_nonblocking(true).expect("an option");
                // The peer reads only before every third poll, and events are delivered only after every second one.
                for poll in 0..polls {
                    let _ = peer.write(b"word");
                    if poll % 3 == 2 {
                        let _ = peer.read(&mut [0; 300_000]);
                    }
                    let ended = poll_fn(|context| Poll::Ready(talk.as_mut().poll(context).is_ready())).await;
                    if ended {
                        break;
                    }
                    if poll % 2 == 1 {
                        drain_events().await;
                    }
                }
                if peer_ends_first {
                    let _ = peer.write(b"unread");
                    drop(peer);
                    drop(talk);
                } else {
                    drop(talk);
                    drain_events().await;
                    peer.set_nonblocking(false).expect("an option");
                    // No copy of the socket is left open, so the peer reads to the end.
                    let end = peer.read_to_end(&mut Vec::new());
                    assert!(
                        end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset),
                        "after {polls} polls"
                    );
                }
                drain_events().await;
            }
            assert_eq!(
                driver.counts(),
                before,
                "slots or operations remain after {polls} polls"
            );
        });
    }
}

#[test]
fn a_closed_peer_is_reported_as_an_end_or_an_error() {
    on_ring(async |driver| {
        // The peer closes while the link sends more than the socket has room for.
        let (mut link, peer) = pair(&driver);
        let mut queue = queue_of(&pattern(3_000_000));
        let mut peer = Some(peer);
        let sent = poll_fn(|context| {
            let sent = link.poll_send(context, &mut queue);
            if sent.is_pending() {
                peer = None;
            }
            sent
        })
        .await;
        assert_eq!(sent.expect_err("the peer has closed").kind(), ErrorKind::BrokenPipe);

        // The peer closes after its request and before the response. The batched write of the response fails, which the
        // next receive reports.
        let (mut link, mut peer) = pair(&driver);
        peer.write_all(b"question").expect("sent");
        assert_eq!(receive(&mut link, 100).await.expect("bytes"), b"question");
        drop(peer);
        assert!(once(|context| link.send_batched(context, &mut queue_of(b"answer"))).await);
        link.flush();
        let error = receive(&mut link, 100).await;
        assert_eq!(error.expect_err("the peer has closed").kind(), ErrorKind::BrokenPipe);

        // The peer closes while the link waits for more data.
        let (mut link, peer) = pair(&driver);
        let mut receiving = pin!(receive_all(&mut link, 100));
        assert!(once(|context| receiving.as_mut().poll(context)).await.is_pending());
        drop(peer);
        assert!(receiving.await.is_empty());
    });
}
