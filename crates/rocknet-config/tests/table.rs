//! The table of keys against everything made from it: defaults, examples, the pages on disk, and the model.

use std::path::{Path, PathBuf};

use rocknet_config::environment::Memory;
use rocknet_config::keys::{self, Availability, Key, Kind, Scope};
use rocknet_config::model::RuleAction;
use rocknet_config::{Config, Report, explain, reference};

/// A whole file with one line in the table of a scope, and how its site is named there.
fn placed(scope: Scope, line: &str) -> String {
    let site = "[site.\"example.com\"]\nroot = \"/w\"\n";
    match scope {
        Scope::Top => format!("{line}\n{site}"),
        Scope::Server => format!("[server]\n{line}\n{site}"),
        Scope::Events => format!("[server]\nevents = {{ {line} }}\n{site}"),
        Scope::Spool => format!("[server]\nspool = {{ {line} }}\n{site}"),
        Scope::Limits => format!("[limits]\n{line}\n{site}"),
        Scope::Log => format!("[log]\n{line}\n{site}"),
        Scope::Rotate => format!("[log]\nrotate = {{ {line} }}\n{site}"),
        Scope::Cache => format!("[cache]\n{line}\n{site}"),
        Scope::Site if line.starts_with("root") => format!("[site.\"example.com\"]\n{line}\n"),
        Scope::Site => format!("{site}{line}\n"),
        Scope::SiteLimits => format!("{site}limits = {{ {line} }}\n"),
        Scope::SiteLog => format!("{site}log = {{ {line} }}\n"),
        Scope::Route => format!("{site}[site.\"example.com\".route.\"/x/*\"]\n{line}\n"),
        Scope::Tls => format!("[tls]\n{line}\n{site}"),
        Scope::SiteTls => format!("{site}tls = {{ {} }}\n", line.replace('\n', ", ")),
        Scope::Ca => format!("[tls]\nca = {{ url = \"https://a.example/d\", {line} }}\n{site}"),
        Scope::TlsDns => format!("[tls]\ndns = {{ server = \"10.0.0.53\", {line} }}\n{site}"),
        Scope::Rule => {
            let rest = match line.split_whitespace().next() {
                Some("status") => "redirect = \"/b\"",
                Some("body") => "respond = 503",
                Some("rewrite" | "redirect" | "respond") => "",
                _ => "rewrite = \"/b\"",
            };
            let path = if line.starts_with("path") {
                ""
            } else {
                "path = \"/a/*\""
            };
            format!("{site}[[site.\"example.com\".rule]]\n{line}\n{rest}\n{path}\n")
        }
        Scope::Upstream if line.starts_with("url") => format!("{site}proxy = {{ to = {{ {line} }} }}\n"),
        Scope::Upstream => format!("{site}proxy = {{ to = {{ url = \"http://a\", {line} }} }}\n"),
        Scope::Health => {
            let path = if line.starts_with("path") {
                ""
            } else {
                "path = \"/h\", "
            };
            format!("{site}proxy = {{ to = \"http://a\", health = {{ {path}{line} }} }}\n")
        }
        Scope::Mirror if line.starts_with("to") => {
            format!("{site}proxy = {{ to = \"http://a\", mirror = {{ {line} }} }}\n")
        }
        Scope::Mirror => format!("{site}proxy = {{ to = \"http://a\", mirror = {{ to = \"http://b\", {line} }} }}\n"),
        Scope::Proxy if line.starts_with("to") => format!("{site}proxy = {{ {} }}\n", line.replace('\n', ", ")),
        Scope::Proxy => {
            let to = proxied(line);
            format!("{site}proxy = {{ to = \"{to}\", {} }}\n", line.replace('\n', ", "))
        }
        Scope::Application if line.starts_with("to") => format!("{site}fastcgi = {{ {line} }}\n"),
        Scope::Application => format!("{site}fastcgi = {{ to = \"a:1\", {line} }}\n"),
        Scope::Cgi if line.starts_with("folder") => format!("{site}cgi = {{ {line} }}\n"),
        Scope::Cgi => format!("{site}cgi = {{ folder = \"/cgi-bin\", {line} }}\n"),
        Scope::Redirect => format!("{site}redirects = {{ \"/a\" = {{ to = \"/b\", {line} }} }}\n"),
    }
}

/// A server that a key of a proxy has a meaning for.
fn proxied(line: &str) -> &'static str {
    let of_tls = ["ca", "server_name", "verify", "cert", "key", "http2"];
    let key = line.split(' ').next().unwrap_or_default();
    if of_tls.contains(&key) { "https://a" } else { "http://a" }
}

