//! Folders as zip archives: their content over every version of HTTP, what routes and rules leave out, and clients that
//! leave.

#[path = "../../../rocknet-files/src/archive/tests/reader.rs"]
mod reader;

use std::process::{Command, Stdio};

use http::StatusCode;

use super::support::http2::Http2;
use super::support::running::site;
use super::support::{Client, Folder, Running};

const ZIP: &str = "browse = { zip = true }";

fn folder() -> Folder {
    Folder::with(&[
        ("www/d/a.txt", "first"),
        ("www/d/sub/b b.txt", "second"),
        ("www/d/sub/é\"'.txt", "third"),
        ("www/d/.hidden", "hidden"),
        ("www/d/denied/x", "denied"),
        ("www/d/guarded/x", "guarded"),
        ("www/d/moved/x", "moved"),
        ("www/d/elsewhere/x", "elsewhere"),
        ("www/d/internal/x", "internal"),
        ("www/d/flat/x", "flat"),
        ("www/d/old.bak", "backup"),
        ("www/d/slash.txt", "slash"),
        ("other/d/elsewhere/x", "other"),
    ])
}

/// Returns the names of the files in an archive.
fn files(archive: &[u8]) -> Vec<String> {
    let entries = reader::read(archive).into_iter();
    let names = entries.map(|entry| entry.name);
    names.filter(|name| !name.ends_with('/')).collect()
}

#[test]
fn a_folder_is_sent_with_its_length_and_name() {
    let server = Running::site(folder(), ZIP);
    let mut client = server.connect();
    let archive = client.get("/d/sub/?zip");
    archive.expect(
        "an archive",
        200,
        &[
            "Content-Type: application/zip",
            "Content-Disposition: attachment; filename=\"sub.zip\"",
            "X-Content-Type-Options: nosniff",
            "Cache-Control: no-store",
            "Accept-Ranges: none",
            "!Content-Encoding",
            "!Vary",
        ],
    );
    let length = archive.body.len().to_string();
    assert_eq!(archive.field("Content-Length"), Some(&*length));
    let entries = reader::read(&archive.body);
    let found: Vec<_> = entries.iter().map(|entry| (&*entry.name, &entry.content[..])).collect();
    assert_eq!(found, [("sub/b b.txt", &b"second"[..]), ("sub/é\"'.txt", b"third"),]);
    let head = client.fetch("HEAD /d/sub/?zip", &[]);
    head.expect(
        "its head",
        200,
        &[&format!("Content-Length: {length}"), "Content-Type: application/zip"],
    );
    // A range and a content coding do not apply.
    let whole = client.fetch("GET /d/sub/?zip", &["Range: bytes=0-9", "Accept-Encoding: gzip, br"]);
    whole.expect(
        "the whole archive",
        200,
        &[&format!("Content-Length: {length}"), "!Content-Encoding"],
    );
    let top = client.get("/?sort=size&zip=1");
    top.expect(
        "the top folder",
        200,
        &["Content-Disposition: attachment; filename=\"files.zip\""],
    );
    assert!(files(&top.body).contains(&"files/d/a.txt".to_owned()));
    client.get("/none/?zip").expect("no folder", 404, &[]);
    client
        .get("/d/a.txt?zip")
        .expect("a file", 200, &["Content-Type: text/plain; charset=utf-8"]);
    client
        .get("/d?zip")
        .expect("without its slash", 308, &["Location: ./d/?zip"]);
}

#[test]
fn names_in_header_fields_are_encoded() {
    let folder = folder();
    folder.write("www/é\"; filename=x/a", "a");
    let server = Running::site(folder, ZIP);
    let archive = server.get("/%C3%A9%22;%20filename=x/?zip");
    archive.expect(
        "an archive",
        200,
        &["Content-Disposition: attachment; filename=\"__; filename=x.zip\"; \
           filename*=UTF-8''%C3%A9%22%3B%20filename%3Dx.zip"],
    );
    assert_eq!(files(&archive.body), ["é\"; filename=x/a"]);
}

#[test]
fn compressed_archives_have_no_length() {
    let folder = folder();
    folder.write("www/d/sub/long.txt", "text ".repeat(100_000));
    let server = Running::site(folder, "browse = { zip = { compress = true } }");
    let archive = server.get("/d/sub/?zip");
    archive.expect("an archive", 200, &["!Content-Length"]);
    assert!(archive.body.len() < 50_000, "{} bytes", archive.body.len());
    assert_eq!(files(&archive.body), ["sub/b b.txt", "sub/long.txt", "sub/é\"'.txt"]);
}

#[test]
fn archives_are_off_by_default_and_limited_by_keys() {
    for keys in [
        "browse = true",
        "browse = { zip = false }",
        "browse = { view = \"grid\" }",
    ] {
        let server = Running::site(folder(), keys);
        let page = server.get("/d/?zip");
        page.expect(keys, 200, &["Content-Type: text/html; charset=utf-8"]);
        assert!(!page.text().contains("?zip"), "{keys}");
    }
    assert!(Running::site(folder(), ZIP).get("/d/").text().contains("href=\"?zip\""));
    Running::site(folder(), "")
        .get("/d/?zip")
        .expect("no listings", 404, &[]);
    for (limit, status) in [
        ("entries = 3", 403),
        ("depth = 1", 200),
        ("size = 20", 403),
        ("size = \"1KiB\", entries = 20", 200),
    ] {
        let server = Running::site(folder(), &format!("browse = {{ zip = {{ {limit} }} }}"));
        server.get("/d/?zip").expect(limit, status, &[]);
    }
}

