//! The configuration of a running server: edits, replacement, history and undo, by commands and over the control API.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{ProgramFolder, ProgramOutput};

const FILE: &str = "# mine\n[server]\nworkers = 1\nstate = \"state\"\n\n[site.default] # first\nlisten = \"127.0.0.1:0\"\n\
                    root = \"www\"\n";

fn home() -> ProgramFolder {
    ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("other/index.html", "other"),
        ("rocknet.toml", FILE),
    ])
}

/// Asserts that the program succeeded without messages, and returns its output.
#[track_caller]
pub fn success(output: ProgramOutput) -> String {
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
    output.out
}

/// Sends a request of the API, and returns the status and the JSON of the response.
pub fn request(dir: &ProgramFolder, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = UnixStream::connect(dir.path().join("control.sock")).unwrap();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
}

fn revision(dir: &ProgramFolder) -> String {
    let (status, config) = request(dir, "GET", "/api/config", &Value::Null);
    assert_eq!(status, 200, "{config}");
    config["revision"].as_str().unwrap().to_owned()
}

#[test]
fn edits_are_loaded_and_undone() {
    let dir = home();
    let server = dir.serve(&["run"]);
    let key = "site.default.headers.X-New";
    let done = success(dir.run(&["config", "set", key, "yes"]));
    assert!(done.ends_with("rocknet.toml is reloaded, sites: 1\n"), "{done}");
    assert!(server.get("/").contains("X-New: yes"));
    let expected = format!("{FILE}\n[site.default.headers]\nX-New = \"yes\"\n");
    assert_eq!(dir.read("rocknet.toml"), expected);

    success(dir.run(&["config", "set", "site.default.root", "other"]));
    assert!(server.get("/").contains("other"));
    let history = success(dir.run(&["config", "history"]));
    assert!(
        history.starts_with("2  set site.default.root\n")
            && history.contains("    -root = \"www\"\n    +root = \"other\"\n"),
        "{history}"
    );

    // The last change is undone first, and then change 1.
    success(dir.run(&["config", "undo"]));
    assert_eq!(dir.read("rocknet.toml"), expected);
    assert!(server.get("/").contains("home"));
    success(dir.run(&["config", "undo", "1"]));
    assert_eq!(dir.read("rocknet.toml"), FILE);
    assert!(!server.get("/").contains("X-New"));
    assert_eq!(success(dir.run(&["config", "show"])), FILE);
    let missing = dir.run(&["config", "undo", "99"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("there is no such change"), "{}", missing.err);

    // The history survives a restart.
    server.signal(Signal::TERM);
    server.wait();
    let _server = dir.serve(&["run"]);
    assert!(success(dir.run(&["config", "history"])).starts_with("4  undo 1: set "));
}

#[test]
fn sites_are_added_and_removed() {
    let dir = home();
    let server = dir.serve(&["run"]);
    success(dir.run(&["config", "add-site", "b.test", "other"]));
    assert!(
        dir.read("rocknet.toml")
            .ends_with("[site.\"b.test\"]\nroot = \"other\"\n")
    );
    let twice = dir.run(&["config", "add-site", "b.test", "other"]);
    assert!(twice.err.contains("site \"b.test\" already exists"), "{}", twice.err);
    let sites = success(dir.run(&["sites"]));
    assert!(sites.contains("b.test"), "{sites}");
    success(dir.run(&["config", "remove-site", "b.test"]));
    assert_eq!(dir.read("rocknet.toml"), FILE);
    assert!(dir.path().join("other/index.html").exists());
    assert!(server.get("/").contains("home"));
}

#[test]
fn a_change_that_cannot_be_used_changes_nothing() {
    let dir = home();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let server = dir.serve(&["run"]);
    for (arguments, message) in [
        (["set", "site.default.rot", "1"], "unknown key `rot`"),
        (["set", "server", "1"], "`server` is a table"),
        (["set", "a..b", "1"], "a..b is not a key"),
        (["unset", "site.default.index", "--json"], "there is no such key"),
        // The configuration is valid, but the listener cannot be started. The file has been written by then.
        (
            ["set", "site.default.listen", &address.to_string()],
            "the file has its old text again",
        ),
    ] {
        let arguments: Vec<&str> = ["config"].into_iter().chain(arguments).collect();
        let output = dir.run(&arguments);
        assert_eq!(
            (output.code, output.out.as_str()),
            (Some(1), ""),
            "{arguments:?}: {output:?}"
        );
        assert!(output.err.contains(message), "{arguments:?}: {}", output.err);
        assert_eq!(dir.read("rocknet.toml"), FILE);
    }
    assert!(server.get("/").contains("home"));
    assert_eq!(success(dir.run(&["config", "history"])), "no changes\n");
    let (status, config) = request(&dir, "GET", "/api/config", &Value::Null);
    assert_eq!((status, &config["is_loaded"]), (200, &json!(true)));
}

#[test]
fn edits_by_other_programs_are_noticed_and_kept() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    let old = revision(&dir);
    let by_hand = format!("{FILE}# by hand\n");
    dir.write("rocknet.toml", &by_hand);
    let (_, config) = request(&dir, "GET", "/api/config", &Value::Null);
    assert_eq!(
        (&config["is_loaded"], &config["text"]),
        (&json!(false), &json!(by_hand))
    );
    let text = format!("{FILE}# by a program\n");
    for (method, path, body) in [
        ("PUT", "/api/config", json!({ "text": text, "revision": old })),
        (
            "POST",
            "/api/config/edit",
            json!({ "edits": [{ "op": "add_site", "name": "b.test", "root": "other" }], "revision": old }),
        ),
    ] {
        let (status, error) = request(&dir, method, path, &body);
        assert_eq!(status, 409, "{error}");
        assert_eq!(dir.read("rocknet.toml"), by_hand);
    }
    let (status, saved) = request(
        &dir,
        "PUT",
        "/api/config",
        &json!({ "text": text, "revision": revision(&dir) }),
    );
    assert_eq!((status, &saved["revision"]), (200, &json!(revision(&dir))), "{saved}");
    assert_eq!(dir.read("rocknet.toml"), text);

    // Undo does not discard an edit by hand that is not part of the change.
    dir.write("rocknet.toml", &by_hand);
    let (status, error) = request(&dir, "POST", "/api/config/undo", &json!({}));
    assert_eq!(status, 409, "{error}");
}

