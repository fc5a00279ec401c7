//! Servers started as root with `server.user`: the owner of the state folder, the files that scripts can reach, and the
//! account helper.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_testing::{Need, skip};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::program::{ProgramFolder, Server};

/// Command that runs the server in a mount namespace of its own, with an empty `/var/lib`.
const OWN_VAR_LIB: [&str; 5] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs none /var/lib && exec \"$@\"",
];

/// Returns true if the test runs as root. Otherwise the test is reported as skipped.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(Need::Root, "only root can become another user");
    }
    is_root
}

pub fn make_accessible(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").map_or("", |(_, text)| text)
}

#[test]
fn the_state_folder_is_chosen_before_privileges_are_dropped() {
    if !is_root() {
        return;
    }
    let config = "[server]\nworkers = 1\nuser = \"nobody\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"auto\"\n";
    let dir = ProgramFolder::new(&[("www/a.php", "<?php echo 'ran';"), ("rocknet.toml", config)]);
    make_accessible(dir.path());
    let words: Vec<&str> = OWN_VAR_LIB.into_iter().chain(["sh"]).collect();
    let server = dir.serve_by(&words, &["run", "-c", "rocknet.toml"]);
    let response = server.get("/a.php");
    assert!(body(&response).contains("ran"), "{response}");
    // This path leads into the server's mount namespace.
    let state = format!("/proc/{}/root/var/lib/rocknet", server.id());
    let found = fs::metadata(&state).expect("a state folder");
    // `nobody` (user ID 65534), the account of the server, owns the folder and is the only one with access.
    assert_eq!((found.uid(), found.mode() & 0o777), (65_534, 0o700));
    assert!(
        !dir.path().join(".local").exists(),
        "the state folder must not be in the home of root"
    );
}

/// PHP script that prints its user ID, the operations that succeeded, and the number of targets it has tried. The
/// targets are the paths in the file `targets`, and the processes in the query.
const TRY: &str = r#"<?php
echo 'uid=', posix_getuid(), ' ';
$tried = 0;
foreach (file(__DIR__ . '/targets', FILE_IGNORE_NEW_LINES) as $path) {
    $tried++;
    if (@file_get_contents($path, false, null, 0, 1) !== false) echo "READ $path ";
    if (@fopen($path, 'r+') !== false) echo "WROTE $path ";
    if (@fopen("$path.new", 'x') !== false) echo "CREATED $path.new ";
    if (@scandir($path) !== false) echo "LISTED $path ";
    if (@rename($path, "$path.old")) echo "RENAMED $path ";
    if (@unlink($path)) echo "REMOVED $path ";
    if (@chmod($path, 0777)) echo "OPENED $path ";
    if (@stream_socket_client("unix://$path") !== false) echo "CONNECTED $path ";
}
foreach (explode(',', $_GET['pids']) as $pid) {
    $tried++;
    if (@posix_kill((int) $pid, 0)) echo "SIGNALLED $pid ";
    foreach (['environ', 'mem', 'maps', 'fd/0', 'fd/3', 'root/'] as $name)
        if (@fopen("/proc/$pid/$name", 'r') !== false) echo "READ /proc/$pid/$name ";
}
echo "tried=$tried ";
"#;

/// CGI program that tries those operations of [`TRY`] on the paths that a shell has commands for, with the same output.
/// It also writes to standard error, to test that the server logs the text.
const TRY_CGI: &str = r#"#!/bin/sh
printf 'Content-Type: text/plain\n\nuid=%s ' "$(id -u)"
tried=0
while read -r path; do
    tried=$((tried + 1))
    head -c 1 "$path" >/dev/null 2>&1 && printf 'READ %s ' "$path"
    (: >>"$path") 2>/dev/null && printf 'WROTE %s ' "$path"
    ls "$path/" >/dev/null 2>&1 && printf 'LISTED %s ' "$path"
    mv "$path" "$path.old" 2>/dev/null && printf 'RENAMED %s ' "$path"
    rm -f "$path" 2>/dev/null && printf 'REMOVED %s ' "$path"
done <"$(dirname "$SCRIPT_FILENAME")/../targets"
echo "tried=$tried "
echo complaint >/dev/stderr
"#;

const SITES: &str = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"auto\"\ncgi = \"/cgi-bin\"\n\
     [site.\"a.localhost\"]\nlisten = \"https://127.0.0.2:0\"\nroot = \"www\"\ntls = \"local\"\n";

