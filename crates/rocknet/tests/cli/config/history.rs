//! Undo, and the history of changes.

use std::fs;

use serde_json::json;

use super::{FILE, home, request, revision, success};

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
