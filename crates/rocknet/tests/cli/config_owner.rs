//! A configuration that belongs to root, with a server that is started as root and runs as another account, as with the
//! drop-in `scripts.conf`. Tests three things: the owners and modes that the drop-in sets; reloads of the
//! configuration; and changes of the configuration through the API, which are refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};

use crate::accounts::{is_root, make_accessible, uid};
use crate::program::ProgramFolder;

const SCRIPTS: &str = include_str!("../../../../packaging/scripts.conf");

/// Account of the server in place of `rocknet`, which this machine need not have.
const ACCOUNT: &str = "daemon";

/// Runs the commands of the drop-in for the configuration, with another folder in place of `/etc/rocknet`.
fn run_commands(folder: &Path) {
    let folder = folder.to_str().expect("a path");
    let mut count = 0;
    for line in SCRIPTS.lines().filter(|line| line.contains("/etc/rocknet")) {
        let Some(command) = line.strip_prefix("ExecStartPre=+") else {
            continue;
        };
        // systemd runs a command without a shell.
        let words = command.split(' ').map(|word| match word {
            "/etc/rocknet" => folder.to_owned(),
            word => word.replace("rocknet", ACCOUNT),
        });
        let words: Vec<String> = words.collect();
        let output = Command::new(&words[0]).args(&words[1..]).output().expect("a command");
        assert!(output.status.success(), "{command}: {output:?}");
        count += 1;
    }
    assert!(count > 0, "{SCRIPTS}");
}

/// Gives a file to an account and sets its mode. `owner`: user and group.
fn give(path: &Path, (user, group): (u32, u32), mode: u32) {
    std::os::unix::fs::chown(path, Some(user), Some(group)).expect("an owner");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn owner_and_mode(path: &Path) -> (u32, u32, u32) {
    let found = fs::symlink_metadata(path).expect("a file");
    (found.uid(), found.gid(), found.mode() & 0o7777)
}

#[test]
fn the_drop_in_takes_the_right_to_write_and_keeps_the_right_to_read() {
    if !is_root() {
        return;
    }
    let dir = ProgramFolder::new(&[("outside", "")]);
    let (server, other) = (uid(ACCOUNT), uid("nobody"));
    // File name, then user ID, group ID and mode before and after the commands. `daemon` and `nobody` each have the
    // same number as user ID and as group ID.
    let files = [
        ("plain", (server, server, 0o644), (0, server, 0o644)),
        ("key", (server, server, 0o600), (0, server, 0o640)),
        ("shared", (server, server, 0o666), (0, server, 0o644)),
        ("of-root", (0, 0, 0o600), (0, 0, 0o600)),
        ("of-root-for-server", (0, server, 0o640), (0, server, 0o640)),
        ("of-root-for-group", (0, other, 0o660), (0, other, 0o640)),
        ("of-other", (other, other, 0o664), (other, other, 0o644)),
        ("closed", (server, other, 0o600), (0, other, 0o600)),
    ];
    for (name, (user, group, mode), _) in files {
        give(&dir.write(&format!("etc/sub/{name}"), ""), (user, group), mode);
    }
    let [folder, sub] = ["etc", "etc/sub"].map(|name| dir.path().join(name));
    give(&sub, (server, server), 0o770);
    give(&folder, (server, server), 0o755);
    // The drop-in must give only the link itself to root, and leave its target alone, because the target may be any
    // file of the system.
    let target = dir.path().join("outside");
    give(&target, (server, server), 0o666);
    symlink(&target, folder.join("link")).expect("a link");
    std::os::unix::fs::lchown(folder.join("link"), Some(server), Some(server)).expect("an owner");

    // The second start finds the files as the first one has left them.
    for _ in 0..2 {
        run_commands(&folder);
        for (name, _, after) in files {
            assert_eq!(owner_and_mode(&sub.join(name)), after, "{name}");
        }
        assert_eq!(owner_and_mode(&sub), (0, server, 0o750));
        assert_eq!(owner_and_mode(&folder), (0, server, 0o755));
        assert_eq!(owner_and_mode(&target), (server, server, 0o666));
        assert_eq!(owner_and_mode(&folder.join("link")).0, 0);
    }
}

/// Writes a new certificate for `a.test` with a new key.
fn write_certificate(dir: &ProgramFolder) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["a.test".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    dir.write("etc/a.pem", &certificate.pem());
    dir.write("etc/a.key", &key.serialize_pem());
}

#[test]
fn reloads_read_keys_that_the_drop_in_gave_to_root_and_changes_are_refused() {
    if !is_root() {
        return;
    }
    let config = format!(
        "[server]\nworkers = 1\nstate = \"../state\"\nuser = \"{ACCOUNT}\"\n[admin]\nsocket = \"../state/control.sock\"\n\
         [site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"../www\"\n\
         tls = {{ cert = \"a.pem\", key = \"a.key\" }}\n"
    );
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("etc/rocknet.toml", &config)]);
    for name in ["", "www", "www/index.html"] {
        make_accessible(&dir.path().join(name));
    }
    let server = uid(ACCOUNT);
    // The server creates its control socket in this folder.
    give(dir.path(), (server, server), 0o755);
    write_certificate(&dir);
    for (name, mode) in [
        ("etc", 0o755),
        ("etc/rocknet.toml", 0o644),
        ("etc/a.pem", 0o644),
        ("etc/a.key", 0o600),
    ] {
        give(&dir.path().join(name), (server, server), mode);
    }
    run_commands(&dir.path().join("etc"));
    let _server = dir.serve(&["run", "-c", "etc/rocknet.toml"]);
    let rocknet = |arguments: &[&str]| dir.run(&[arguments, &["-c", "etc/rocknet.toml"]].concat());
    // The owner and the mode of the files stay. A reload reads only files that have changed.
    write_certificate(&dir);
    let reloaded = rocknet(&["reload"]);
    assert!(
        reloaded.code == Some(0) && !reloaded.out.contains("a.key") && !reloaded.err.contains("a.key"),
        "{reloaded:?}"
    );
    // The error must not advise the operator to give the file to the user of the server, because the next start reads
    // the file as root.
    let refused = rocknet(&["config", "set", "log.level", "debug"]);
    assert!(
        refused.code == Some(1)
            && refused.err.contains("was started as root")
            && !refused.err.contains("give the file"),
        "{refused:?}"
    );
    assert_eq!(dir.read("etc/rocknet.toml"), config);
}
