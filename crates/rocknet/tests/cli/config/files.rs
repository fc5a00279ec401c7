//! Files of the configuration: their state, edits by other programs, and missing permissions.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{FILE, home, request, revision, success};
use crate::program::ProgramFolder;

/// Returns the reply to `GET /api/config/state`.
fn config_state(dir: &ProgramFolder) -> Value {
    let (status, state) = request(dir, "GET", "/api/config/state", &Value::Null);
    assert_eq!(status, 200, "{state}");
    state
}

#[test]
fn the_state_of_the_files_names_what_is_not_loaded() {
    let dir = home();
    let server = dir.serve(&["run"]);
    let file = dir.path().join("rocknet.toml");
    assert_eq!(config_state(&dir), json!({ "file": file, "is_loaded": true }));
    // Only a comment.
    dir.write("rocknet.toml", &format!("{FILE}# by hand\n"));
    let unloaded = json!({ "file": file, "is_loaded": false, "not_loaded": [file] });
    assert_eq!(config_state(&dir), unloaded);
    let text = format!(
        "{FILE}[site.\"b.test\"]\ntls = \"off\"\nlisten = \"127.0.0.1:0\"\nroot = \"other\"\n[site.\"c.test\"]\nenabled = false\nroot = \"other\"\n"
    );
    dir.write("rocknet.toml", &text);
    assert_eq!(config_state(&dir)["added"], json!(["b.test", "c.test"]));
    success(dir.run(&["reload"]));
    assert_eq!(config_state(&dir), json!({ "file": file, "is_loaded": true }));
    dir.write("rocknet.toml", FILE);
    assert_eq!(config_state(&dir)["removed"], json!(["b.test", "c.test"]));
    // Errors have their positions, but no message, which could quote a secret.
    dir.write(
        "rocknet.toml",
        &format!("{FILE}[site.\"d.test\"]\nroot = \"nowhere\"\nrot = \"s3cret\"\n"),
    );
    let state = config_state(&dir);
    assert_eq!(state["added"], json!(["d.test"]));
    let errors = state["errors"].as_array().unwrap();
    assert!(errors.contains(&json!({ "file": file, "line": 10 })), "{state}");
    assert!(
        state.get("removed").is_none() && !state.to_string().contains("s3cret"),
        "{state}"
    );
    // An error that another file causes ends with its cause, although the configuration file stays the same.
    let missing = format!("{FILE}[site.\"d.test\"]\nroot = \"later\"\n");
    dir.write("rocknet.toml", &missing);
    assert_eq!(config_state(&dir)["errors"], json!([{ "file": file, "line": 10 }]));
    fs::create_dir(dir.path().join("later")).unwrap();
    assert!(config_state(&dir).get("errors").is_none());
    fs::remove_file(&file).unwrap();
    let state = config_state(&dir);
    assert!(
        state["unreadable"]
            .as_str()
            .is_some_and(|error| error.contains("No such file")),
        "{state}"
    );
    assert_eq!(
        (&state["is_loaded"], &state["not_loaded"]),
        (&json!(false), &json!([file]))
    );
    assert!(server.get("/").contains("home"));
}

#[test]
fn an_included_file_that_appears_is_not_loaded() {
    let main = format!("include = [\"sites/*.toml\"]\n{FILE}");
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("sites/none", ""), ("rocknet.toml", &main)]);
    let _server = dir.serve(&["run"]);
    assert_eq!(config_state(&dir)["is_loaded"], json!(true));
    dir.write(
        "sites/a.toml",
        "[site.\"a.test\"]\ntls = \"off\"\nlisten = \"127.0.0.1:0\"\nroot = \"../www\"\n",
    );
    let state = config_state(&dir);
    let file = dir.path().join("sites/a.toml");
    assert_eq!(
        (&state["not_loaded"], &state["added"]),
        (&json!([file]), &json!(["a.test"]))
    );
    success(dir.run(&["reload"]));
    assert_eq!(config_state(&dir)["is_loaded"], json!(true));
    fs::remove_file(&file).unwrap();
    let state = config_state(&dir);
    assert_eq!(
        (&state["not_loaded"], &state["removed"]),
        (&json!([file]), &json!(["a.test"]))
    );
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
