//! Tests that batched writes are sent in order, before all other output of their link, and only to their own socket. A
//! busy event loop must send them too.

use std::future::poll_fn;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::task::{Context, Poll};
use std::thread;

use socket2::SockRef;

use super::*;
use crate::epoll::EpollStream;
use crate::link::Link;
use crate::queue::SendQueue;
use crate::runtime::{Runtime, back_ends, drain_events, spawn};

/// Maximum number of events that the runtime reads in one poll. Any value serves in these tests.
const MAX_EVENTS: usize = 8;

/// Returns a link and its peer, whose reads time out.
fn pair() -> (EpollStream, TcpStream) {
    pair_of(|_, _| ())
}

/// Like `pair`, with small socket buffers on every machine, which are full long before a test has sent everything.
fn narrow_pair() -> (EpollStream, TcpStream) {
    pair_of(|socket, peer| {
        SockRef::from(socket).set_send_buffer_size(64 * 1024).unwrap();
        SockRef::from(peer).set_recv_buffer_size(64 * 1024).unwrap();
    })
}

/// Returns a link and its peer, whose sockets were changed by `shape`.
fn pair_of(shape: impl FnOnce(&TcpStream, &TcpStream)) -> (EpollStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    shape(&socket, &peer);
    let mut link = EpollStream::new(socket.into()).unwrap();
    // Without this call, the first receive would be tried without an event.
    link.wait_for_first_receive();
    (link, peer)
}

/// Timeout of all waits for a peer or a task: far more than they need on a busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Returns a queue that contains a copy of `bytes`.
fn queue_of(bytes: &[u8]) -> SendQueue {
    let mut queue = SendQueue::default();
    queue.buffer().extend_from_slice(bytes);
    queue
}

