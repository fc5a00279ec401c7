//! Links on a ring between real sockets: order, back-pressure, letting go at any moment, and rings that fail.

use std::cell::Cell;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use super::{Driver, RingStream, current, read_ahead, trouble};
use crate::alone::in_own_process;
use crate::file;
use crate::link::Link;
use crate::queue::SendQueue;
use crate::runtime::{Runtime, hear, spawn};
use crate::stream::Stream;
use crate::ticker::Ticker;

/// Longest wait for a peer: far more than it takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Runs a test on a ring; where there can be none, there is nothing to test.
fn on_ring<F: Future>(test: impl FnOnce(Rc<Driver>) -> F) {
    if let Some(trouble) = trouble() {
        println!("not tested, no io_uring: {trouble}");
        return;
    }
    let runtime = Runtime::on_ring(64).expect("a ring");
    runtime.block_on(async { test(current().expect("a driver")).await });
}

fn pair(driver: &Rc<Driver>) -> (RingStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    ours.set_nonblocking(true).expect("an option");
    theirs.set_read_timeout(Some(DEADLINE)).expect("an option");
    theirs.set_write_timeout(Some(DEADLINE)).expect("an option");
    (RingStream::new(Rc::clone(driver), ours.into()), theirs)
}

/// Bytes whose place can be told from them.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

async fn receive(link: &mut impl Link, offered: usize) -> std::io::Result<Vec<u8>> {
    let mut buffer = vec![0; offered];
    poll_fn(|context| {
        link.poll_recv(context, &mut buffer)
            .map_ok(|received| received.to_vec())
    })
    .await
}

async fn receive_all(link: &mut impl Link, offered: usize) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match receive(link, offered).await.expect("bytes") {
            some if some.is_empty() => return all,
            some => all.extend(some),
        }
    }
}

/// Sends as a connection does: what comes back goes first.
async fn send(link: &mut impl Link, queue: &mut SendQueue) -> std::io::Result<()> {
    poll_fn(|context| {
        loop {
            if let Some(unsent) = link.take_unsent() {
                queue.put_back(unsent);
            }
            if !link.send_together(queue) && link.poll_send(context, queue)?.is_pending() {
                return Poll::Pending;
            }
            link.flush();
            match link.take_unsent() {
                Some(unsent) => queue.put_back(unsent),
                None => return Poll::Ready(Ok(())),
            }
        }
    })
    .await
}

/// One poll, and what it gave.
async fn once<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll_fn(|context| Poll::Ready(poll(context))).await
}

fn queue_of(bytes: &[u8]) -> SendQueue {
    let mut queue = SendQueue::default();
    queue.buffer().extend_from_slice(bytes);
    queue
}

