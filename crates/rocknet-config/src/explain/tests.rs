//! Tests of explanations: the site, route and settings of URLs, with their lines.

use std::path::Path;

use super::*;
use crate::environment::MemoryEnvironment;

/// Configuration of the tests. Its first line is empty, so `[log]` is on line 2.
const FILE: &str = r#"
[log]
access = "stdout"
[site."a.test"]
aliases = ["*.a.test"]
root = "/w"
headers = { A = "1" }
[site."a.test".route."/x/*"]
headers = { B = "2" }
limits = { body_size = "1MiB" }
[site."a.test".route."/x/y/*"]
browse = true
[site."a.test".route."/x/exact"]
browse = true
[site."a.test".route."*.zip"]
compress = false
[site."*.b.a.test"]
root = "/w"
[site.":8081"]
root = "/w"
[[site.":8081".rule]]
path = "/x/*"
header = { Cookie = "a*" }
rewrite = "/y/{*}"
[[site.":8081".rule]]
path = "/z"
respond = 410
[site."127.0.0.1"]
root = "/w"
listen = 8081
[site.default]
root = "/w"
[site."scripts.test"]
root = "/w"
php = "8.2"
user = "alice"
cgi = { folder = "/bin", time = "5s", params = { KEY = "secret" } }
[[site."scripts.test".rule]]
path = ["/a/*", "/b"]
respond = 404
[site."scripts.test".route."/short/*"]
php = "auto"
cgi = "/cgi-bin"
[site."staff.test"]
root = "/w"
allow = ["private", "192.0.2.0/24", "192.0.2.7"]
auth = { realm = "staff", users = { bob = "$apr1$salt$0123456789012345678901" }, file = "users" }
[site."staff.test".route."/open/*"]
allow = "all"
deny = []
auth = false
"#;

#[test]
fn the_most_specific_site_and_route_are_selected() {
    let environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    let config = crate::parse(FILE, Path::new("/r.toml"), &environment).unwrap().config;
    // (host, port, path, site, route)
    let rows = [
        ("a.test", Some(80), "/", "a.test", None),
        ("A.TEST.", None, "/x/1", "a.test", Some("/x/*")),
        ("w.a.test", Some(80), "/x/y/1", "a.test", Some("/x/y/*")),
        ("a.test", Some(80), "/x/exact", "a.test", Some("/x/exact")),
        ("a.test", Some(80), "/x/z.zip", "a.test", Some("/x/*")),
        ("a.test", Some(80), "/z.zip", "a.test", Some("*.zip")),
        ("w.b.a.test", Some(80), "/", "*.b.a.test", None),
        ("other", Some(80), "/", "default", None),
        ("a.test", Some(8081), "/", ":8081", None),
        ("127.0.0.1", Some(8081), "/", "127.0.0.1", None),
    ];
    for (host, port, path, site, route) in rows {
        let got = explain(&config, host, port, path).unwrap();
        assert_eq!(got.site.name, site, "{host}");
        assert_eq!(
            got.route.map(|route| pattern(&route.pattern)).as_deref(),
            route,
            "{host} {path}"
        );
    }
    assert_eq!(explain(&config, "a.test", Some(9), "/"), None);
}

