//! Lines of the error log: one line per cause with its site and script or path, and the number of suppressed lines.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::thread;

use rustix::process::Signal;

use crate::program::{ProgramFolder, Server};
use crate::wire;

fn set_mode(dir: &ProgramFolder, name: &str, mode: u32) {
    fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
}

fn site(more: &str) -> String {
    format!("[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{more}")
}

/// Sends `request` and returns everything that is received until the connection is closed.
fn send(server: &Server, request: &str) -> String {
    let mut stream = server.connect();
    // The write can fail, because the server may respond and close before it has read everything.
    let _ = stream.write_all(request.as_bytes());
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

#[track_caller]
fn check(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn each_kind_of_script_failure_has_a_line() {
    let dir = ProgramFolder::new(&[
        ("www/cgi-bin/silent.sh", "#!/bin/sh\nexit 1\n"),
        ("www/cgi-bin/headless.sh", "#!/bin/sh\necho no fields at all\n"),
        ("www/cgi-bin/lost.sh", "#!/no/such/interpreter\n"),
        ("www/cgi-bin/plain.sh", "#!/bin/sh\n"),
        ("rocknet.toml", &site("cgi = \"/cgi-bin\"\n")),
    ]);
    for name in ["silent.sh", "headless.sh", "lost.sh"] {
        set_mode(&dir, &format!("www/cgi-bin/{name}"), 0o755);
    }
    let server = dir.serve(&["run"]);
    for (name, status, what) in [
        ("silent.sh", "502", "ended without a response"),
        ("headless.sh", "502", "no response from the program: "),
        ("lost.sh", "502", "cannot be started"),
        ("plain.sh", "403", "not executable"),
    ] {
        let path = format!("/cgi-bin/{name}");
        assert!(server.get(&path).contains(status), "{name}");
        let line = server.logged("no response from the program");
        check(
            &line,
            &["ERROR", "site=default", &format!("script={path}"), what, "help="],
        );
    }
    // Further lines with the same cause within a second are only counted, even if the path after the script differs.
    for number in 0..5 {
        server.get(&format!("/cgi-bin/lost.sh/{number}"));
    }
    let line = server.logged("more like this in the last second");
    check(
        &line,
        &[
            "ERROR",
            "no response from a program: ",
            "of=/cgi-bin/lost.sh",
            "site=default",
        ],
    );
}

#[test]
fn a_response_that_breaks_off_is_not_logged_as_missing() {
    let dir = ProgramFolder::new(&[("www/a.php", ""), ("rocknet.toml", &site("php = \"unix:php.sock\"\n"))]);
    let listener = UnixListener::bind(dir.path().join("php.sock")).unwrap();
    // The header of a FastCGI record of type 6 (`FCGI_STDOUT`) of request 1 with 4 bytes, without the bytes.
    let beginning: &[u8] = &[1, 6, 0, 1, 0, 4, 0, 0];
    let application = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(beginning).unwrap();
    });
    let server = dir.serve(&["run"]);
    assert!(server.get("/a.php").starts_with("HTTP/1.1 502 "));
    let line = server.logged("no response from PHP");
    check(&line, &["ERROR", "the connection was lost: unexpected end of file"]);
    application.join().unwrap();
}

#[test]
fn an_unreadable_file_is_logged_with_a_remedy() {
    if rustix::process::getuid().is_root() {
        // Root can read every file, so the server has to run as another user.
        let dir = ProgramFolder::new(&[("www/secret.txt", "x"), ("rocknet.toml", "")]);
        dir.write("rocknet.toml", &format!("[server]\nuser = \"nobody\"\n{}", site("")));
        set_mode(&dir, "", 0o755);
        check_unreadable_file(&dir);
    } else {
        check_unreadable_file(&ProgramFolder::new(&[
            ("www/secret.txt", "x"),
            ("rocknet.toml", &site("")),
        ]));
    }
}

fn check_unreadable_file(dir: &ProgramFolder) {
    set_mode(dir, "www/secret.txt", 0o000);
    let server = dir.serve(&["run"]);
    assert!(server.get("/secret.txt").starts_with("HTTP/1.1 403 "));
    let line = server.logged("403 Forbidden");
    check(&line, &["WARN", "site=default", "www/secret.txt", "uid ", "chmod o+r"]);
}

#[test]
fn a_link_out_of_the_root_is_logged_with_a_remedy() {
    let dir = ProgramFolder::new(&[
        ("www/inside.txt", "x"),
        ("outside.txt", "secret"),
        ("rocknet.toml", &site("")),
    ]);
    for (target, name) in [("inside.txt", "good.txt"), ("../outside.txt", "link.txt")] {
        std::os::unix::fs::symlink(target, dir.path().join("www").join(name)).expect("a link");
    }
    let server = dir.serve(&["run"]);
    assert!(server.get("/good.txt").starts_with("HTTP/1.1 200 "));
    assert!(server.get("/link.txt").starts_with("HTTP/1.1 404 "));
    let line = server.logged("leads out of the root");
    let parts = ["WARN", "site=default", "www/link.txt", "symlinks = ", "`alias`"];
    check(&line, &parts);
    assert!(!line.contains("good.txt"), "{line}");
}

