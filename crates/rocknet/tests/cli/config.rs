//! The configuration of a running server: edits, replacement, history and undo, by commands and over the control API.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
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

#[test]
fn the_number_of_edits_in_a_request_is_bounded() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    let edit = json!({ "op": "set", "path": ["log", "level"], "value": "\"warn\"" });
    for path in ["/api/config/check-edits", "/api/config/edit"] {
        for (count, expected) in [(1000, 200), (1001, 400)] {
            let (status, reply) = request(&dir, "POST", path, &json!({ "edits": vec![&edit; count] }));
            assert_eq!(status, expected, "{path} {count}: {reply}");
            let message = reply["error"].as_str().unwrap_or_default();
            assert_eq!(
                message.contains("more than 1000"),
                count > 1000,
                "{path} {count}: {reply}"
            );
        }
    }
}

#[test]
fn the_server_is_edited_by_its_form() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    let form = || {
        let (status, form) = request(&dir, "GET", "/api/config/server", &Value::Null);
        assert_eq!(status, 200, "{form}");
        form
    };
    let field = |form: &Value, name: &str| {
        let fields = form["fields"].as_array().unwrap();
        let found = fields.iter().find(|field| field["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {form}")).clone()
    };
    let before = form();
    assert_eq!(before["file"], json!(dir.path().join("rocknet.toml")));
    let workers = field(&before, "server.workers");
    assert_eq!((&workers["text"], &workers["default"]), (&json!("1"), &json!("auto")));
    let mode = field(&before, "server.mode");
    assert_eq!(
        (&mode["text"], &mode["default"], &mode["input"]),
        (&json!(""), &json!("prod"), &json!("choice"))
    );
    let edit = |edits: Value| request(&dir, "POST", "/api/config/edit", &json!({ "edits": edits }));
    let set = |name: &str, text: &str| json!({ "op": "set_server_field", "field": name, "text": text });
    let (status, saved) = edit(json!([set("server.workers", "2"), set("server.mode", "dev")]));
    assert_eq!(status, 200, "{saved}");
    assert!(
        saved
            .get("findings")
            .is_none_or(|findings| !findings.to_string().contains("needs-restart")),
        "{saved}"
    );
    let text = dir.read("rocknet.toml");
    assert!(
        text.contains("workers = 2\n") && text.contains("mode = \"dev\"\n") && text.starts_with("# mine\n"),
        "{text}"
    );
    // The back end changes with the next start.
    let (status, saved) = edit(json!([set("server.backend", "epoll"), set("server.mode", "")]));
    assert_eq!(status, 200, "{saved}");
    let findings = saved["findings"].to_string();
    assert!(
        findings.contains("needs-restart") && findings.contains("server.backend"),
        "{saved}"
    );
    assert!(!dir.read("rocknet.toml").contains("mode"));
    for (name, text, expected) in [
        ("server.workers", "many", 422),
        ("server.user", "x", 422),
        ("root", "x", 422),
    ] {
        assert_eq!(edit(json!([set(name, text)])).0, expected, "{name}");
    }
    assert_eq!(field(&form(), "server.workers")["text"], json!("2"));
    let (_, status) = request(&dir, "GET", "/api/status", &Value::Null);
    assert!(
        status["backend"].as_str().is_some_and(|backend| !backend.is_empty()),
        "{status}"
    );
}

#[test]
fn a_finding_of_the_check_up_has_its_command() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    let checks = || {
        let (status, checks) = request(&dir, "GET", "/api/doctor", &Value::Null);
        assert_eq!(status, 200, "{checks}");
        let all = checks.as_array().unwrap().clone();
        let found = all.into_iter().find(|check| check["check"] == "configuration");
        found.unwrap_or_else(|| panic!("{checks}"))
    };
    assert!(checks().get("command").is_none());
    dir.write("rocknet.toml", &format!("{FILE}[sevrer]\n"));
    let command = format!("rocknet check --config {}", dir.path().join("rocknet.toml").display());
    assert_eq!(checks()["command"], json!(command));
}

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
fn undo_discards_edits_by_hand_only_on_request() {
    let dir = home();
    let server = dir.serve(&["run"]);
    let none = dir.run(&["config", "undo"]);
    assert!(none.err.contains("there is no change to undo"), "{none:?}");
    success(dir.run(&["config", "set", "site.default.root", "other"]));
    success(dir.run(&["config", "set", "log.level", "debug"]));
    let by_hand = format!("{}# by hand\n", dir.read("rocknet.toml"));
    dir.write("rocknet.toml", &by_hand);
    // The history still has the lines that the last change added, although the file was edited by hand since.
    let history = success(dir.run(&["config", "history"]));
    assert!(
        history.contains("    +level = \"debug\"\n"),
        "the lines of the change are missing: {history}"
    );
    for arguments in [&["config", "undo"][..], &["config", "undo", "1"]] {
        let refused = dir.run(arguments);
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{refused:?}");
        let command = format!("`rocknet {} --discard-edits` discards them", arguments.join(" "));
        for part in ["    +# by hand\n", "edits that are not in the history", &command] {
            assert!(refused.err.contains(part), "{part}: {}", refused.err);
        }
    }
    // Edits are discarded only by a request with `discard_edits` and with the revision of the present text. Each of
    // these requests lacks one of them, or names a change that does not exist.
    let present = revision(&dir);
    for (body, expected) in [
        (json!({ "revision": present }), 409),
        (json!({ "id": 1, "revision": present }), 409),
        (json!({ "id": 1, "discard_edits": true }), 400),
        (json!({ "revision": "0", "discard_edits": true }), 409),
        (json!({ "id": 99, "revision": present, "discard_edits": true }), 404),
    ] {
        let (status, error) = request(&dir, "POST", "/api/config/undo", &body);
        assert_eq!(status, expected, "{body}: {error}");
        // A request without `discard_edits` gets the lines that an undo would discard.
        let has_diff = error["details"]
            .as_str()
            .is_some_and(|details| details.contains("+# by hand"));
        assert_eq!(has_diff, body["discard_edits"].is_null(), "{error}");
        assert_eq!(dir.read("rocknet.toml"), by_hand);
    }
    assert!(server.get("/").contains("other"));

    // An edit by hand between two changes survives the undo of the later change. An undo of the earlier change discards
    // the edit.
    success(dir.run(&["config", "set", "log.level", "warn"]));
    success(dir.run(&["config", "undo"]));
    assert_eq!(dir.read("rocknet.toml"), by_hand);
    let refused = dir.run(&["config", "undo", "2"]);
    assert!(refused.err.contains("    +# by hand\n"), "{refused:?}");
    success(dir.run(&["config", "undo", "1", "--discard-edits"]));
    assert_eq!(dir.read("rocknet.toml"), FILE);
    assert!(server.get("/").contains("home"));
}

