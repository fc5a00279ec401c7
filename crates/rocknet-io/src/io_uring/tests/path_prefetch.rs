//! Tests of path prefetch.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};

use rustix::fs::ResolveFlags;

use super::on_ring;
use crate::confined_fs::Root;
use crate::io_uring::prefetch_path;
use crate::isolated_test::in_own_process;

#[test]
fn descriptors_opened_while_the_ring_ends_are_closed() {
    if !in_own_process("io_uring::tests::path_prefetch::descriptors_opened_while_the_ring_ends_are_closed") {
        return;
    }
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("a list").count();
    let root = Arc::new(Root::open("/").expect("a folder"));
    // Opens the descriptors that the first runtime of a process keeps open.
    on_ring(async |_| {});
    let before = descriptors();
    for round in 0..100 {
        on_ring(async |driver| {
            // A kernel thread looks up paths below /proc, so lookups are still in progress when the ring ends.
            let lookups = (0..50).map(|_| prefetch_path(root.clone(), b"proc/self/status", ResolveFlags::BENEATH));
            let mut lookups: Vec<_> = lookups.map(|lookup| Box::pin(lookup.expect("room"))).collect();
            for lookup in &mut lookups {
                let _ = lookup.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            driver.turn();
            // The ring ends by a failure, or together with its runtime.
            if round % 2 == 0 {
                driver.fail();
            }
        });
        assert_eq!(descriptors(), before, "in round {round}");
    }
}
