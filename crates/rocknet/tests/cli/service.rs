//! `rocknet service`: the files below another root, the steps of a dry run, and refusals.

use std::fs;

use rustix::process::geteuid;

use crate::accounts::is_root;
use crate::program::ProgramFolder;

const UNIT: &str = "image/etc/systemd/system/rocknet.service";
const CONFIGURATION: &str = "image/etc/rocknet/rocknet.toml";

#[test]
fn an_image_gets_the_files_of_the_service() {
    let dir = ProgramFolder::new(&[]);
    let install = ["service", "install", "--root", "image"];
    let output = dir.run(&install);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.out.contains("write image/etc/rocknet/rocknet.toml"),
        "{output:?}"
    );
    assert!(!output.out.contains("systemctl"), "{output:?}");
    let unit = dir.read(UNIT);
    for line in [
        "ExecStart=/usr/local/bin/rocknet run -c /etc/rocknet/rocknet.toml",
        "User=rocknet",
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
        "Type=notify-reload",
        "WatchdogSec=30",
    ] {
        assert!(unit.lines().any(|found| found == line), "no {line} in {unit}");
    }
    assert!(dir.read("image/etc/sysusers.d/rocknet.conf").contains("\nu rocknet "));
    assert!(dir.read("image/var/www/html/index.html").contains("RockNet works"));
    let program = fs::metadata(dir.path().join("image/usr/local/bin/rocknet")).unwrap();
    assert_eq!(
        program.len(),
        fs::metadata(env!("CARGO_BIN_EXE_rocknet")).unwrap().len()
    );
    // The root of the site is in the image. On this machine the same path may be missing.
    let check = dir.run(&["check", CONFIGURATION]);
    assert!(
        check.code == Some(0) || check.err.contains("/var/www/html"),
        "{check:?}"
    );

    dir.write(CONFIGURATION, "# edited\n");
    dir.write("image/var/www/html/index.html", "my page");
    assert_eq!(dir.run(&install).code, Some(0));
    assert_eq!(dir.read(CONFIGURATION), "# edited\n");
    assert_eq!(dir.read("image/var/www/html/index.html"), "my page");

    let planned = dir.run(&["service", "uninstall", "--root", "image", "--dry-run", "--json"]);
    let planned: serde_json::Value = serde_json::from_str(&planned.out).unwrap();
    assert_eq!(planned["steps"][0], format!("remove {UNIT}"), "{planned}");
    assert!(dir.path().join(UNIT).exists());
    let output = dir.run(&["service", "uninstall", "--root", "image"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.out.contains("kept: image/etc/rocknet (configuration)"),
        "{output:?}"
    );
    assert!(!dir.path().join(UNIT).exists());
    assert_eq!(dir.read(CONFIGURATION), "# edited\n");
    let output = dir.run(&["service", "uninstall", "--root", "image"]);
    assert!(
        output.code == Some(1) && output.err.contains("does not exist"),
        "{output:?}"
    );
}

#[test]
fn a_package_is_left_alone() {
    let dir = ProgramFolder::new(&[("image/usr/lib/systemd/system/rocknet.service", "")]);
    let output = dir.run(&["service", "install", "--root", "image"]);
    assert!(
        output.code == Some(1) && output.err.contains("a package has installed"),
        "{output:?}"
    );
}

#[test]
fn a_dry_run_prints_the_steps_and_changes_nothing() {
    let dir = ProgramFolder::new(&[]);
    let output = dir.run(&["service", "install", "--root", "image", "--dry-run"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.out.contains("write image/etc/systemd/system/rocknet.service"),
        "{output:?}"
    );
    assert!(!dir.path().join("image").exists());
}

/// The folder may contain files of root that the server must not replace, such as included files and keys.
#[test]
fn a_folder_that_exists_keeps_its_owner() {
    if !is_root() {
        return;
    }
    let dir = ProgramFolder::new(&[]);
    // Prints the steps on a system with an empty `/etc`, after a command.
    let planned = |command: &str| {
        let script = format!("mount -t tmpfs none /etc && {command} && exec \"$@\"");
        let output = dir.run_by(
            &["unshare", "--mount", "sh", "-c", &script, "sh"],
            &["service", "install", "--dry-run"],
        );
        assert_eq!(output.code, Some(0), "{output:?}");
        output.out
    };
    let new = planned("true");
    assert!(
        new.contains("\nrun chown -h rocknet:rocknet /etc/rocknet /etc/rocknet/rocknet.toml\n"),
        "{new}"
    );
    assert!(!new.contains("keeps its owner"), "{new}");
    let with_folder = planned("mkdir /etc/rocknet");
    assert!(
        with_folder.contains("\nrun chown -h rocknet:rocknet /etc/rocknet/rocknet.toml\n")
            && with_folder.contains("/etc/rocknet exists and keeps its owner"),
        "{with_folder}"
    );
    let with_file = planned("mkdir /etc/rocknet && touch /etc/rocknet/rocknet.toml");
    assert!(!with_file.contains("chown"), "{with_file}");
}

/// Command that runs the program as on a system without systemd: with an empty `/run`.
const WITHOUT_SYSTEMD: [&str; 5] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs none /run && exec \"$@\"",
];

#[test]
fn a_system_without_systemd_or_root_is_refused() {
    let dir = ProgramFolder::new(&[]);
    for action in ["install", "uninstall"] {
        let (output, reason) = if geteuid().is_root() {
            let words: Vec<&str> = WITHOUT_SYSTEMD.into_iter().chain(["sh"]).collect();
            (dir.run_by(&words, &["service", action]), "does not run systemd")
        } else {
            (dir.run(&["service", action]), "needs root")
        };
        assert!(output.code == Some(1) && output.err.contains(reason), "{output:?}");
    }
}
