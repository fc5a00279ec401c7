//! Folders and files elsewhere that take the place of a path of the site (`alias`), and media types of files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::support::fastcgi::{Next, Peer, SOCKET, response, write_to};
use super::support::{Folder, Running};

const KEYS: &str = "errors = { 404 = \"/404.html\" }
types = { \".own\" = \"application/x-own\" }
[site.default.route.\"/img/*\"]
alias = \"pictures\"
browse = true
types = { \"*\" = \"text/x-unknown\" }
[site.default.route.\"/icon.ico\"]
alias = \"shared/round.png\"
[site.default.route.\"/slash/*\"]
alias = \"pictures/\"
try = [\"{path}\", \"/slash/a.png\", \"/index.html\"]
[[site.default.rule]]
path = \"/img/*\"
query = { old = \"*\" }
exists = \"file\"
redirect = \"/found\"
status = 302
";

fn folder() -> Folder {
    let folder = Folder::with(&[
        ("www/index.html", "home"),
        ("www/404.html", "own missing page"),
        ("www/img/shadowed.txt", "of the root"),
        ("pictures/a.png", "a picture"),
        ("pictures/x.own", "own"),
        ("pictures/README", "read me"),
        ("pictures/sub/index.html", "index of sub"),
        ("pictures/list/b.txt", "b"),
        ("pictures/.git/config", "hidden"),
        ("pictures-secret/x.txt", "beside"),
        ("secret.txt", "above"),
        ("shared/round.png", "an icon"),
        ("shared/other.png", "another"),
    ]);
    folder.link("pictures/out.txt", folder.path("secret.txt"));
    folder
}

#[test]
fn a_folder_takes_the_place_of_a_path() {
    let server = Running::site(folder(), KEYS);
    let mut client = server.connect();
    // The second responses come from the worker cache.
    for _ in 0..2 {
        for (path, status, fields, body) in [
            ("/img/a.png", 200, &["Content-Type: image/png"][..], "a picture"),
            ("/img/sub/", 200, &[], "index of sub"),
            ("/img/sub", 308, &["Location: ./sub/"], ""),
            ("/img", 308, &["Location: ./img/"], ""),
            ("/img/x.own", 200, &["Content-Type: application/x-own"], "own"),
            (
                "/img/README",
                200,
                &["Content-Type: text/x-unknown; charset=utf-8"],
                "read me",
            ),
            // The page of the site replaces the error of the alias.
            (
                "/img/missing",
                404,
                &["Content-Type: text/html; charset=utf-8"],
                "own missing page",
            ),
            ("/img/shadowed.txt", 404, &[], "own missing page"),
            ("/img/.git/config", 404, &[], "own missing page"),
            ("/img/out.txt", 404, &[], "own missing page"),
            // nginx appends the rest of the path to `alias` for a location without a slash at its end.
            ("/img../secret.txt", 404, &[], "own missing page"),
            ("/img-secret/x.txt", 404, &[], "own missing page"),
            ("/img/../secret.txt", 404, &[], "own missing page"),
            ("/img/%2e%2e/secret.txt", 404, &[], "own missing page"),
            ("/img/..%2fsecret.txt", 404, &[], "own missing page"),
            ("/icon.ico", 200, &["Content-Type: image/png"], "an icon"),
            ("/icon.ico/other.png", 404, &[], "own missing page"),
            ("/slash/sub/", 200, &[], "index of sub"),
            // A path of `try` is a path of the site. One outside of the alias leads to no file of it.
            ("/slash/missing", 200, &["Content-Type: image/png"], "a picture"),
        ] {
            let response = client.get(path);
            response.expect(path, status, fields);
            assert!(response.text().starts_with(body), "{path}: {response:?}");
        }
    }
    // Rules look paths up in the alias, too.
    client
        .get("/img/a.png?old=1")
        .expect("a picture that exists", 302, &["Location: /found?old=1"]);
    client
        .get("/img/b.png?old=1")
        .expect("a picture that does not exist", 404, &[]);
    let listed = client.get("/img/").text();
    assert!(
        listed.contains("a.png") && listed.contains("list/") && !listed.contains("shadowed"),
        "{listed}"
    );
    assert!(listed.contains("/img/"), "{listed}");
    let nested = client.get("/img/list/").text();
    assert!(nested.contains("b.txt"), "{nested}");
}

#[test]
fn scripts_below_an_alias_get_the_document_root_of_the_site() {
    let folder = folder();
    folder.write("blog/index.php", "<?php");
    folder.write("blog/admin/a.php", "<?php");
    folder.write("blog/uploads/x.php", "<?php");
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let lines = incoming
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"));
        let text: String = lines.collect();
        write_to(
            stream,
            response(format!("Content-Type: text/plain\r\n\r\n{text}").as_bytes()),
        );
        Next::Keep
    });
    let keys = "php = \"unix:php.sock\"\n[site.default.route.\"/news/*\"]\nalias = \"blog\"\n\
                [site.default.route.\"/news/admin/a.php\"]\nallow = \"192.0.2.1\"\nalias = \"blog/admin/a.php\"\n";
    let server = Running::site(folder, keys);
    let at = |name: &str| {
        server
            .folder
            .path(name)
            .canonicalize()
            .expect("a file")
            .display()
            .to_string()
    };
    let (root, blog) = (at("www"), at("blog"));
    let mut client = server.connect();
    for (path, script, file, path_info) in [
        ("/news/", "/news/index.php", "index.php", None),
        ("/news/index.php", "/news/index.php", "index.php", None),
        ("/news/2026/hello", "/news/index.php", "index.php", None),
        ("/news/index.php/a/b", "/news/index.php", "index.php", Some("/a/b")),
    ] {
        let text = client.get(path).text();
        for line in [
            format!("SCRIPT_NAME={script}"),
            format!("SCRIPT_FILENAME={blog}/{file}"),
            format!("DOCUMENT_ROOT={root}"),
            "CONTEXT_PREFIX=/news".to_owned(),
            format!("CONTEXT_DOCUMENT_ROOT={blog}"),
            format!("DOCUMENT_URI={script}{}", path_info.unwrap_or_default()),
            format!("REQUEST_URI={path}"),
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{path}: {line} is missing in {text}"
            );
        }
        let info = text.lines().find_map(|line| line.strip_prefix("PATH_INFO="));
        assert_eq!(info, path_info, "{path}");
    }
    client.get("/news/uploads/x.php").expect("an upload", 403, &[]);
    client.get("/news/admin/a.php").expect("a restricted script", 403, &[]);
}

#[test]
fn programs_and_named_files_are_found_below_an_alias() {
    let folder = folder();
    folder.write("programs/show.sh", "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n%s %s %s' \"$SCRIPT_NAME\" \"$SCRIPT_FILENAME\" \"$PATH_INFO\"\n");
    let program = folder.path("programs/show.sh");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    folder.write("www/index.php", "<?php");
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let fields = incoming.variable("QUERY_STRING").replace('~', ": ");
        write_to(stream, response(format!("{fields}\r\n\r\n").as_bytes()));
        Next::Keep
    });
    let keys = "php = \"unix:php.sock\"\n[site.default.route.\"/cgi-bin/*\"]\nalias = \"programs\"\ncgi = \"/cgi-bin\"\n\
                [site.default.route.\"/inside/*\"]\nalias = \"pictures\"\ninternal = true\n";
    let server = Running::site(folder, keys);
    let mut client = server.connect();
    let file = program.canonicalize().expect("a file").display().to_string();
    let text = client.get("/cgi-bin/show.sh/more").text();
    assert_eq!(text, format!("/cgi-bin/show.sh {file} /more"));
    client.get("/inside/a.png").expect("a direct request", 404, &[]);
    let named = client.get("/index.php?X-Accel-Redirect~/inside/a.png");
    named.expect("by its path", 200, &["Content-Type: image/png"]);
    assert_eq!(named.text(), "a picture");
    let on_disk = server.folder.path("pictures/a.png").display().to_string();
    let named = client.get(&format!("/index.php?X-Sendfile~{on_disk}"));
    assert_eq!((named.status, &*named.text()), (200, "a picture"));
}

#[test]
fn code_is_not_sent_or_run_by_another_name() {
    let folder = folder();
    for (name, content) in [
        ("app/feed.php", "<?php secret"),
        ("app/data.txt", "text"),
        ("app/uploads/x.php", "<?php uploaded"),
        ("app/uploads/x.png", "picture"),
        ("www/cgi-bin/login.pl", "#!/usr/bin/perl secret"),
        ("www/plain.txt", "plain"),
    ] {
        folder.write(name, content);
    }
    let _peer = Peer::start(&folder.path(SOCKET), |_, stream| {
        write_to(stream, response(b"Content-Type: text/plain\r\n\r\nrun"));
        Next::Keep
    });
    let keys = "php = \"unix:php.sock\"\ncgi = \"/cgi-bin\"\n\
                [site.default.route.\"/feed\"]\nalias = \"app/feed.php\"\n\
                [site.default.route.\"/x.php\"]\nalias = \"app/data.txt\"\n\
                [site.default.route.\"/media/*\"]\nalias = \"app/uploads\"\n\
                [site.default.route.\"/all/*\"]\nalias = \"www\"\n";
    let server = Running::site(folder, keys);
    let mut client = server.connect();
    for (path, status) in [
        ("/feed", 403),
        ("/x.php", 403),
        ("/media/x.php", 403),
        ("/media/x.png", 200),
        ("/all/cgi-bin/login.pl", 403),
        ("/all/plain.txt", 200),
    ] {
        let response = client.get(path);
        response.expect(path, status, &[]);
        assert!(
            !response.text().contains("secret") && !response.text().contains("uploaded"),
            "{path}"
        );
    }
}
