//! Commands that print a result and exit: check, explain, fmt, hash-password, help and completions.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
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
fn hash_password_prints_a_hash_that_the_configuration_accepts() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let hashed = |line: &str, input: &str| dir.run_with(&line.split_whitespace().collect::<Vec<_>>(), input);
    let output = hashed("hash-password", "correct horse\n");
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
    let hash = output.out.trim_end();
    assert!(
        hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !output.out.contains("horse"),
        "{output:?}"
    );
    assert_ne!(
        hashed("hash-password", "correct horse\n").out,
        output.out,
        "each hash must have a salt of its own"
    );
    let parsed = rocknet_config::model::PasswordHash::parse(hash).unwrap();
    assert!(rocknet_access::password::verify(&parsed, "correct horse"));
    assert!(!rocknet_access::password::verify(&parsed, "correct horse\n"));

    let json = hashed("hash-password --user bob --json", "correct horse").out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(
        json["user"] == "bob" && json["hash"].as_str().unwrap().starts_with("$argon2id$"),
        "{json}"
    );
    let line = hashed("hash-password --user bob", "correct horse");
    assert!(
        line.out.starts_with("bob:$argon2id$") && line.out.ends_with('\n'),
        "{line:?}"
    );
    let file = dir.write("htpasswd", &line.out);
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let site = "[site.\"127.0.0.1:8080\"]\nroot = \"www\"\n";
    dir.write(
        "rocknet.toml",
        &format!("{site}auth = {{ users = {{ ann = \"{hash}\" }}, file = \"htpasswd\" }}\n"),
    );
    let output = dir.run(&["check"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
    dir.write("htpasswd", "bob:correct horse\n");
    let output = dir.run(&["check"]);
    assert!(
        output.code == Some(78)
            && output
                .err
                .contains("htpasswd is invalid: line 1: the password is not a hash"),
        "{output:?}"
    );

    for (line, input, code, message) in [
        ("hash-password", "", 1, "is empty"),
        ("hash-password", "\n", 1, "is empty"),
        ("hash-password", "a\tb\n", 1, "control character"),
        ("hash-password", &"x".repeat(257), 1, "longer than 256 bytes"),
        ("hash-password --user a:b", "x", 2, "is not a valid user name"),
        ("hash-password secret", "x", 2, "unexpected argument"),
    ] {
        let output = hashed(line, input);
        assert!(
            output.code == Some(code) && output.err.contains(message) && output.out.is_empty(),
            "{line}: {output:?}"
        );
    }
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
fn explain_shows_how_scripts_are_run() {
    let dir = ProgramFolder::new(&[
        ("www/index.php", "<?php"),
        ("www/at/index.php", "<?php"),
        (
            "rocknet.toml",
            "[site.\":8080\"]\nroot = \"www\"\nphp = \"auto\"\ncgi = \"/bin\"\n\
             [[site.\":8080\".rule]]\npath = \"/gone/*\"\nrespond = 410\n\
             [site.\":8080\".route.\"/at/*\"]\nphp = \"127.0.0.1:9000\"\n",
        ),
    ]);
    for (url, parts) in [
        (
            "http://localhost:8080/",
            &["the script", "index.php", "PHP", "\"auto\"", "cgi", "\"/bin\""][..],
        ),
        (
            "http://localhost:8080/at/",
            &["run by the php-fpm at 127.0.0.1:9000", "php", "rocknet.toml:9"],
        ),
        (
            "http://localhost:8080/gone/x",
            &["{ path = \"/gone/*\", respond = 410 }"],
        ),
    ] {
        let output = dir.run(&["explain", url]);
        for part in parts {
            assert!(output.out.contains(part), "{url}: {part} not in {}", output.out);
        }
        assert!(!output.out.contains("run at"), "{url}: {}", output.out);
    }
}

#[test]
fn explain_shows_the_redirect_to_https() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        (
            "rocknet.toml",
            "[site.\"localhost\"]\nlisten = [\"http://:8080\", \"https://:8443\"]\nroot = \"www\"\n",
        ),
    ]);
    for (url, redirected) in [
        (
            "http://localhost:8080/",
            Some("redirect 308 to https://localhost:8443/, which leads to the file"),
        ),
        (
            "http://localhost:8080/a?b=c",
            Some("redirect 308 to https://localhost:8443/a?b=c, "),
        ),
        ("https://localhost:8443/", None),
        ("localhost/", None),
    ] {
        let output = dir.run(&["explain", url]);
        let line = output
            .out
            .lines()
            .find(|line| line.starts_with("leads to"))
            .unwrap_or_default();
        assert_eq!(line.contains("redirect"), redirected.is_some(), "{url}: {output:?}");
        assert!(line.contains(redirected.unwrap_or_default()), "{url}: {output:?}");
    }
}

