//! Paths that try to leave the root in every encoding: no file outside the root is sent, and the status is correct.

use super::support::{Client, Folder, Running};

const SECRET: &str = "SECRET";

/// Sends targets unchanged. Asserts the status of each response, and that the response contains no file outside the
/// root and redirects to no other host.
#[track_caller]
fn check(client: &mut Client, rows: &[(&str, u16)]) {
    for (target, status) in rows {
        let response = client.fetch(&format!("GET {target}"), &[]);
        assert!(
            !response.text().contains(SECRET),
            "{target}: a file outside the root was sent: {response:?}"
        );
        response.expect(target, *status, &["!Connection"]);
        let location = response.field("Location").unwrap_or_default();
        assert!(
            !location.starts_with("//") && !location.contains("://"),
            "{target}: redirects to {location}"
        );
    }
}

fn folder() -> Folder {
    let folder = Folder::with(&[
        ("secret.txt", SECRET),
        ("www-secret/secret.txt", SECRET),
        ("www/index.html", "root"),
        ("www/a/b/file.txt", "file"),
        ("www/a/index.html", "a"),
        ("www/a%2Fb", "a name with a percent sign"),
        ("www/caf\u{e9}.txt", "coffee"),
        ("www/100%.txt", "percent"),
        ("www/a+b.txt", "plus"),
    ]);
    // Names with a special meaning on Windows are refused everywhere.
    for name in [
        "con",
        "NUL.txt",
        "lpt1.css",
        "com\u{b9}",
        "x.txt.",
        "x.txt ",
        "x.txt::$DATA",
        "x:y",
        "back\\slash.txt",
    ] {
        folder.write(&format!("www/{name}"), SECRET);
    }
    folder
}

#[test]
fn no_file_outside_the_root_is_served() {
    let server = Running::site(folder(), "");
    check(
        &mut server.connect(),
        &[
            ("/../secret.txt", 400),
            ("/..", 400),
            ("/a/../../secret.txt", 400),
            ("/a/../..", 400),
            ("/%2e%2e/secret.txt", 400),
            ("/%2E%2e/secret.txt", 400),
            ("/.%2e/secret.txt", 400),
            ("/a/%2e%2e/%2e%2e/secret.txt", 400),
            ("/../www-secret/secret.txt", 400),
            ("/a/b/../../../secret.txt", 400),
            ("//../secret.txt", 400),
            ("/./../secret.txt", 400),
            // Paths are decoded only once, so these are file names.
            ("/%252e%252e/secret.txt", 404),
            ("/%252e%252e%252fsecret.txt", 404),
            ("/a%252Fb", 200),
            // An encoded slash does not separate path segments.
            ("/..%2fsecret.txt", 404),
            ("/%2e%2e%2fsecret.txt", 404),
            ("/a%2fb%2ffile.txt", 404),
            ("/a%2Fb/file.txt", 404),
            // Backslashes do not separate segments, and file names must not contain them.
            ("/..\\secret.txt", 404),
            ("/..%5csecret.txt", 404),
            ("/a\\b\\file.txt", 404),
            ("/back\\slash.txt", 404),
            ("/back%5Cslash.txt", 404),
            // Overlong encodings are not UTF-8, and full-width characters are ordinary file names.
            ("/%c0%ae%c0%ae/secret.txt", 404),
            ("/%c0%afsecret.txt", 404),
            ("/%e0%80%ae%e0%80%ae/secret.txt", 404),
            ("/%ef%bc%8e%ef%bc%8e/secret.txt", 404),
            // Invalid escapes, other names with dots, and absolute paths.
            ("/%u002e%u002e/secret.txt", 400),
            ("/.../secret.txt", 404),
            ("/..;/secret.txt", 404),
            ("/..%00/secret.txt", 400),
            ("/etc/passwd", 404),
            ("//etc/passwd", 404),
            ("/file:///etc/passwd", 404),
            ("/proc/self/environ", 404),
        ],
    );
}