#[test]
fn each_setting_names_its_line() {
    let environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    let config = crate::parse(FILE, Path::new("/r.toml"), &environment).unwrap().config;
    let got = explain(&config, "a.test", None, "/x/1").unwrap();
    let find = |key: &str| {
        let setting = got.settings.iter().find(|setting| setting.key == key).unwrap();
        (setting.value.as_str(), setting.span.as_ref().map(|span| span.line))
    };
    // (key, value, line; `None` for a default)
    let rows = [
        ("root", "\"/w\"", Some(6)),
        ("headers.A", "\"1\"", Some(7)),
        ("headers.B", "\"2\"", Some(9)),
        ("browse", "false", None),
        ("listen", "[80, 443]", None),
        ("aliases", "[\"*.a.test\"]", Some(5)),
        ("log", "{ access = \"stdout\", format = \"combined\" }", Some(3)),
        ("limits.body_size", "\"1MiB\"", Some(10)),
        ("limits.answer_timeout", "\"60s\"", None),
    ];
    for (key, value, line) in rows {
        assert_eq!(find(key), (value, line), "{key}");
    }
    // Returns the value and the line of a key.
    let found = |host: &str, path: &str, key: &str| {
        let got = explain(&config, host, None, path).unwrap();
        let setting = got.settings.into_iter().find(|setting| setting.key == key).unwrap();
        (setting.value, setting.span.map(|span| span.line))
    };
    for (path, key, value, line) in [
        ("/", "php", "\"8.2\"", 35),
        ("/", "user", "\"alice\"", 36),
        ("/", "cgi", "\"/bin\"", 37),
        ("/", "cgi.time", "\"5s\"", 37),
        // The value may be a secret.
        ("/", "cgi.params", "{ \"KEY\" = … }", 37),
        ("/b", "rule 1", "{ path = [\"/a/*\", \"/b\"], respond = 404 }", 38),
        ("/short/x", "php", "\"auto\"", 42),
        ("/short/x", "cgi", "\"/cgi-bin\"", 43),
    ] {
        assert_eq!(
            found("scripts.test", path, key),
            (value.to_owned(), Some(line)),
            "{path} {key}"
        );
    }
    // Users are shown without their hashes.
    let auth = "{ realm = \"staff\", users = { \"bob\" = … }, file = \"/users\" }";
    for (path, key, value, line) in [
        ("/", "allow", "[\"private\", \"192.0.2.0/24\", \"192.0.2.7\"]", 46),
        ("/", "auth", auth, 47),
        ("/open/x", "allow", "\"all\"", 49),
        ("/open/x", "deny", "[]", 50),
        ("/open/x", "auth", "false", 51),
    ] {
        assert_eq!(
            found("staff.test", path, key),
            (value.to_owned(), Some(line)),
            "{path} {key}"
        );
    }
    // The group `Access` does not list settings at their defaults.
    let plain = explain(&config, "a.test", None, "/").unwrap();
    assert!(!plain.settings.iter().any(|setting| setting.key == "auth"));
    let got = explain(&config, "scripts.test", None, "/short/x").unwrap();
    let inherited = got.settings.iter().find(|setting| setting.key.starts_with("cgi."));
    assert_eq!(
        inherited, None,
        "the keys of the site's table do not apply to the route"
    );
    let got = explain(&config, "other", Some(8081), "/x/1").unwrap();
    let rules: Vec<_> = got
        .settings
        .iter()
        .filter(|setting| setting.key.starts_with("rule"))
        .collect();
    let [rule] = rules[..] else { panic!("{rules:?}") };
    let value = "{ path = \"/x/*\", rewrite = \"/y/{*}\", header = { \"Cookie\" = \"a*\" } }";
    assert_eq!((rule.key.as_str(), rule.value.as_str()), ("rule 1", value));
    assert_eq!(rule.span.as_ref().map(|span| span.line), Some(21));
}

#[test]
fn settings_are_shown_in_their_groups() {
    let environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    // The first line is empty, so the site is on line 2.
    let text = r#"
[site."a.test"]
proxy = { to = ["http://b", { url = "http://c", weight = 3 }], health = { path = "/h", rise = 1 }, intercept = true }
headers = { A = "1" }
redirects = { "/old" = "/new" }
[site."a.test".route."/files/*"]
root = "/w"
priority = "low"
[site."a.test".route."/app/*"]
uwsgi = { to = "unix:/run/app", balance = "least_conn" }
[site."a.test".route."/off/*"]
proxy = false
[site."a.test".route."/app/other/*"]
fastcgi = false
scgi = "b:1"
"#;
    let config = crate::parse(text, Path::new("/r.toml"), &environment).unwrap().config;
    // Returns the settings of a group as `key value line`.
    let shown = |path: &str, group: SettingGroup| -> Vec<String> {
        let got = explain(&config, "a.test", None, path).unwrap();
        let groups: Vec<_> = got.settings.iter().map(|setting| setting.group).collect();
        assert!(groups.is_sorted(), "{groups:?}");
        let rows = got.settings.into_iter().filter(|setting| setting.group == group);
        // Line 0 marks a setting without a position: a default, or a `mount` that follows from the route's pattern.
        let line = |setting: &EffectiveSetting| setting.span.as_ref().map_or(0, |span| span.line);
        rows.map(|row| format!("{} {} {}", row.key, row.value, line(&row)))
            .collect()
    };
    assert_eq!(
        shown("/", SettingGroup::Handler),
        [
            "proxy [\"http://b:80\", { url = \"http://c:80\", weight = 3 }] 3",
            "proxy.health \"/h\" 3",
            "proxy.health.rise 1 3",
            "proxy.intercept true 3",
        ]
    );
    assert_eq!(shown("/files/x", SettingGroup::Handler), ["root \"/w\" 7"]);
    assert_eq!(
        shown("/app/x", SettingGroup::Handler),
        [
            "uwsgi [\"unix:/run/app\"] 10",
            "uwsgi.mount \"/app\" 0",
            "uwsgi.balance \"least_conn\" 10",
        ]
    );
    assert_eq!(shown("/off/x", SettingGroup::Handler), ["proxy false 12"]);
    assert_eq!(
        shown("/app/other/x", SettingGroup::Handler),
        ["fastcgi false 14", "scgi [\"b:1\"] 15", "scgi.mount \"/app/other\" 0"]
    );
    assert_eq!(shown("/", SettingGroup::Files), [""; 0]);
    assert_eq!(shown("/files/x", SettingGroup::Limits)[0], "priority \"low\" 8");
    assert_eq!(
        shown("/app/x", SettingGroup::Filters),
        ["compress true 0", "headers.A \"1\" 4", "harden false 0", "cors false 0"]
    );
    assert_eq!(
        shown("/app/x", SettingGroup::Rules),
        ["redirects./old { to = \"/new\", status = 308 } 5"]
    );
}
