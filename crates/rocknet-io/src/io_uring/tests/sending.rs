//! Tests that data is sent in batches where possible, and always in order.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::task::Poll;
use std::thread;

use super::{on_ring, once, pair, pattern, queue_of, receive, send};
use crate::link::Link;
use crate::queue::SendQueue;
use crate::runtime::{drain_events, spawn};

#[test]
fn many_responses_share_a_few_system_calls() {
    /// Number of links that respond in each round.
    const LINKS: usize = 32;
    /// Number of rounds whose system calls are counted.
    const ROUNDS: usize = 10;
    /// Maximum system calls per round. One call delivers about twenty completions, and a few calls deliver no
    /// completion.
    const CALLS_A_ROUND: usize = 8;
    on_ring(async |driver| {
        let mut peers = Vec::new();
        for _ in 0..LINKS {
            let (mut link, mut peer) = pair(&driver);
            spawn(async move {
                while receive(&mut link, 100).await.is_ok_and(|question| !question.is_empty()) {
                    assert!(once(|context| link.send_batched(context, &mut queue_of(b"answer"))).await);
                }
            });
            // The first message is received by `recv(2)`, so system calls are counted only after round 0.
            peer.write_all(b"question").expect("sent");
            peers.push(peer);
        }
        let mut before = 0;
        for round in 0..=ROUNDS {
            for peer in &mut peers {
                if round > 0 {
                    peer.write_all(b"question").expect("sent");
                }
            }
            // The first call wakes the tasks that have received, and the second lets them run and sends their answers.
            drain_events().await;
            drain_events().await;
            for peer in &mut peers {
                let mut answer = [0; 6];
                peer.read_exact(&mut answer).expect("a response");
                assert_eq!(&answer, b"answer");
            }
            if round == 0 {
                before = driver.calls();
            }
        }
        let calls = driver.calls() - before;
        assert!(
            calls <= ROUNDS * CALLS_A_ROUND,
            "{calls} calls for {} responses",
            ROUNDS * LINKS
        );
    });
}

#[test]
fn returned_unsent_bytes_are_sent_in_order() {
    // Length of a message in bytes, and number of messages.
    for (size, count) in [(10, 50_000), (700, 5000), (8000, 400), (50_000, 60)] {
        on_ring(async |driver| {
            let (mut link, mut peer) = pair(&driver);
            let content = pattern(size * count);
            let expected = content.clone();
            let receiver = thread::spawn(move || {
                let mut all = Vec::new();
                peer.read_to_end(&mut all).map(|_| all)
            });
            let mut returned = 0;
            for message in content.chunks(size) {
                let mut queue = queue_of(message);
                // Messages are batched without a flush after each of them, so that several accumulate in one turn.
                poll_fn(|context| {
                    while let Some(unsent) = link.take_unsent() {
                        returned += 1;
                        queue.put_back(unsent);
                    }
                    match link.send_batched(context, &mut queue) {
                        true => Poll::Ready(Ok(())),
                        false => link.poll_send(context, &mut queue),
                    }
                })
                .await
                .expect("sent");
            }
            // Sends the messages that are still batched or unsent.
            send(&mut link, &mut SendQueue::default()).await.expect("sent");
            drop(link);
            drain_events().await;
            let received = receiver.join().expect("a receiver").expect("all");
            assert!(received == expected, "{count} times {size} bytes, {returned} returned");
        });
    }
}
