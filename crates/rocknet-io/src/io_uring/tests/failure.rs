//! Rings that fail, or cannot be had.

use std::future::Future;
use std::io::{Read, Write};

use rocknet_testing::{Need, skip};

use super::{on_ring, once, pair, queue_of, receive, send};
use crate::io_uring::current;
use crate::isolated_test::in_own_process;
use crate::runtime::io_uring_unavailable;
use crate::stream::Stream;

#[test]
fn when_the_ring_fails_connections_go_on_without_it() {
    on_ring(async |driver| {
        let (link, mut peer) = pair(&driver);
        let mut link = Stream::IoUring(link);
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
fn without_memory_to_lock_there_is_a_ring_or_the_reason() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    if !in_own_process("io_uring::tests::failure::without_memory_to_lock_there_is_a_ring_or_the_reason") {
        return;
    }
    let before = io_uring_unavailable();
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Memlock, none).expect("a limit");
    // Who may lock memory without limit is not asked for it.
    let mut rights = capabilities(None).expect("rights");
    rights.effective.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, rights).expect("fewer rights");
    match io_uring_unavailable() {
        // Since Linux 5.12 rings are counted as any memory.
        None => assert_eq!(before, None),
        Some(told) => assert!(before.is_some() || told.contains("LimitMEMLOCK"), "{told}"),
    }
}

#[test]
fn without_descriptors_there_is_a_reason_instead_of_a_ring() {
    if let Some(reason) = io_uring_unavailable() {
        skip(Need::IoUring, &reason);
        return;
    }
    if in_own_process("io_uring::tests::failure::without_descriptors_there_is_a_reason_instead_of_a_ring") {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // Enough for the runtime and not for the ring; then for everything.
        let open = std::fs::read_dir("/proc/self/fd").expect("a list").count() as u64;
        for (room, works) in [(0, false), (3, false), (4, false), (64, true)] {
            let current = Some(open + room);
            setrlimit(Resource::Nofile, Rlimit { current, ..limit }).expect("a limit");
            let told = io_uring_unavailable();
            assert_eq!(told.is_none(), works, "with room for {room}: {told:?}");
        }
    }
}
