//! The command `import`, whose output `check` accepts.

use crate::program::ProgramFolder;

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
