//! The file cache: changes on disk show within a second, and memory is bounded.

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

/// Documented bound: a request sent this long after a change gets the new state.
const SHOWS_WITHIN: Duration = Duration::from_secs(1);
/// A request that takes this long shows that the machine did not run the server, whose clock stood still as well.
const STALL: Duration = Duration::from_millis(100);

/// Sends requests until the response is the new one, which it must be for a request sent a second after the change.
#[track_caller]
fn shows(what: &str, mut is_new: impl FnMut() -> bool) {
    let changed = Instant::now();
    loop {
        let incoming = Instant::now();
        if is_new() {
            return;
        }
        let is_broken = incoming - changed >= SHOWS_WITHIN && incoming.elapsed() < STALL;
        assert!(
            !is_broken && changed.elapsed() < DEADLINE,
            "{what}: still the old response after {:?}",
            incoming - changed
        );
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Requests `path` before a change and after it, until the response is the new one.
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
        let message = if response.status == 200 { start } else { String::new() };
        (response.status, message)
    };
    for _ in 0..3 {
        let (status, text) = fetch();
        assert_eq!((status, &*text), before, "{what}: before");
    }
    change(&server.folder);
    shows(what, || {
        let (status, text) = fetch();
        let is_new = (status, &*text) == after;
        // A request may see a change of several steps between two of them.
        assert!(
            is_new || (status, &*text) == before || status == 404,
            "{what}: neither old nor new: {status} {text}"
        );
        is_new
    });
}

