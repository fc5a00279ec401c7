//! Tests of the table of keys: defaults, examples, generated pages, and the model.

mod fixture;

use std::path::{Path, PathBuf};

use rocknet_config::keys::{self, Key, Kind, Section};
use rocknet_config::model::RuleAction;
use rocknet_config::{Config, reference};

use fixture::{BOB, OIDC_KEYS, config_with, parse, upstream_url};

/// Removes everything in which a configuration with a default written out may differ from one without it: spans, the
/// mark that `listen` is written, and the route that contains the key.
fn plain(mut config: Config) -> Config {
    for site in &mut config.sites {
        site.listen_given = false;
        site.settings.key_spans.clear();
        site.routes.clear();
    }
    config
}

#[test]
fn a_default_written_out_changes_nothing() {
    let bare = plain(parse(&config_with(Section::Limits, "")).unwrap());
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
        for section in key.sections {
            let text = config_with(*section, &format!("{} = {}", key.name, key.default_value()));
            let config = parse(&text).unwrap_or_else(|report| panic!("{text}\n{report}"));
            let mut expected = bare.clone();
            // `bare` has no value for some tables, so the expected value is taken from `config`, or from the
            // configuration `short`, which has the table without the key.
            expected.sites[0].span.line = config.sites[0].span.line;
            // The default status of redirects is 308.
            if *section == Section::Redirect {
                expected.sites[0].settings.redirects = config.sites[0].settings.redirects.clone();
                assert_eq!(config.sites[0].settings.redirects[0].status, 308);
            }
            if *section == Section::Rule {
                expected.sites[0].rules = config.sites[0].rules.clone();
                let rule = &config.sites[0].rules[0];
                assert!(!rule.last && !matches!(rule.action, RuleAction::Redirect { status, .. } if status != 308));
            }
            if matches!(
                section,
                Section::Proxy | Section::Upstream | Section::Health | Section::Mirror
            ) {
                let more = match section {
                    Section::Health => ", health = \"/h\"",
                    Section::Mirror => ", mirror = \"http://b\"",
                    _ => "",
                };
                let to = upstream_url(key.name);
                let short = format!("proxy = {{ to = \"{to}\"{more} }}");
                let short = parse(&config_with(Section::Site, &short)).unwrap();
                expected.sites[0].settings.proxy = short.sites[0].settings.proxy.clone();
            }
            if *section == Section::Application {
                let short = parse(&config_with(Section::Site, "fastcgi = \"a:1\"")).unwrap();
                expected.sites[0].settings.application = short.sites[0].settings.application.clone();
            }
            if *section == Section::TlsDns {
                let short = parse(&config_with(Section::Tls, "dns = { server = \"10.0.0.53\" }")).unwrap();
                expected.tls = short.tls;
            }
            if *section == Section::Auth {
                let short = match key.name {
                    "headers" | "user_field" | "timeout" => "auth = { forward = \"http://a/\" }".to_owned(),
                    name if OIDC_KEYS.contains(&name) => {
                        "auth = { oidc = \"https://a/\", client_id = \"a\" }".to_owned()
                    }
                    _ => format!("auth = {{ bob = \"{BOB}\" }}"),
                };
                let short = parse(&config_with(Section::Site, &short)).unwrap();
                expected.sites[0].settings.auth = short.sites[0].settings.auth.clone();
            }
            if *section == Section::Certificate {
                let short = plain(parse(&config_with(Section::Auth, "certificate = true")).unwrap());
                expected.sites = short.sites;
            }
            if matches!(section, Section::Browse | Section::Zip) {
                let short = match section {
                    Section::Zip => "browse = { zip = true }",
                    _ => "browse = true",
                };
                let short = parse(&config_with(Section::Site, short)).unwrap();
                expected.sites[0].settings.browse = short.sites[0].settings.browse.clone();
            }
            if *section == Section::Cors {
                let short = parse(&config_with(Section::Site, "cors = true")).unwrap();
                expected.sites[0].settings.cors = short.sites[0].settings.cors.clone();
            }
            if *section == Section::Ban {
                expected.ban = parse(&config_with(Section::Top, "ban = true")).unwrap().ban;
            }
            if *section == Section::ResponseCache {
                let short = parse(&config_with(Section::Site, "cache = true")).unwrap();
                expected.sites[0].settings.cache = short.sites[0].settings.cache.clone();
            }
            if *section == Section::Limit {
                let short = match key.name {
                    "after" => "limit = { bandwidth = \"1MiB/s\" }",
                    _ => "limit = \"10/s\"",
                };
                let short = parse(&config_with(Section::Site, short)).unwrap();
                expected.sites[0].settings.limits = short.sites[0].settings.limits.clone();
            }
            if *section == Section::Cgi {
                let short = parse(&config_with(Section::Site, "cgi = \"/cgi-bin\"")).unwrap();
                expected.sites[0].settings.cgi = short.sites[0].settings.cgi.clone();
            }
            if *section == Section::Php {
                let short = plain(parse(&config_with(Section::Site, "php = \"auto\"")).unwrap());
                expected.sites[0].settings = short.sites[0].settings.clone();
            }
            assert_eq!(plain(config), expected, "{text}");
            seen += 1;
        }
    }
    // A smaller number would mean that the loop skips keys by mistake.
    assert!(seen > 40, "{seen} defaults");
}

