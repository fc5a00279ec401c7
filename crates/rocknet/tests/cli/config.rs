//! The configuration of a running server: edits, replacement, history and undo, by commands and over the control API.

mod checks;
mod files;
mod history;

use std::io::{Read, Write};
use std::os::unix::fs::symlink;
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

/// Returns the revision that identifies the present text of the configuration.
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
        history.starts_with("2  ")
            && history.contains(" GMT  set site.default.root\n")
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
    assert!(missing.err.contains("there is no change 99"), "{}", missing.err);

    // The history survives a restart.
    server.signal(Signal::TERM);
    server.wait();
    let _server = dir.serve(&["run"]);
    let history = success(dir.run(&["config", "history"]));
    assert!(
        history.starts_with("4  ") && history.contains(" GMT  undo 1: set "),
        "{history}"
    );
}

#[test]
fn sites_are_added_and_removed() {
    let dir = home();
    let server = dir.serve(&["run"]);
    let added = success(dir.run(&["config", "add-site", "b.test", "other"]));
    assert!(added.lines().any(|line| line.ends_with("://b.test/")), "{added}");
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
    // The argument is relative to the current folder. The folder of the configuration file and folders below it are
    // written as relative paths, and any other folder as an absolute path.
    let in_www = ["sh", "-c", "cd www && exec \"$@\"", "sh"];
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().to_str().unwrap();
    for (folder, expected) in [("../other", "other"), (".", "www"), ("..", "."), (path, path)] {
        success(dir.run_by(&in_www, &["config", "add-site", "b.test", folder]));
        let text = dir.read("rocknet.toml");
        let end = format!("[site.\"b.test\"]\nroot = \"{expected}\"\n");
        assert!(text.ends_with(&end), "{folder}: {text}");
        success(dir.run(&["config", "remove-site", "b.test"]));
    }
    assert!(server.get("/").contains("home"));
}

#[test]
fn a_link_to_the_folder_of_a_new_site_is_kept() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    dir.write("releases/42/index.html", "release");
    symlink("releases/42", dir.path().join("current")).unwrap();
    symlink(".", dir.path().join("itself")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let link = outside.path().join("link");
    symlink(dir.path().join("releases"), &link).unwrap();
    let link = link.to_str().unwrap();
    let in_www = ["sh", "-c", "cd www && exec \"$@\"", "sh"];
    let by_link = format!("{}/../../other", dir.path().join("current").display());
    for (folder, expected) in [
        ("../current", "current"),
        ("../itself/current", "itself/current"),
        ("../itself", "itself"),
        (link, link),
        // Two folders above the target of the link, not above the link itself.
        (&by_link, "other"),
    ] {
        success(dir.run_by(&in_www, &["config", "add-site", "b.test", folder]));
        let text = dir.read("rocknet.toml");
        let end = format!("[site.\"b.test\"]\nroot = \"{expected}\"\n");
        assert!(text.ends_with(&end), "{folder}: {text}");
        success(dir.run(&["config", "remove-site", "b.test"]));
    }
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
