//! Tests that no connection starves others on a ring, and that events of the runtime are delivered.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::rc::Rc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use super::{on_ring, pair, pattern, queue_of, receive, receive_all};
use crate::link::Link;
use crate::runtime::{drain_events, spawn};
use crate::ticker::Ticker;

#[test]
fn a_busy_task_does_not_starve_others() {
    on_ring(async |driver| {
        let (mut waiting, mut peer) = pair(&driver);
        let (mut busy, mut busy_peer) = pair(&driver);
        let received = Rc::new(Cell::new(false));
        let receiving = Rc::clone(&received);
        spawn(async move {
            receiving.set(receive(&mut waiting, 100).await.is_ok_and(|word| word == b"word"));
        });
        drain_events().await;
        let reader = thread::spawn(move || busy_peer.read_to_end(&mut Vec::new()));
        peer.write_all(b"word").expect("sent");
        // The runtime never parks, because this task wakes itself in every poll.
        let mut sends = 0;
        poll_fn(|context| {
            if received.get() || sends == 10_000 {
                return Poll::Ready(());
            }
            sends += 1;
            context.waker().wake_by_ref();
            let sent = busy.poll_send(context, &mut queue_of(&pattern(100)));
            assert!(!matches!(sent, Poll::Ready(Err(_))), "{sent:?}");
            Poll::Pending
        })
        .await;
        assert!(received.get(), "not received within {sends} sends");
        drop(busy);
        reader.join().expect("a reader").expect("an end");
    });
}

#[test]
fn events_of_the_runtime_are_delivered() {
    on_ring(async |driver| {
        // A timer expires while a connection waits.
        let (mut link, mut peer) = pair(&driver);
        spawn(async move {
            receive_all(&mut link, 100).await;
        });
        let mut ticker = Ticker::new(Duration::from_millis(2)).expect("a ticker");
        ticker.start();
        let mut ticks = 0;
        poll_fn(|context| {
            loop {
                match ticker.poll_ticks(context) {
                    _ if ticks >= 20 => return Poll::Ready(()),
                    0 => return Poll::Pending,
                    more => ticks += more,
                }
            }
        })
        .await;
        ticker.stop();
        // Another thread repeatedly wakes this one from its sleep.
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let thread = thread::spawn(move || {
            for number in 0..200 {
                sender.send(number).expect("an open channel");
                peer.write_all(b"and this").expect("sent");
                thread::yield_now();
            }
        });
        for number in 0..200 {
            assert_eq!(receiver.recv().await, Some(number));
        }
        thread.join().expect("a sender");
    });
}