#[test]
fn every_example_is_accepted_in_its_sections() {
    let mut seen = 0;
    for key in keys::all().filter(|key| !key.example.is_empty()) {
        for section in key.sections {
            let text = match (key.name, section) {
                ("include", _) => config_with(*section, key.example),
                // At least one server must be active.
                ("drain" | "backup", _) => format!(
                    "[site.\"example.com\"]\nproxy = {{ to = [\"http://b\", {{ url = \"http://a\", {} }}] }}\n",
                    key.example
                ),
                ("route", _) => format!("[site.\"example.com\"]\nroot = \"/w\"\n{}", key.example),
                _ => config_with(*section, key.example),
            };
            parse(&text).unwrap_or_else(|report| panic!("{text}\n{report}"));
            let formatted = rocknet_config::format(&format!("{}\n", key.example)).unwrap();
            assert_eq!(
                formatted.trim_end(),
                key.example,
                "examples are formatted as `rocknet fmt` does"
            );
            seen += 1;
        }
    }
    // A smaller number would mean that the loop skips keys by mistake.
    assert!(seen > 40, "{seen} examples");
}

#[test]
fn every_key_is_listed_once_and_documented() {
    let all: Vec<&Key> = keys::all().collect();
    for (at, section) in Section::ALL.iter().enumerate() {
        assert_eq!(*section as usize, at, "`Section::ALL` is not in the order of the enum");
    }
    for (at, key) in all.iter().enumerate() {
        assert!(
            key.doc.ends_with('.'),
            "{}: the documentation is not a sentence",
            key.name
        );
        assert!(!key.sections.is_empty(), "{}", key.name);
        for other in &all[..at] {
            let shared = key.sections.iter().any(|section| other.sections.contains(section));
            assert!(key.name != other.name || !shared, "{} is in the table twice", key.name);
        }
        for name in key.foreign_names {
            let same = key.sections.iter().any(|section| keys::find(*section, name).is_some());
            assert!(!same, "{}: `{name}` is a key of RockNet itself", key.name);
        }
        if !matches!(key.kind, Kind::Table(_) | Kind::Tables { .. }) {
            // The keys of these small tables need no example of their own.
            let small = [
                Section::Events,
                Section::Spool,
                Section::Rotate,
                Section::Redirect,
                Section::SiteTls,
                Section::Ca,
                Section::TlsDns,
            ];
            let small = small.contains(&key.sections[0]);
            assert!(small || !key.example.is_empty(), "{} has no example", key.name);
        }
    }
}

/// Checks that docs/limits.md names every limit.
#[test]
fn every_limit_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
    let page = std::fs::read_to_string(page).unwrap();
    for section in [Section::Limits, Section::Cache] {
        let table = section.header().trim_matches(['[', ']']);
        for key in keys::within(section) {
            let name = format!("`{table}.{}`", key.name);
            assert!(page.contains(&name), "docs/limits.md has no line for {name}");
        }
    }
}

/// Checks the generated files. After a change of the table of keys, `cargo xtask docs` writes them again.
#[test]
fn generated_pages_are_up_to_date() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let rows: [(&str, String); 2] = [
        ("configuration.md", reference::markdown()),
        ("rocknet.schema.json", reference::schema()),
    ];
    for (name, generated) in rows {
        let path: PathBuf = docs.join(name);
        let on_disk = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        assert!(on_disk == generated, "docs/{name} is out of date: run cargo xtask docs");
    }
}

#[test]
fn the_schema_has_every_key_and_resolves_its_references() {
    let schema: serde_json::Value = serde_json::from_str(&reference::schema()).unwrap();
    let mut references = Vec::new();
    // Values that have not been visited yet.
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
    // A smaller number would mean that references were not found.
    assert!(references.len() > 10);
    for reference in references {
        assert!(
            schema.pointer(reference.trim_start_matches('#')).is_some(),
            "{reference}"
        );
    }
    let text = schema.to_string();
    for key in keys::all() {
        assert!(text.contains(&format!("\"{}\":", key.name)), "{}", key.name);
        assert!(reference::markdown().contains(key.name), "{}", key.name);
    }
}

#[test]
fn a_folder_is_served_as_by_a_file_and_the_welcome_page_has_no_root() {
    use rocknet_config::model::{Listen, Mode};
    let listen = Listen::Tcp {
        address: Some([127, 0, 0, 1].into()),
        port: 8080,
    };
    // Without these keys, a configuration in `dev` mode also prints requests, which only the caller of
    // `for_directory` can decide.
    let text = "[server]\nmode = \"dev\"\n[log]\naccess = \"off\"\nformat = \"combined\"\n\
                [site.\"127.0.0.1:8080\"]\nroot = \"/w\"\nbrowse = true\n";
    let mut written = plain(parse(text).unwrap());
    let mut made = plain(Config::for_directory(Path::new("/w"), listen.clone()));
    for config in [&mut written, &mut made] {
        config.files.clear();
        config.sites[0].span = Default::default();
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

/// Returns the words that a kind accepts.
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
                "the entry of `{}` does not list \"{word}\"",
                key.name
            );
            listed += 1;
        }
    }
    // A smaller number would mean that `words` misses kinds.
    assert!(listed > 30, "{listed} words");
}
