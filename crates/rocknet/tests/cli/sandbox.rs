//! The sandbox from outside: programs are denied what changes the system, and sites work as before.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use rocknet_testing::{Need, skip};

use crate::hardening::AS_NOBODY;
use crate::program::ProgramFolder;
use crate::upgrade::{KillAtEnd, upgrade};

/// CGI program that tries calls which change the system or read other processes, and prints which succeeded and which
/// failed. The last one, a fork, must always succeed.
const TRY: &str = r#"#!/bin/sh
printf 'Content-Type: text/plain\n\n'
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "DONE $name"; else echo "FAILED $name"; fi; }
try namespace unshare --user true
try mount unshare --user --map-root-user --mount mount -t tmpfs none /mnt
try trace strace -o /dev/null true
try fork sh -c 'sh -c true && true'
"#;

/// User ID of `daemon` on Debian.
const DAEMON: u32 = 1;

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(Need::Root, "only root may do what the sandbox prevents");
    }
    is_root
}

fn config(server: &str, site: &str) -> String {
    format!(
        "[server]\nworkers = 1\nstate = \"state\"\n{server}\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
         cgi = \"/cgi-bin\"\n{site}\n"
    )
}

fn folder(config: &str) -> ProgramFolder {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("www/cgi-bin/try", TRY),
        ("rocknet.toml", config),
    ]);
    for name in ["", "www", "www/cgi-bin", "www/cgi-bin/try"] {
        make_accessible(&dir.path().join(name));
    }
    dir
}

