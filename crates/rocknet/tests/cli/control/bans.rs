//! `rocknet ban`: bans of operators, which a restart keeps.

use super::{SITE, home, json, success};

#[test]
fn bans_are_added_listed_and_lifted_and_survive_a_restart() {
    let dir = home();
    // The default folder of state may belong to several servers at a time.
    dir.write("rocknet.toml", &format!("[server]\nstate = \"state\"\n{SITE}"));
    let server = dir.serve(&["run"]);
    assert_eq!(success(dir.run(&["ban"])), "no client is banned\n");
    let added = success(dir.run(&["ban", "add", "198.51.100.7", "--for", "1h", "--reason", "a bot"]));
    assert!(added.starts_with("198.51.100.7 is banned until "), "{added}");
    let added = success(dir.run(&["ban", "add", "203.0.113.9/24", "--for", "forever"]));
    assert_eq!(added, "203.0.113.0/24 is banned until the ban is lifted\n");
    let status = success(dir.run(&["status"]));
    assert!(status.contains("2 clients and networks\n"), "{status}");
    for (arguments, code, part) in [
        (&["add", "nonsense"][..], 1, "is not an address or network"),
        (
            &["add", "192.0.2.1", "--for", "soon"],
            2,
            "write a whole number and a unit",
        ),
        (&["lift", "192.0.2.1"], 1, "192.0.2.1 is not banned"),
    ] {
        let output = dir.run(&[&["ban"], arguments].concat());
        assert!(output.code == Some(code) && output.err.contains(part), "{output:?}");
    }
    success(dir.run(&["stop"]));
    drop(server);
    let server = dir.serve(&["run"]);
    let list = json(&success(dir.run(&["ban", "list", "--json"])));
    assert_eq!(list["total"], 2, "{list}");
    let lifted = success(dir.run(&["ban", "lift", "203.0.113.0/24"]));
    assert_eq!(lifted, "the ban of 203.0.113.0/24 was lifted\n");
    let list = success(dir.run(&["ban", "list"]));
    assert!(
        list.starts_with("198.51.100.7  ") && list.ends_with("  a bot\n"),
        "{list}"
    );
    assert_eq!(list.lines().count(), 1, "{list}");
    // The program is not banned itself.
    assert!(server.get("/").contains("home"));
}