#[test]
fn bytes_not_allowed_in_paths_are_refused() {
    let server = Running::site(folder(), "");
    check(
        &mut server.connect(),
        &[
            ("/a/b/file.txt%00", 400),
            ("/%00", 400),
            ("/a/b/file.txt%00.jpg", 400),
            ("/%0d%0aSet-Cookie:x", 400),
            ("/%0a", 400),
            ("/%09", 400),
            ("/%1b[2J", 400),
            ("/%7f", 400),
            ("/%", 400),
            ("/%2", 400),
            ("/%zz", 400),
            ("/%2%65", 400),
            ("/a/%g0/../b", 400),
        ],
    );
}

#[test]
fn windows_special_names_are_refused() {
    let server = Running::site(folder(), "");
    check(
        &mut server.connect(),
        &[
            ("/con", 404),
            ("/CON", 404),
            ("/NUL.txt", 404),
            ("/lpt1.css", 404),
            ("/com%c2%b9", 404),
            ("/aux/file.txt", 404),
            ("/x.txt.", 404),
            ("/x.txt%20", 404),
            ("/x.txt::$DATA", 404),
            ("/x:y", 404),
            ("/a/b/file.txt::$DATA", 404),
            ("/C:/secret.txt", 404),
        ],
    );
}

#[test]
fn paths_are_normalized_once() {
    let server = Running::site(folder(), "");
    check(
        &mut server.connect(),
        &[
            ("//a//b///file.txt", 200),
            ("/a/./b/./file.txt", 200),
            ("/a/x/../b/file.txt", 200),
            ("/%61/b/file.tx%74", 200),
            ("/a/b/../", 200),
            ("/a/.", 200),
            ("/a/b/..", 200),
            ("/caf%C3%A9.txt", 200),
            ("/caf%c3%a9.txt", 200),
            ("/100%25.txt", 200),
            ("/a+b.txt", 200),
            ("/a%20b.txt", 404),
            ("/a/b/file.txt?../../secret.txt", 200),
            ("/a/b/file.txt?%00", 200),
            ("/A/b/file.txt", 404),
            ("//evil.example/..", 200),
            ("//a", 308),
            ("/\\evil.example/..", 404),
        ],
    );
}

#[test]
fn length_and_depth_are_bounded() {
    let server = Running::site(folder(), "");
    let (name, longer) = (format!("/{}", "x".repeat(255)), format!("/{}", "x".repeat(256)));
    let (deep, deeper) = ("/x".repeat(128), "/x".repeat(129));
    // `climbing` leaves the root by one level; `level` stays in it.
    let climbing = format!("{}{}/secret.txt", "/a".repeat(500), "/..".repeat(501));
    let level = format!("{}{}/a/b/file.txt", "/a".repeat(100), "/..".repeat(100));
    let rows = [
        (&*name, 404),
        (&longer, 404),
        (&deep, 404),
        (&deeper, 404),
        (&climbing, 400),
        (&level, 200),
    ];
    check(&mut server.connect(), &rows);
}

#[test]
fn a_link_swapped_during_requests_does_not_escape_the_root() {
    let folder = folder();
    folder.link("www/swap", "a");
    let server = Running::start(
        folder,
        "[cache]\nmemory = 0\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"",
    );
    std::thread::scope(|scope| {
        let (done, stop) = std::sync::mpsc::channel::<()>();
        let folder = &server.folder;
        scope.spawn(move || {
            for turn in 0_u32.. {
                let target = if turn.is_multiple_of(2) { "../www-secret" } else { "a" };
                folder.link("www/next", target);
                folder.rename("www/next", "www/swap");
                if stop.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty) {
                    return;
                }
            }
        });
        let mut client = server.connect();
        for turn in 0..300 {
            // Each path is new, so that no response is cached.
            let response = client.get(&format!("/swap/{}secret.txt", "./".repeat(turn % 100)));
            assert!(
                !response.text().contains(SECRET),
                "a file outside the root was sent: {response:?}"
            );
            response.expect("a swapped link", 404, &[]);
        }
        drop(done);
    });
}

over_http3! {
    no_file_outside_the_root_is_served,
    bytes_not_allowed_in_paths_are_refused,
    windows_special_names_are_refused,
    paths_are_normalized_once,
    length_and_depth_are_bounded,
    a_link_swapped_during_requests_does_not_escape_the_root,
}