#[test]
fn missing_files_are_logged_in_dev_mode() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    for (server, level) in [("mode = \"dev\"\n", "INFO"), ("", "DEBUG")] {
        let log = if level == "DEBUG" {
            "[log]\nlevel = \"debug\"\n"
        } else {
            ""
        };
        dir.write("rocknet.toml", &format!("[server]\n{server}{log}{}", site("")));
        let server = dir.serve(&["run"]);
        // The first response comes from a lookup on disk, the others from the cache.
        for _ in 0..3 {
            assert!(server.get("/gone.png").starts_with("HTTP/1.1 404 "));
            let line = server.logged("404 Not Found");
            check(&line, &[level, "site=default", "path=/gone.png", "root="]);
        }
        // Each response is logged, up to the limit of lines per second.
        for _ in 0..40 {
            server.get("/gone.png");
        }
        let line = server.logged("more like this in the last second");
        check(&line, &[level, "a file does not exist: ", "site=default"]);
    }
}

#[test]
fn paths_that_lead_to_no_file_are_logged_with_the_reason() {
    let routes = "[site.default.route.\"/kept/*\"]\nroot = \"www\"\ninternal = true\n\
                  [site.\"b.test\"]\nlisten = \"http://127.0.0.1:0\"\n[site.\"b.test\".route.\"/docs/*\"]\nroot = \"www\"\n";
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("www/kept/index.html", "kept")]);
    for (server, level, is_logged) in [
        ("[server]\nmode = \"dev\"\n", "INFO", true),
        ("[log]\nlevel = \"debug\"\n", "DEBUG", true),
        ("", "", false),
    ] {
        dir.write("rocknet.toml", &format!("{server}{}{routes}", site("")));
        let server = dir.serve(&["run"]);
        for (host, path, name, reason) in [
            ("x.test", "/kept/", "default", "the route is `internal`"),
            ("b.test", "/x", "b.test", "nothing is served here"),
            ("x.test", "/gone.png", "default", "no file below the root"),
        ] {
            let response = server.get_from(host, path);
            assert!(response.starts_with("HTTP/1.1 404 "), "{host}{path}: {response}");
            if is_logged {
                let line = server.logged(reason);
                check(
                    &line,
                    &[level, "404 Not Found", &format!("site={name}"), &format!("path={path}")],
                );
            }
        }
        if !is_logged {
            // The message of the signal comes after all lines about the requests.
            server.signal(Signal::USR1);
            let before = server.logged_until("log files were reopened");
            assert!(!before.contains("404 Not Found"), "{before}");
        }
    }
}

#[test]
fn refused_requests_are_logged_with_limit_and_site() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let limits = "[limits]\nheader_fields = 8\ntarget_size = \"128B\"\nheader_size = \"1KiB\"\nbody_size = \"1KiB\"\n";
    dir.write("rocknet.toml", &format!("{limits}{}", site("")));
    let server = dir.serve(&["run"]);
    let fields = "X-A: b\r\n".repeat(9);
    let long = "x".repeat(200);
    for (request, status, parts) in [
        (
            "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n".to_owned(),
            "413",
            &["site=default", "path=/up", "`body_size`"][..],
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"),
            "431",
            &["too many fields", "`header_fields`"],
        ),
        (
            format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
            "414",
            &["`target_size`"],
        ),
        (
            "GET / HTTP/1.1\r\nHost a\r\n\r\n".to_owned(),
            "400",
            &["without a colon"],
        ),
        (
            "GET /%00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(),
            "400",
            &["site=default", "path=/%00"],
        ),
    ] {
        let response = send(&server, &request);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request:?}: {response}"
        );
        let line = server.logged(&format!("{status} "));
        check(&line, &["INFO", "client=127.0.0.1"]);
        check(&line, parts);
    }
    for _ in 0..3 {
        send(&server, "GET / HTTP/1.1\r\nHost a\r\n\r\n");
    }
    let line = server.logged("more like this in the last second");
    check(&line, &["INFO", "Bad Request: ", "of=\"a field line without a colon\""]);
}

#[test]
fn refused_http_2_requests_are_logged_like_those_of_http_1() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let tables = "[server]\nh2c = true\n[limits]\nbody_size = \"1KiB\"\n";
    dir.write("rocknet.toml", &format!("{tables}{}", site("")));
    let server = dir.serve(&["run"]);
    let mut stream = server.connect();
    for number in [1, 3, 5] {
        let beginning = if number == 1 {
            wire::open_beginning()
        } else {
            Vec::new()
        };
        let request = wire::request(number, "POST", "/up", &[("content-length", "9999")], false);
        stream.write_all(&[beginning, request].concat()).unwrap();
    }
    let line = server.logged("413 ");
    check(
        &line,
        &["INFO", "client=127.0.0.1", "site=default", "path=/up", "`body_size`"],
    );
    let line = server.logged("more like this in the last second");
    check(&line, &["INFO", "Content Too Large: 2", "site=default"]);
}

#[test]
fn a_refused_body_without_a_length_is_logged() {
    let dir = ProgramFolder::new(&[("www/cgi-bin/a.sh", "#!/bin/sh\ncat\n")]);
    set_mode(&dir, "www/cgi-bin/a.sh", 0o755);
    dir.write(
        "rocknet.toml",
        &format!("[limits]\nbody_size = \"32KiB\"\n{}", site("cgi = \"/cgi-bin\"\n")),
    );
    let server = dir.serve(&["run"]);
    let chunk = "x".repeat(64 * 1024);
    let head = "POST /cgi-bin/a.sh HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    // A chunk has its length in hexadecimal: 0x10000 bytes are 64 KiB.
    let response = send(&server, &format!("{head}10000\r\n{chunk}\r\n0\r\n\r\n"));
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    let line = server.logged("413 ");
    check(&line, &["INFO", "site=default", "`body_size`"]);
}
