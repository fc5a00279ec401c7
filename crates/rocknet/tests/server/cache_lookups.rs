//! Lookups of the file cache on disk: a worker makes them itself if the kernel has the data in memory or io_uring reads
//! it. Otherwise a thread of the pool makes them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

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

/// A file cache of one folder, with a pool of one thread to count its jobs.
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
        // The first lookup uses a thread of the pool to open the root folder. It is made before the tests count jobs.
        cache.look_up("/");
        cache
    }

    fn look_up(&self, path: &str) -> Arc<Entry> {
        let path = path.into();
        let found = self.cache.look_up(&self.tree, &path);
        self.runtime.block_on(found).expect("an entry")
    }

    /// Returns the number of jobs that the pool has received, finished or not.
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
            Content::File(_) => panic!("the file is not cached in memory"),
        },
        _ => panic!("no sendable file was found"),
    }
}

/// Time for attempts to drop pages, because the kernel keeps pages that are in use.
const DROP_TIME: Duration = Duration::from_secs(5);

/// Drops a file from the page cache. Returns false if the file system keeps its pages, or cannot report whether they
/// are in memory.
fn drop_pages(path: &Path) -> bool {
    let began = Instant::now();
    while !try_to_drop_pages(path) {
        if began.elapsed() > DROP_TIME {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// Drops the pages of a file once. Returns true if they are no longer in memory.
fn try_to_drop_pages(path: &Path) -> bool {
    let file = File::open(path).expect("a file");
    file.sync_all().expect("a disk");
    fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
    let length = file.metadata().expect("it is there").len();
    let is_dropped = file::read_at_most_resident(&file, length as usize)
        .expect("a read")
        .is_none();
    // The read may have started a read-ahead of the kernel.
    fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
    is_dropped
}

/// Number of attempts of a test.
const TRIES: usize = 20;
/// Maximum number of these attempts that use a thread: while names change in the same folder, the kernel can fail to
/// find a name in memory.
const MAX_WITH_THREAD: usize = 1;

/// Asserts that lookups use no thread, except in [`MAX_WITH_THREAD`] attempts. `attempt` returns the number of jobs
/// that the pool received.
#[track_caller]
fn assert_no_thread(attempt: impl FnMut() -> u64) {
    let jobs: Vec<u64> = std::iter::repeat_with(attempt).take(TRIES).collect();
    let with_thread = jobs.iter().filter(|&&jobs| jobs > 0).count();
    assert!(
        with_thread <= MAX_WITH_THREAD,
        "jobs of the pool in each attempt: {jobs:?}"
    );
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
fn files_in_memory_are_read_without_a_thread() {
    let folder = folder();
    // Each name is looked up once, so that the kernel has it in memory.
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
    if !drop_pages(&folder.path("sub/a.txt")) {
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
    let drop_all = || {
        let names = ["sub/a.txt", "long.txt", "style.css", "style.css.br"];
        names.iter().all(|name| drop_pages(&folder.path(name)))
    };
    if !drop_all() {
        skip(Need::EvictableFiles, "the temporary folder keeps all in memory");
        return;
    }
    let mut number = 0;
    let attempt = || {
        let cache = TestCache::new(&folder.path(""), Runtime::with_io_uring(64).expect("a ring"));
        let before = cache.jobs();
        assert!(
            drop_all(),
            "the file system keeps pages in memory that it dropped before"
        );
        assert_eq!(content(&cache.look_up("/sub/a.txt")), b"text");
        assert_eq!(content(&cache.look_up("/long.txt")), long);
        let styled = cache.look_up("/style.css");
        assert!(matches!(&styled.found, Found::Asset(asset) if asset.has_precompressed));
        // A name that was never looked up is not in memory either.
        number += 1;
        let missing = cache.look_up(&format!("/never/named/before{number}.html"));
        assert!(matches!(&missing.found, Found::Asset(asset) if asset.status.code() == 404));
        cache.jobs() - before
    };
    assert_no_thread(attempt);
}
