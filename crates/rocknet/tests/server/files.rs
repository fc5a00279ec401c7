//! Serves files of a folder: index files, hidden files, links, methods and media types.

use std::os::unix::net::UnixListener;

use super::support::{Client, Folder, Running};

/// Modification time of `digits.txt` in Unix seconds. The next three constants are this time as an HTTP date, and the
/// dates one second earlier and later.
pub const CHANGED: u64 = 1_700_000_000;
pub const CHANGED_TEXT: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
pub const BEFORE: &str = "Tue, 14 Nov 2023 22:13:19 GMT";
pub const AFTER: &str = "Tue, 14 Nov 2023 22:13:21 GMT";

/// Request line and fields, and the expected status, header fields and body of the response.
pub type Row<'a> = (&'a str, &'a [&'a str], u16, &'a [&'a str], Option<&'a str>);

/// Sends the request of each row and asserts the response.
#[track_caller]
pub fn check(client: &mut Client, rows: &[Row<'_>]) {
    for (line, fields, status, expected, content) in rows {
        let what = format!("{line} {fields:?}");
        let response = client.fetch(line, fields);
        response
            .expect(&what, *status, expected)
            .expect(&what, *status, &["Date", "Server: RockNet", "!Connection"]);
        if let Some(content) = content {
            assert_eq!(response.text(), *content, "{what}");
        }
    }
}

/// Returns the folder of a site with a file of ten bytes and an empty file.
pub fn digits() -> Folder {
    let folder = Folder::with(&[
        ("www/digits.txt", "0123456789"),
        ("www/empty.txt", ""),
        ("outside/secret.txt", "secret"),
    ]);
    folder.date("www/digits.txt", CHANGED);
    folder
}

/// Entity tag of `digits.txt`: its modification time in nanoseconds and its size in bytes, both hexadecimal.
pub fn etag() -> String {
    format!("\"{:x}-a\"", u128::from(CHANGED) * 1_000_000_000)
}

#[test]
fn folders_have_an_index_and_a_slash() {
    let folder = Folder::with(&[
        ("www/index.html", "root"),
        ("www/sub/index.htm", "sub"),
        ("www/both/index.html", "first"),
        ("www/both/index.htm", "second"),
        ("www/a b/index.html", "space"),
        ("www/bare/file.txt", "x"),
        ("www/odd/index.html/file.txt", "a folder with the name of an index"),
        ("www/odd/index.htm", "the next"),
    ]);
    let server = Running::site(folder, "");
    check(
        &mut server.connect(),
        &[
            (
                "GET /",
                &[],
                200,
                &["Content-Type: text/html; charset=utf-8"],
                Some("root"),
            ),
            ("GET /?query", &[], 200, &[], Some("root")),
            ("GET /sub/", &[], 200, &[], Some("sub")),
            ("GET /both/", &[], 200, &[], Some("first")),
            ("GET /odd/", &[], 200, &[], Some("the next")),
            ("GET /a%20b/", &[], 200, &[], Some("space")),
            ("GET /bare/", &[], 404, &[], None),
            ("GET /none/", &[], 404, &[], None),
            ("GET /sub/index.htm/", &[], 404, &[], None),
            ("GET /sub", &[], 308, &["Location: ./sub/"], None),
            ("GET /sub?a=b&c=%20d", &[], 308, &["Location: ./sub/?a=b&c=%20d"], None),
            ("GET /a%20b", &[], 308, &["Location: ./a%20b/"], None),
            ("GET //sub", &[], 308, &["Location: ./sub/"], None),
            ("HEAD /sub", &[], 308, &["Location: ./sub/"], Some("")),
            ("GET /odd/index.html", &[], 308, &["Location: ./index.html/"], None),
        ],
    );
}

#[test]
fn names_with_a_dot_are_hidden() {
    let folder = Folder::with(&[
        ("www/.env", "secret"),
        ("www/.git/config", "secret"),
        ("www/sub/.htpasswd", "secret"),
        ("www/.well-known/security.txt", "public"),
        ("www/.well-known/.hidden", "secret"),
        ("www/sub/.well-known/x", "secret"),
        ("www/a.b", "public"),
    ]);
    let server = Running::site(folder, "");
    check(
        &mut server.connect(),
        &[
            ("GET /.env", &[], 404, &[], None),
            ("GET /%2eenv", &[], 404, &[], None),
            ("GET /.git", &[], 404, &[], None),
            ("GET /.git/", &[], 404, &[], None),
            ("GET /.git/config", &[], 404, &[], None),
            ("GET /a.b/../.git/config", &[], 404, &[], None),
            ("GET /sub/.htpasswd", &[], 404, &[], None),
            ("GET /.well-known/security.txt", &[], 200, &[], Some("public")),
            ("GET /.well-known/.hidden", &[], 404, &[], None),
            ("GET /sub/.well-known/x", &[], 404, &[], None),
            ("GET /a.b", &[], 200, &[], Some("public")),
        ],
    );
}

#[test]
fn links_are_followed_as_configured() {
    // A row has the keys of the site, and the expected status for links to a file and to a folder outside the root.
    for (keys, outside, folder_outside) in [
        ("", 404, 404),
        // All links have the owner of their targets.
        ("symlinks = \"owner\"", 200, 200),
        ("symlinks = \"all\"", 200, 200),
    ] {
        let folder = digits();
        folder.write("www/sub/file.txt", "inside");
        for (name, target) in [
            ("www/inside.txt", "digits.txt"),
            ("www/sub/up.txt", "../digits.txt"),
            ("www/folder", "sub"),
            ("www/outside.txt", "../outside/secret.txt"),
            ("www/outside", "../outside"),
            ("www/nowhere.txt", "nothing"),
            ("www/circle.txt", "circle.txt"),
        ] {
            folder.link(name, target);
        }
        folder.link("www/absolute.txt", folder.path("outside/secret.txt"));
        let server = Running::site(folder, keys);
        check(
            &mut server.connect(),
            &[
                ("GET /inside.txt", &[], 200, &[], Some("0123456789")),
                ("GET /sub/up.txt", &[], 200, &[], Some("0123456789")),
                ("GET /folder/file.txt", &[], 200, &[], Some("inside")),
                ("GET /folder", &[], 308, &["Location: ./folder/"], None),
                ("GET /outside.txt", &[], outside, &[], None),
                ("GET /absolute.txt", &[], outside, &[], None),
                ("GET /outside/secret.txt", &[], folder_outside, &[], None),
                ("GET /nowhere.txt", &[], 404, &[], None),
                ("GET /circle.txt", &[], 404, &[], None),
            ],
        );
    }
}

#[test]
fn only_regular_files_are_opened() {
    let folder = digits();
    let _socket = UnixListener::bind(folder.path("www/socket")).expect("a socket file");
    let fifo = std::process::Command::new("mkfifo")
        .arg(folder.path("www/fifo"))
        .status()
        .expect("mkfifo");
    assert!(fifo.success());
    folder.link("www/null", "/dev/null");
    let server = Running::site(folder, "symlinks = \"all\"");
    check(
        &mut server.connect(),
        &[
            ("GET /fifo", &[], 404, &[], None),
            ("GET /socket", &[], 404, &[], None),
            ("GET /null", &[], 404, &[], None),
            ("GET /digits.txt", &[], 200, &[], Some("0123456789")),
        ],
    );
}

#[test]
fn only_supported_methods_are_allowed() {
    let server = Running::site(digits(), "");
    let allow = "Allow: GET, HEAD, OPTIONS";
    check(
        &mut server.connect(),
        &[
            (
                "HEAD /digits.txt",
                &[],
                200,
                &["Content-Length: 10", "ETag", "!Allow"],
                Some(""),
            ),
            ("OPTIONS /digits.txt", &[], 204, &[allow, "!Content-Length"], None),
            ("OPTIONS *", &[], 204, &[allow], None),
            ("POST /digits.txt", &["Content-Length: 0"], 405, &[allow], None),
        ],
    );
    for method in ["PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get"] {
        check(
            &mut server.connect(),
            &[(&format!("{method} /digits.txt"), &[], 405, &[allow], None)],
        );
    }
}

#[test]
fn media_types_are_derived_from_the_suffix() {
    let rows = [
        ("a.html", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.svg", "image/svg+xml"),
        ("a.png", "image/png"),
        ("a.JPG", "image/jpeg"),
        ("a.webp", "image/webp"),
        ("a.woff2", "font/woff2"),
        ("a.wasm", "application/wasm"),
        ("a.pdf", "application/pdf"),
        ("a.mp4", "video/mp4"),
        ("a.unheard-of", "application/octet-stream"),
        ("none", "application/octet-stream"),
    ];
    let folder = Folder::with(&[]);
    for (name, _) in rows {
        folder.write(&format!("www/{name}"), "x");
    }
    let server = Running::site(folder, "");
    let mut client = server.connect();
    for (name, kind) in rows {
        let fields: &[&str] = &[&format!("Content-Type: {kind}"), "X-Content-Type-Options: nosniff"];
        check(&mut client, &[(&format!("GET /{name}"), &[], 200, fields, Some("x"))]);
    }
}

over_http3! {
    folders_have_an_index_and_a_slash,
    names_with_a_dot_are_hidden,
    links_are_followed_as_configured,
    only_regular_files_are_opened,
    only_supported_methods_are_allowed,
    media_types_are_derived_from_the_suffix,
}
