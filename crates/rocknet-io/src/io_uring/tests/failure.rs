//! Tests of rings that fail or are unavailable.

use std::future::Future;
use std::io::{Read, Write};

use rocknet_testing::{Need, skip};

use super::{on_ring, once, pair, queue_of, receive, send};
use crate::io_uring::current;
use crate::isolated_test::in_own_process;
use crate::runtime::io_uring_unavailable;
use crate::stream::Stream;

#[test]
fn after_a_failure_connections_continue_with_epoll() {
    on_ring(async |driver| {
        let (link, mut peer) = pair(&driver);
        let mut link = Stream::IoUring(link);
        peer.write_all(b"before").expect("sent");
        assert_eq!(receive(&mut link, 100).await.expect("bytes"), b"before");
        let mut waiting = Box::pin(receive(&mut link, 100));
        assert!(once(|context| waiting.as_mut().poll(context)).await.is_pending());
        driver.fail();
        assert!(current().is_none(), "the failed ring is still offered");
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
fn a_low_memlock_limit_has_no_effect_or_is_given_as_the_reason() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    if !in_own_process("io_uring::tests::failure::a_low_memlock_limit_has_no_effect_or_is_given_as_the_reason") {
        return;
    }
    // Reason why io_uring is unavailable even without the limit, if any.
    let before = io_uring_unavailable();
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Memlock, none).expect("a limit");
    // The limit does not apply to a process with this capability.
    let mut rights = capabilities(None).expect("rights");
    rights.effective.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, rights).expect("fewer rights");
    match io_uring_unavailable() {
        // Since Linux 5.12 rings are charged to the memory cgroup.
        None => assert_eq!(before, None),
        Some(reason) => assert!(before.is_some() || reason.contains("LimitMEMLOCK"), "{reason}"),
    }
}

#[test]
fn without_descriptors_io_uring_is_unavailable() {
    if let Some(reason) = io_uring_unavailable() {
        skip(Need::IoUring, &reason);
        return;
    }
    if in_own_process("io_uring::tests::failure::without_descriptors_io_uring_is_unavailable") {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let open = std::fs::read_dir("/proc/self/fd").expect("a list").count() as u64;
        // Number of free descriptors, not counting the one that listed `/proc/self/fd`, and whether io_uring is
        // available. Three or four suffice for the runtime but not for the ring, and 64 suffice for both.
        for (room, works) in [(0, false), (3, false), (4, false), (64, true)] {
            let current = Some(open + room);
            setrlimit(Resource::Nofile, Rlimit { current, ..limit }).expect("a limit");
            let reason = io_uring_unavailable();
            assert_eq!(reason.is_none(), works, "with room for {room}: {reason:?}");
        }
    }
}
