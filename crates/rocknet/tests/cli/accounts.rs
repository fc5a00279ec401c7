//! Started as root with `server.user`: which account keeps the state folder, and what scripts can reach.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::program::Place;

/// An empty `/var/lib` that only this server sees, and then the server itself.
const OWN_VAR_LIB: [&str; 5] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs none /var/lib && exec \"$@\"",
];

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: only root can become another user");
    }
    is_root
}

fn open(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

fn text(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, text)| text)
}

#[test]
fn the_state_folder_is_decided_before_rights_are_given_up() {
    if !is_root() {
        return;
    }
    let config = "[server]\nworkers = 1\nuser = \"nobody\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"auto\"\n";
    let place = Place::new(&[("www/a.php", "<?php echo 'ran';"), ("rocknet.toml", config)]);
    open(place.path());
    let words: Vec<&str> = OWN_VAR_LIB.into_iter().chain(["sh"]).collect();
    let server = place.serve_by(&words, &["run", "-c", "rocknet.toml"]);
    let answer = server.get("/a.php");
    assert!(text(&answer).contains("ran"), "{answer}");
    // As the server sees it, which has another /var/lib.
    let state = format!("/proc/{}/root/var/lib/rocknet", server.id());
    let found = fs::metadata(&state).expect("a state folder");
    assert_eq!((found.uid(), found.mode() & 0o777), (65_534, 0o700));
    assert!(!place.path().join(".local").exists(), "HOME belongs to root");
}