fn read(text: &str) -> Result<Config, Report> {
    let world = Memory {
        any_directory: true,
        ..Memory::default()
    };
    let loaded = rocknet_config::parse(text, Path::new("/etc/rocknet/rocknet.toml"), &world)?;
    Ok(loaded.config)
}

/// Forgets where things were written, which is all that may differ between a default and the same value written.
fn plain(mut config: Config) -> Config {
    for site in &mut config.sites {
        site.listen_given = false;
        site.settings.places.clear();
        site.routes.clear();
    }
    config
}

#[test]
fn a_default_written_out_changes_nothing() {
    let bare = plain(read(&placed(Scope::Limits, "")).unwrap());
    assert_eq!(
        Config {
            sites: vec![],
            files: vec![],
            ..bare.clone()
        },
        Config::default()
    );
    let mut seen = 0;
    for key in keys::all().filter(|key| !key.default_value().is_empty()) {
        for scope in key.scopes {
            let text = placed(*scope, &format!("{} = {}", key.name, key.default_value()));
            let config = read(&text).unwrap_or_else(|report| panic!("{text}\n{report}"));
            let mut expected = bare.clone();
            expected.sites[0].place.line = config.sites[0].place.line;
            if *scope == Scope::Redirect {
                expected.sites[0].settings.redirects = config.sites[0].settings.redirects.clone();
                assert_eq!(config.sites[0].settings.redirects[0].status, 308);
            }
            if *scope == Scope::Rule {
                expected.sites[0].rules = config.sites[0].rules.clone();
                let rule = &config.sites[0].rules[0];
                assert!(!rule.last && !matches!(rule.action, RuleAction::Redirect { status, .. } if status != 308));
            }
            if matches!(scope, Scope::Proxy | Scope::Upstream | Scope::Health | Scope::Mirror) {
                let more = match scope {
                    Scope::Health => ", health = \"/h\"",
                    Scope::Mirror => ", mirror = \"http://b\"",
                    _ => "",
                };
                let to = proxied(key.name);
                let short = format!("proxy = {{ to = \"{to}\"{more} }}");
                let short = read(&placed(Scope::Site, &short)).unwrap();
                expected.sites[0].settings.proxy = short.sites[0].settings.proxy.clone();
            }
            if *scope == Scope::Application {
                let short = read(&placed(Scope::Site, "fastcgi = \"a:1\"")).unwrap();
                expected.sites[0].settings.application = short.sites[0].settings.application.clone();
            }
            if *scope == Scope::TlsDns {
                let short = read(&placed(Scope::Tls, "dns = { server = \"10.0.0.53\" }")).unwrap();
                expected.tls = short.tls;
            }
            if *scope == Scope::Cgi {
                let short = read(&placed(Scope::Site, "cgi = \"/cgi-bin\"")).unwrap();
                expected.sites[0].settings.cgi = short.sites[0].settings.cgi.clone();
            }
            assert_eq!(plain(config), expected, "{text}");
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen} defaults");
}

#[test]
fn every_example_is_accepted_where_it_may_stand() {
    let mut seen = 0;
    for key in keys::all().filter(|key| !key.example.is_empty()) {
        for scope in key.scopes {
            let text = match (key.name, scope) {
                ("include", _) => placed(*scope, key.example),
                // It cannot be said of all.
                ("drain" | "backup", _) => format!(
                    "[site.\"example.com\"]\nproxy = {{ to = [\"http://b\", {{ url = \"http://a\", {} }}] }}\n",
                    key.example
                ),
                ("route", _) => format!("[site.\"example.com\"]\nroot = \"/w\"\n{}", key.example),
                _ => placed(*scope, key.example),
            };
            read(&text).unwrap_or_else(|report| panic!("{text}\n{report}"));
            let formatted = rocknet_config::format(&format!("{}\n", key.example)).unwrap();
            assert_eq!(
                formatted.trim_end(),
                key.example,
                "examples are shown as `rocknet fmt` leaves them"
            );
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen} examples");
}

#[test]
fn every_key_is_known_once_and_documented() {
    let all: Vec<&Key> = keys::all().collect();
    for (at, scope) in Scope::ALL.iter().enumerate() {
        assert_eq!(*scope as usize, at, "`Scope::ALL` is not in the order of the enum");
    }
    for (at, key) in all.iter().enumerate() {
        assert!(key.doc.ends_with('.'), "{}: the doc is no sentence", key.name);
        assert!(!key.scopes.is_empty(), "{}", key.name);
        for other in &all[..at] {
            let shared = key.scopes.iter().any(|scope| other.scopes.contains(scope));
            assert!(key.name != other.name || !shared, "{} is in the table twice", key.name);
        }
        for name in key.elsewhere {
            let same = key.scopes.iter().any(|scope| keys::find(*scope, name).is_some());
            assert!(!same, "{}: `{name}` is a key of RockNet itself", key.name);
        }
        if key.availability == Availability::Now && !matches!(key.kind, Kind::Table(_) | Kind::Tables { .. }) {
            let small = [
                Scope::Events,
                Scope::Spool,
                Scope::Rotate,
                Scope::Redirect,
                Scope::SiteTls,
                Scope::Ca,
                Scope::TlsDns,
            ];
            let small = small.contains(&key.scopes[0]);
            assert!(small || !key.example.is_empty(), "{} has no example", key.name);
        }
    }
}

#[test]
fn a_key_that_comes_later_is_refused_as_such() {
    let mut seen = 0;
    for key in keys::all() {
        if let Availability::Later(feature) = key.availability {
            for scope in key.scopes {
                let report = read(&placed(*scope, &format!("{} = {{}}", key.name))).unwrap_err();
                let text = report.to_string();
                assert!(text.contains("not available yet") && text.contains(feature), "{text}");
                seen += 1;
            }
        }
    }
    assert!(seen > 6, "{seen}");
}

/// What happens beyond a limit is for operators to know before it happens.
#[test]
fn every_limit_stands_in_its_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
    let page = std::fs::read_to_string(page).unwrap();
    for scope in [Scope::Limits, Scope::Cache] {
        let table = scope.header().trim_matches(['[', ']']);
        for key in keys::within(scope) {
            let name = format!("`{table}.{}`", key.name);
            assert!(page.contains(&name), "docs/limits.md has no line for {name}");
        }
    }
}

/// Changed the table? `cargo xtask docs` writes these files anew.
#[test]
fn pages_on_disk_are_fresh() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let rows: [(&str, String); 2] = [
        ("configuration.md", reference::markdown()),
        ("rocknet.schema.json", reference::schema()),
    ];
    for (name, fresh) in rows {
        let path: PathBuf = docs.join(name);
        let on_disk = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        assert!(on_disk == fresh, "docs/{name} is out of date: run cargo xtask docs");
    }
}

