//! The file cache: changes on disk take effect within a second, and memory and open files are bounded.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rocknet::blocking::Pool;
use rocknet::files::cache::FileCache;
use rocknet::files::entry::Found;
use rocknet::files::tree::Tree;
use rocknet_config::model::Settings;

use super::support::client::request;
use super::support::{DEADLINE, Folder, Running};

/// Documented bound: a request that is sent this long after a change gets the new state.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// A request that takes this long shows that a busy machine did not run the server, so its result is ignored.
const STALL: Duration = Duration::from_millis(100);

/// Sends requests until `is_new` returns true. Fails if a request sent a second after the change gets the old response.
#[track_caller]
fn wait_until_new(what: &str, mut is_new: impl FnMut() -> bool) {
    let changed = Instant::now();
    loop {
        let sent_at = Instant::now();
        if is_new() {
            return;
        }
        let is_broken = sent_at - changed >= MAX_DELAY && sent_at.elapsed() < STALL;
        assert!(
            !is_broken && changed.elapsed() < DEADLINE,
            "{what}: still the old response after {:?}",
            sent_at - changed
        );
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Requests `path`, makes a change, and requests `path` until the response is the new one.
#[track_caller]
fn check(what: &str, path: &str, before: (u16, &str), change: &Change, after: (u16, &str)) {
    let folder = Folder::with(&[
        ("www/a.txt", "first"),
        ("www/folder/b.txt", "first"),
        ("www/large.txt", &"1".repeat(100_000)),
        ("www/404.txt", "sorry"),
        ("other/b.txt", "second"),
        ("other-www/a.txt", "second"),
    ]);
    folder.link("www/link.txt", "a.txt");
    let server = Running::site(folder, "index = [\"b.txt\"]\nerrors = { 404 = \"/404.txt\" }\n");
    let mut client = server.connect();
    let mut fetch = || {
        let response = client.get(path);
        let start = response.text().chars().take(6).collect::<String>();
        let text = if response.status == 200 { start } else { String::new() };
        (response.status, text)
    };
    for _ in 0..3 {
        let (status, text) = fetch();
        assert_eq!((status, &*text), before, "{what}: before");
    }
    change(&server.folder);
    wait_until_new(what, || {
        let (status, text) = fetch();
        let is_new = (status, &*text) == after;
        // If the change has several steps, a request between two of them can get a 404.
        assert!(
            is_new || (status, &*text) == before || status == 404,
            "{what}: neither old nor new: {status} {text}"
        );
        is_new
    });
}

/// Function that changes the folder.
type Change = fn(&Folder);
/// Name of the row, request path, status and start of the body before the change, the change, and status and start of
/// the body after it.
type Row = (
    &'static str,
    &'static str,
    (u16, &'static str),
    Change,
    (u16, &'static str),
);

/// Runs all rows in parallel, because each row mostly waits for up to a second.
#[track_caller]
fn check_all(rows: &[Row]) {
    std::thread::scope(|scope| {
        for (what, path, before, change, after) in rows {
            scope.spawn(move || check(what, path, *before, change, *after));
        }
    });
}

#[test]
fn changed_files_are_served() {
    check_all(&[
        (
            "content",
            "/a.txt",
            (200, "first"),
            |f| f.write("www/a.txt", "second"),
            (200, "second"),
        ),
        (
            "large",
            "/large.txt",
            (200, "111111"),
            |f| f.write("www/large.txt", "2".repeat(100_000)),
            (200, "222222"),
        ),
        (
            "replaced by another file",
            "/a.txt",
            (200, "first"),
            |f| replace_file(f, "second", "www/a.txt"),
            (200, "second"),
        ),
        (
            "shorter",
            "/large.txt",
            (200, "111111"),
            |f| replace_file(f, "x", "www/large.txt"),
            (200, "x"),
        ),
        (
            "through a link",
            "/link.txt",
            (200, "first"),
            |f| f.write("www/a.txt", "second"),
            (200, "second"),
        ),
        ("another link", "/link.txt", (200, "first"), relink, (200, "second")),
    ]);
}

/// Writes a file under another name and renames it to `name`.
fn replace_file(folder: &Folder, content: &str, name: &str) {
    folder.write("new", content);
    folder.rename("new", name);
}

fn relink(folder: &Folder) {
    folder.write("www/folder/b.txt", "second");
    folder.link("new", "folder/b.txt");
    folder.rename("new", "www/link.txt");
}

#[test]
fn created_and_removed_files_take_effect() {
    check_all(&[
        (
            "deleted",
            "/a.txt",
            (200, "first"),
            |f| f.remove("www/a.txt"),
            (404, ""),
        ),
        (
            "deleted, large",
            "/large.txt",
            (200, "111111"),
            |f| f.remove("www/large.txt"),
            (404, ""),
        ),
        (
            "created",
            "/new.txt",
            (404, ""),
            |f| f.write("www/new.txt", "second"),
            (200, "second"),
        ),
        (
            "created in a new folder",
            "/new/a.txt",
            (404, ""),
            |f| f.write("www/new/a.txt", "second"),
            (200, "second"),
        ),
        (
            "an index that is created",
            "/new/",
            (404, ""),
            |f| f.write("www/new/b.txt", "second"),
            (200, "second"),
        ),
        (
            "an index that is removed",
            "/folder/",
            (200, "first"),
            |f| f.remove("www/folder/b.txt"),
            (404, ""),
        ),
        (
            "a folder that is created",
            "/new",
            (404, ""),
            |f| f.write("www/new/b.txt", "second"),
            (308, ""),
        ),
        (
            "an error page that becomes a file",
            "/new.txt",
            (404, ""),
            page_to_file,
            (200, "sorry"),
        ),
        (
            "a file that becomes a folder",
            "/a.txt",
            (200, "first"),
            to_folder,
            (308, ""),
        ),
    ]);
}

fn page_to_file(folder: &Folder) {
    folder.rename("www/404.txt", "www/new.txt");
}

fn to_folder(folder: &Folder) {
    folder.remove("www/a.txt");
    folder.write("www/a.txt/b.txt", "second");
}

#[test]
fn replaced_folders_take_effect() {
    check_all(&[
        (
            "a folder of the site",
            "/folder/b.txt",
            (200, "first"),
            replace_folder,
            (200, "second"),
        ),
        (
            "the folder of the site",
            "/a.txt",
            (200, "first"),
            replace_root,
            (200, "second"),
        ),
        (
            "the folder of the site, for a file that was missing",
            "/new.txt",
            (404, ""),
            replace_root,
            (200, "second"),
        ),
        (
            "the folder of the site, for a file that was removed",
            "/a.txt",
            (200, "first"),
            |f| f.rename("www", "gone"),
            (404, ""),
        ),
    ]);
}

fn replace_folder(folder: &Folder) {
    folder.rename("www/folder", "www/gone");
    folder.rename("other", "www/folder");
}

fn replace_root(folder: &Folder) {
    folder.write("other-www/new.txt", "second");
    folder.rename("www", "gone");
    folder.rename("other-www", "www");
}

/// The length in the response head can no longer be sent, so the response must be cut. Later requests get the truncated
/// file.
#[test]
fn a_file_truncated_in_place_is_cut_and_then_served_shorter() {
    let server = Running::site(Folder::with(&[("www/large.txt", &"1".repeat(100_000))]), "");
    assert_eq!(server.get("/large.txt").body.len(), 100_000);
    server.folder.write("www/large.txt", "22");
    wait_until_new("the length", || {
        let mut client = server.connect();
        client.send(request("GET /large.txt", &["Connection: close"]));
        let head = client.head();
        let content = client.rest();
        if head.contains("Content-Length: 2\r\n") {
            assert_eq!(content, b"22");
            return true;
        }
        assert!(
            head.contains("Content-Length: 100000\r\n") && content.len() < 100_000,
            "filled up: {head}"
        );
        false
    });
}

#[test]
fn precompressed_files_are_used_only_if_they_match_the_file() {
    let folder = Folder::with(&[("www/a.txt", &"first ".repeat(1000))]);
    let server = Running::site(folder, "");
    let mut client = server.connect();
    let mut fetch = || client.fetch("GET /a.txt", &["Accept-Encoding: gzip"]);
    let first = fetch().field("ETag").map(str::to_owned);
    server.folder.write("www/a.txt.gz", "beside");
    wait_until_new("the precompressed file", || fetch().text() == "beside");
    server.folder.remove("www/a.txt.gz");
    server.folder.write("www/a.txt", "second ".repeat(1000));
    wait_until_new("no precompressed file", || fetch().text() != "beside");
    let response = fetch();
    response.expect("after all", 200, &["Content-Encoding: gzip", "Vary: Accept-Encoding"]);
    assert_ne!(response.field("ETag").map(str::to_owned), first);
}

#[test]
fn a_root_can_be_created_after_the_start() {
    let server = Running::site(Folder::with(&[]), "");
    server.get("/a.txt").expect("no folder yet", 404, &[]);
    server.folder.write("www/a.txt", "there");
    let mut client = server.connect();
    wait_until_new("the folder", || client.get("/a.txt").text() == "there");
}

/// An idle worker has no timer ticks, but must still close a file that was replaced.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_worker_closes_replaced_files() {
    // Each address has workers of its own, so those of the first address are idle after its only request.
    let folder = Folder::with(&[("www/large.bin", &"1".repeat(100_000))]);
    let text = "[site.default]\nroot = \"www\"\nlisten = [\"127.0.0.1:0\", \"127.0.0.2:0\"]\n";
    let server = Running::start(folder, text);
    let addresses = server.addresses();
    assert_eq!(super::support::Client::to(addresses[0]).get("/large.bin").body[0], b'1');
    replace_file(&server.folder, &"2".repeat(100_000), "www/large.bin");
    let mut other = super::support::Client::to(addresses[1]);
    wait_until_new("the content", || other.get("/large.bin").body[0] == b'2');
    let path = server.folder.path("www/large.bin (deleted)");
    let is_held = || {
        let open = fs::read_dir("/proc/self/fd").expect("a list of descriptors");
        open.flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|held| held == path))
    };
    let seen = Instant::now();
    while is_held() {
        other.get("/large.bin");
        assert!(seen.elapsed() < DEADLINE, "the old file is still open");
    }
}

#[test]
fn open_files_are_bounded() {
    const MAX_OPEN: u64 = 8;
    const FILES: usize = 30;
    let folder = Folder::with(&[("www/small.txt", "small")]);
    for number in 0..FILES {
        folder.sparse(&format!("www/{number}.bin"), 100_000);
    }
    let pool = Pool::new(2);
    let cache = FileCache::with_max_files(64 << 20, MAX_OPEN, pool.clone()).expect("a cache");
    let settings = Settings {
        root: Some(folder.path("www")),
        ..Settings::default()
    };
    // Files of more than 50 KiB are kept open, smaller ones in memory.
    let tree = Arc::new(Tree::standalone(&settings, 50 * 1024).expect("a tree"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let look_up = |path: &str| runtime.block_on(cache.look_up(&tree, &path.into())).expect("an entry");
    let small = look_up("/small.txt");
    let mut entries = Vec::new();
    for number in 0..FILES {
        entries.push(look_up(&format!("/{number}.bin")));
        // The cache thread updates the count after its response, so a second lookup ensures that the count is current.
        look_up("/small.txt");
        let files = cache.status().files.load(Ordering::Relaxed);
        assert!(files <= MAX_OPEN, "{files} files are open at number {number}");
    }
    let kept: Vec<usize> = (0..FILES).filter(|number| !entries[*number].is_retired()).collect();
    assert_eq!(
        kept,
        (FILES - MAX_OPEN as usize..FILES).collect::<Vec<_>>(),
        "the entries that were used least recently must be evicted"
    );
    assert!(
        !small.is_retired(),
        "an entry without an open file must not be evicted for the limit on open files"
    );

    // A new configuration closes all files of the old one.
    cache.retain_trees([tree.id + 1].into(), 64 << 20);
    assert!(
        look_up("/0.bin").is_retired(),
        "an entry of the old configuration was kept"
    );
    assert!(look_up("/0.bin").is_retired() && entries.iter().all(|entry| entry.is_retired()));
    assert_eq!(cache.status().files.load(Ordering::Relaxed), 0);
    assert_eq!(cache.status().bytes.load(Ordering::Relaxed), 0);
    pool.stop(Duration::from_secs(1));
}

#[test]
fn memory_is_bounded() {
    /// Memory limit of the cache in bytes, less than a third of the size of all files.
    const LIMIT: u64 = 1 << 20;
    const FILES: usize = 200;
    let folder = Folder::with(&[]);
    for number in 0..FILES {
        folder.write(
            &format!("www/{number}.txt"),
            number.to_string().repeat(20_000 / number.to_string().len()),
        );
    }
    let pool = Pool::new(2);
    let cache = FileCache::start(LIMIT, pool.clone()).expect("a cache");
    let settings = Settings {
        root: Some(folder.path("www")),
        ..Settings::default()
    };
    let tree = Arc::new(Tree::standalone(&settings, 50 * 1024).expect("a tree"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    for number in (0..FILES).chain(0..FILES) {
        let entry = runtime
            .block_on(cache.look_up(&tree, &format!("/{number}.txt").into()))
            .expect("an entry");
        assert!(matches!(entry.found, Found::Asset(_)), "number {number}");
        let bytes = cache.status().bytes.load(Ordering::Relaxed);
        assert!(bytes <= LIMIT, "{bytes} bytes are kept at number {number}");
    }
    assert!(
        cache.status().entries.load(Ordering::Relaxed) > 10,
        "the cache stores nothing"
    );
    pool.stop(Duration::from_secs(1));

    // A server also serves files that do not fit into the cache, and serves files if it has no cache.
    for memory in ["1MiB", "64KiB", "0"] {
        let text = format!("[cache]\nmemory = \"{memory}\"\n{}", super::support::running::site(""));
        let copy = Folder::with(&[]);
        for number in 0..FILES {
            fs::create_dir_all(copy.path("www")).expect("a folder");
            fs::copy(
                folder.path(&format!("www/{number}.txt")),
                copy.path(&format!("www/{number}.txt")),
            )
            .expect("a copy");
        }
        let server = Running::start(copy, &text);
        let mut client = server.connect();
        for number in (0..FILES).chain(0..FILES) {
            let response = client.get(&format!("/{number}.txt"));
            response.expect(memory, 200, &[]);
            assert!(
                response.text().starts_with(&number.to_string()),
                "{memory}: number {number}"
            );
        }
    }
}

over_http3! {
    precompressed_files_are_used_only_if_they_match_the_file,
    a_root_can_be_created_after_the_start,
}

#[test]
fn a_purge_shows_changes_at_once() {
    let folder = Folder::with(&[("www/a.txt", "first")]);
    let server = Running::site(folder, "");
    let mut client = server.connect();
    for round in 0..20 {
        let text = format!("round {round}");
        fs::write(server.folder.path("www/a.txt"), &text).expect("written");
        assert!(server.server().purge_file_cache());
        assert_eq!(client.get("/a.txt").text(), text);
    }
}