#[test]
fn a_text_is_checked_without_a_change() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    let (status, checked) = request(
        &dir,
        "POST",
        "/api/config/check",
        &json!({ "text": format!("{FILE}rot = 1\n") }),
    );
    assert_eq!((status, &checked["is_valid"]), (200, &json!(false)));
    let finding = &checked["findings"][0];
    assert_eq!(
        (
            &finding["is_error"],
            &finding["code"],
            &finding["line"],
            &finding["column"]
        ),
        (&json!(true), &json!("unknown-key"), &json!(9), &json!(1)),
        "{checked}"
    );
    let (_, checked) = request(&dir, "POST", "/api/config/check", &json!({ "text": FILE }));
    assert_eq!(checked, json!({ "is_valid": true, "findings": [] }));
    assert_eq!(dir.read("rocknet.toml"), FILE);
    // The text is valid, but larger than the 256 KiB that the API accepts.
    let large = "#".repeat(300 * 1024);
    let (status, error) = request(
        &dir,
        "PUT",
        "/api/config",
        &json!({ "text": large, "revision": revision(&dir) }),
    );
    assert_eq!(status, 413, "{error}");
}

#[test]
fn a_server_that_may_not_write_its_configuration_says_so() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    if rustix::process::geteuid().is_root() {
        // Root may write every file, so the file is moved away instead.
        let moved = dir.path().join("moved.toml");
        fs::rename(dir.path().join("rocknet.toml"), &moved).unwrap();
    } else {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    }
    let output = dir.run(&["config", "set", "server.workers", "2", "--socket", "control.sock"]);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.err.contains("cannot read ") || output.err.contains("cannot write "),
        "{}",
        output.err
    );
}

#[test]
fn a_server_without_a_configuration_has_nothing_to_edit() {
    let dir = home();
    let _server = dir.serve(&["serve", "www", "--listen", "127.0.0.1:0"]);
    let output = dir.run(&["config", "show", "--socket", "control.sock"]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.err.contains("this server has no configuration file"),
        "{}",
        output.err
    );
}