/// Calls `act` once with the context of the current task.
async fn once<T>(mut act: impl FnMut(&mut Context<'_>) -> T) -> T {
    poll_fn(|context| Poll::Ready(act(context))).await
}

/// Runs a test with every I/O back end.
fn on_each(test: impl AsyncFn()) {
    for runtime in back_ends() {
        runtime().block_on(test());
    }
}

/// Moves `bytes` into the batch of this thread. Returns false if nothing was moved.
async fn send_batched(link: &mut EpollStream, bytes: &[u8]) -> bool {
    once(|context| link.send_batched(context, &mut queue_of(bytes))).await
}

/// Returns whether data is available. If `wait` is true, waits for data, and so blocks the thread and its runtime.
fn has_arrived(peer: &mut TcpStream, wait: bool) -> bool {
    peer.set_nonblocking(!wait).unwrap();
    let arrived = peer.peek(&mut [0]).is_ok();
    peer.set_nonblocking(false).unwrap();
    arrived
}

/// Reads exactly `length` bytes.
fn read(peer: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut read = vec![0; length];
    peer.read_exact(&mut read).expect("all bytes");
    read
}

#[test]
fn the_batch_is_sent_when_the_event_loop_is_idle() {
    on_each(async || {
        let (mut one, mut first) = pair();
        let (mut two, mut second) = pair();
        assert!(send_batched(&mut one, b"one").await && send_batched(&mut two, b"two").await);
        assert!(
            !has_arrived(&mut first, false) && !has_arrived(&mut second, false),
            "sent although the event loop was not idle"
        );
        let (sender, receiver) = tokio::sync::oneshot::channel();
        thread::spawn(move || sender.send((read(&mut first, 3), read(&mut second, 3))));
        assert_eq!(receiver.await.expect("both"), (b"one".to_vec(), b"two".to_vec()));
    });
}

#[test]
fn the_batch_is_sent_while_tasks_keep_waking_themselves() {
    on_each(async || {
        let (mut link, mut peer) = pair();
        assert!(send_batched(&mut link, b"answer").await);
        let (mut busy, _silent) = pair();
        spawn(poll_fn(move |context| {
            context.waker().wake_by_ref();
            // Sending an empty queue counts as work, too, and the batch is sent after a fixed amount of work.
            let _ = busy.poll_send(context, &mut SendQueue::default());
            Poll::Pending
        }));
        let (sender, mut receiver) = tokio::sync::oneshot::channel();
        thread::spawn(move || sender.send(read(&mut peer, 6)));
        let response = poll_fn(|context| {
            // Keeps the event loop from becoming idle, by waking the root task as well.
            context.waker().wake_by_ref();
            std::pin::Pin::new(&mut receiver).poll(context)
        });
        assert_eq!(response.await.expect("a response"), b"answer");
    });
}

#[test]
fn the_batch_is_sent_before_other_output_of_its_link() {
    type Act = fn(&mut EpollStream, &mut Context<'_>);
    // Action after a batched write, and the bytes that the peer receives after those of the write.
    let acts: [(Act, &[u8]); 3] = [
        (|link, _| link.flush(), b""),
        (
            |link, context| assert!(link.poll_send(context, &mut queue_of(b"more")).is_ready()),
            b"more",
        ),
        (
            |link, context| assert!(link.send_batched(context, &mut queue_of(b"more"))),
            b"more",
        ),
    ];
    for (number, (act, after)) in acts.into_iter().enumerate() {
        Runtime::new(MAX_EVENTS).unwrap().block_on(async {
            let (mut link, mut peer) = pair();
            assert!(send_batched(&mut link, b"answer").await);
            once(|context| act(&mut link, context)).await;
            assert!(has_arrived(&mut peer, true), "{number}");
            drop(link);
            let mut all = Vec::new();
            peer.read_to_end(&mut all).unwrap();
            assert_eq!(all, [b"answer", after].concat(), "{number}");
        });
    }
}

#[test]
fn the_batch_is_sent_before_the_end_of_the_peer_is_returned() {
    on_each(async || {
        let (mut link, mut peer) = pair();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        // Number of batched writes, of one byte each.
        let mut put = 0;
        let end = poll_fn(|context| {
            // Batches a write in every poll, so that one write is in the batch when the end is found. The event loop
            // flushes the earlier writes before it waits for the end.
            put += 1;
            assert!(link.send_batched(context, &mut queue_of(b"x")));
            let mut buffer = [0; 8];
            let polled = link.poll_recv(context, &mut buffer);
            polled.map(|received| received.map(|received| received.len()))
        });
        assert_eq!(end.await.expect("an end"), 0);
        assert_eq!(read(&mut peer, put).len(), put);
    });
}

#[test]
fn unsent_bytes_return_to_their_link_and_are_sent_in_order() {
    /// Number of messages of 1,000 bytes: far more bytes than the socket buffers have room for.
    const MESSAGES: usize = 4000;
    on_each(async || {
        // Content of the message `number` of the link with the index `seed`.
        let content = |seed: usize, number: usize| vec![(seed * 7 + number) as u8; 1000];
        let mut readers = Vec::new();
        // Number of times that a link returned unsent bytes.
        let mut returned = 0;
        let mut links: Vec<(EpollStream, SendQueue)> = (0..3)
            .map(|_| {
                let (link, mut peer) = narrow_pair();
                readers.push(move || {
                    let mut all = Vec::new();
                    peer.read_to_end(&mut all).map(|_| all)
                });
                (link, SendQueue::default())
            })
            .collect();
        // The first two peers read nothing until all messages have been queued.
        let slow: Vec<_> = readers.drain(..2).collect();
        let mut threads: Vec<_> = readers.into_iter().map(thread::spawn).collect();
        for number in 0..MESSAGES {
            for (seed, (link, backlog)) in links.iter_mut().enumerate() {
                if let Some(unsent) = link.take_unsent() {
                    returned += 1;
                    backlog.put_back(unsent);
                }
                backlog.buffer().extend_from_slice(&content(seed, number));
                let fits = backlog.len() as usize <= MAX_WRITE_BYTES;
                if fits && once(|context| link.send_batched(context, backlog)).await {
                    assert!(backlog.is_empty());
                }
            }
            // Run the event loop now and then, so that it sends the batch.
            if number % 8 == 0 {
                drain_events().await;
            }
        }
        threads.extend(slow.into_iter().map(thread::spawn));
        for (mut link, mut backlog) in links {
            poll_fn(|context| {
                link.flush();
                if let Some(unsent) = link.take_unsent() {
                    returned += 1;
                    backlog.put_back(unsent);
                }
                link.poll_send(context, &mut backlog)
            })
            .await
            .expect("sent");
        }
        // The reader of the third link, which was never slow, is the first in the list of threads.
        let mut seeds: Vec<usize> = Vec::new();
        for thread in threads {
            let received = thread.join().expect("a reader").expect("all");
            let seed = (0..3).find(|&seed| {
                let mut expected = (0..MESSAGES).map(|number| content(seed, number));
                received.len() == MESSAGES * 1000
                    && received
                        .chunks(1000)
                        .all(|chunk| expected.next().is_some_and(|content| content == chunk))
            });
            seeds.push(seed.expect("the messages of one link, in order"));
        }
        assert_eq!((seeds, returned > 0), (vec![2, 0, 1], true));
    });
}

#[test]
fn unsent_bytes_wake_their_task() {
    on_each(async || {
        let (mut link, _peer) = narrow_pair();
        // Fill the socket buffers, so that the write below is not accepted.
        let mut queue = queue_of(&[0; 1 << 20]);
        while once(|context| link.poll_send(context, &mut queue)).await.is_ready() {
            queue.buffer().resize(1 << 20, 0);
        }
        let (alarm, mut past) = tokio::sync::oneshot::channel::<()>();
        let (done, ended) = std::sync::mpsc::channel::<()>();
        // Ends the wait for the unsent bytes below after `PATIENCE`, so that the test fails instead of hanging.
        let clock = thread::spawn(move || {
            let _ = ended.recv_timeout(PATIENCE);
            drop(alarm);
        });
        // Consumes all earlier events, so that none of them ends the sleep of the runtime.
        for _ in 0..10 {
            drain_events().await;
        }
        // This part runs in a spawned task, because waking the root task would end the sleep of any runtime.
        let (returned, unsent) = tokio::sync::oneshot::channel();
        spawn(async move {
            assert!(send_batched(&mut link, b"no room").await);
            let unsent = poll_fn(|context| match link.take_unsent() {
                None => std::pin::Pin::new(&mut past).poll(context).map(|_| None),
                unsent => Poll::Ready(unsent),
            });
            let _ = returned.send(unsent.await);
        });
        assert_eq!(unsent.await.expect("a task").as_deref(), Some(&b"no room"[..]));
        drop(done);
        clock.join().expect("the clock");
    });
}

#[test]
fn a_dropped_link_sends_its_writes_and_unsent_bytes_reach_no_other_link() {
    on_each(async || {
        let (mut link, mut peer) = pair();
        assert!(send_batched(&mut link, b"last words").await);
        drop(link);
        assert_eq!(read(&mut peer, 10), b"last words");
        // The peer of the next connection resets it.
        let (mut link, peer) = pair();
        SockRef::from(&peer)
            .set_linger(Some(std::time::Duration::ZERO))
            .unwrap();
        drop(peer);
        assert!(send_batched(&mut link, b"lost").await);
        link.flush();
        let (mut other, mut other_peer) = pair();
        assert!(other.take_unsent().is_none() && send_batched(&mut other, b"mine").await);
        other.flush();
        assert_eq!(
            (read(&mut other_peer, 4), other.take_unsent()),
            (b"mine".to_vec(), None)
        );
        assert_eq!(link.take_unsent().as_deref(), Some(&b"lost"[..]));
    });
}
