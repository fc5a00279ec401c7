//! The example `git` with the real git: clone, a push of 50 MB, and a fetch whose request is compressed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

use rocknet_testing::{Need, skip};
use tempfile::TempDir;

use super::Example;

/// Size of the pushed file. Random bytes cannot be compressed, so the request body is as large.
const SIZE: u64 = 50_000_000;
/// Number of branches. The request of a client that fetches them exceeds 1 KiB, beyond which git compresses it.
const BRANCHES: usize = 40;

/// Runs git in the folder, with a configuration of its own.
fn git(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new("git")
        .current_dir(folder)
        .args(arguments)
        .envs([
            ("HOME", "/nonexistent"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_TRACE_CURL", "1"),
            ("GIT_TRACE_CURL_NO_DATA", "1"),
            ("GIT_AUTHOR_NAME", "Ada"),
            ("GIT_AUTHOR_EMAIL", "ada@example.com"),
            ("GIT_COMMITTER_NAME", "Ada"),
            ("GIT_COMMITTER_EMAIL", "ada@example.com"),
        ])
        .output();
    output.expect("git")
}

/// Runs git, which must succeed. Returns its standard output and its messages.
#[track_caller]
fn run(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = git(folder, arguments);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (standard, messages) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "git {arguments:?}: {standard}{messages}");
    (standard.trim().to_owned(), messages)
}

/// Creates an empty repository in the example, whose hook writes the user of each push to the file `pushed`.
fn create_repository(example: &Path) {
    let repositories = example.join("repositories");
    run(
        &repositories,
        &["init", "--bare", "--initial-branch=main", "harbour.git"],
    );
    let hook = repositories.join("harbour.git/hooks/post-receive");
    fs::write(&hook, "#!/bin/sh\necho \"$REMOTE_USER\" >>pushed\n").expect("a hook");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a mode");
    // If the test runs as root, programs run as the account of scripts, and git requires that it owns the repository.
    if fs::metadata(&repositories).expect("a folder").uid() == 0 {
        let status = Command::new("chown")
            .args(["-R", "www-data:"])
            .arg(&repositories)
            .status();
        assert!(status.expect("chown").success());
    }
}

#[test]
fn git_clones_and_pushes_over_http() {
    if Command::new("git").arg("http-backend").output().is_err() {
        return skip(Need::Program("git"), "git is not installed");
    }
    let running = Example::start("git");
    let example = running.folder.path().join("git");
    create_repository(&example);
    let here = TempDir::new().expect("a folder");
    let here = here.path();
    let address = running.ports[&8080];
    let refused = git(
        here,
        &["clone", &format!("http://{address}/git/harbour.git"), "refused"],
    );
    assert!(!refused.status.success(), "a clone without a password");
    let wrong = git(
        here,
        &[
            "clone",
            &format!("http://ada:wrong@{address}/git/harbour.git"),
            "refused",
        ],
    );
    assert!(!wrong.status.success(), "a clone with a wrong password");
    let url = format!("http://ada:harbour@{address}/git/harbour.git");
    run(here, &["clone", &url, "first"]);

    let first = here.join("first");
    let mut random = File::open("/dev/urandom").expect("random bytes").take(SIZE);
    let mut file = File::create(first.join("large")).expect("a file");
    assert_eq!(io::copy(&mut random, &mut file).expect("a copy"), SIZE);
    run(&first, &["checkout", "-q", "-b", "main"]);
    run(&first, &["add", "large"]);
    run(&first, &["commit", "-q", "-m", "A large file"]);
    let (_, messages) = run(&first, &["push", "origin", "main"]);
    assert!(messages.contains("Transfer-Encoding: chunked"), "{messages}");
    let pushed = example.join("repositories/harbour.git/pushed");
    assert_eq!(fs::read_to_string(pushed).expect("the hook has run"), "ada\n");

    for number in 0..BRANCHES {
        run(&first, &["checkout", "-q", "-b", &format!("branch-{number}"), "main"]);
        run(
            &first,
            &["commit", "-q", "--allow-empty", "-m", &format!("Commit {number}")],
        );
    }
    run(&first, &["push", "-q", "--all", "origin"]);
    let (_, messages) = run(here, &["clone", &url, "second"]);
    assert!(messages.contains("Content-Encoding: gzip"), "{messages}");
    let second = here.join("second");
    let read = |name: &str| fs::read(here.join(name).join("large")).expect("the large file");
    assert!(read("first") == read("second"), "the file has changed on its way");
    let branches = run(&second, &["branch", "--remotes", "--list", "origin/branch-*"]).0;
    assert_eq!(branches.lines().count(), BRANCHES, "{branches}");
}
