//! Roots with `{host}`: a folder for each host, also for hosts whose folder is added while the server runs.

use std::fs;
use std::time::{Duration, Instant};

use crate::program::{ProgramFolder, Server};

const MAIN: &str = "[server]\nworkers = 1\nstate = \"state\"\n\
                    [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"hosts/{host}\"\n";

/// Requests a page until it has the expected text. A change of a folder is noticed within a few seconds.
#[track_caller]
fn wait_for(server: &Server, host: &str, expected: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let response = server.get_from(host, "/");
        if response.contains(expected) {
            return;
        }
        assert!(Instant::now() < deadline, "{host}: {response}");
        // The server checks every two seconds; nothing announces the end of a check.
        std::thread::yield_now();
    }
}

#[test]
fn a_folder_is_a_site_from_its_creation_to_its_removal() {
    let dir = ProgramFolder::new(&[
        ("hosts/a.test/index.html", "page of a"),
        ("hosts/b.test/index.html", "page of b"),
        ("secret/index.html", "secret"),
        ("rocknet.toml", MAIN),
    ]);
    let server = dir.serve(&["run"]);
    for (host, expected) in [
        ("a.test", "page of a"),
        ("B.Test:80", "page of b"),
        ("c.test", "404 Not Found"),
    ] {
        let response = server.get_from(host, "/");
        assert!(response.contains(expected), "{host}: {response}");
    }
    for host in ["..", "../secret", "a.test/../../secret", "%2e%2e", ""] {
        let response = server.get_from(host, "/");
        let is_refused = ["HTTP/1.1 400", "HTTP/1.1 404"]
            .iter()
            .any(|status| response.starts_with(status));
        assert!(is_refused && !response.ends_with("secret"), "{host}: {response}");
    }
    dir.write("hosts/c.test/index.html", "page of c");
    wait_for(&server, "c.test", "page of c");
    fs::remove_dir_all(dir.path().join("hosts/a.test")).expect("a folder of the test");
    wait_for(&server, "a.test", "404 Not Found");
    assert!(server.get_from("b.test", "/").contains("page of b"));
}

#[test]
fn an_edited_configuration_is_not_loaded_with_a_new_folder() {
    let dir = ProgramFolder::new(&[("hosts/a.test/index.html", "page of a"), ("rocknet.toml", MAIN)]);
    let server = dir.serve(&["run"]);
    wait_for(&server, "a.test", "page of a");
    dir.write(
        "rocknet.toml",
        &format!("{MAIN}headers = {{ \"X-Edited\" = \"yes\" }}\n"),
    );
    dir.write("hosts/b.test/index.html", "page of b");
    server.logged("folders of hosts have changed; they are served after a reload");
    assert!(!server.get_from("a.test", "/").contains("X-Edited"));
    assert!(server.get_from("b.test", "/").contains("404"));
    dir.run(&["reload"]);
    wait_for(&server, "b.test", "page of b");
}