/// Returns a folder with scripts. `server`: keys of the table `[server]`. `sites`: tables of further sites.
pub fn with_scripts(server: &str, sites: &str) -> ProgramFolder {
    let dir = ProgramFolder::new(&[
        ("www/try.php", TRY),
        (
            "www/uid.php",
            "<?php echo 'uid=', posix_getuid(), ' ppid=', posix_getppid(), ' ';",
        ),
        ("www/cgi-bin/try", TRY_CGI),
        (
            "www/cgi-bin/sleep",
            "#!/bin/sh\nsleep 1000 &\nprintf 'Content-Type: text/plain\\n\\npid=%s \\n' $!\nwait\n",
        ),
        (
            "rocknet.toml",
            &format!("[server]\nworkers = 1\nstate = \"state\"\n{server}\n{SITES}{sites}"),
        ),
    ]);
    for name in ["", "www", "www/cgi-bin", "www/cgi-bin/try", "www/cgi-bin/sleep"] {
        make_accessible(&dir.path().join(name));
    }
    dir
}

pub fn uid(name: &str) -> u32 {
    rocknet_io::privileges::User::find(name).expect("a user").uid
}

/// Returns the number that a script printed after `name=`.
pub fn printed(response: &str, name: &str) -> u32 {
    let (_, rest) = response
        .split_once(&format!("{name}="))
        .unwrap_or_else(|| panic!("{name}: {response}"));
    let number = rest.split(' ').next().and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{name}: {response}"))
}

fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        all.extend(match entry.file_type().expect("a type").is_dir() {
            true => all_below(&entry.path()),
            false => vec![entry.path()],
        });
    }
    all
}

/// Returns true if the process is the master process of a php-fpm.
fn is_master(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.starts_with(b"php-fpm: master")
}

/// Polls a condition until it holds. `what`: the awaited event, for the failure message.
pub fn wait_until(deadline: Instant, what: &str, mut condition: impl FnMut() -> bool) {
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// Returns a field of `/proc/PID/status`; an empty string if the process has exited.
pub fn field(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.map(|line| line.trim_start_matches(':').trim().to_owned())
        .unwrap_or_default()
}

/// Returns the account helper of a server.
pub fn helper(server: &Server) -> u32 {
    let mut all = fs::read_dir("/proc").expect("processes").flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let is_it = field(pid, "PPid") == server.id().to_string() && line.ends_with(b"start-programs-as-accounts\0");
        is_it.then_some(pid)
    });
    all.next().expect("a helper")
}

/// Returns true if no process with this pid exists.
fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process");
    test_kill_process(pid).is_err()
}

#[test]
fn scripts_cannot_reach_files_of_the_server() {
    if !is_root() {
        return;
    }
    // The default account of scripts is `www-data`. A server that runs as `www-data` itself uses `nobody` instead.
    for (server_user, scripts) in [("daemon", "www-data"), ("www-data", "nobody")] {
        let dir = with_scripts(&format!("user = \"{server_user}\""), "");
        let server = dir.serve(&["run", "-c", "rocknet.toml"]);
        let state = dir.path().join("state");
        wait_until(deadline(), "a key", || state.join("local/ca.key").exists());
        assert_eq!(printed(&server.get("/uid.php"), "uid"), uid(scripts));
        let helper = helper(&server);

        let targets = all_below(&state);
        let is_there = |end: &str| targets.iter().any(|path| path.to_string_lossy().ends_with(end));
        assert!(is_there("local/ca.key") && is_there(".sock"), "{targets:?}");
        let modes: Vec<_> = targets
            .iter()
            .map(|path| (path, path.metadata().expect("a file")))
            .collect();
        for (path, found) in &modes {
            assert_eq!(found.uid(), uid(server_user), "{}", path.display());
            // Only the certificate of the local CA is public.
            let is_closed = found.mode() & 0o077 == 0;
            assert!(
                is_closed || path.ends_with("local/ca.pem"),
                "{}: {:o}",
                path.display(),
                found.mode()
            );
        }
        let lines: Vec<_> = targets.iter().map(|path| path.display().to_string()).collect();
        dir.write("www/targets", &format!("{}\n", lines.join("\n")));
        let count = u32::try_from(targets.len()).expect("a few");

        // PHP also tries two processes: the server and its account helper.
        let response = server.get(&format!("/try.php?pids={},{helper}", server.id()));
        assert_eq!(
            (printed(&response, "uid"), printed(&response, "tried")),
            (uid(scripts), count + 2)
        );
        let cgi_response = server.get("/cgi-bin/try");
        assert_eq!(
            (printed(&cgi_response, "uid"), printed(&cgi_response, "tried")),
            (uid(scripts), count)
        );
        for response in [&response, &cgi_response] {
            for word in "READ WROTE CREATED LISTED RENAMED REMOVED OPENED CONNECTED SIGNALLED".split(' ') {
                assert!(!response.contains(word), "{scripts}: {response}");
            }
        }
        server.logged("complaint");
        for (path, before) in modes {
            let after = path.metadata().expect("a file that still exists");
            assert_eq!(
                (after.ino(), after.len()),
                (before.ino(), before.len()),
                "{}",
                path.display()
            );
        }

        // The server keeps only CAP_NET_BIND_SERVICE. The helper keeps only CAP_KILL, CAP_SETGID and CAP_SETUID.
        assert_eq!(field(server.id(), "CapPrm"), "0000000000000400");
        assert!(
            field(server.id(), "Uid")
                .split_whitespace()
                .all(|id| id == uid(server_user).to_string())
        );
        assert_eq!(
            (field(helper, "CapPrm"), field(helper, "CapEff")),
            ("00000000000000e0".into(), "00000000000000e0".into())
        );
    }
}

