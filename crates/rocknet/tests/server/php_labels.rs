//! Label of a php-fpm that RockNet runs, in the metrics and in the access log.

use std::fs;
use std::time::Instant;

use rocknet::inventory;

use super::support::running::site;
use super::support::{DEADLINE, Folder, Running};

#[test]
fn managed_php_is_named_by_its_pool() {
    let folder = Folder::with(&[("www/index.php", "<?php echo 'front';")]);
    let log = "[log]\nerrors = \"off\"\naccess = \"access.log\"\nformat = \"json\"\n";
    let text = format!(
        "[server]\nworkers = 1\nstate = \"state\"\n{log}{}",
        site("php = \"auto\"")
    );
    let server = Running::start(folder, &text);
    assert_eq!(server.get("/").text(), "front");
    let pools = inventory::php_pools(server.server());
    let expected = format!("php:{}", pools[0].name);
    assert!(expected.len() > "php:8".len(), "{expected}");
    let count = format!("rocknet_upstream_response_duration_seconds_count{{upstream=\"{expected}\"}} 1\n");
    wait_for(&count, || inventory::metrics(server.server()));
    assert!(!inventory::metrics(server.server()).contains("upstream=\"auto\""));
    let field = format!("\"upstream\":\"{expected}\"");
    wait_for(&field, || {
        fs::read_to_string(server.folder.path("access.log")).unwrap_or_default()
    });
}

/// Waits until a text contains a part: the metrics and the log follow the response.
fn wait_for(part: &str, text: impl Fn() -> String) {
    let deadline = Instant::now() + DEADLINE;
    while !text().contains(part) {
        assert!(Instant::now() < deadline, "{part} is not in {}", text());
        std::thread::yield_now();
    }
}
