//! Checks of texts and edits, the form of the server, and keys that need a restart.

use serde_json::{Value, json};

use super::{FILE, home, request, revision};

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