/// Change made to the folder.
type Change = fn(&Folder);
type Row = (
    &'static str,
    &'static str,
    (u16, &'static str),
    Change,
    (u16, &'static str),
);

/// Runs all rows at once, because each waits for most of a second.
#[track_caller]
fn check_all(rows: &[Row]) {
    std::thread::scope(|scope| {
        for (what, path, before, change, after) in rows {
            scope.spawn(move || check(what, path, *before, change, *after));
        }
    });
}

#[test]
fn changed_files_show() {
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
            "put in its place",
            "/a.txt",
            (200, "first"),
            |f| put(f, "second", "www/a.txt"),
            (200, "second"),
        ),
        (
            "shorter",
            "/large.txt",
            (200, "111111"),
            |f| put(f, "x", "www/large.txt"),
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

/// Writes a file elsewhere and moves it into place in one step.
fn put(folder: &Folder, content: &str, name: &str) {
    folder.write("new", content);
    folder.rename("new", name);
}

fn relink(folder: &Folder) {
    folder.write("www/folder/b.txt", "second");
    folder.link("new", "folder/b.txt");
    folder.rename("new", "www/link.txt");
}

#[test]
fn created_and_removed_files_show() {
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
            "an index that comes",
            "/new/",
            (404, ""),
            |f| f.write("www/new/b.txt", "second"),
            (200, "second"),
        ),
        (
            "an index that goes",
            "/folder/",
            (200, "first"),
            |f| f.remove("www/folder/b.txt"),
            (404, ""),
        ),
        (
            "a folder that comes",
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
fn replaced_folders_show() {
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
            "the folder of the site, for what it had not",
            "/new.txt",
            (404, ""),
            replace_root,
            (200, "second"),
        ),
        (
            "the folder of the site, gone",
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

/// The announced length cannot be sent any more: the client must see the cut, and soon get the file as it is.
#[test]
fn a_file_truncated_in_place() {
    let server = Running::site(Folder::with(&[("www/large.txt", &"1".repeat(100_000))]), "");
    assert_eq!(server.get("/large.txt").body.len(), 100_000);
    server.folder.write("www/large.txt", "22");
    shows("the length", || {
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
fn precompressed_files_follow_the_file() {
    let folder = Folder::with(&[("www/a.txt", &"first ".repeat(1000))]);
    let server = Running::site(folder, "");
    let mut client = server.connect();
    let mut fetch = || client.fetch("GET /a.txt", &["Accept-Encoding: gzip"]);
    let first = fetch().field("ETag").map(str::to_owned);
    server.folder.write("www/a.txt.gz", "beside");
    shows("the form beside it", || fetch().text() == "beside");
    server.folder.remove("www/a.txt.gz");
    server.folder.write("www/a.txt", "second ".repeat(1000));
    shows("no form beside it", || fetch().text() != "beside");
    let response = fetch();
    response.expect("after all", 200, &["Content-Encoding: gzip", "Vary: Accept-Encoding"]);
    assert_ne!(response.field("ETag").map(str::to_owned), first);
}

#[test]
fn a_folder_may_be_created_after_the_start() {
    let server = Running::site(Folder::with(&[]), "");
    server.get("/a.txt").expect("no folder yet", 404, &[]);
    server.folder.write("www/a.txt", "there");
    let mut client = server.connect();
    shows("the folder", || client.get("/a.txt").text() == "there");
}

/// A worker without connections has no ticks, and must not keep open a file that was replaced long ago.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_worker_holds_no_open_files() {
    let folder = Folder::with(&[("www/large.bin", &"1".repeat(100_000))]);
    let text = "[site.default]\nroot = \"www\"\nlisten = [\"127.0.0.1:0\", \"127.0.0.2:0\"]\n";
    let server = Running::start(folder, text);
    let addresses = server.addresses();
    assert_eq!(super::support::Client::to(addresses[0]).get("/large.bin").body[0], b'1');
    put(&server.folder, &"2".repeat(100_000), "www/large.bin");
    let mut other = super::support::Client::to(addresses[1]);
    shows("the content", || other.get("/large.bin").body[0] == b'2');
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
    const MOST: u64 = 8;
    const FILES: usize = 30;
    let folder = Folder::with(&[("www/small.txt", "small")]);
    for number in 0..FILES {
        folder.sparse(&format!("www/{number}.bin"), 100_000);
    }
    let pool = Pool::new(2);
    let cache = FileCache::with_max_files(64 << 20, MOST, pool.clone()).expect("a cache");
    let settings = Settings {
        root: Some(folder.path("www")),
        ..Settings::default()
    };
    let tree = Arc::new(Tree::standalone(&settings, 50 * 1024).expect("a tree"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let look_up = |path: &str| runtime.block_on(cache.look_up(&tree, &path.into())).expect("an entry");
    let small = look_up("/small.txt");
    let mut entries = Vec::new();
    for number in 0..FILES {
        entries.push(look_up(&format!("/{number}.bin")));
        // The cache thread counts after its response, so the next response shows the count.
        look_up("/small.txt");
        let files = cache.status().files.load(Ordering::Relaxed);
        assert!(files <= MOST, "{files} files are open at number {number}");
    }
    let kept: Vec<usize> = (0..FILES).filter(|number| !entries[*number].is_retired()).collect();
    assert_eq!(
        kept,
        (FILES - MOST as usize..FILES).collect::<Vec<_>>(),
        "the oldest go first"
    );
    assert!(!small.is_retired(), "what holds no file does not count");

    // A new configuration closes everything that the old one held open.
    cache.retain_trees([tree.id + 1].into(), 64 << 20);
    assert!(look_up("/0.bin").is_retired(), "kept for a configuration that is gone");
    assert!(look_up("/0.bin").is_retired() && entries.iter().all(|entry| entry.is_retired()));
    assert_eq!(cache.status().files.load(Ordering::Relaxed), 0);
    assert_eq!(cache.status().bytes.load(Ordering::Relaxed), 0);
    pool.stop(Duration::from_secs(1));
}

#[test]
fn memory_is_bounded() {
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
        "nothing is kept at all"
    );
    pool.stop(Duration::from_secs(1));

    // The same through a server: a file that does not fit is served all the same, with and without a cache.
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