#[test]
fn the_schema_knows_every_key_and_all_its_references_lead_somewhere() {
    let schema: serde_json::Value = serde_json::from_str(&reference::schema()).unwrap();
    let mut references = Vec::new();
    let mut open = vec![&schema];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(map) => {
                references.extend(map.get("$ref").and_then(|r| r.as_str()));
                open.extend(map.values());
            }
            serde_json::Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    assert!(references.len() > 10);
    for reference in references {
        assert!(
            schema.pointer(reference.trim_start_matches('#')).is_some(),
            "{reference}"
        );
    }
    let text = schema.to_string();
    for key in keys::all().filter(|key| !matches!(key.availability, Availability::Later(_))) {
        assert!(text.contains(&format!("\"{}\":", key.name)), "{}", key.name);
        assert!(reference::markdown().contains(key.name), "{}", key.name);
    }
}

#[test]
fn ready_made_configurations_are_what_a_file_would_say() {
    use rocknet_config::model::{Listen, Mode};
    let listen = Listen::Tcp {
        address: Some([127, 0, 0, 1].into()),
        port: 8080,
    };
    let text = "[server]\nmode = \"dev\"\n[site.\"127.0.0.1:8080\"]\nroot = \"/w\"\nbrowse = true\n";
    let mut written = plain(read(text).unwrap());
    let mut made = plain(Config::for_directory(Path::new("/w"), listen.clone()));
    for config in [&mut written, &mut made] {
        config.files.clear();
        config.sites[0].place = Default::default();
        config.sites[0].name.clear();
    }
    assert_eq!(written, made);
    let welcome = Config::welcome(listen.clone());
    assert_eq!(
        (welcome.server.mode, &welcome.sites[0].settings.root),
        (Mode::Dev, &None)
    );
    assert_eq!(welcome.sites[0].listen, [listen]);
}

