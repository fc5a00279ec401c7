//! The command `explain`: route, settings, handler and target of a URL.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::program::ProgramFolder;

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
        // The output has the program that runs a script, and not only the value of `php`, as in "run at auto".
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
fn explain_names_site_route_line_and_target() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        ("www/a b.html", ""),
        ("www/list/x", ""),
        ("www/hidden/index.html", ""),
        ("www/gone.html", "a page"),
        (
            "rocknet.toml",
            "[site.\"example.test\"]\nlisten = \"http://8080\"\nroot = \"www\"\nerrors = { 404 = \"/gone.html\" }\n\
             redirects = { \"/old/*\" = \"/new/{*}\" }\n[site.\"example.test\".route.\"/list/*\"]\nbrowse = true\n\
             [[site.\"example.test\".rule]]\npath = \"/was/*\"\nrespond = 410\n\
             [[site.\"example.test\".rule]]\npath = \"/moved\"\nredirect = \"/new\"\n\
             [[site.\"example.test\".rule]]\npath = \"/list.html\"\nrewrite = \"/list/?all\"\n\
             [[site.\"example.test\".rule]]\npath = \"/hidden/*.html\"\nrespond = 403\nresolved = true\n\
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
        "example.test/hidden/",
        &["403 Forbidden, by a rule for the file /hidden/index.html"],
    );
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
