//! Tests of bounds of the configuration, at the bound and just beyond it: minimum and maximum of the keys of most
//! sections, and the sizes of files, names, patterns and lists.

use std::path::Path;

use rocknet_config::environment::MemoryEnvironment;
use rocknet_config::keys::{self, Kind, Section};
use rocknet_config::{Config, Report};

/// Path of the main file.
const FILE: &str = "/etc/rocknet/rocknet.toml";

fn read(text: &str) -> Result<Config, Report> {
    read_with(text, &[])
}

/// Reads a text with further files in its folder.
fn read_with(text: &str, files: &[(String, String)]) -> Result<Config, Report> {
    let mut environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    for (name, content) in files {
        let path = Path::new(FILE).with_file_name(name);
        environment.files.insert(path, content.clone());
    }
    rocknet_config::parse(text, Path::new(FILE), &environment).map(|loaded| loaded.config)
}

/// Checks that the text `inside`, at a bound, is accepted, and that the text `beyond` it is refused with `message`.
/// `what`: the bounded thing, for failures of the test.
#[track_caller]
fn check(what: &str, inside: &str, beyond: &str, message: &str) {
    if let Err(report) = read(inside) {
        panic!("{what}, just allowed:\n{report}");
    }
    refused(what, read(beyond), message);
}

/// Checks that a text was refused with `message`. `what`: as in [`check`].
#[track_caller]
fn refused(what: &str, read: Result<Config, Report>, message: &str) {
    match read {
        Ok(_) => panic!("{what}, just beyond: accepted"),
        Err(report) => assert!(report.to_string().contains(message), "{what}, just beyond:\n{report}"),
    }
}

/// Returns a site with a root and further keys.
fn site(keys: &str) -> String {
    format!("[site.\"example.com\"]\nroot = \"/w\"\n{keys}\n")
}

/// Minimum and maximum of a kind, and the function that writes a number as TOML.
type Bounds = (u64, u64, fn(u64) -> String);

/// Returns the bounds of a kind; `None` for a kind without bounds.
fn bounds(kind: &Kind) -> Option<Bounds> {
    match kind {
        Kind::Integer { min, max } => Some((u64::try_from(*min).ok()?, u64::try_from(*max).ok()?, |n| n.to_string())),
        Kind::Size { min, max } => Some((*min, *max, |n| format!("\"{n}B\""))),
        Kind::Rate { min, max } => Some((*min, *max, |n| format!("\"{n}B/s\""))),
        Kind::Duration { min_ms, max_ms } => Some((*min_ms, *max_ms, |n| format!("\"{n}ms\""))),
        Kind::Either(kinds) => kinds.iter().find_map(bounds),
        _ => None,
    }
}

/// Returns a configuration with a key in its section, and with the keys that the bounds of this key depend on; `None`
/// for a section that is not tested.
fn config_with(section: Section, name: &str, value: &str) -> Option<String> {
    let line = format!("{name} = {value}");
    let text = match section {
        Section::Server => format!("[server]\n{line}\n{}", site("")),
        Section::Events => format!("[server]\nevents = {{ {line} }}\n{}", site("")),
        // `disk` must be at least the largest `body_size`.
        Section::Spool => format!("[server]\nspool = {{ {line} }}\n[limits]\nbody_size = 0\n{}", site("")),
        // `target_size` must not exceed `header_size`.
        Section::Limits if name == "target_size" => format!("[limits]\nheader_size = \"1MiB\"\n{line}\n{}", site("")),
        Section::Limits => format!("[limits]\n{line}\n{}", site("")),
        Section::Rotate => format!("[log]\nrotate = {{ {line} }}\n{}", site("")),
        Section::Cache => format!("[cache]\n{line}\n{}", site("")),
        Section::SiteLimits => site(&format!("limits = {{ {line} }}")),
        Section::Redirect => site(&format!("redirects = {{ \"/a\" = {{ to = \"/b\", {line} }} }}")),
        _ => return None,
    };
    Some(text)
}

#[test]
fn keys_accept_their_bounds_and_nothing_beyond() {
    // Names of the keys whose bounds have been tested.
    let mut met = Vec::new();
    for key in keys::all() {
        let Some((least, most, write)) = bounds(&key.kind) else {
            continue;
        };
        for section in key.sections {
            let Some(text) = config_with(*section, key.name, &write(least)) else {
                continue;
            };
            let what = format!("{} in {}", key.name, section.header());
            read(&text).unwrap_or_else(|report| panic!("the least {what}:\n{report}"));
            // `write` takes no negative number, so -1 is made from the text of 0.
            let below = least.checked_sub(1).map_or_else(|| write(0).replace('0', "-1"), write);
            for value in [below, write(most + 1)] {
                let text = config_with(*section, key.name, &value).unwrap_or_default();
                refused(&format!("{what} = {value}"), read(&text), key.name);
            }
            let text = config_with(*section, key.name, &write(most)).unwrap_or_default();
            read(&text).unwrap_or_else(|report| panic!("the most {what}:\n{report}"));
            met.push(key.name);
        }
    }
    for name in [
        "header_timeout",
        "body_rate",
        "target_size",
        "connections",
        "workers",
        "max_file",
        "keep",
        "wait",
    ] {
        assert!(met.contains(&name), "{name} has no bounds: {met:?}");
    }
}

