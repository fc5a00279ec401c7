//! Upgrades of servers that were started as root: scripts run as other accounts in the old and in the new process.

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::{fs, str};

use rustix::process::{Pid, Signal, kill_process};

use crate::accounts::{deadline, field, helper, is_root, make_accessible, printed, uid, wait_until, with_scripts};
use crate::program::{ProgramFolder, Server};
use crate::upgrade::{KillAtEnd, upgrade};

/// The program of the server, which the account of the server may not be able to reach by its path.
const SAME_PROGRAM: [&str; 2] = ["--binary", "/proc/self/exe"];

/// CGI program that ends once the file `www/go` exists.
const WAITS: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nuid=%s \\n' \"$(id -u)\"\n\
     until [ -e \"$(dirname \"$SCRIPT_FILENAME\")/../go\" ]; do sleep 0.02; done\necho finished\n";

/// Lets the server, which runs as `daemon`, create its control socket in the folder.
fn give_to_server(dir: &ProgramFolder) {
    chown(dir.path(), Some(uid("daemon")), None).expect("an owner");
}

/// Returns a folder with scripts, for a server that runs as `daemon`.
fn scripts() -> ProgramFolder {
    let dir = with_scripts("user = \"daemon\"\nscript_user = \"www-data\"", "");
    let program = dir.write("www/cgi-bin/waits", WAITS);
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("a mode");
    give_to_server(&dir);
    dir
}

fn has_ended(process: u32) -> bool {
    let state = field(process, "State");
    state.is_empty() || state.starts_with('Z')
}

fn wait_for_end(process: u32, what: &str) {
    wait_until(deadline(), what, || has_ended(process));
}

/// Runs PHP and a CGI program, and checks their account. Returns the master process of php-fpm.
#[track_caller]
fn run_scripts(server: &Server) -> u32 {
    let response = server.get("/uid.php");
    assert_eq!(printed(&response, "uid"), uid("www-data"), "{response}");
    let output = server.get("/cgi-bin/try");
    assert_eq!(printed(&output, "uid"), uid("www-data"), "{output}");
    printed(&response, "ppid")
}

/// Like [`run_scripts`], in a new process: for a moment, the process of `old` may still accept connections.
fn run_scripts_after(server: &Server, old: u32) -> u32 {
    let mut master = old;
    wait_until(deadline(), "scripts of the new process", || {
        master = run_scripts(server);
        master != old
    });
    master
}

#[test]
fn both_processes_start_scripts_and_end_their_own() {
    if !is_root() {
        return;
    }
    let dir = scripts();
    dir.write("www/targets", "");
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let _end = KillAtEnd(&dir);
    let (first, helper) = (server.id(), helper(&server));
    let rights = field(helper, "CapEff");
    let old_master = run_scripts(&server);
    let mut in_progress = server.connect();
    write!(
        in_progress,
        "GET /cgi-bin/waits HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    .expect("sent");
    let (mut output, mut bytes) = (String::new(), [0; 512]);
    while !output.contains("uid=") {
        let read = in_progress.read(&mut bytes).expect("a response");
        assert_ne!(read, 0, "{output}");
        output.push_str(str::from_utf8(&bytes[..read]).expect("text"));
    }

    let second = upgrade(&dir, &SAME_PROGRAM);
    let second_master = run_scripts_after(&server, old_master);
    for master in [old_master, second_master] {
        assert_eq!(field(master, "PPid"), helper.to_string());
    }
    // The helper of the new process is passed on as well.
    let third = upgrade(&dir, &SAME_PROGRAM);
    let third_master = run_scripts_after(&server, second_master);
    wait_for_end(second, "the second process has no connections");
    wait_for_end(second_master, "its php-fpm");
    assert!(!has_ended(first) && !has_ended(old_master), "a request is in progress");

    dir.write("www/go", "");
    in_progress.read_to_string(&mut output).expect("the rest");
    assert!(output.contains("finished"), "{output}");
    wait_for_end(first, "the first process");
    wait_for_end(old_master, "its php-fpm");
    assert_eq!(run_scripts(&server), third_master);
    assert_eq!(field(helper, "CapEff"), rights);

    let pid = i32::try_from(third).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::KILL).expect("it runs");
    wait_for_end(third_master, "php-fpm of the killed process");
    wait_for_end(helper, "the helper ends after its last client");
}

#[test]
fn an_upgrade_to_an_unknown_account_is_refused() {
    if !is_root() {
        return;
    }
    let dir = scripts();
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let _end = KillAtEnd(&dir);
    let master = run_scripts(&server);
    let text = dir.read("rocknet.toml");
    for (changed, why) in [
        (text.replace("php =", "user = \"nobody\"\nphp ="), "restart RockNet"),
        (text.replace("\"www-data\"", "\"nobody\""), "restart RockNet"),
        (
            text.replace("php =", "user = \"daemon\"\nphp ="),
            "RockNet itself runs as",
        ),
        (text.replace("\"www-data\"", "\"root\""), "scripts are not run as root"),
    ] {
        dir.write("rocknet.toml", &changed);
        let refused = dir.run(&[&["upgrade"][..], &SAME_PROGRAM].concat());
        assert!(
            refused.code == Some(1) && refused.err.contains(why),
            "{changed}: {refused:?}"
        );
        assert_eq!(run_scripts(&server), master);
    }
    // An account that was configured when the server started can be used by further sites.
    dir.write("rocknet.toml", &text.replace("php =", "user = \"www-data\"\nphp ="));
    upgrade(&dir, &SAME_PROGRAM);
    run_scripts_after(&server, master);
}

#[test]
fn scripts_need_a_restart_after_root_rights_were_given_up() {
    if !is_root() {
        return;
    }
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        (
            "rocknet.toml",
            "[server]\nworkers = 1\nstate = \"state\"\nuser = \"daemon\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n",
        ),
    ]);
    make_accessible(dir.path());
    give_to_server(&dir);
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let _end = KillAtEnd(&dir);
    let text = dir.read("rocknet.toml");
    for _ in 0..2 {
        for key in ["php = \"auto\"", "cgi = \"/cgi-bin\""] {
            dir.write("rocknet.toml", &format!("{text}{key}\n"));
            let refused = dir.run(&[&["upgrade"][..], &SAME_PROGRAM].concat());
            assert!(
                refused.code == Some(1)
                    && refused
                        .err
                        .contains("RockNet dropped root's rights when it had no scripts")
                    && refused.err.contains("restart it"),
                "{key}: {refused:?}"
            );
            assert!(server.get("/").ends_with("home"));
        }
        // Without scripts, the upgrade works, and so does the refusal after it.
        dir.write("rocknet.toml", &text);
        upgrade(&dir, &SAME_PROGRAM);
    }
}