/// The words of a kind, wherever a value of it is taken.
fn words(kind: &'static Kind) -> Vec<&'static str> {
    match kind {
        Kind::Choice(words) => words.iter().map(|word| word.text).collect(),
        Kind::Either(kinds) => kinds.iter().flat_map(words).collect(),
        Kind::Several(inner) | Kind::List(inner) => words(inner),
        _ => Vec::new(),
    }
}

#[test]
fn the_reference_lists_the_words_of_every_key() {
    let page = reference::markdown();
    let mut listed = 0;
    for key in keys::all() {
        for word in words(&key.kind) {
            let line = format!("  - `\"{word}\"`: ");
            assert!(
                page.contains(&line),
                "`{}` takes \"{word}\", and its entry does not say so",
                key.name
            );
            listed += 1;
        }
    }
    assert!(listed > 30, "{listed} words");
}

/// The row of an explanation that shows a key of a table, and whether the row is that of the table itself.
fn row_of(scope: Scope, name: &str) -> Option<(String, bool)> {
    let (table, in_its_value): (_, &[&str]) = match scope {
        Scope::Site | Scope::Route => ("", &[]),
        Scope::SiteLimits => ("limits", &[]),
        Scope::SiteLog => ("log", &["access", "format"]),
        Scope::SiteTls => ("tls", &["cert", "key", "issuer"]),
        Scope::Proxy => ("proxy", &["to"]),
        Scope::Upstream => ("proxy", &["url", "weight", "drain", "backup"]),
        Scope::Health => ("proxy.health", &["path"]),
        Scope::Mirror => ("proxy.mirror", &["to"]),
        Scope::Application => ("fastcgi", &["to"]),
        Scope::Cgi => ("cgi", &["folder"]),
        Scope::Redirect => ("redirects./a", &["to", "status"]),
        Scope::Rule => return Some(("rule 1".to_owned(), true)),
        _ => return None,
    };
    Some(match (table, in_its_value.contains(&name)) {
        ("", _) => (name.to_owned(), false),
        (table, true) => (table.to_owned(), true),
        (table, false) => (format!("{table}.{name}"), false),
    })
}

/// A key whose entry in the table has no `sets` is read by the server, and `rocknet explain` would not tell of it.
#[test]
fn explain_shows_every_key_of_a_site_and_a_route() {
    let mut seen = 0;
    for scope in Scope::ALL {
        for key in keys::within(*scope).filter(|key| key.availability == Availability::Now) {
            let Some((row, is_table)) = row_of(*scope, key.name) else {
                continue;
            };
            let example = match (scope, key.name) {
                // A route is an explanation's own; what is written in it is looked at below.
                (_, "route") => continue,
                (_, "fallback") => "fallback = false",
                (Scope::Redirect, "to") => "to = \"/b\"",
                (Scope::Rule, "path") => "path = \"/a/*\"",
                (Scope::Redirect, _) => "status = 302",
                (Scope::SiteTls, "issuer") => "issuer = \"local\"",
                (Scope::SiteTls, "key") => "cert = \"a.pem\"\nkey = \"a.key\"",
                (Scope::SiteTls, "ocsp") => "cert = \"a.pem\"\nocsp = \"a.der\"",
                (Scope::SiteTls, "client_ca") => "client_ca = \"ca.pem\"",
                (Scope::SiteTls, "client") => "client_ca = \"ca.pem\"\nclient = \"optional\"",
                _ => key.example,
            };
            let text = match (scope, key.name) {
                (Scope::Site, "rule") => placed(Scope::Rule, "path = \"/a/*\""),
                (Scope::Redirect, "to") => placed(Scope::Site, &format!("redirects = {{ \"/a\" = {{ {example} }} }}")),
                (Scope::Upstream, "drain" | "backup") => {
                    let to = format!("[\"http://b\", {{ url = \"http://a\", {example} }}]");
                    placed(Scope::Site, &format!("proxy = {{ to = {to} }}"))
                }
                _ => placed(*scope, example),
            };
            let config = read(&text).unwrap_or_else(|report| panic!("{text}\n{report}"));
            let path = if row == "rule 1" || key.name == "rule" {
                "/a/x"
            } else {
                "/x/a"
            };
            let explained = explain::explain(&config, "example.com", None, path).unwrap();
            let row = if key.name == "rule" { "rule 1" } else { &row };
            let found = explained.settings.iter().find(|applied| {
                let rest = applied.key.strip_prefix(row);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            let Some(found) = found else {
                panic!("explain does not show `{}` of {}:\n{text}", key.name, scope.header());
            };
            assert!(found.place.is_some(), "no line for `{row}`:\n{text}");
            let written = example.rsplit_once(" = ").map(|(_, value)| value).unwrap_or_default();
            match &key.kind {
                Kind::Map { .. } => {}
                _ if is_table => {
                    // The first of a list is enough, and files are shown with their folders.
                    let first = written.trim_matches(['[', ']', '"', ' ', '}']).split('"').next();
                    let name = first.unwrap_or_default();
                    assert!(found.value.contains(name), "{found:?} does not hold {name}:\n{text}");
                }
                Kind::Boolean | Kind::Integer { .. } | Kind::Duration { .. } | Kind::Size { .. } | Kind::Choice(_) => {
                    assert_eq!(found.value, written, "{text}");
                }
                _ => {}
            }
            seen += 1;
        }
    }
    assert!(seen > 110, "{seen} keys");
}