#[test]
fn programs_of_other_users_are_restarted_and_stop_with_the_server() {
    if !is_root() {
        return;
    }
    for is_killed in [false, true] {
        let other =
            "[site.\"z.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"www\"\nphp = \"auto\"\nuser = \"nobody\"\n";
        let dir = with_scripts("user = \"daemon\"\nscript_user = \"www-data\"", other);
        let server = dir.serve(&["run", "-c", "rocknet.toml"]);
        let response = server.get("/uid.php");
        assert_eq!(printed(&response, "uid"), uid("www-data"));
        let master = printed(&response, "ppid");
        let pid = Pid::from_raw(i32::try_from(master).expect("a small number")).expect("a process ID");
        kill_process(pid, Signal::KILL).expect("it runs");
        wait_until(deadline(), "the end of php-fpm", || is_gone(master));
        // Children of the killed php-fpm may serve requests until they exit. Their new parent is not a php-fpm.
        let mut next = master;
        wait_until(deadline(), "another php-fpm", || {
            next = printed(&server.get("/uid.php"), "ppid");
            is_master(next)
        });
        let program = {
            use std::io::{Read, Write};
            let mut stream = server.connect();
            write!(stream, "GET /cgi-bin/sleep HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
            let mut output = String::new();
            let until = deadline();
            while !output.contains("pid=") || !output.ends_with("\n") {
                assert!(Instant::now() < until, "{output}");
                let mut bytes = [0; 512];
                let read = stream.read(&mut bytes).expect("a response");
                output.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
            let program = printed(&output, "pid");
            assert!(!is_gone(program));
            // The client disconnects, so the helper kills the program and everything that it started.
            drop(stream);
            program
        };
        wait_until(deadline(), "the end of a program whose client disconnected", || {
            is_gone(program)
        });
        let helper = helper(&server);
        if is_killed {
            server.signal(Signal::KILL);
            drop(server);
        } else {
            server.signal(Signal::TERM);
            assert_eq!(server.wait(), Some(0));
        }
        wait_until(deadline(), "the end of the helper", || is_gone(helper));
        wait_until(deadline(), "the end of php-fpm", || is_gone(next));
    }
}

#[test]
fn the_exit_of_the_account_helper_is_logged_and_stops_programs() {
    if !is_root() {
        return;
    }
    let dir = with_scripts("user = \"daemon\"", "");
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let master = printed(&server.get("/uid.php"), "ppid");
    let helper = helper(&server);
    let pid = Pid::from_raw(i32::try_from(helper).expect("a small number")).expect("a process ID");
    kill_process(pid, Signal::KILL).expect("it runs");
    wait_until(deadline(), "the end of php-fpm", || is_gone(master));
    server.logged("restart RockNet");
    server.logged("does not respond");
    for path in ["/uid.php", "/cgi-bin/try"] {
        let until = deadline();
        while !server.get(path).starts_with("HTTP/1.1 502 ") {
            assert!(Instant::now() < until, "{path}");
        }
    }
    // The server still serves files, and it runs no program under its own account.
    dir.write("www/a.txt", "file");
    assert!(server.get("/a.txt").ends_with("file"));
}

#[test]
fn an_account_added_at_a_reload_needs_a_restart() {
    if !is_root() {
        return;
    }
    let dir = with_scripts("user = \"daemon\"", "");
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    assert_eq!(printed(&server.get("/uid.php"), "uid"), uid("www-data"));
    let text = dir.read("rocknet.toml");
    for (user, why) in [
        ("nobody", "restart RockNet"),
        ("root", "scripts are not run as root"),
        ("daemon", "RockNet itself runs as"),
    ] {
        dir.write(
            "rocknet.toml",
            &text.replace("php =", &format!("user = \"{user}\"\nphp =")),
        );
        server.signal(Signal::HUP);
        server.logged(why);
        assert_eq!(printed(&server.get("/uid.php"), "uid"), uid("www-data"));
    }
    // An account that was configured at start can be used by further sites after a reload.
    dir.write("rocknet.toml", &text.replace("php =", "user = \"www-data\"\nphp ="));
    server.signal(Signal::HUP);
    server.logged("is reloaded");
    assert_eq!(printed(&server.get("/uid.php"), "uid"), uid("www-data"));
    // A server that starts without scripts has no account helper, so scripts need a restart.
    let plain = ProgramFolder::new(&[
        ("www/index.html", "x"),
        (
            "rocknet.toml",
            "[server]\nworkers = 1\nstate = \"state\"\nuser = \"daemon\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n",
        ),
    ]);
    make_accessible(plain.path());
    let server = plain.serve(&["run", "-c", "rocknet.toml"]);
    plain.write(
        "rocknet.toml",
        &format!("{}php = \"auto\"\n", plain.read("rocknet.toml")),
    );
    server.signal(Signal::HUP);
    server.logged("when it had no scripts");
}

#[test]
fn the_doctor_reports_users_who_can_read_the_keys() {
    if !is_root() {
        return;
    }
    let dir = with_scripts("user = \"daemon\"", "");
    let state = dir.path().join("state");
    fs::create_dir_all(state.join("local")).expect("a folder");
    fs::write(state.join("local/ca.key"), "key").expect("a key");
    make_accessible(&state);
    make_accessible(&state.join("local"));
    for (mode, good) in [(0o644, false), (0o600, true)] {
        fs::set_permissions(state.join("local/ca.key"), fs::Permissions::from_mode(mode)).expect("a mode");
        let doctor = dir.run(&["doctor", "-c", "rocknet.toml"]);
        assert!(
            doctor.out.contains("the server runs as daemon, scripts as www-data"),
            "{doctor:?}"
        );
        let is_reported =
            doctor.out.contains("scripts of www-data can read or replace") && doctor.out.contains("local/ca.key");
        assert_eq!(!is_reported, good, "{doctor:?}");
    }
}

/// The keys are outside the state folder, and scripts may read them as members of a group.
#[test]
fn the_doctor_reports_group_readable_keys_elsewhere() {
    if !is_root() {
        return;
    }
    let (scripts, root) = (uid("www-data"), 0);
    for server in ["user = \"daemon\"", ""] {
        let site = "[site.\"b.test\"]\nlisten = \"https://127.0.0.3:0\"\nroot = \"www\"\n\
                    tls = { cert = \"b.pem\", key = \"keys/b.key\" }\n\
                    [site.\"c.test\"]\nlisten = \"http://127.0.0.1:0\"\n\
                    proxy = { to = \"https://127.0.0.1:1\", cert = \"b.pem\", key = \"keys/c.key\" }\n";
        let dir = with_scripts(server, site);
        dir.write("b.pem", "");
        for name in ["b", "c"] {
            let key = dir.write(&format!("keys/{name}.key"), "key");
            make_accessible(&dir.path().join("keys"));
            // The group is set by number. The scripts' group has the same number as their account, and group 0
            // belongs to root and does not include the scripts. Columns: mode and group of the key, and true if
            // scripts can read or change the key.
            for (mode, group, is_reported) in [
                (0o640, scripts, true),
                (0o640, root, false),
                (0o600, scripts, false),
                (0o660, scripts, true),
                (0o620, scripts, true),
            ] {
                std::os::unix::fs::chown(&key, None, Some(group)).expect("a group");
                fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("a mode");
                let doctor = dir.run(&["doctor", "-c", "rocknet.toml"]);
                let shown = key.canonicalize().expect("a file");
                let part = format!(
                    "scripts of www-data can read or change the private key {}",
                    shown.display()
                );
                assert_eq!(
                    doctor.out.contains(&part),
                    is_reported,
                    "{name} {mode:o} {group}: {doctor:?}"
                );
            }
            // In a folder that every user can write to, scripts can replace the key.
            fs::set_permissions(dir.path().join("keys"), fs::Permissions::from_mode(0o777)).expect("a mode");
            let doctor = dir.run(&["doctor", "-c", "rocknet.toml"]);
            let part = format!("keys/{name}.key in the folder");
            assert!(doctor.out.contains(&part), "{doctor:?}");
        }
    }
}

#[test]
fn a_user_of_a_site_without_scripts_has_no_effect() {
    let text = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nuser = \"no-such-user\"\n";
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", text)]);
    let output = dir.run(&["check"]);
    assert!(
        output.code == Some(0) && output.err.contains("`user` has no effect") && output.err.contains("1 warning"),
        "{output:?}"
    );
    let server = dir.serve(&["run"]);
    server.logged("`user` has no effect");
    assert!(server.get("/").ends_with("home"));
    // Once the site has scripts, the account must exist: otherwise a reload and a start are refused.
    dir.write("rocknet.toml", &format!("{text}cgi = \"/cgi-bin\"\n"));
    server.signal(Signal::HUP);
    server.logged("no user `no-such-user`");
    assert!(server.get("/").ends_with("home"));
    let output = dir.run(&["run"]);
    assert!(
        output.code != Some(0) && output.err.contains("no user `no-such-user`"),
        "{output:?}"
    );
}