#[test]
fn all_arrives_in_order_whatever_is_offered() {
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
fn many_answers_share_a_few_calls() {
    const LINKS: usize = 32;
    const ROUNDS: usize = 10;
    /// Some twenty completions are brought by a call, and a few calls find nothing.
    const CALLS_A_ROUND: usize = 8;
    on_ring(async |driver| {
        let mut peers = Vec::new();
        for _ in 0..LINKS {
            let (mut link, mut peer) = pair(&driver);
            spawn(async move {
                while receive(&mut link, 100).await.is_ok_and(|question| !question.is_empty()) {
                    assert!(link.send_together(&mut queue_of(b"answer")));
                }
            });
            // The first is received by a call of its own.
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
            hear().await;
            hear().await;
            for peer in &mut peers {
                let mut answer = [0; 6];
                peer.read_exact(&mut answer).expect("an answer");
                assert_eq!(&answer, b"answer");
            }
            if round == 0 {
                before = driver.calls();
            }
        }
        let calls = driver.calls() - before;
        assert!(
            calls <= ROUNDS * CALLS_A_ROUND,
            "{calls} calls for {} answers",
            ROUNDS * LINKS
        );
    });
}

#[test]
fn more_than_all_buffers_hold_arrives_nevertheless() {
    const LINKS: usize = 150;
    const EACH: usize = 100_000;
    on_ring(async |driver| {
        let (mut links, mut peers): (Vec<_>, Vec<_>) = (0..LINKS).map(|_| pair(&driver)).unzip();
        // The operations wait before anything is sent, so that all of them want buffers in the same turn.
        for link in &mut links {
            let mut buffer = [0; 1];
            poll_fn(|context| {
                assert!(link.poll_recv(context, &mut buffer).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        hear().await;
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
fn who_does_not_read_is_not_read_for() {
    on_ring(async |driver| {
        let (mut link, mut peer) = pair(&driver);
        peer.write_all(b"first").expect("sent");
        assert_eq!(receive(&mut link, 100).await.expect("bytes"), b"first");
        // From now on an operation waits in the kernel, and nobody asks what it brings.
        let mut buffer = [0; 1];
        assert!(
            once(|context| link.poll_recv(context, &mut buffer).map(drop))
                .await
                .is_pending()
        );
        peer.set_nonblocking(true).expect("an option");
        let (content, mut sent) = (pattern(50_000_000), 0);
        let mut refused = 0;
        while refused < 10 {
            match peer.write(&content[sent..]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => refused += 1,
                Err(error) => panic!("{error}"),
            }
            hear().await;
        }
        assert!(sent < 4_000_000, "{sent} bytes were taken though nobody read them");
        drop(peer);
        assert!(receive_all(&mut link, 65_536).await == content[..sent]);
    });
}

#[test]
fn what_finds_no_room_comes_back_and_leaves_in_order() {
    for (message, count) in [(10, 50_000), (700, 5000), (8000, 400), (50_000, 60)] {
        on_ring(async |driver| {
            let (mut link, mut peer) = pair(&driver);
            let content = pattern(message * count);
            let expected = content.clone();
            let receiver = thread::spawn(move || {
                let mut all = Vec::new();
                peer.read_to_end(&mut all).map(|_| all)
            });
            let mut returned = 0;
            for message in content.chunks(message) {
                let mut queue = queue_of(message);
                // Taken at once mostly, and looked after only now and then: so messages pile up in one turn.
                poll_fn(|context| {
                    while let Some(unsent) = link.take_unsent() {
                        returned += 1;
                        queue.put_back(unsent);
                    }
                    match link.send_together(&mut queue) {
                        true => Poll::Ready(Ok(())),
                        false => link.poll_send(context, &mut queue),
                    }
                })
                .await
                .expect("sent");
            }
            send(&mut link, &mut SendQueue::default()).await.expect("sent");
            drop(link);
            hear().await;
            let received = receiver.join().expect("a receiver").expect("all");
            assert!(
                received == expected,
                "{count} times {message} bytes, {returned} returned"
            );
        });
    }
}

#[test]
fn a_link_may_be_let_go_at_any_moment() {
    /// As a connection does: hears a word, says two, and again.
    async fn talk(mut link: RingStream) {
        for _ in 0..4 {
            if receive(&mut link, 100).await.is_err() {
                return;
            }
            for _ in 0..2 {
                if send(&mut link, &mut queue_of(&pattern(5000))).await.is_err() {
                    return;
                }
            }
            // More than the socket has room for.
            if send(&mut link, &mut queue_of(&pattern(400_000))).await.is_err() {
                return;
            }
        }
    }
    for polls in 0..12 {
        on_ring(async |driver| {
            let before = driver.counts();
            for ends_first in [false, true] {
                let (link, mut peer) = pair(&driver);
                let mut talk = Box::pin(talk(link));
                peer.set_nonblocking(true).expect("an option");
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
                        hear().await;
                    }
                }
                if ends_first {
                    let _ = peer.write(b"unread");
                    drop(peer);
                    drop(talk);
                } else {
                    drop(talk);
                    hear().await;
                    peer.set_nonblocking(false).expect("an option");
                    // Nothing of the link is left open: the peer reads to the end.
                    let end = peer.read_to_end(&mut Vec::new());
                    assert!(
                        end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset),
                        "after {polls} polls"
                    );
                }
                hear().await;
            }
            assert_eq!(driver.counts(), before, "something is left after {polls} polls");
        });
    }
}

#[test]
fn a_peer_that_goes_away_is_an_end_or_an_error() {
    on_ring(async |driver| {
        // While sending more than there is room for.
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
        assert_eq!(sent.expect_err("nobody takes it").kind(), ErrorKind::BrokenPipe);

        // Between two answers: the first to notice is a send of many.
        let (mut link, mut peer) = pair(&driver);
        peer.write_all(b"question").expect("sent");
        assert_eq!(receive(&mut link, 100).await.expect("bytes"), b"question");
        drop(peer);
        assert!(link.send_together(&mut queue_of(b"answer")));
        link.flush();
        let told = receive(&mut link, 100).await;
        assert_eq!(told.expect_err("nobody took it").kind(), ErrorKind::BrokenPipe);

        // While waiting for more.
        let (mut link, peer) = pair(&driver);
        let mut receiving = pin!(receive_all(&mut link, 100));
        assert!(once(|context| receiving.as_mut().poll(context)).await.is_pending());
        drop(peer);
        assert!(receiving.await.is_empty());
    });
}

#[test]
fn who_is_always_busy_does_not_keep_others_waiting() {
    on_ring(async |driver| {
        let (mut waiting, mut peer) = pair(&driver);
        let (mut busy, mut drain) = pair(&driver);
        let heard = Rc::new(Cell::new(false));
        let hearing = Rc::clone(&heard);
        spawn(async move {
            hearing.set(receive(&mut waiting, 100).await.is_ok_and(|word| word == b"word"));
        });
        hear().await;
        let drain = thread::spawn(move || drain.read_to_end(&mut Vec::new()));
        peer.write_all(b"word").expect("sent");
        // The runtime never gets to the point where it would sleep.
        let mut sends = 0;
        poll_fn(|context| {
            if heard.get() || sends == 10_000 {
                return Poll::Ready(());
            }
            sends += 1;
            context.waker().wake_by_ref();
            let sent = busy.poll_send(context, &mut queue_of(&pattern(100)));
            assert!(!matches!(sent, Poll::Ready(Err(_))), "{sent:?}");
            Poll::Pending
        })
        .await;
        assert!(heard.get(), "not heard in {sends} sends");
        drop(busy);
        drain.join().expect("a reader").expect("an end");
    });
}

#[test]
fn the_runtimes_own_events_are_heard_too() {
    on_ring(async |driver| {
        // A timer, and a connection that waits all the time.
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
        // Another thread, again and again while this one sleeps.
        let (say, mut hear) = tokio::sync::mpsc::unbounded_channel();
        let talker = thread::spawn(move || {
            for number in 0..200 {
                say.send(number).expect("somebody who hears");
                peer.write_all(b"and this").expect("sent");
                thread::yield_now();
            }
        });
        for number in 0..200 {
            assert_eq!(hear.recv().await, Some(number));
        }
        talker.join().expect("a talker");
    });
}

/// A file on a disk, none of it in memory, as far as the kernel obeys.
fn cold_file(length: usize) -> Arc<File> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&pattern(length)).expect("written");
    file.sync_all().expect("on the disk");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    Arc::new(file)
}

#[test]
fn files_are_read_ahead() {
    on_ring(async |driver| {
        let before = driver.counts();
        for (length, offset, wanted) in [
            (10, 0, 10),
            (3_000_000, 0, 3_000_000),
            (3_000_000, 1_048_576, 1_048_576),
            // Cut short since it was asked how long it is.
            (300_000, 200_000, 1_000_000),
            (300_000, 400_000, 10),
        ] {
            let file = cold_file(length);
            read_ahead(&file, offset, wanted).expect("room").await;
            let end = (offset + wanted).min(length as u64);
            for at in (offset..end)
                .step_by(4096)
                .chain(end.checked_sub(1).filter(|at| *at >= offset))
            {
                assert!(file::is_resident(&file, at), "byte {at} of {length}");
            }
        }
        // What cannot be read is met when it is sent.
        let folder = Arc::new(File::open(".").expect("a folder"));
        read_ahead(&folder, 0, 10).expect("room").await;
        assert_eq!(driver.counts(), before);
    });
}

#[test]
fn reads_may_be_let_go_and_are_bounded() {
    on_ring(async |driver| {
        let before = driver.counts();
        let file = cold_file(1_000_000);
        let mut all: Vec<_> = std::iter::from_fn(|| read_ahead(&file, 0, 1_000_000))
            .take(10_000)
            .collect();
        assert!((2..10_000).contains(&all.len()), "{} reads at once", all.len());
        // Before they are handed over, when they have begun, and when they have ended unheard.
        all.truncate(all.len() / 2);
        assert!(once(|context| Pin::new(&mut all[0]).poll(context)).await.is_pending());
        hear().await;
        all.truncate(all.len() / 2);
        for one in all.drain(1..) {
            one.await;
        }
        drop(all);
        while driver.counts().1 > 0 {
            hear().await;
            thread::yield_now();
        }
        read_ahead(&file, 0, 1_000_000).expect("room again").await;
        assert_eq!(driver.counts(), before);
    });
}

#[test]
fn a_ring_that_fails_ends_its_reads() {
    on_ring(async |driver| {
        let file = cold_file(1_000_000);
        let mut waiting = read_ahead(&file, 0, 1_000_000).expect("room");
        let idle = read_ahead(&file, 0, 1_000_000).expect("room");
        assert!(once(|context| Pin::new(&mut waiting).poll(context)).await.is_pending());
        driver.fail();
        waiting.await;
        idle.await;
        assert!(read_ahead(&file, 0, 1).is_none(), "it is offered to others");
    });
}

#[test]
fn when_the_ring_fails_connections_go_on_without_it() {
    on_ring(async |driver| {
        let (link, mut peer) = pair(&driver);
        let mut link = Stream::Ring(link);
        peer.write_all(b"before").expect("sent");
        assert_eq!(receive(&mut link, 100).await.expect("bytes"), b"before");
        let mut waiting = Box::pin(receive(&mut link, 100));
        assert!(once(|context| waiting.as_mut().poll(context)).await.is_pending());
        driver.fail();
        assert!(current().is_none(), "it is offered to others");
        peer.write_all(b"after").expect("sent");
        assert_eq!(waiting.as_mut().await.expect("bytes"), b"after");
        drop(waiting);
        send(&mut link, &mut queue_of(b"answer")).await.expect("sent");
        let mut answer = [0; 6];
        peer.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"answer");
    });
}

#[test]
fn children_do_not_inherit_it() {
    on_ring(async |driver| {
        let (mut link, mut peer) = pair(&driver);
        let listed = Command::new("ls").args(["-l", "/proc/self/fd"]).output().expect("ls");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains(" -> ") && !listed.contains("io_uring"), "{listed}");
        peer.write_all(b"still here").expect("sent");
        assert_eq!(receive(&mut link, 100).await.expect("bytes"), b"still here");
    });
}

#[test]
fn a_child_that_lives_on_holds_nothing_open() {
    on_ring(async |driver| {
        let (mut link, mut peer) = pair(&driver);
        let mut waiting = Box::pin(async move {
            let heard = receive(&mut link, 100).await;
            (link, heard)
        });
        assert!(once(|context| waiting.as_mut().poll(context)).await.is_pending());
        hear().await;
        // Started while an operation is in the kernel, it waits for its input as long as it has one.
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        peer.write_all(b"word").expect("sent");
        let (mut link, heard) = waiting.await;
        assert_eq!(heard.expect("bytes"), b"word");
        send(&mut link, &mut queue_of(b"answer")).await.expect("sent");
        drop(link);
        hear().await;
        let mut all = Vec::new();
        peer.read_to_end(&mut all).expect("an end");
        assert_eq!(all, b"answer");
        drop(child.stdin.take());
        assert!(child.wait().expect("an end").success());
    });
}

#[test]
fn without_memory_to_lock_there_is_a_ring_or_the_reason() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    if !in_own_process("ring::tests::without_memory_to_lock_there_is_a_ring_or_the_reason") {
        return;
    }
    let before = trouble();
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Memlock, none).expect("a limit");
    // Who may lock memory without limit is not asked for it.
    let mut rights = capabilities(None).expect("rights");
    rights.effective.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, rights).expect("fewer rights");
    match trouble() {
        // Since Linux 5.12 rings are counted as any memory.
        None => assert_eq!(before, None),
        Some(told) => assert!(before.is_some() || told.contains("LimitMEMLOCK"), "{told}"),
    }
}

#[test]
fn without_descriptors_there_is_a_reason_instead_of_a_ring() {
    if let Some(trouble) = trouble() {
        println!("not tested, no io_uring: {trouble}");
        return;
    }
    if in_own_process("ring::tests::without_descriptors_there_is_a_reason_instead_of_a_ring") {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // Enough for the runtime and not for the ring; then for everything.
        let open = std::fs::read_dir("/proc/self/fd").expect("a list").count() as u64;
        for (room, works) in [(0, false), (3, false), (4, false), (64, true)] {
            let current = Some(open + room);
            setrlimit(Resource::Nofile, Rlimit { current, ..limit }).expect("a limit");
            let told = trouble();
            assert_eq!(told.is_none(), works, "with room for {room}: {told:?}");
        }
    }
}
