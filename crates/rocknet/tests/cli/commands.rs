//! Commands that print a result and exit: check, fmt, help and completions. The tests of explain, import,
//! hash-password and sign are in files of their own.

mod explain;
mod hash_password;
mod import;
mod sign;

use std::io::Write;
use std::process::{Command, Stdio};

use crate::program::ProgramFolder;

const GOOD: &str = "[site.\":0\"]\nroot = \"www\"\n";

#[test]
fn exit_codes_report_the_outcome() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("rocknet.toml", GOOD),
        ("bad.toml", "[site.\":8080\"]\nrot = \"www\"\n"),
        ("broken.toml", "[site\n"),
        ("untidy.toml", "[site.\":0\"]\nroot=\"www\"\n"),
    ]);
    // `out` and `err` are parts of the two outputs. If one is empty, that output must be empty, too. Exit code 2
    // reports a wrong command line, and 78 (`EX_CONFIG` of sysexits.h) a wrong configuration.
    let check = |line: &str, code: i32, out: &str, err: &str| {
        let arguments: Vec<_> = line.split_whitespace().collect();
        let output = dir.run(&arguments);
        let says = |text: &str, part: &str| {
            if part.is_empty() {
                text.is_empty()
            } else {
                text.contains(part)
            }
        };
        assert!(
            output.code == Some(code) && says(&output.out, out) && says(&output.err, err),
            "{line}: {output:?}"
        );
    };
    check("--help", 0, "Usage: rocknet", "");
    check("help serve", 0, "127.0.0.1:8080", "");
    check("--version", 0, "rocknet 0.", "");
    check("check", 0, "rocknet.toml is good: 1 site", "");
    check("fmt", 0, "", "");
    check("fmt --check", 0, "", "");
    check("completions bash", 0, "rocknet", "");
    check("man", 0, ".TH", "");
    check("man serve", 0, ".TH rocknet-serve", "");

    check("serve nowhere", 1, "", "cannot serve nowhere");
    check("serve rocknet.toml", 1, "", "not a folder");
    check("explain ftp.example/x -c rocknet.toml", 0, "leads to", "");
    check("fmt --check untidy.toml", 1, "is not formatted", "");
    check("fmt nowhere.toml", 1, "", "nowhere.toml");

    check("dance", 2, "", "Usage");
    check("stats", 2, "", "Usage");
    check("serve --listen nowhere", 2, "", "write PORT");
    check("explain ftp://a/", 2, "", "http://");
    check("completions klingon", 2, "", "klingon");
    check("man dance", 2, "", "dance");

    check("check bad.toml", 78, "", "did you mean `root`?");
    check("check nowhere.toml", 78, "", "nowhere.toml");
    check("run -c bad.toml", 78, "", "bad.toml:2:1");
    check("-c bad.toml", 78, "", "bad.toml:2:1");
    check("explain /x -c bad.toml", 78, "", "bad.toml:2:1");
    check("fmt broken.toml", 78, "", "broken.toml:1:6");
}

#[test]
fn every_command_resolves_file_arguments_in_the_same_way() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("rocknet.toml", "[site\n"),
        ("sub/good.toml", "[site.\":0\"]\nroot = \"../www\"\n"),
        ("bad.toml", "[site.\":8080\"]\nrot = \"www\"\n"),
    ]);
    // `rocknet.toml` is invalid, so a command that reads it instead of its argument reports it.
    for command in ["check", "fmt --check", "explain /", "doctor"] {
        for named in ["sub/good.toml", "-c sub/good.toml", "--config sub/good.toml"] {
            let line = format!("{command} {named}");
            let output = dir.run(&line.split_whitespace().collect::<Vec<_>>());
            assert!(!output.err.contains("rocknet.toml"), "{line}: {output:?}");
            // `doctor` also checks the machine and may exit with 1 for findings that are unrelated to the file.
            assert!(
                output.code == Some(0) || command == "doctor" && output.code == Some(1),
                "{line}: {output:?}"
            );
        }
        let line = format!("{command} sub/good.toml -c sub/good.toml");
        let output = dir.run(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.code, Some(2), "{line}: {output:?}");
    }
    for line in ["run bad.toml", "run -c bad.toml", "-c bad.toml"] {
        let output = dir.run(&line.split_whitespace().collect::<Vec<_>>());
        assert!(
            output.code == Some(78) && output.err.contains("bad.toml:2:1"),
            "{line}: {output:?}"
        );
    }
}

#[test]
fn check_warns_of_a_log_in_a_folder_that_does_not_exist() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        (
            "r.toml",
            "[log]\naccess = \"logs/a.log\"\n[site.\":0\"]\nroot = \"www\"\n",
        ),
    ]);
    let output = dir.run(&["check", "r.toml"]);
    let all = format!("{}{}", output.out, output.err);
    assert!(
        output.code == Some(0) && all.contains("so the log cannot be opened"),
        "{output:?}"
    );
    std::fs::create_dir(dir.path().join("logs")).unwrap();
    let output = dir.run(&["check", "r.toml"]);
    let all = format!("{}{}", output.out, output.err);
    assert!(
        output.code == Some(0) && !all.contains("so the log cannot be opened"),
        "{output:?}"
    );
}

