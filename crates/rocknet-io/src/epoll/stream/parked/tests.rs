//! Tests of parked connections with every I/O back end: resuming them on the same and on another thread, and discarding
//! them after the peer has sent data or closed.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use super::*;
use crate::queue::SendQueue;
use crate::runtime::{Runtime, back_ends, drain_events};

/// Timeout of the peer's reads: far more than they need on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of events that the runtime reads in one poll. Any value serves in these tests.
const MAX_EVENTS: usize = 8;

/// Returns a link and its peer, whose reads time out.
fn pair() -> (EpollStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut link = EpollStream::new(ours.into()).unwrap();
    // Without this call, the first receive would be tried without an event.
    link.wait_for_first_receive();
    (link, theirs)
}

/// Returns a queue that contains a copy of `bytes`.
fn queue_of(bytes: &[u8]) -> SendQueue {
    SendQueue::from(bytes.to_vec())
}

/// Adds a write to the write batch of this thread.
async fn put(link: &mut EpollStream, bytes: &[u8]) {
    let mut queue = queue_of(bytes);
    let taken = poll_fn(|context| Poll::Ready(link.send_batched(context, &mut queue)));
    assert!(taken.await);
}

/// Exchanges one message in each direction.
async fn talk(link: &mut EpollStream, peer: &mut UnixStream) {
    let mut queue = queue_of(b"question");
    poll_fn(|context| {
        if link.send_batched(context, &mut queue) {
            return Poll::Ready(Ok(()));
        }
        link.poll_send(context, &mut queue)
    })
    .await
    .unwrap();
    let mut peer = peer.try_clone().unwrap();
    let answers = thread::spawn(move || {
        let mut question = [0; 8];
        peer.read_exact(&mut question).unwrap();
        peer.write_all(b"answer").unwrap();
        question
    });
    let mut buffer = [0; 64];
    let received = poll_fn(|context| {
        link.poll_recv(context, &mut buffer)
            .map_ok(|received| received.to_vec())
    });
    assert_eq!(received.await.unwrap(), b"answer");
    assert_eq!(&answers.join().unwrap(), b"question");
}

#[test]
fn any_thread_resumes_a_parked_connection() {
    for runtime in back_ends() {
        // If `moves` is true, the connection is resumed on the other thread.
        for moves in [false, true] {
            let (sender, receiver) = std::sync::mpsc::channel::<(ParkedConnection, UnixStream)>();
            // `back` is dropped when the other thread ends, and `ended` then returns an error.
            let (back, ended) = std::sync::mpsc::channel::<()>();
            let resume_and_talk = move |parked: ParkedConnection, mut peer: UnixStream| async move {
                let mut link = parked.resume().expect("an open connection");
                for _ in 0..3 {
                    talk(&mut link, &mut peer).await;
                    link = link
                        .park()
                        .expect("everything was sent")
                        .resume()
                        .expect("an open connection");
                }
            };
            let other = thread::spawn(move || {
                if let Ok((parked, peer)) = receiver.recv() {
                    runtime().block_on(resume_and_talk(parked, peer));
                }
                drop(back);
            });
            runtime().block_on(async {
                let (mut link, mut peer) = pair();
                talk(&mut link, &mut peer).await;
                let parked = link.park().expect("everything was sent");
                if moves {
                    sender.send((parked, peer)).unwrap();
                    // Blocks until the other thread has ended, so that the event loop of this thread exists all the
                    // time.
                    assert!(ended.recv().is_err());
                } else {
                    resume_and_talk(parked, peer).await;
                    drop(sender);
                }
            });
            other.join().expect("the other thread");
        }
    }
}

#[test]
fn batched_writes_are_sent_before_parking() {
    Runtime::new(MAX_EVENTS).unwrap().block_on(async {
        let (mut link, mut peer) = pair();
        put(&mut link, b"last words").await;
        let parked = link.park();
        let mut received = [0; 10];
        peer.read_exact(&mut received).unwrap();
        assert!(&received == b"last words" && parked.is_some());
        // The peer has closed, so sending this write fails.
        let (mut link, peer) = pair();
        drop(peer);
        put(&mut link, b"lost").await;
        assert!(link.park().is_none());
    });
}

#[test]
fn a_parked_connection_is_discarded_after_data_or_the_end() {
    // Actions of the peer. An action that leaves the peer open returns it.
    let acts: [fn(UnixStream) -> Option<UnixStream>; 2] = [
        |mut peer| {
            peer.write_all(b"x").unwrap();
            Some(peer)
        },
        |peer| {
            drop(peer);
            None
        },
    ];
    for runtime in back_ends() {
        for act in acts {
            runtime().block_on(async {
                let (link, peer) = pair();
                let parked = link.park().expect("everything was sent");
                let _peer = act(peer);
                drain_events().await;
                assert!(parked.resume().is_none(), "resumed on its own thread");
                let (link, peer) = pair();
                let parked = link.park().expect("everything was sent");
                let _peer = act(peer);
                let other = thread::spawn(move || runtime().block_on(async { parked.resume().is_none() }));
                assert!(other.join().unwrap(), "resumed on another thread");
            });
        }
    }
}