#[test]
fn explain_names_the_handler_and_its_configuration_line() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("www/secret.txt", "secret"),
        ("www/bin/run.sh", "#!/bin/sh\n"),
        ("www/bin/text.sh", "#!/bin/sh\n"),
        ("lib.so", ""),
        (
            "rocknet.toml",
            "[site.\":8080\"]\nroot = \"www\"\ncgi = \"/bin\"\n\
             [[site.\":8080\".rule]]\npath = \"/old/*\"\nrewrite = \"/new/*\"\n\
             [site.\":8080\".route.\"/api/*\"]\nproxy = [\"http://127.0.0.1:9001\", \"http://127.0.0.1:9002\"]\n\
             [site.\":8080\".route.\"/app/*\"]\nfastcgi = \"127.0.0.1:9003\"\n\
             [site.\":8080\".route.\"/ext/*\"]\ncontroller = \"lib.so:hello\"\nisolate = true\n\
             [site.\":8080\".route.\"/secret*\"]\ninternal = true\n",
        ),
    ]);
    let library = dir.path().canonicalize().unwrap().join("lib.so");
    let controller = format!("{}:hello", library.display());
    // Request path, target path if the output has one, and expected rows of key, value and line.
    type Row<'a> = (&'a str, Option<&'a str>, &'a [(&'a str, &'a str, &'a str)]);
    let quoted = format!("{controller:?}");
    let by_controller = format!("the controller {controller}");
    let program = dir.path().canonicalize().unwrap().join("www/bin/run.sh");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let by_program = format!("the program {}", program.display());
    let rows: [Row<'_>; 7] = [
        ("/bin/run.sh/more", Some(&by_program), &[("cgi", "\"/bin\"", "3")]),
        ("/bin/text.sh", Some("403 Forbidden"), &[]),
        (
            "/api/x",
            Some("passed on to http://127.0.0.1:9001 or http://127.0.0.1:9002"),
            &[
                ("route", "/api/*", "7"),
                ("proxy", "[\"http://127.0.0.1:9001\", \"http://127.0.0.1:9002\"]", "8"),
                ("cgi", "\"/bin\"", "3"),
            ],
        ),
        (
            "/app/x",
            Some("an application by FastCGI at 127.0.0.1:9003"),
            &[("route", "/app/*", "9"), ("fastcgi", "[\"127.0.0.1:9003\"]", "10")],
        ),
        (
            "/ext/x",
            Some(&by_controller),
            &[
                ("route", "/ext/*", "11"),
                ("controller", &quoted, "12"),
                ("isolate", "true", "13"),
            ],
        ),
        (
            "/secret.txt",
            Some("404 Not Found: `internal` files are sent only if an application names them"),
            &[("route", "/secret*", "14"), ("internal", "true", "15")],
        ),
        (
            "/old/x",
            None,
            &[("rule 1", "{ path = \"/old/*\", rewrite = \"/new/*\" }", "4")],
        ),
    ];
    for (path, leads_to, rows) in rows {
        let output = dir.run(&["explain", &format!("http://localhost:8080{path}")]);
        assert_eq!(output.code, Some(0), "{path}: {output:?}");
        let columns = |key: &str| {
            let line = output
                .out
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix("  "));
            line.unwrap_or_else(|| panic!("{path}: no {key} in {}", output.out))
                .trim()
                .to_owned()
        };
        if let Some(leads_to) = leads_to {
            assert_eq!(columns("leads to"), leads_to, "{path}");
        }
        for (key, value, line) in rows {
            let columns = columns(key);
            let rest = columns.strip_prefix(value).map(str::trim_start);
            let (file, found) = rest.and_then(|rest| rest.rsplit_once(':')).unwrap_or_default();
            assert!(
                found == *line && file.ends_with("rocknet.toml"),
                "{path}: {key} is {columns}, not {value} of line {line}"
            );
        }
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
fn explain_names_site_route_line_and_target() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("www/a b.html", ""),
        ("www/list/x", ""),
        ("www/gone.html", "a page"),
        (
            "rocknet.toml",
            "[site.\"example.test\"]\nlisten = \"http://8080\"\nroot = \"www\"\nerrors = { 404 = \"/gone.html\" }\n\
             redirects = { \"/old/*\" = \"/new/{*}\" }\n[site.\"example.test\".route.\"/list/*\"]\nbrowse = true\n\
             [[site.\"example.test\".rule]]\npath = \"/was/*\"\nrespond = 410\n\
             [[site.\"example.test\".rule]]\npath = \"/moved\"\nredirect = \"/new\"\n\
             [[site.\"example.test\".rule]]\npath = \"/list.html\"\nrewrite = \"/list/?all\"\n\
             [site.\":8081\"]\nroot = \"missing\"\n",
        ),
    ]);
    let check = |url: &str, parts: &[&str]| {
        let output = dir.run(&["explain", url]);
        assert!(
            output.code == Some(0) && parts.iter().all(|part| output.out.contains(part)),
            "{url}: {output:?}"
        );
    };
    check(
        "http://example.test:8080/",
        &["the file", "www/index.html", "rocknet.toml:1", "rocknet.toml:3"],
    );
    check("example.test/a%20b.html", &["www/a b.html"]);
    check("example.test/list", &["308"]);
    check(
        "example.test/list/",
        &["a list of the folder", "/list/*", "rocknet.toml:6", "rocknet.toml:7"],
    );
    check(
        "example.test/old/a%20b?c",
        &["redirect 308 to /new/a%20b?c", "rocknet.toml:5"],
    );
    check(
        "example.test/none",
        &["404 Not Found, with the page /gone.html", "rocknet.toml:4"],
    );
    check("example.test/was/x", &["410 Gone, by a rule", "rocknet.toml:8"]);
    check("example.test/moved", &["redirect 308 to /new, by a rule"]);
    check(
        "example.test/list.html",
        &[
            "a list of the folder",
            "because a rule rewrites the URL to /list/?all",
            "/list/*",
        ],
    );
    check("example.test/.git/config", &["404"]);
    check("example.test/%2e%2e/x", &["400 Bad Request"]);
    check(
        "http://anyone:8081/",
        &["nothing: the folder", "missing", "cannot be opened"],
    );
    // The only site of a port serves every name.
    check("http://127.0.0.1:8080/", &["example.test"]);
    assert_eq!(dir.run(&["explain", "http://example.test:9/"]).code, Some(1));
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