fn make_accessible(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// Returns the state of the sandbox that the running server reports.
fn sandbox_of(dir: &ProgramFolder) -> String {
    let status = dir.run(&["status", "--json", "-c", "rocknet.toml"]).out;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    status["sandbox"].as_str().expect("a text").to_owned()
}

#[test]
fn programs_cannot_change_the_system_or_trace_processes() {
    if !is_root() {
        return;
    }
    // Without the sandbox, the calls must succeed. This shows that in the other rows only the sandbox makes them fail.
    for (server, shown, verdict) in [
        ("sandbox = \"off\"", "off: switched off", "DONE"),
        ("mode = \"dev\"", "off: `auto` sets no limits in `dev` mode", "DONE"),
        ("", "programs are limited (seccomp)", "FAILED"),
        ("user = \"daemon\"", "programs are limited (seccomp)", "FAILED"),
        ("sandbox = \"strict\"", "strict (seccomp and Landlock)", "FAILED"),
    ] {
        let dir = folder(&config(server, ""));
        // The server creates its control socket in the folder, as `daemon` in one case. It must own the folder then.
        chown(dir.path(), server.contains("daemon").then_some(DAEMON), None).expect("another owner");
        let server_process = dir.serve(&["run", "-c", "rocknet.toml"]);
        assert!(sandbox_of(&dir).starts_with(shown), "{server}: {}", sandbox_of(&dir));
        let response = server_process.get("/cgi-bin/try");
        for call in ["namespace", "mount", "trace"] {
            assert!(
                response.contains(&format!("{verdict} {call}\n")),
                "{server}: {response}"
            );
        }
        assert!(response.contains("DONE fork\n"), "{server}: {response}");
        assert!(server_process.get("/").contains("home"));
    }
}

#[test]
fn set_user_id_programs_are_not_disabled_unasked() {
    if !is_root() {
        return;
    }
    // Without root, the server can install its filter only if `no_new_privs` is set, which disables set-user-ID files.
    // The server does not set the flag itself.
    for (arguments, shown) in [
        ("", "off: programs may gain privileges by set-user-ID files"),
        ("--no-new-privs", "programs are limited (seccomp)"),
    ] {
        let dir = folder(&config("", ""));
        chown(dir.path(), Some(65_534), Some(65_534)).expect("another owner");
        let command = AS_NOBODY.replace("ARGUMENTS", arguments);
        let _server = dir.serve_by(&["sh", "-c", &command, "sh"], &["run", "-c", "rocknet.toml"]);
        assert!(sandbox_of(&dir).starts_with(shown), "{arguments}: {}", sandbox_of(&dir));
    }
}

/// CGI program that appends to the file in its query.
const WRITE: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
     if echo line >>\"$QUERY_STRING\"; then echo written; else echo refused; fi\necho ignored >/dev/null && echo null\n";

#[test]
fn the_strict_sandbox_permits_changes_in_listed_folders_only() {
    if !is_root() {
        return;
    }
    // Outside of /tmp, which programs may write to, and accessible to their account.
    let outside = tempfile::tempdir_in("/srv").expect("a folder");
    make_accessible(outside.path());
    let path = |name: &str| outside.path().join(name).display().to_string();
    for name in ["data", "other", "logs", "second"] {
        fs::create_dir(path(name)).expect("a folder");
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o777)).expect("a mode");
    }
    fs::write(outside.path().join("second/index.html"), "second").expect("a file");
    let server = format!(
        "sandbox = \"strict\"\nsandbox_write = [\"{}\"]\n[log]\naccess = \"{}\"\n",
        path("data"),
        path("logs/access.log")
    );
    let written = config(&server, "");
    let dir = folder(&written);
    let script = dir.write("www/cgi-bin/write", WRITE);
    make_accessible(&script);
    fs::set_permissions(dir.path().join("www"), fs::Permissions::from_mode(0o777)).expect("a mode");
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    for (target, verdict) in [
        (path("data/file"), "written"),
        (dir.path().join("www/upload").display().to_string(), "written"),
        (path("other/file"), "refused"),
    ] {
        let response = server.get(&format!("/cgi-bin/write?{target}"));
        assert!(
            response.contains(verdict) && response.contains("null"),
            "{target}: {response}"
        );
    }
    assert!(!outside.path().join("other/file").exists());

    // A reload can add a root in any folder, because the sandbox does not limit reading.
    let second = format!(
        "{written}[site.\"second.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"{}\"\n",
        path("second")
    );
    dir.write("rocknet.toml", &second);
    let reloaded = dir.run(&["reload", "-c", "rocknet.toml"]);
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    // A log in another folder cannot be written.
    let logged = second.replace(&path("logs/access.log"), &path("other/second.log"));
    dir.write("rocknet.toml", &logged);
    let reloaded = dir.run(&["reload", "-c", "rocknet.toml"]);
    assert!(
        reloaded.code == Some(1)
            && reloaded.err.contains(&path("other"))
            && reloaded.err.contains("restart the server"),
        "{reloaded:?}"
    );
    assert!(server.get("/").contains("home"));
    dir.write("rocknet.toml", &second);

    // The server itself can change its configuration file.
    let set = dir.run(&["config", "set", "log.level", "debug", "-c", "rocknet.toml"]);
    assert_eq!(set.code, Some(0), "{set:?}");
    assert!(dir.read("rocknet.toml").contains("level = \"debug\""));
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let log = fs::read_to_string(path("logs/access.log")).expect("a log");
    assert!(log.contains("GET /cgi-bin/write?"), "{log}");
}

