//! Libraries that are replaced while they are in use, and the release of a library after its last request.

use std::fs;

use super::{PREFIXES, build_recording_library, eventually, site_below, wait_for_marks};
use crate::support::client::request;
use crate::support::{Folder, Running};

over_http3! {
    a_reload_loads_a_changed_library_and_keeps_the_old_one_for_its_requests,
    a_controller_is_notified_when_its_client_disconnects,
}

#[test]
fn a_controller_is_notified_when_its_client_disconnects() {
    for prefix in PREFIXES {
        let folder = Folder::with(&[("www/index.html", "a page")]);
        build_recording_library(&folder, "l.so", "m", &[]);
        let server = Running::start(folder, &site_below(&[prefix], "l.so", &["give", "count"]));
        // The clients disconnect in the middle of a huge response body, and of a request body.
        let mut client = server.connect();
        client.send(request(&format!("GET {prefix}/give/?9000000000"), &[]));
        client.bytes(100_000);
        drop(client);
        wait_for_marks(&server.folder, &["init m", "end m"]);
        let mut client = server.connect();
        client.send(request(&format!("POST {prefix}/count/"), &["Content-Length: 5"]) + "12");
        assert_eq!(server.get("/").text(), "a page");
        drop(client);
        wait_for_marks(&server.folder, &["init m", "end m", "end m"]);
        let (server, folder) = server.take();
        server.stop();
        wait_for_marks(&folder, &["init m", "end m", "end m", "drop m"]);
    }
}

#[test]
fn a_reload_loads_a_changed_library_and_keeps_the_old_one_for_its_requests() {
    for (prefix, other) in [("", "/n"), ("/i", "/i")] {
        check_replacement(prefix, other);
    }
}

/// Replaces the library of the controllers below `prefix`. `other` is another prefix that uses the same library.
fn check_replacement(prefix: &str, other: &str) {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    build_recording_library(&folder, "l.so", "first", &[]);
    let prefixes: &[&str] = if prefix == other { &[prefix] } else { &[prefix, other] };
    let text = site_below(prefixes, "l.so", &["hello", "give"]);
    let server = Running::start(folder, &text);
    let mut client = server.connect();
    assert_eq!(client.get(&format!("{prefix}/hello/")).text(), "hello from first");
    // A reload keeps a library that has not changed, with all its state.
    server.reload(&text).expect("a reload");
    assert_eq!(client.get(&format!("{prefix}/hello/")).text(), "hello from first");
    let mut slow = server.connect();
    slow.send(request(&format!("GET {prefix}/give/?9000000"), &[]));
    slow.head();
    // Overwriting the file in place is harmless, because the server runs a private copy.
    build_recording_library(&server.folder, "new.so", "second", &[]);
    let new = fs::read(server.folder.path("new.so")).expect("a library");
    server.folder.write("l.so", &new);
    assert_eq!(client.get(&format!("{prefix}/hello/")).text(), "hello from first");
    server.reload(&text).expect("a reload");
    eventually("hello from second", || client.get(&format!("{prefix}/hello/")).text());
    wait_for_marks(&server.folder, &["init first", "init second"]);
    assert_eq!(client.get(&format!("{other}/hello/")).text(), "hello from second");
    // The body is `begin:` and the number of bytes in the query.
    let body = slow.rest_of_chunks();
    assert_eq!(body, 6 + 9_000_000, "started before the reload");
    wait_for_marks(
        &server.folder,
        &["init first", "init second", "end first", "drop first"],
    );
    let (server, folder) = server.take();
    server.stop();
    wait_for_marks(
        &folder,
        &["init first", "init second", "end first", "drop first", "drop second"],
    );
}
