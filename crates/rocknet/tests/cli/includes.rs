//! Included files of the configuration of a running server, and edits of whole sites, by commands and over the control
//! API.

use serde_json::{Value, json};

use crate::config::{request, success};
use crate::program::{ProgramFolder, Server};

const MAIN: &str = "include = [\"sites/*.toml\"]\n[server]\nworkers = 1\nstate = \"state\"\n";
const SITE: &str = "# mine\n[site.default] # first\nlisten = \"127.0.0.1:0\"\nroot = \"../www\"\n";
const OTHER: &str = "[site.\"z.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"../other\"\n";

fn start() -> (ProgramFolder, Server) {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("other/index.html", "other"),
        ("rocknet.toml", MAIN),
        ("sites/a.toml", SITE),
        ("sites/b.toml", OTHER),
    ]);
    let server = dir.serve(&["run"]);
    (dir, server)
}

fn file(dir: &ProgramFolder, name: &str) -> Value {
    let (status, config) = request(dir, "GET", &format!("/api/config?file={name}"), &Value::Null);
    assert_eq!(status, 200, "{config}");
    config
}

#[test]
fn included_files_are_read_checked_and_replaced() {
    let (dir, server) = start();
    let config = file(&dir, "sites%2Fa.toml");
    assert_eq!((&config["text"], &config["is_loaded"]), (&json!(SITE), &json!(true)));
    let names: Vec<&str> = config["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let expected = ["rocknet.toml", "sites/a.toml", "sites/b.toml"];
    assert!(
        names.len() == 3 && names.iter().zip(expected).all(|(name, end)| name.ends_with(end)),
        "{names:?}"
    );
    assert_eq!(
        success(dir.run(&["config", "files"])).lines().collect::<Vec<_>>(),
        names
    );
    assert_eq!(success(dir.run(&["config", "show", "sites/b.toml"])), OTHER);

    // The check of one file also reads the other files.
    let text = format!("{SITE}rot = 1\n[site.\"z.test\"]\nroot = \"../www\"\n");
    let candidate = json!({ "text": text, "file": "sites/a.toml" });
    let (_, checked) = request(&dir, "POST", "/api/config/check", &candidate);
    let findings = checked["findings"].as_array().unwrap();
    let unknown = findings.iter().find(|one| one["code"] == "unknown-key").unwrap();
    assert_eq!(
        (&unknown["line"], &unknown["key"]),
        (&json!(5), &json!(["site", "default", "rot"]))
    );
    assert!(
        findings
            .iter()
            .any(|one| one["message"] == "site \"z.test\" is defined in two files"),
        "{checked}"
    );

    let text = SITE.replace("../www", "../other");
    let replacement = json!({ "text": text, "revision": config["revision"], "file": config["file"] });
    let (status, saved) = request(&dir, "PUT", "/api/config", &replacement);
    assert_eq!((status, &saved["file"]), (200, &config["file"]), "{saved}");
    assert!(server.get("/").contains("other"));
    assert_eq!(
        (dir.read("sites/a.toml"), dir.read("rocknet.toml")),
        (text, MAIN.to_owned())
    );
    let (status, error) = request(&dir, "PUT", "/api/config", &replacement);
    assert_eq!(status, 409, "{error}");

    for name in ["state/admin/control.sock", "%2Fetc%2Fpasswd", "www/index.html"] {
        let (status, error) = request(&dir, "GET", &format!("/api/config?file={name}"), &Value::Null);
        assert_eq!(status, 404, "{error}");
    }
    // A change by hand is not loaded yet.
    dir.write("sites/b.toml", &format!("{OTHER}# by hand\n"));
    assert_eq!(file(&dir, "sites%2Fb.toml")["is_loaded"], json!(false));
    success(dir.run(&["reload"]));
    assert_eq!(file(&dir, "sites%2Fb.toml")["is_loaded"], json!(true));
}

#[test]
fn a_key_is_changed_in_the_file_that_defines_it() {
    let (dir, server) = start();
    success(dir.run(&["config", "set", "site.default.root", "../other"]));
    assert!(server.get("/").contains("other"));
    assert_eq!(dir.read("sites/a.toml"), SITE.replace("../www", "../other"));
    success(dir.run(&["config", "set", "server.workers", "2"]));
    success(dir.run(&["config", "set", "site.\"z.test\".browse", "true"]));
    assert_eq!(dir.read("sites/b.toml"), format!("{OTHER}browse = true\n"));
    assert_eq!(dir.read("rocknet.toml"), MAIN.replace("workers = 1", "workers = 2"));

    let history = success(dir.run(&["config", "history"]));
    assert!(
        history.starts_with("3  ")
            && history.contains("  b.toml: set site.z.test.browse\n")
            && history.contains("  a.toml: set site.default.root\n"),
        "{history}"
    );
    // Changes of other files stay.
    success(dir.run(&["config", "undo", "1"]));
    assert_eq!(dir.read("sites/a.toml"), SITE);
    assert!(server.get("/").contains("home"));
    assert!(dir.read("rocknet.toml").contains("workers = 2") && dir.read("sites/b.toml").contains("browse"));
    // The last change is now the undo itself.
    success(dir.run(&["config", "undo"]));
    assert!(server.get("/").contains("other"));

    let remove = |site: &str| json!({ "op": "remove", "path": ["site", site] });
    let both = json!({ "edits": [remove("default"), remove("z.test")] });
    let (status, error) = request(&dir, "POST", "/api/config/edit", &both);
    assert!(
        status == 422 && error["error"].as_str().unwrap().contains("concern two files"),
        "{error}"
    );
    let twice = dir.run(&["config", "add-site", "z.test", "www"]);
    assert!(twice.err.contains("site \"z.test\" already exists"), "{}", twice.err);
}

#[test]
fn an_included_file_gets_its_text_again_if_it_cannot_be_loaded() {
    let (dir, server) = start();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = dir.run(&["config", "set", "site.default.listen", &address]);
    assert!(output.err.contains("the file has its old text again"), "{}", output.err);
    assert_eq!(dir.read("sites/a.toml"), SITE);
    assert!(server.get("/").contains("home"));
    assert_eq!(success(dir.run(&["config", "history"])), "no changes\n");
    assert_eq!(file(&dir, "sites%2Fa.toml")["is_loaded"], json!(true));
}

#[test]
fn sites_are_copied_renamed_and_disabled() {
    let (dir, server) = start();
    success(dir.run(&["config", "copy-site", "z.test", "c.test"]));
    let copied = format!("{OTHER}\n{}", OTHER.replace("z.test", "c.test"));
    assert_eq!(dir.read("sites/b.toml"), copied);
    success(dir.run(&["config", "rename-site", "c.test", "d.test"]));
    assert_eq!(dir.read("sites/b.toml"), copied.replace("c.test", "d.test"));
    success(dir.run(&["config", "disable-site", "d.test"]));
    let sites = success(dir.run(&["sites"]));
    assert!(
        sites
            .lines()
            .any(|line| line.starts_with("d.test") && line.ends_with("disabled")),
        "{sites}"
    );
    let (_, all) = request(&dir, "GET", "/api/sites", &Value::Null);
    let site = all
        .as_array()
        .unwrap()
        .iter()
        .find(|site| site["name"] == "d.test")
        .unwrap();
    assert_eq!((&site["disabled"], &site["urls"]), (&json!(true), &json!([])));
    let shown = dir.run(&["sites", "d.test"]);
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(
        shown.err.contains("site d.test is disabled") && shown.err.contains("rocknet config enable-site d.test"),
        "{shown:?}"
    );
    // The folder of a disabled site may be missing.
    success(dir.run(&["config", "set", "site.\"d.test\".root", "missing"]));
    let enabled = dir.run(&["config", "enable-site", "d.test"]);
    assert!(
        enabled.code == Some(1) && enabled.err.contains("is not changed"),
        "{enabled:?}"
    );
    success(dir.run(&["config", "undo"]));
    success(dir.run(&["config", "enable-site", "d.test"]));
    assert_eq!(dir.read("sites/b.toml"), copied.replace("c.test", "d.test"));
    for (arguments, message) in [
        (["copy-site", "none", "e.test"], "there is no site \"none\""),
        (["rename-site", "z.test", "d.test"], "site \"d.test\" already exists"),
    ] {
        let output = dir.run(&["config", arguments[0], arguments[1], arguments[2]]);
        assert!(output.code == Some(1) && output.err.contains(message), "{output:?}");
    }
    assert!(server.get("/").contains("home"));
}

#[test]
fn the_form_of_a_site_has_its_keys_with_their_documentation() {
    let (dir, _server) = start();
    let (status, form) = request(&dir, "GET", "/api/config/site?name=z.test", &Value::Null);
    assert_eq!(status, 200, "{form}");
    assert!(form["file"].as_str().unwrap().ends_with("sites/b.toml"), "{form}");
    assert_eq!(form["line"], json!(1));
    let fields = form["fields"].as_array().unwrap();
    let field = |name: &str| fields.iter().find(|field| field["name"] == name).unwrap();
    assert_eq!(field("root")["text"], "../other");
    assert_eq!(
        (&field("enabled")["input"], &field("enabled")["default"]),
        (&json!("switch"), &json!("true"))
    );
    assert!(field("compress")["help"].as_str().unwrap().contains("Compresses"));
    let edits = json!({ "file": form["file"], "revision": form["revision"], "edits": [
        { "op": "set_field", "site": "z.test", "field": "headers", "text": "A = 1\nB = 2" },
        { "op": "set_field", "site": "z.test", "field": "limits.body_size", "text": "1MiB" },
    ]});
    let (status, saved) = request(&dir, "POST", "/api/config/edit", &edits);
    assert_eq!(status, 200, "{saved}");
    let expected = format!("{OTHER}headers = {{ A = \"1\", B = \"2\" }}\nlimits = {{ body_size = \"1MiB\" }}\n");
    assert_eq!(dir.read("sites/b.toml"), expected);
    let wrong = json!({ "edits": [{ "op": "set_field", "site": "z.test", "field": "headers", "text": "A" }] });
    let (status, error) = request(&dir, "POST", "/api/config/check-edits", &wrong);
    assert_eq!(
        (status, &error["error"]),
        (422, &json!("cannot set site.z.test.headers: `A` is not `name = value`"))
    );
    assert_eq!(request(&dir, "GET", "/api/config/site?name=none", &Value::Null).0, 404);
}