#[test]
fn php_certificates_and_upstreams_work_in_the_strict_sandbox() {
    if !is_root() {
        return;
    }
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = upstream.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in upstream.incoming().flatten() {
            let mut request = [0; 1024];
            let _ = std::io::Read::read(&mut stream, &mut request);
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nupstream";
            let _ = std::io::Write::write_all(&mut stream, response);
        }
    });
    let sites = format!(
        "php = \"auto\"\n[site.default.route.\"/up\"]\nproxy = \"http://{address}\"\n\
         [site.\"a.localhost\"]\nlisten = \"https://127.0.0.2:0\"\nroot = \"www\"\ntls = \"local\"\n"
    );
    let dir = folder(&config("sandbox = \"strict\"\nuser = \"daemon\"", &sites));
    dir.write(
        "www/a.php",
        "<?php file_put_contents(sys_get_temp_dir() . '/rocknet-' . getmypid(), 'x'); session_start(); echo 'php=', \
         file_get_contents(sys_get_temp_dir() . '/rocknet-' . getmypid()); unlink(sys_get_temp_dir() . '/rocknet-' . getmypid());",
    );
    chown(dir.path(), Some(DAEMON), None).expect("another owner");
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    assert!(server.get("/a.php").contains("php=x"), "{}", server.get("/a.php"));
    assert!(server.get("/up").contains("upstream"));
    let certificates = dir.run(&["certs", "-c", "rocknet.toml"]);
    assert!(certificates.out.contains("a.localhost"), "{certificates:?}");
    assert!(dir.path().join("state/local/ca.pem").exists(), "{certificates:?}");
    assert!(sandbox_of(&dir).starts_with("strict"));
}

#[test]
fn an_upgrade_keeps_the_strict_sandbox_and_does_not_widen_it() {
    if !is_root() {
        return;
    }
    let outside = tempfile::tempdir_in("/srv").expect("a folder");
    let strict = "sandbox = \"strict\"";
    let written = config(strict, "");
    let dir = folder(&written);
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let _end = KillAtEnd(&dir);
    let wider = format!("{strict}\nsandbox_write = [\"{}\"]", outside.path().display());
    for (settings, reason) in [
        (wider.as_str(), "restart the server to load this configuration"),
        ("sandbox = \"auto\"", "restart the server to leave the sandbox"),
    ] {
        dir.write("rocknet.toml", &config(settings, ""));
        let refused = dir.run(&["upgrade"]);
        assert!(
            refused.code == Some(1) && refused.err.contains(reason),
            "{settings}: {refused:?}"
        );
        assert!(server.get("/").ends_with("home"));
    }
    dir.write("rocknet.toml", &written);
    // The second upgrade shows that the new process, which is limited too, can start another one.
    for _ in 0..2 {
        upgrade(&dir, &[]);
        assert!(sandbox_of(&dir).starts_with("strict"), "{}", sandbox_of(&dir));
        let response = server.get("/cgi-bin/try");
        assert!(
            response.contains("FAILED mount\n") && response.contains("DONE fork\n"),
            "{response}"
        );
    }
    assert_eq!(dir.run(&["stop"]).code, Some(0));
}

#[test]
fn upgrades_beyond_the_layers_of_landlock_need_a_restart() {
    if !is_root() {
        return;
    }
    let dir = folder(&config("sandbox = \"strict\"", ""));
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let _end = KillAtEnd(&dir);
    // The kernel permits 16 layers, and the server has set the first when it started.
    for _ in 1..16 {
        upgrade(&dir, &[]);
    }
    let refused = dir.run(&["upgrade"]);
    assert!(
        refused.code == Some(1) && refused.err.contains("layer of Landlock rules") && refused.err.contains("restart"),
        "{refused:?}"
    );
    assert!(!refused.err.contains("sandbox = \"auto\""), "{refused:?}");
    assert!(server.get("/").ends_with("home"));
    assert_eq!(dir.run(&["stop"]).code, Some(0));
}

#[test]
fn the_limits_of_programs_do_not_apply_to_the_new_process_of_an_upgrade() {
    if !is_root() {
        return;
    }
    let dir = folder(&config("", ""));
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let _end = KillAtEnd(&dir);
    let limits = |process: u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
        let line = status.lines().find(|line| line.starts_with("Seccomp:"));
        line.expect("a line").to_owned()
    };
    let before = limits(server.id());
    let process = upgrade(&dir, &[]);
    assert_eq!(limits(process), before);
    // Programs of the new process are limited as before.
    assert!(sandbox_of(&dir).starts_with("programs are limited (seccomp)"));
    assert!(server.get("/cgi-bin/try").contains("FAILED mount\n"));
}
