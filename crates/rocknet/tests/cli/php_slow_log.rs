//! Slow requests of PHP in the error log, with their site.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rocknet_testing::{Need, skip};

use crate::program::ProgramFolder;

fn folder(sandbox: &str) -> ProgramFolder {
    // Each site has a root inside the other's, so that only the longest root names the site.
    let site = |name: &str, root: &str| {
        format!(
            "[site.{name}]\nlisten = \"http://127.0.0.1:0\"\nroot = \"{root}\"\nphp = {{ slow = \"1s\", idle = \"5s\" }}\n"
        )
    };
    let dir = ProgramFolder::new(&[
        ("www/a.php", "<?php usleep(1);"),
        (
            "www/shop/slow.php",
            "<?php function wait() { sleep(3); }\nwait();\necho 'done';",
        ),
        (
            "rocknet.toml",
            &format!(
                "[server]\nworkers = 1\nstate = \"state\"\nsandbox = \"{sandbox}\"\n{}{}",
                site("default", "www"),
                site("\"shop.test\"", "www/shop")
            ),
        ),
    ]);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

#[test]
fn a_slow_request_is_logged_with_its_site() {
    if !std::path::Path::new("/usr/sbin/php-fpm8.2").is_file() {
        return skip(Need::Program("php-fpm8.2"), "it is not in /usr/sbin");
    }
    // Without a sandbox, php-fpm may trace its processes. With it, the request is logged all the same.
    for sandbox in ["off", "auto"] {
        let dir = folder(sandbox);
        let server = dir.serve(&["run", "-c", "rocknet.toml"]);
        // A query can be longer than php-fpm reports, and contain anything.
        let query = format!("token=secret&{}", "secret".repeat(400));
        let response = server.get_from("shop.test", &format!("/slow.php?{query}"));
        assert!(response.contains("done"), "{response}");
        let logged = server.logged_until("slow request: GET /slow.php has run for ");
        assert!(!logged.contains("secret"), "{logged}");
        let line = logged.lines().last().expect("a line");
        for part in ["site=shop.test", "/www/shop/slow.php", "/default"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        if sandbox == "off" {
            let line = server.logged("functions being run: ");
            for part in ["sleep() ", "< wait() ", "slow.php:1", "site=shop.test"] {
                assert!(line.contains(part), "{part}: {line}");
            }
        }
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(server.wait(), Some(0));
    }
}
