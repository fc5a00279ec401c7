//! Special files, symbolic links that change during a lookup, and files that are truncated while they are sent.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::SMALL;
use crate::child::Setup;

#[test]
fn a_link_swapped_between_lookup_and_open_cannot_escape_the_root() {
    const FILES: usize = 1000;
    let setup = Setup::new();
    let (inside, outside) = (setup.path("inside"), setup.folder.path().join("outside"));
    for (folder, text) in [(&inside, "inside"), (&outside, "SECRET")] {
        fs::create_dir(folder).expect("a folder");
        for number in 0..FILES {
            fs::write(folder.join(format!("{number}.txt")), text).expect("a file");
        }
    }
    let (link, other, spare) = (setup.path("link"), setup.path("other"), setup.path("spare"));
    symlink("inside", &link).expect("a link");
    let server = setup.start();
    let (done, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                for target in [&outside, Path::new("inside")] {
                    symlink(target, &other).expect("a link");
                    fs::rename(&other, &link).expect("a link to move");
                    swaps.fetch_add(1, Relaxed);
                }
                // The folder itself is also replaced by a link for a moment.
                fs::rename(&inside, &spare).expect("a folder to move");
                symlink(&outside, &inside).expect("a link");
                fs::remove_file(&inside).expect("a link to remove");
                fs::rename(&spare, &inside).expect("a folder to move");
            }
        });
        let mut client = server.connect();
        let mut statuses = [0; 2];
        for number in 0..FILES {
            for folder in ["link", "inside"] {
                let response = client.get(&format!("/{folder}/{number}.txt"));
                assert_ne!(response.body, b"SECRET", "{folder}/{number}.txt");
                statuses[usize::from(response.status == 200)] += 1;
                // For a moment, the path can lead to nothing or outside the root.
                let is_expected = matches!(response.status, 200 | 404 | 403 | 503);
                assert!(
                    is_expected && (response.status != 200 || response.body == b"inside"),
                    "{}",
                    response.head
                );
            }
        }
        done.store(true, Relaxed);
        println!("{statuses:?} without and with content, {} swaps", swaps.load(Relaxed));
        assert!(
            statuses[1] > 0 && swaps.load(Relaxed) > 10,
            "{statuses:?} after {swaps:?} swaps: no race took place"
        );
    });
}

#[test]
fn a_file_truncated_while_sent_cuts_only_its_response() {
    /// Original size of the file in bytes.
    const SIZE: u64 = 64 << 20;
    /// Size of the truncated file in bytes.
    const CUT: u64 = 1 << 20;
    let setup = Setup::new();
    setup.sparse("large.bin", SIZE);
    let server = setup.start();
    let (mut other, mut client) = (server.connect(), server.connect());
    client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n").expect("sent");
    let head = client.head().expect("a head");
    assert!(head.contains(&format!("Content-Length: {SIZE}\r\n")), "{head}");
    // The rest of the file exceeds the socket buffers, so it has not been sent when the file is truncated.
    fs::OpenOptions::new()
        .write(true)
        .open(server.setup.path("large.bin"))
        .and_then(|file| file.set_len(CUT))
        .expect("cut");
    let received = client.rest().expect("an end").len() as u64;
    assert!(received < SIZE, "{received} bytes of a truncated file");
    assert_eq!(other.get("/small.txt").body, SMALL);
    let (status, errors) = server.stop();
    assert!(status.success(), "{status}");
    assert!(errors.contains("cut short"), "nothing was logged: {errors}");
}

#[test]
fn special_files_are_refused_without_blocking() {
    let setup = Setup::new();
    mknodat(CWD, setup.path("fifo"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    fs::create_dir(setup.path("folder")).expect("a folder");
    mknodat(CWD, setup.path("folder/index.html"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    mknodat(CWD, setup.path("small.txt.br"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    let _socket = UnixListener::bind(setup.path("socket")).expect("a socket file");
    symlink("/dev/zero", setup.path("zero")).expect("a link");
    symlink("loop", setup.path("loop")).expect("a link");
    let mut server = setup.keys("symlinks = \"all\"").start();
    let mut clients = Vec::new();
    for path in [
        "/fifo",
        "/folder/",
        "/socket",
        "/zero",
        "/loop",
        "/loop/x",
        "/small.txt/x",
    ] {
        let mut client = server.connect();
        client
            .send(format!("GET {path} HTTP/1.1\r\nHost: h\r\nAccept-Encoding: br\r\n\r\n"))
            .expect("sent");
        clients.push((path, client));
    }
    for (path, client) in &mut clients {
        let status = client.response().map(|response| response.status);
        assert!(matches!(status, Ok(404 | 403)), "{path}: {status:?}");
    }
    let mut client = server.connect();
    client
        .send("GET /small.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: br\r\n\r\n")
        .expect("sent");
    assert_eq!(client.response().expect("a response").body, SMALL);
    drop((clients, client));
    server.wait_for("connections close", |status| status.open == 0);
}