#[test]
fn import_prints_a_configuration_that_check_accepts() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        (
            "site.conf",
            "server {\n  listen 8080;\n  root www;\n  limit_req zone=a;\n  gzip on;\n}\n",
        ),
        ("Caddyfile", ":8080 {\n\troot * www\n\tfile_server\n}\n"),
        ("www/.htaccess", "FallbackResource /index.html\n"),
        ("broken.conf", "server {\n  listen 80\n}\n"),
        ("empty.conf", "# nothing\n"),
        ("nginx.conf", "include sites/*.conf;\n"),
        (
            "sites/a.conf",
            "server {\n  server_name a.test;\n  if ($bad) { return 403; }\n}\n",
        ),
    ]);
    let output = dir.run(&["import", "nginx", "nginx.conf"]);
    assert!(output.out.contains("[site.\"a.test\"]"), "{output:?}");
    let restriction = "sites/a.conf:3: not translated: if ($bad): THIS RESTRICTS ACCESS: ";
    assert!(
        output.err.contains(restriction) && output.err.contains("; 1 restrict access\n"),
        "{output:?}"
    );
    let output = dir.run(&["import", "nginx", "site.conf"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.out.contains("# not translated: site.conf:4: limit_req zone=a: "),
        "{output:?}"
    );
    assert!(
        output.err.contains("site.conf:4: not translated: limit_req zone=a: "),
        "{output:?}"
    );
    assert!(output.err.contains("site.conf:5: not needed: gzip on: "), "{output:?}");
    for (language, file) in [
        ("nginx", "site.conf"),
        ("apache", "www/.htaccess"),
        ("caddy", "Caddyfile"),
    ] {
        let output = dir.run(&["import", language, file]);
        assert_eq!(output.code, Some(0), "{output:?}");
        dir.write("rocknet.toml", &output.out);
        let checked = dir.run(&["check"]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        let formatted = dir.run(&["fmt", "--check"]);
        assert_eq!(formatted.code, Some(0), "{formatted:?}");
    }
    let output = dir.run(&["import", "nginx", "site.conf", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(json["notes"][1]["line"], 4, "{json}");
    assert_eq!(json["notes"][1]["kind"], "not-translated", "{json}");
    assert_eq!(json["notes"][1]["file"], "site.conf", "{json}");
    assert_eq!(json["notes"][1]["restricts_access"], false, "{json}");
    for (file, code, message) in [
        ("broken.conf", 1, "broken.conf:2: `listen` does not end in `;`"),
        ("empty.conf", 1, "nothing was translated"),
        ("nowhere.conf", 1, "nowhere.conf"),
    ] {
        let output = dir.run(&["import", "nginx", file]);
        assert!(
            output.code == Some(code) && output.err.contains(message),
            "{file}: {output:?}"
        );
    }
    assert_eq!(dir.run(&["import", "lighttpd", "site.conf"]).code, Some(2));
}