#[test]
fn paths_are_printed_in_canonical_form() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("sub/r.toml", "[site.\":8080\"]\nroot = \"../www\"\n"),
    ]);
    let top = dir.path().canonicalize().unwrap();
    let (top, root) = (top.display(), top.join("www"));
    for (line, part) in [
        ("check sub/../sub/r.toml", format!("{top}/sub/r.toml is good")),
        ("doctor sub/r.toml", format!("{top}/sub/r.toml, sites: 1")),
        (
            "explain / sub/r.toml",
            format!("the file {}/index.html", root.display()),
        ),
        ("explain / sub/r.toml", format!("\"{}\"", root.display())),
    ] {
        let output = dir.run(&line.split_whitespace().collect::<Vec<_>>());
        assert!(output.out.contains(&part), "{line}: {part} not in {output:?}");
        assert!(!output.out.contains("/../"), "{line}: {output:?}");
    }
    dir.write("sub/gone.toml", "[site.\":8080\"]\nroot = \"../gone\"\n");
    let output = dir.run(&["check", "sub/gone.toml"]);
    assert!(
        output
            .err
            .contains(&format!("`root`: the folder {top}/gone does not exist")),
        "{output:?}"
    );
    let output = dir.run(&["check", "nowhere.toml"]);
    let message = format!("cannot read {top}/nowhere.toml");
    assert!(
        output.err.contains(&message) && !output.err.contains("-c"),
        "{output:?}"
    );
}

#[test]
fn every_help_text_of_a_server_names_the_console_option() {
    let dir = ProgramFolder::new(&[]);
    for line in ["--help", "run --help", "serve --help", "run -h"] {
        let output = dir.run(&line.split_whitespace().collect::<Vec<_>>());
        assert!(output.out.contains("--console"), "{line}: {output:?}");
    }
}

#[test]
fn check_reports_in_json() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", ""),
        ("good.toml", GOOD),
        ("bad.toml", "[site.\":1\"]\nrot = 1\n"),
    ]);
    for (file, code, ok) in [
        ("good.toml", 0, true),
        ("bad.toml", 78, false),
        ("nowhere.toml", 78, false),
    ] {
        let output = dir.run(&["check", "--json", file]);
        assert_eq!((output.code, output.err.as_str()), (Some(code), ""), "{file}");
        let json: serde_json::Value = serde_json::from_str(&output.out).unwrap();
        assert_eq!(json["ok"], ok, "{file}");
        assert_eq!(json["findings"].as_array().unwrap().is_empty(), ok, "{file}");
        if file == "bad.toml" {
            let location = &json["findings"][0]["location"];
            assert_eq!((&location["line"], &location["column"]), (&2.into(), &1.into()));
        }
    }
}

#[test]
fn fmt_is_idempotent() {
    const UNTIDY: &str = "# The shop.\n[site.\":0\"]   \nroot=\"www\" # here\nindex=[\"a.html\",\"b.html\"]\n";
    let dir = ProgramFolder::new(&[("r.toml", UNTIDY)]);
    assert_eq!(dir.run(&["fmt", "r.toml"]).code, Some(0));
    let tidy = dir.read("r.toml");
    assert!(
        tidy != UNTIDY && tidy.contains("# The shop.") && tidy.contains("root = \"www\" # here"),
        "{tidy}"
    );
    let from_input = dir.run_with(&["fmt", "-"], UNTIDY);
    assert_eq!((from_input.code, from_input.out), (Some(0), tidy.clone()));
    let unformatted = dir.run_with(&["fmt", "-", "--check"], UNTIDY);
    assert_eq!((unformatted.code, unformatted.out.as_str()), (Some(1), ""));
    assert!(
        unformatted.err.contains("standard input is not formatted"),
        "{}",
        unformatted.err
    );
    let checked = dir.run_with(&["fmt", "-", "--check"], &tidy);
    assert_eq!((checked.code, checked.out + &checked.err), (Some(0), String::new()));
    let json = dir.run(&["fmt", "--json", "r.toml"]);
    assert!(
        json.code == Some(0) && json.out.contains("\"changed\": false"),
        "{json:?}"
    );
    assert_eq!(dir.run_with(&["fmt", "--json", "-"], &tidy).code, Some(2));
    for again in [&["fmt", "r.toml"][..], &["fmt", "--check", "r.toml"]] {
        assert_eq!(dir.run(again).code, Some(0));
        assert_eq!(dir.read("r.toml"), tidy);
    }
    assert_eq!(
        dir.path().read_dir().unwrap().count(),
        1,
        "no temporary file must remain"
    );
}

#[test]
fn completions_and_the_manual_page_are_valid() {
    let dir = ProgramFolder::new(&[]);
    let check = |arguments: &[&str], reader: &[&str], part: &str| {
        let printed = dir.run(arguments).out;
        assert!(printed.contains(part), "{arguments:?}");
        let mut command = Command::new(reader[0]);
        let child = command
            .args(&reader[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        // The check is skipped if the shell or groff is not installed.
        let Ok(mut child) = child else { return };
        child.stdin.take().unwrap().write_all(printed.as_bytes()).unwrap();
        let read = child.wait_with_output().unwrap();
        assert!(
            read.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&read.stderr)
        );
        assert_eq!(String::from_utf8_lossy(&read.stderr), "", "{arguments:?}");
    };
    check(&["completions", "bash"], &["bash", "-n"], "complete");
    check(&["completions", "zsh"], &["zsh", "-n"], "#compdef rocknet");
    check(
        &["completions", "fish"],
        &["fish", "--no-execute"],
        "complete -c rocknet",
    );
    check(&["man"], &["groff", "-man", "-Tutf8", "-ww"], "SIGNALS");
    for command in ["run", "serve", "check", "fmt", "explain", "completions", "man"] {
        check(&["man", command], &["groff", "-man", "-Tutf8", "-ww"], "SYNOPSIS");
    }
}