/// The routes and rules that leave files out of an archive.
const RESTRICTIONS: &str = r#"
redirects = { "/d/moved/*" = "/elsewhere/{*}" }
route."/d/guarded/*" = { allow = ["10.0.0.0/8"] }
route."/d/elsewhere/*" = { root = "other" }
route."/d/internal/*" = { internal = true }
route."/d/flat/*" = { browse = false }
route."/d/slash.txt/" = { allow = ["10.0.0.0/8"] }

[[site.default.rule]]
path = "*.bak"
respond = 403

[[site.default.rule]]
path = "/d/denied/*"
respond = 404

[[site.default.rule]]
path = "/alias/*"
rewrite = "/d/{*}"
"#;

#[test]
fn files_that_a_request_would_not_get_are_left_out() {
    let server = Running::site(folder(), &format!("{ZIP}\n{RESTRICTIONS}"));
    let mut client = server.connect();
    for (path, status) in [
        ("/d/guarded/x", 403),
        ("/d/denied/x", 404),
        ("/d/moved/x", 308),
        ("/d/internal/x", 404),
        ("/d/old.bak", 403),
        ("/d/.hidden", 404),
        ("/d/a.txt", 200),
    ] {
        client.get(path).expect(path, status, &[]);
    }
    let all = ["d/a.txt", "d/sub/b b.txt", "d/sub/é\"'.txt"];
    assert_eq!(files(&client.get("/d/?zip").body), all);
    // A folder that a rule rewrites has the same files, because requests for them are rewritten as well.
    let rewritten = client.get("/alias/?zip");
    rewritten.expect(
        "rewritten",
        200,
        &["Content-Disposition: attachment; filename=\"d.zip\""],
    );
    assert_eq!(
        files(&rewritten.body),
        ["d/a.txt", "d/denied/x", "d/sub/b b.txt", "d/sub/é\"'.txt"],
        "the rules before the rewrite match other paths"
    );
    client.get("/alias/old.bak").expect("the same by a request", 403, &[]);
}

#[test]
fn routes_with_other_settings_belong_to_the_archive() {
    let routes = r#"
route."/d/sub/*" = { priority = "low", headers = { X-A = "1" } }
route."/d/a.txt" = { headers = { X-A = "1" } }
route."/d/flat/*" = { browse = true }
route."/d/guarded/*" = { root = "other" }
"#;
    let files_with = |keys: &str| {
        let server = Running::site(folder(), &format!("{ZIP}\n{keys}{routes}"));
        files(&server.get("/d/?zip").body)
    };
    let sub = ["d/sub/b b.txt", "d/sub/é\"'.txt"];
    let found = files_with("");
    assert!(
        sub.iter()
            .chain(&["d/a.txt"])
            .all(|name| found.iter().any(|found| found == name))
    );
    // Listings without archives, and another folder.
    assert!(
        found
            .iter()
            .all(|name| !name.contains("flat") && !name.contains("guarded")),
        "{found:?}"
    );
    // The routes inherit the restrictions of the site, or lift them.
    let allowed = files_with("allow = [\"127.0.0.0/8\", \"::1\"]\n");
    assert_eq!(allowed, found);
    let lifted = r#"
route."/d/denied/*" = { allow = ["127.0.0.0/8"] }
route."/d/moved/*" = { deny = ["10.0.0.0/8"] }
route."/d/internal/*" = { allow = ["all"] }
"#;
    let mixed = files_with(&format!("allow = [\"127.0.0.0/8\", \"::1\"]\n{lifted}"));
    assert!(mixed.contains(&"d/internal/x".to_owned()), "{mixed:?}");
    // The client may open these files, but the restrictions of their routes differ.
    assert!(
        mixed
            .iter()
            .all(|name| !name.contains("denied") && !name.contains("moved")),
        "{mixed:?}"
    );
}

/// An archive would send the files of a limited route at once.
#[test]
fn files_of_routes_with_limits_of_their_own_are_left_out() {
    let names = |keys: &str| {
        let server = Running::site(folder(), &format!("{ZIP}\n{keys}"));
        files(&server.get("/d/?zip").body)
    };
    let is_below = |names: &[String]| names.iter().any(|name| name.starts_with("d/sub/"));
    assert!(is_below(&names("")));
    // The route inherits the limit of its site.
    assert!(is_below(&names(
        "limit = \"100/s\"\nroute.\"/d/sub/*\" = { priority = \"low\" }"
    )));
    for limit in ["{ connections = 3 }", "{ bandwidth = \"1MiB/s\" }", "\"1/s\""] {
        let found = names(&format!("route.\"/d/sub/*\" = {{ limit = {limit} }}"));
        assert!(!is_below(&found) && !found.is_empty(), "{limit}: {found:?}");
    }
}