#[test]
fn names_and_patterns_are_bounded_in_length() {
    let label = "a".repeat(63);
    let host = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert_eq!(host.len(), 253);
    let named = |name: &str| format!("[site.\"{name}\"]\nroot = \"/w\"\n");
    check("a host name", &named(&host), &named(&format!("{host}a")), "is too long");
    check(
        "a part of a host name",
        &named(&format!("{label}.test")),
        &named(&format!("{label}a.test")),
        "is too long",
    );
    let aliases = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("\"a{number}.test\"")).collect();
        site(&format!("aliases = [{}]", names.join(", ")))
    };
    check("aliases", &aliases(1000), &aliases(1001), "more than 1000 aliases");
    let route = |pattern: &str| {
        format!(
            "{}[site.\"example.com\".route.\"{pattern}\"]\nbrowse = true\n",
            site("")
        )
    };
    let long = |length: usize| format!("/{}", "a".repeat(length - 1));
    check("a route", &route(&long(8192)), &route(&long(8193)), "is too long");
    let stars = |count: usize| format!("/{}", "a*".repeat(count));
    check("stars of a route", &route(&stars(8)), &route(&stars(9)), "too many `*`");
    let redirect = |from: &str, to: &str| site(&format!("redirects = {{ \"{from}\" = \"{to}\" }}"));
    check(
        "the path of a redirect",
        &redirect(&long(8192), "/b"),
        &redirect(&long(8193), "/b"),
        "is too long",
    );
    check(
        "the target of a redirect",
        &redirect("/b", &long(8192)),
        &redirect("/b", &long(8193)),
        "is too long",
    );
    let socket = |length: usize| site(&format!("listen = \"unix:{}\"", long(length)));
    check("the path of a socket", &socket(107), &socket(108), "at most 107 bytes");
}

#[test]
fn rules_are_bounded_in_number_and_size() {
    let many = |count: usize| site(&format!("rule = [{}]", "{ respond = 404 },".repeat(count)));
    check("rules", &many(256), &many(257), "more than 256 rules");
    let paths = |count: usize| {
        let paths: Vec<String> = (0..count).map(|number| format!("\"/{number}\"")).collect();
        site(&format!("rule = [{{ path = [{}], respond = 404 }}]", paths.join(", ")))
    };
    check("paths of a rule", &paths(64), &paths(65), "more than 64");
    let fields = |count: usize| {
        let fields: Vec<String> = (0..count).map(|number| format!("A{number} = \"*\"")).collect();
        site(&format!(
            "rule = [{{ header = {{ {} }}, respond = 404 }}]",
            fields.join(", ")
        ))
    };
    check("fields of a rule", &fields(64), &fields(65), "more than 64");
    let body = |length: usize| {
        site(&format!(
            "rule = [{{ respond = 404, body = \"{}\" }}]",
            "a".repeat(length)
        ))
    };
    check(
        "the body of a response",
        &body(64 * 1024),
        &body(64 * 1024 + 1),
        "longer than 64 KiB",
    );
}

#[test]
fn includes_lists_and_keys_are_bounded_in_depth() {
    // At the bound, the text is refused for another reason, because no key needs such depth.
    let lists = |count: usize| format!("include = {}{}\n", "[".repeat(count), "]".repeat(count));
    let names = |count: usize| format!("x{} = 1\n", ".x".repeat(count - 1));
    for (what, inside, beyond, message) in [
        ("lists in lists", lists(16), lists(17), "nested too deep"),
        ("parts of a name", names(8), names(9), "more than 8 parts"),
    ] {
        refused(what, read(&beyond), message);
        let report = read(&inside).expect_err("no such key").to_string();
        assert!(!report.contains(message), "{what}, just allowed:\n{report}");
    }
    // The main file counts as the first of a chain.
    let chain = |count: usize| {
        let link = |number: usize| match number + 1 {
            last if last == count => (format!("{number}.toml"), site("")),
            next => (format!("{number}.toml"), format!("include = \"{next}.toml\"\n")),
        };
        (1..count).map(link).collect::<Vec<_>>()
    };
    let main = "include = \"1.toml\"\n";
    let config = read_with(main, &chain(8)).unwrap_or_else(|report| panic!("eight files deep:\n{report}"));
    assert_eq!(config.sites.len(), 1);
    refused("nine files deep", read_with(main, &chain(9)), "more than 8 deep");
}

#[test]
fn files_and_values_are_bounded_in_size() {
    const MIB: usize = 1024 * 1024;
    let padded = |size: usize| {
        let text = site("");
        format!("{text}#{}", "x".repeat(size - text.len() - 1))
    };
    let (inside, beyond) = (padded(16 * MIB), padded(16 * MIB + 1));
    assert_eq!(inside.len(), 16 * MIB);
    check("a file", &inside, &beyond, "16 MiB");
    assert!(
        rocknet_config::format(&beyond).is_err(),
        "formatted although it is too large"
    );
    let filled = |size: usize| {
        let files = [("big".to_owned(), "x".repeat(size))];
        read_with(&site("headers = { X = \"${file:big}\" }"), &files)
    };
    let config = filled(256 * 1024).unwrap_or_else(|report| panic!("a value of 256 KiB:\n{report}"));
    assert_eq!(config.sites[0].settings.headers["X"].len(), 256 * 1024);
    refused(
        "a value of one more byte",
        filled(256 * 1024 + 1),
        "larger than 256 KiB",
    );
}

#[test]
fn the_number_of_files_is_bounded() {
    let main = format!("include = \"sites/*.toml\"\n{}", site(""));
    let mut files: Vec<(String, String)> = (1..65_536)
        .map(|number| (format!("sites/{number}.toml"), String::new()))
        .collect();
    if let Err(report) = read_with(&main, &files) {
        panic!("65,536 files with the main one:\n{report}");
    }
    files.push(("sites/more.toml".to_owned(), String::new()));
    refused("one more file", read_with(&main, &files), "more than 65536 files");
}
