//! Disk lookups of the file cache: a worker does those that the kernel can serve from memory or its ring completes; a
//! thread of the pool does the rest.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rocknet::blocking::Pool;
use rocknet::files::cache::FileCache;
use rocknet::files::entry::{Content, Entry, Found};
use rocknet::files::tree::Tree;
use rocknet_config::model::Settings;
use rocknet_io::file;
use rocknet_io::runtime::{Runtime, io_uring_unavailable};
use rocknet_testing::{Need, skip};
use rustix::fs::{Advice, fadvise};

use super::support::Folder;

struct TestCache {
    cache: FileCache,
    tree: Arc<Tree>,
    pool: Pool,
    runtime: Runtime,
}

impl TestCache {
    fn new(root: &Path, runtime: Runtime) -> TestCache {
        let settings = Settings {
            root: Some(root.to_owned()),
            compress: true,
            ..Settings::default()
        };
        let pool = Pool::new(1);
        let cache = TestCache {
            cache: FileCache::start(1 << 30, pool.clone()).expect("a cache"),
            tree: Arc::new(Tree::standalone(&settings, 1 << 20).expect("a tree")),
            pool,
            runtime,
        };
        // The folder itself is opened by a thread at the first lookup.
        cache.look_up("/");
        cache
    }

    fn look_up(&self, path: &str) -> Arc<Entry> {
        let path = path.into();
        let found = self.cache.look_up(&self.tree, &path);
        self.runtime.block_on(found).expect("an entry")
    }

    /// Jobs that were given to threads, finished or not.
    fn jobs(&self) -> u64 {
        let counts = self.pool.stats().by_priority;
        let all = counts
            .iter()
            .map(|counts| counts.queued as u64 + counts.running as u64 + counts.done);
        all.sum()
    }
}

impl Drop for TestCache {
    fn drop(&mut self) {
        self.pool.stop(Duration::from_secs(1));
    }
}

fn content(entry: &Entry) -> &[u8] {
    match &entry.found {
        Found::Asset(asset) => match &asset.plain.content {
            Content::Memory(bytes) => bytes,
            Content::File(_) => panic!("it is no small file"),
        },
        _ => panic!("no sendable file was found"),
    }
}

/// Attempts to drop pages, because the kernel keeps those in use at that moment.
const FORGETS: usize = 100;

/// Drops the file's pages from the kernel's memory. Returns false if the file system keeps them or cannot report it.
fn forget(path: &Path) -> bool {
    (0..FORGETS).any(|_| try_to_forget(path))
}

fn try_to_forget(path: &Path) -> bool {
    let file = File::open(path).expect("a file");
    file.sync_all().expect("a disk");
    fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
    let length = file.metadata().expect("it is there").len();
    let is_forgotten = file::read_at_most_resident(&file, length as usize)
        .expect("a read")
        .is_none();
    // The lookup may have made the kernel read ahead.
    fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
    is_forgotten
}

/// Attempts that must need no thread. In some of them one may be needed all the same: while names change nearby, the
/// kernel may be unable to tell what it has in memory.
const TRIES: usize = 20;
const EXCUSED: usize = 1;

/// Asserts that lookups need no thread. `attempt` returns the number of jobs given to threads.
#[track_caller]
fn assert_no_thread(attempt: impl FnMut() -> u64) {
    let jobs: Vec<u64> = std::iter::repeat_with(attempt).take(TRIES).collect();
    let with_thread = jobs.iter().filter(|&&jobs| jobs > 0).count();
    assert!(with_thread <= EXCUSED, "jobs of threads: {jobs:?}");
}

const PAGE: &str = "<!doctype html><title>A page</title>";

fn folder() -> Folder {
    Folder::with(&[
        ("index.html", PAGE),
        ("sub/a.txt", "text"),
        ("style.css", "p{}"),
        ("style.css.br", "no real brotli"),
    ])
}

#[test]
fn files_in_memory_need_no_thread() {
    let folder = folder();
    // Looks each name up once, so that the kernel knows that it exists or not.
    for name in [
        "sub/a.txt",
        "sub/a.txt.br",
        "sub/a.txt.zst",
        "sub/a.txt.gz",
        "style.css.zst",
        "style.css.gz",
        "none",
    ] {
        let _ = std::fs::metadata(folder.path(name));
    }
    let attempt = || {
        let cache = TestCache::new(&folder.path(""), Runtime::new(64).expect("a runtime"));
        let before = cache.jobs();
        assert_eq!(content(&cache.look_up("/sub/a.txt")), b"text");
        assert!(matches!(cache.look_up("/sub").found, Found::WithoutSlash));
        let styled = cache.look_up("/style.css");
        assert_eq!(content(&styled), b"p{}");
        assert!(matches!(&styled.found, Found::Asset(asset) if asset.has_precompressed));
        let missing = cache.look_up("/none");
        assert!(matches!(&missing.found, Found::Asset(asset) if asset.status.code() == 404));
        cache.jobs() - before
    };
    assert_no_thread(attempt);
}

#[test]
fn files_on_disk_are_read_by_a_thread_without_io_uring() {
    let folder = folder();
    let cache = TestCache::new(&folder.path(""), Runtime::new(64).expect("a runtime"));
    if !forget(&folder.path("sub/a.txt")) {
        skip(Need::EvictableFiles, "the temporary folder keeps all in memory");
        return;
    }
    let before = cache.jobs();
    assert_eq!(content(&cache.look_up("/sub/a.txt")), b"text");
    assert_eq!(cache.jobs(), before + 1);
}

#[test]
fn files_on_disk_are_read_by_io_uring() {
    if let Some(trouble) = io_uring_unavailable() {
        skip(Need::IoUring, &trouble);
        return;
    }
    let folder = folder();
    let long = vec![b'x'; 500_000];
    std::fs::write(folder.path("long.txt"), &long).expect("a file");
    let is_forgotten = || {
        let names = ["sub/a.txt", "long.txt", "style.css", "style.css.br"];
        names.iter().all(|name| forget(&folder.path(name)))
    };
    if !is_forgotten() {
        skip(Need::EvictableFiles, "the temporary folder keeps all in memory");
        return;
    }
    let mut number = 0;
    let attempt = || {
        let cache = TestCache::new(&folder.path(""), Runtime::with_io_uring(64).expect("a ring"));
        let before = cache.jobs();
        assert!(is_forgotten(), "the file system keeps in memory what it dropped before");
        assert_eq!(content(&cache.look_up("/sub/a.txt")), b"text");
        assert_eq!(content(&cache.look_up("/long.txt")), long);
        let styled = cache.look_up("/style.css");
        assert!(matches!(&styled.found, Found::Asset(asset) if asset.has_precompressed));
        // Names never looked up before are no more in memory than file contents are.
        number += 1;
        let missing = cache.look_up(&format!("/never/named/before{number}.html"));
        assert!(matches!(&missing.found, Found::Asset(asset) if asset.status.code() == 404));
        cache.jobs() - before
    };
    assert_no_thread(attempt);
}
