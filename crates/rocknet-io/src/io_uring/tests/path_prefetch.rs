//! Names that are looked up ahead.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};

use rustix::fs::ResolveFlags;

use super::on_ring;
use crate::confined_fs::Root;
use crate::io_uring::prefetch_path;
use crate::isolated_test::in_own_process;

#[test]
fn what_is_opened_while_the_ring_ends_is_closed() {
    if !in_own_process("io_uring::tests::path_prefetch::what_is_opened_while_the_ring_ends_is_closed") {
        return;
    }
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("a list").count();
    let root = Arc::new(Root::open("/").expect("a folder"));
    // What the first runtime of a process opens for all.
    on_ring(async |_| {});
    let before = descriptors();
    for round in 0..100 {
        on_ring(async |driver| {
            // What is asked for below /proc a thread of the kernel looks for.
            let names = (0..50).map(|_| prefetch_path(root.clone(), b"proc/self/status", ResolveFlags::BENEATH));
            let mut names: Vec<_> = names.map(|names| Box::pin(names.expect("room"))).collect();
            for name in &mut names {
                let _ = name.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            driver.turn(false);
            // By the failure of the ring, or with its runtime.
            if round % 2 == 0 {
                driver.fail();
            }
        });
        assert_eq!(descriptors(), before, "in round {round}");
    }
}
