//! Tests of races: while directories and links are exchanged, no lookup may open anything outside the root.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags};

use super::Symlinks;
use super::tests::{TestTree, outcome};

/// Opens `paths` while another thread calls `swap`, first with the lookup by the kernel and then with the walk. Each
/// attempt must open a file with the content `inside`, or fail with `Escapes` or `NotFound`.
fn race(tree: &TestTree, paths: &[&str], swap: impl Fn() + Sync) {
    /// Number of attempts for each path, high enough that a faulty walk that follows links opens an outside file in
    /// every run of the test.
    const ATTEMPTS: usize = 3_000;
    for root in tree.with_both_lookups() {
        for path in paths {
            let stop = AtomicBool::new(false);
            let mut seen = std::collections::BTreeMap::new();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        // The second call restores the original names.
                        swap();
                        swap();
                    }
                });
                for _ in 0..ATTEMPTS {
                    *seen
                        .entry(outcome(root.open_file(path.as_bytes(), Symlinks::Inside)))
                        .or_insert(0) += 1;
                }
                stop.store(true, Ordering::Relaxed);
            });
            let allowed = ["inside", "Escapes", "NotFound"];
            assert!(
                seen.keys().all(|outcome| allowed.contains(&outcome.as_str())),
                "{path} had the outcomes {seen:?} with {:?}",
                root.lookup
            );
        }
    }
}

#[test]
fn a_directory_exchanged_for_a_link_opens_no_way_out() {
    let tree = TestTree::new();
    fs::create_dir(tree.root().join("swapped")).unwrap();
    fs::write(tree.root().join("swapped/secret"), "inside").unwrap();
    tree.link("spare", tree.outside());
    tree.link("by_link", "sub/../swapped/secret");
    tree.link("by_absolute_link", tree.root().join("swapped/secret"));
    let (swapped, spare) = (tree.root().join("swapped"), tree.root().join("spare"));
    race(&tree, &["swapped/secret", "by_link", "by_absolute_link"], || {
        rustix::fs::renameat_with(CWD, &swapped, CWD, &spare, RenameFlags::EXCHANGE).unwrap();
    });
}

#[test]
fn a_directory_moved_out_opens_no_way_out() {
    let tree = TestTree::new();
    fs::create_dir_all(tree.root().join("one/two")).unwrap();
    fs::create_dir_all(tree.outside().join("one/two")).unwrap();
    fs::write(tree.root().join("secret"), "inside").unwrap();
    for parent in [tree.root(), tree.outside()] {
        symlink("../../secret", parent.join("one/two/up")).unwrap();
    }
    tree.link("absolute", tree.root().join("one/two/up"));
    let (here, there) = (tree.root().join("one/two"), tree.outside().join("one/two"));
    race(&tree, &["one/two/up", "absolute"], || {
        rustix::fs::renameat_with(CWD, &here, CWD, &there, RenameFlags::EXCHANGE).unwrap();
    });
}