#[test]
fn a_change_that_is_not_recorded_is_not_undone_with_another_one() {
    let dir = home();
    let server = dir.serve(&["run"]);
    let set = |path: [&str; 2], value: &str| {
        let edits = json!({ "edits": [{ "op": "set", "path": path, "value": value }] });
        let (status, saved) = request(&dir, "POST", "/api/config/edit", &edits);
        assert_eq!(status, 200, "{saved}");
        saved
    };
    let recorded = set(["limits", "shutdown"], "\"3s\"");
    assert_eq!(
        (&recorded["can_undo"], &recorded["findings"]),
        (&json!(true), &json!([]))
    );
    // A file takes the place of the history folder, so that the next changes cannot be recorded.
    let (history, moved) = (dir.path().join("state/admin/history"), dir.path().join("moved"));
    fs::rename(&history, &moved).unwrap();
    fs::write(&history, "").unwrap();
    let lost = set(["log", "level"], "\"debug\"");
    assert_eq!(
        (&lost["can_undo"], &lost["findings"][0]["code"]),
        (&json!(false), &json!("no-history")),
        "{lost}"
    );
    server.logged("the change cannot be undone");
    let warned = dir.run(&["config", "set", "log.level", "info"]);
    assert!(warned.err.contains("the change cannot be undone"), "{warned:?}");
    fs::remove_file(&history).unwrap();
    fs::rename(&moved, &history).unwrap();

    // An undo of the recorded change would also undo the later changes, which are not in the history.
    let text = dir.read("rocknet.toml");
    for body in [json!({ "revision": revision(&dir) }), json!({})] {
        let (status, error) = request(&dir, "POST", "/api/config/undo", &body);
        assert_eq!(status, 409, "{error}");
        assert_eq!(dir.read("rocknet.toml"), text);
    }
}

#[test]
fn edits_that_change_nothing_are_not_recorded() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    let (status, error) = request(&dir, "POST", "/api/config/edit", &json!({ "edits": [] }));
    assert_eq!(status, 400, "{error}");
    let edits = json!({ "edits": [{ "op": "set", "path": ["server", "workers"], "value": "1" }] });
    let (status, saved) = request(&dir, "POST", "/api/config/edit", &edits);
    assert_eq!((status, &saved["can_undo"]), (200, &json!(false)), "{saved}");
    assert_eq!(dir.read("rocknet.toml"), FILE);
    assert_eq!(success(dir.run(&["config", "history"])), "no changes\n");
}

#[test]
fn keys_that_need_a_restart_are_reported() {
    let dir = home();
    let server = dir.serve(&["run"]);
    let message = "`admin.listen`: the new value takes effect after a restart of the server";
    let set = dir.run(&["config", "set", "admin.listen", "127.0.0.1:0"]);
    assert_eq!(
        (set.code, set.err.as_str()),
        (Some(0), &*format!("warning: {message}\n"))
    );
    server.logged(message);
    // Until the server is restarted, every reload reports the key.
    let (status, done) = request(&dir, "POST", "/api/reload", &Value::Null);
    assert_eq!(
        (status, &done["findings"][0]["code"]),
        (200, &json!("needs-restart")),
        "{done}"
    );
    let reload = dir.run(&["reload"]);
    assert_eq!((reload.code, reload.err), (Some(0), format!("warning: {message}\n")));
    let other = json!({ "edits": [{ "op": "set", "path": ["server", "blocking_threads"], "value": "3" }] });
    let (_, saved) = request(&dir, "POST", "/api/config/edit", &other);
    let shown = saved["findings"][0]["message"].as_str().unwrap();
    assert!(
        shown.starts_with("`server.blocking_threads`, `admin.listen`: the new values"),
        "{saved}"
    );
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
