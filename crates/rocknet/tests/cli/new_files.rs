//! Sites in new files of an included folder, by commands and over the control API.

use serde_json::{Value, json};

use crate::config::{request, success};
use crate::program::{ProgramFolder, Server};

const MAIN: &str = "include = [\"sites/*.toml\"]\n[server]\nworkers = 1\nstate = \"state\"\n\
                    [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";
const ADDED: &str = "[site.\"z.test\"]\nroot = \"../other\"\nlisten = \"http://127.0.0.2:0\"\n";

fn start() -> (ProgramFolder, Server) {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("other/index.html", "other"),
        ("sites/readme", ""),
        ("rocknet.toml", MAIN),
    ]);
    let server = dir.serve(&["run"]);
    (dir, server)
}

/// Returns a request that adds a site in a new file.
fn addition(file: &str, site: &str) -> Value {
    json!({ "file": file, "create": true, "edits": [
        { "op": "add_site", "name": site, "root": "../other" },
        { "op": "set", "path": ["site", site, "listen"], "value": "\"http://127.0.0.2:0\"" },
    ]})
}

/// Names of the files in the included folder.
fn names(dir: &ProgramFolder) -> Vec<String> {
    let entries = std::fs::read_dir(dir.path().join("sites")).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "readme")
        .collect();
    names.sort();
    names
}

#[test]
fn a_site_gets_a_file_of_its_own_and_the_history_has_it() {
    let (dir, _server) = start();
    let send = |method: &str, path: &str, body: &Value| request(&dir, method, path, body);
    let site = addition("sites/z.toml", "z.test");
    let (status, checked) = send("POST", "/api/config/check-edits", &site);
    assert_eq!((status, &checked["is_valid"]), (200, &json!(true)), "{checked}");
    assert_eq!(names(&dir), [""; 0]);
    let (status, saved) = send("POST", "/api/config/edit", &site);
    assert_eq!((status, &saved["can_undo"]), (200, &json!(true)), "{saved}");
    assert_eq!(
        (names(&dir), dir.read("sites/z.toml").as_str()),
        (vec!["z.toml".to_owned()], ADDED)
    );
    assert!(success(dir.run(&["sites"])).contains("z.test"));
    assert!(success(dir.run(&["config", "files"])).contains("sites/z.toml"));
    let history = success(dir.run(&["config", "history"]));
    assert!(
        history.contains("add site z.test") && history.contains("+[site.\"z.test\"]"),
        "{history}"
    );

    // The file exists now.
    let (status, error) = send("POST", "/api/config/edit", &addition("sites/z.toml", "y.test"));
    assert_eq!(status, 409, "{error}");
    let (status, error) = send("POST", "/api/config/edit", &addition("sites/y.toml", "z.test"));
    assert!(
        status == 422 && error["error"].as_str().unwrap().contains("defines it already"),
        "{error}"
    );

    // An undo removes the file, and another one creates it again.
    success(dir.run(&["config", "undo"]));
    assert_eq!(names(&dir), [""; 0]);
    assert!(!success(dir.run(&["sites"])).contains("z.test"));
    let history = success(dir.run(&["config", "history"]));
    assert!(
        history.contains("undo 1: add site z.test") && history.contains("-[site.\"z.test\"]"),
        "{history}"
    );
    success(dir.run(&["config", "undo"]));
    assert_eq!(dir.read("sites/z.toml"), ADDED);
    assert!(success(dir.run(&["sites"])).contains("z.test"));
    // An edit by hand is not discarded together with the file.
    dir.write("sites/z.toml", &format!("{ADDED}# by hand\n"));
    let refused = dir.run(&["config", "undo"]);
    assert!(
        refused.code == Some(1) && refused.err.contains("by hand"),
        "{refused:?}"
    );
    assert_eq!(names(&dir), ["z.toml"]);
    success(dir.run(&["config", "undo", "--discard-edits"]));
    assert_eq!(names(&dir), [""; 0]);
    assert_eq!(dir.read("rocknet.toml"), MAIN);
}

#[test]
fn the_command_creates_the_file_or_adds_to_it() {
    let (dir, _server) = start();
    dir.write("third/index.html", "third");
    let add = |name: &str, folder: &str| dir.run(&["config", "add-site", name, folder, "--file", "sites/a.toml"]);
    let added = success(add("127.0.0.2:0", "other"));
    assert!(added.contains("http://127.0.0.2"), "{added}");
    let other = dir.path().join("other").canonicalize().unwrap();
    let third = dir.path().join("third").canonicalize().unwrap();
    let site = |name: &str, root: &std::path::Path| format!("[site.\"{name}\"]\nroot = \"{}\"\n", root.display());
    assert_eq!(dir.read("sites/a.toml"), site("127.0.0.2:0", &other));
    success(add("127.0.0.3:0", "third"));
    let both = format!("{}\n{}", site("127.0.0.2:0", &other), site("127.0.0.3:0", &third));
    assert_eq!(dir.read("sites/a.toml"), both);
    let outside = dir.run(&["config", "add-site", ":0", "other", "--file", "a.toml"]);
    assert!(
        outside.code == Some(1) && outside.err.contains("no pattern of `include`"),
        "{outside:?}"
    );
}

#[test]
fn other_files_are_not_created() {
    let (dir, server) = start();
    std::os::unix::fs::symlink("/nowhere", dir.path().join("sites/link.toml")).unwrap();
    let send = |body: &Value| request(&dir, "POST", "/api/config/edit", body);
    for (file, expected) in [
        ("../a.toml", 400),
        ("sites/../a.toml", 400),
        ("/tmp/a.toml", 400),
        ("sites/.a.toml", 400),
        ("sites/a b.toml", 400),
        ("sites/a\u{0}.toml", 400),
        ("", 400),
        ("a.toml", 422),
        ("sites/a.txt", 422),
        ("www/a.toml", 422),
        ("none/a.toml", 422),
        ("sites/link.toml", 409),
        ("rocknet.toml", 409),
    ] {
        let (status, error) = send(&addition(file, "z.test"));
        assert_eq!(status, expected, "{file:?}: {error}");
        let (status, _) = request(&dir, "POST", "/api/config/check-edits", &addition(file, "z.test"));
        assert_eq!(status, expected, "{file:?}");
    }
    for body in [
        json!({ "create": true, "edits": [{ "op": "add_site", "name": "z.test", "root": "../other" }] }),
        json!({ "create": true, "file": "sites/z.toml", "edits": [{ "op": "set", "path": ["server", "workers"], "value": "2" }] }),
    ] {
        assert_eq!(send(&body).0, 400, "{body}");
    }
    // A text that is not valid, or that the server cannot load, leaves no file.
    let mut missing = addition("sites/z.toml", "z.test");
    missing["edits"][0]["root"] = json!("missing");
    assert_eq!(send(&missing).0, 422);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut busy = addition("sites/z.toml", "z.test");
    busy["edits"][1]["value"] = json!(format!("\"http://{}\"", taken.local_addr().unwrap()));
    let (status, error) = send(&busy);
    assert!(
        status == 422 && error["error"].as_str().unwrap().contains("the file is removed again"),
        "{error}"
    );
    assert_eq!(names(&dir), ["link.toml"]);
    assert_eq!(success(dir.run(&["config", "history"])), "no changes\n");
    assert!(server.get("/").contains("home"));
    // Without `create`, a file must be there.
    let mut unknown = addition("sites/z.toml", "z.test");
    unknown["create"] = json!(false);
    assert_eq!(send(&unknown).0, 404);
}
