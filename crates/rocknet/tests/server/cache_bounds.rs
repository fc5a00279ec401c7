//! Exact limits of the cache: the size of the largest cached file, and the bytes of all entries.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rocknet::blocking::Pool;
use rocknet::files::cache::{FileCache, weight};
use rocknet::files::entry::{Content, Entry, Found};
use rocknet::files::tree::Tree;
use rocknet_config::model::{Fallback, Settings};
use tokio::runtime::{Builder, Runtime};

use super::support::Folder;

/// A cache of one tree, used on the thread of the test.
struct TestCache {
    cache: FileCache,
    tree: Arc<Tree>,
    pool: Pool,
    runtime: Runtime,
}

impl TestCache {
    /// `memory`: limit of the cache in bytes. `max_file`: size in bytes of the largest file that is kept in memory.
    fn new(root: &Path, memory: u64, max_file: u64) -> TestCache {
        TestCache::with(root, memory, max_file, Settings::default())
    }

    fn with(root: &Path, memory: u64, max_file: u64, settings: Settings) -> TestCache {
        let settings = Settings {
            root: Some(root.to_owned()),
            ..settings
        };
        let pool = Pool::new(2);
        TestCache {
            cache: FileCache::start(memory, pool.clone()).expect("a cache"),
            tree: Arc::new(Tree::standalone(&settings, max_file).expect("a tree")),
            pool,
            runtime: Builder::new_current_thread().build().expect("a runtime"),
        }
    }

    fn look_up(&self, path: &str) -> Arc<Entry> {
        let path = path.into();
        let found = self.cache.look_up(&self.tree, &path);

        self.runtime.block_on(found).expect("an entry")
    }

    /// Waits until the cache thread has evicted entries.
    fn settle(&self) {
        self.runtime.block_on(self.cache.flush());
    }
}

impl Drop for TestCache {
    fn drop(&mut self) {
        self.pool.stop(Duration::from_secs(1));
    }
}

#[test]
fn files_up_to_the_size_limit_are_kept_in_memory() {
    const MAX_FILE: u64 = 1000;
    let folder = Folder::with(&[]);
    for size in [MAX_FILE, MAX_FILE + 1] {
        folder.write(&format!("{size}.bin"), vec![1; size as usize]);
        let cache = TestCache::new(&folder.path(""), 1 << 20, MAX_FILE);
        let entry = cache.look_up(&format!("/{size}.bin"));
        assert_eq!(entry.descriptors() > 0, size > MAX_FILE, "{size} bytes");
    }
}

#[test]
fn entries_are_evicted_only_beyond_the_memory_limit() {
    let folder = Folder::with(&[("a.bin", "same size"), ("b.bin", "same size")]);
    let both = {
        let cache = TestCache::new(&folder.path(""), 1 << 20, 1000);
        ["/a.bin", "/b.bin"]
            .map(|path| weight(path, &cache.look_up(path)))
            .iter()
            .sum::<u64>()
    };
    for (memory, is_evicted) in [(both, false), (both - 1, true)] {
        let cache = TestCache::new(&folder.path(""), memory, 1000);
        let first = cache.look_up("/a.bin");
        cache.look_up("/b.bin");
        cache.settle();
        assert_eq!(
            first.is_retired(),
            is_evicted,
            "{memory} bytes for two entries of {both}"
        );
    }
}

/// Returns the status of an entry and the address of its body in memory.
fn content(entry: &Entry) -> (u16, *const u8) {
    let Found::Asset(asset) = &entry.found else {
        panic!("the entry has no file")
    };
    match &asset.plain.content {
        Content::Memory(bytes) => (asset.status.code(), bytes.as_ptr()),
        Content::File(_) => panic!("an open file"),
    }
}

#[test]
fn paths_of_missing_files_share_one_body() {
    let folder = Folder::with(&[("404.html", "not here"), ("index.html", "the page")]);
    let plain = Settings::default();
    let rows = [
        (plain.clone(), 404),
        (
            Settings {
                errors: [(404, "/404.html".to_owned())].into(),
                ..plain.clone()
            },
            404,
        ),
        (
            Settings {
                fallback: Fallback::Path("/index.html".to_owned()),
                ..plain
            },
            200,
        ),
    ];
    for (settings, status) in rows {
        let cache = TestCache::with(&folder.path(""), 1 << 20, 1000, settings);
        let (one, two) = (cache.look_up("/nowhere"), cache.look_up("/elsewhere"));
        assert_eq!(content(&one).0, status);
        assert_eq!(
            content(&one),
            content(&two),
            "both paths must share one body, status {status}"
        );
    }
    // An error page is read again after it has changed.
    let settings = Settings {
        errors: [(404, "/404.html".to_owned())].into(),
        ..Settings::default()
    };
    let cache = TestCache::with(&folder.path(""), 1 << 20, 1000, settings);
    let old = cache.look_up("/nowhere");
    folder.write("404.html", "not here either");
    let new = cache.look_up("/elsewhere");
    assert_ne!(content(&old), content(&new));
}
