//! Others move directories and links about while a path is looked up; nothing outside the root may be seen.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags};

use super::Symlinks;
use super::tests::{Place, outcome};

/// Opens `paths` while another thread moves things between two states; each opening gives "inside" or is refused.
fn race(place: &Place, paths: &[&str], swap: impl Fn() + Sync) {
    /// Enough that, when the walk is made to follow links, some openings see the outside every time.
    const OPENINGS: usize = 3_000;
    for root in place.both() {
        for path in paths {
            let stop = AtomicBool::new(false);
            let mut seen = std::collections::BTreeMap::new();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        swap();
                        swap();
                    }
                });
                for _ in 0..OPENINGS {
                    *seen
                        .entry(outcome(root.open_file(path.as_bytes(), Symlinks::Inside)))
                        .or_insert(0) += 1;
                }
                stop.store(true, Ordering::Relaxed);
            });
            let allowed = ["inside", "Escapes", "NotFound"];
            assert!(
                seen.keys().all(|outcome| allowed.contains(&outcome.as_str())),
                "{path} gave {seen:?} by {:?}",
                root.lookup
            );
        }
    }
}

#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    let place = Place::new();
    fs::create_dir(place.root().join("swapped")).unwrap();
    fs::write(place.root().join("swapped/secret"), "inside").unwrap();
    place.link("spare", place.outside());
    place.link("by_link", "sub/../swapped/secret");
    place.link("by_absolute_link", place.root().join("swapped/secret"));
    let (swapped, spare) = (place.root().join("swapped"), place.root().join("spare"));
    race(&place, &["swapped/secret", "by_link", "by_absolute_link"], || {
        rustix::fs::renameat_with(CWD, &swapped, CWD, &spare, RenameFlags::EXCHANGE).unwrap();
    });
}

#[test]
fn a_directory_moved_out_takes_no_one_along() {
    let place = Place::new();
    fs::create_dir_all(place.root().join("one/two")).unwrap();
    fs::create_dir_all(place.outside().join("one/two")).unwrap();
    fs::write(place.root().join("secret"), "inside").unwrap();
    for parent in [place.root(), place.outside()] {
        symlink("../../secret", parent.join("one/two/up")).unwrap();
    }
    place.link("absolute", place.root().join("one/two/up"));
    let (here, there) = (place.root().join("one/two"), place.outside().join("one/two"));
    race(&place, &["one/two/up", "absolute"], || {
        rustix::fs::renameat_with(CWD, &here, CWD, &there, RenameFlags::EXCHANGE).unwrap();
    });
}
