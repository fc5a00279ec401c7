//! Runs two versions of PHP at the same time. Most systems have only one, so the second is simulated by a script that
//! runs the installed php-fpm under another name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rocknet_testing::{Need, skip};

use crate::program::ProgramFolder;

/// Shell command that copies the script named by its first argument to `/usr/local/sbin`, as the php-fpm of version
/// 8.9, and then executes the remaining arguments. It needs a mount namespace of its own.
const INSTALL_SECOND: &str =
    "mount -t tmpfs none /usr/local/sbin && cp \"$1\" /usr/local/sbin/php-fpm8.9 && shift && exec \"$@\"";

#[test]
fn each_route_runs_its_configured_version() {
    let real = Path::new("/usr/sbin/php-fpm8.2");
    if !real.is_file() {
        return skip(Need::Program("php-fpm8.2"), "it is not in /usr/sbin");
    }
    if !rustix::process::geteuid().is_root() {
        return skip(Need::Root, "the second version is mounted");
    }
    // Each parameter is the PHP version of the route with the same name. Scripts outside these routes run with 8.2.
    let config = |new: &str, newest: &str, major: &str| {
        let route = |name: &str, php: &str| format!("[site.default.route.\"/{name}/*\"]\nphp = \"{php}\"\n");
        let routes = [route("new", new), route("newest", newest), route("major", major)].concat();
        let site = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"8.2\"\n";
        format!("[server]\nworkers = 1\nstate = \"state\"\n{site}{routes}")
    };
    let script = "<?php echo 'PHP', ini_get('error_append_string'), ' ', posix_getppid();";
    let dir = ProgramFolder::new(&[
        ("www/old/a.php", script),
        ("www/new/a.php", script),
        ("www/newest/a.php", script),
        ("www/major/a.php", script),
        (
            "stand-in",
            "#!/bin/sh\nexec /usr/sbin/php-fpm8.2 -d error_append_string=8.9 \"$@\"\n",
        ),
        ("rocknet.toml", &config("8.9", "auto", "8")),
    ]);
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    open(dir.path());
    let stand_in = dir.path().join("stand-in");
    open(&stand_in);
    let server = dir.serve_by(
        &[
            "unshare",
            "--mount",
            "sh",
            "-c",
            INSTALL_SECOND,
            "sh",
            stand_in.to_str().unwrap(),
        ],
        &["run", "-c", "rocknet.toml"],
    );
    // Returns the version that the script reports, and the pid of its php-fpm master process.
    let fetch = |name: &str| {
        let response = server.get(&format!("/{name}/a.php"));
        let text = response.split("\r\n\r\n").nth(1).unwrap_or_default();
        let (version, master) = text.split_once(' ').unwrap_or_else(|| panic!("{response}"));
        (version.to_owned(), master.to_owned())
    };
    let (old, new) = (fetch("old"), fetch("new"));
    assert_eq!((old.0.as_str(), new.0.as_str()), ("PHP", "PHP8.9"));
    assert_ne!(old.1, new.1, "each version must have its own master process");
    // The newest version and the newest version 8 are the same, so both routes use one process.
    assert_eq!((fetch("newest"), fetch("major")), (new.clone(), new));
    // After the reload only version 8.2 is configured, and its process continues to run.
    dir.write("rocknet.toml", &config("8.2", "8.2", "8.2"));
    server.signal(rustix::process::Signal::HUP);
    server.logged("is reloaded");
    for name in ["old", "new", "newest", "major"] {
        assert_eq!(fetch(name), old, "{name}");
    }
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}