/// The path that a rule leads to may be the end of the path that was sent.
#[test]
fn the_rules_for_the_sent_path_apply_to_the_files_of_a_rewritten_folder() {
    let rules = r#"
[[site.default.rule]]
path = "/alias/d/sub/*"
respond = 403

[[site.default.rule]]
path = "/alias/*"
rewrite = "/{*}"
"#;
    let server = Running::site(folder(), &format!("{ZIP}\n{rules}"));
    let mut client = server.connect();
    client.get("/alias/d/a.txt").expect("rewritten", 200, &[]);
    client.get("/alias/d/sub/b%20b.txt").expect("refused", 403, &[]);
    let found = files(&client.get("/alias/d/?zip").body);
    assert!(found.contains(&"d/a.txt".to_owned()));
    assert!(found.iter().all(|name| !name.contains("sub")), "{found:?}");
}

/// A client that does not read leaves places for other clients.
#[test]
fn a_client_has_a_few_archives_at_a_time() {
    let folder = folder();
    folder.sparse("www/large/zeros", 1 << 30);
    let server = Running::start(
        folder,
        &format!(
            "[server]\nworkers = 1\nblocking_threads = 2\ntrusted_proxies = [\"127.0.0.1\"]\n{}",
            site("browse = { zip = { per_client = 2 } }")
        ),
    );
    let start = |address: &str| {
        let mut client: Client = server.connect();
        let head = format!("GET /large/?zip HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {address}\r\n\r\n");
        client.send(&head);
        let head = client.head();
        (client, head)
    };
    let mut held: Vec<_> = ["2001:db8::1", "2001:db8::2"].map(start).into();
    for (_, head) in &held {
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    let (_, refused) = start("2001:db8::3");
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(
        refused.to_ascii_lowercase().contains("\r\nretry-after: 10"),
        "{refused}"
    );
    assert!(
        start("2001:db8:0:1::1").1.starts_with("HTTP/1.1 200"),
        "another network"
    );
    held.clear();
    server.wait_until_idle();
    assert!(start("2001:db8::3").1.starts_with("HTTP/1.1 200"));
}

#[test]
fn a_password_protects_the_archive_of_its_folder() {
    let keys = format!(
        "{ZIP}\nroute.\"/d/guarded/*\" = {{ auth = {{ bob = \"{}\" }} }}",
        "$apr1$salt$0123456789012345678901"
    );
    let server = Running::site(folder(), &keys);
    let mut client = server.connect();
    client.get("/d/guarded/?zip").expect("without a password", 401, &[]);
    assert!(!files(&client.get("/d/?zip").body).contains(&"d/guarded/x".to_owned()));
}

#[test]
fn archives_are_sent_over_http_2() {
    for (keys, has_length) in [(ZIP, true), ("browse = { zip = { compress = true } }", false)] {
        let folder = folder();
        folder.write("www/d/sub/large.txt", "0123456789".repeat(200_000));
        let server = "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\n";
        let server = Running::start(folder, &format!("{server}{}", site(keys)));
        let mut client = Http2::to(server.address());
        let archive = client.get("/d/sub/?zip");
        assert_eq!(archive.status, StatusCode::OK);
        assert_eq!(archive.fields.contains_key("content-length"), has_length, "{keys}");
        let entries = reader::read(&archive.content);
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[1].content.len(), 2_000_000);
    }
}

#[test]
fn other_programs_read_the_archive() {
    for keys in [ZIP, "browse = { zip = { compress = true } }"] {
        let folder = folder();
        folder.write("www/d/sub/large.txt", "0123456789".repeat(50_000));
        folder.date("www/d/a.txt", 1_000_000_001);
        let server = Running::site(folder, keys);
        server.folder.write("d.zip", server.get("/d/?zip").body);
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                      print(len(z.namelist()), z.read('d/sub/é\"\\'.txt'), len(z.read('d/sub/large.txt')), \
                      z.getinfo('d/a.txt').date_time)";
        let output = Command::new("python3")
            .args(["-c", script])
            .arg(server.folder.path("d.zip"))
            .stdin(Stdio::null())
            .output()
            .expect("python3, which `cargo xtask test` installs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "19 b'third' 500000 (2001, 9, 9, 1, 46, 40)\n",
            "{errors}"
        );
    }
}

/// More clients leave than archives may be made at the same time.
#[test]
fn clients_that_leave_end_their_archives() {
    let folder = folder();
    folder.sparse("www/large/zeros", 1 << 30);
    let server = Running::site(folder, ZIP);
    for _ in 0..40 {
        let mut client: Client = server.connect();
        client.send("GET /large/?zip HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(client.head().starts_with("HTTP/1.1 200"));
        client.bytes(1000);
        drop(client);
        server.wait_until_idle();
    }
    server.get("/d/?zip").expect("a further archive", 200, &[]);
}

over_http3! {
    a_folder_is_sent_with_its_length_and_name,
    names_in_header_fields_are_encoded,
    compressed_archives_have_no_length,
    files_that_a_request_would_not_get_are_left_out,
    routes_with_other_settings_belong_to_the_archive,
}
