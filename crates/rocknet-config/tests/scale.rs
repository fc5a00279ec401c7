//! Tests that the check of tables and lists with 40,000 entries takes linear, not quadratic, time.
#![cfg(unix)]

use std::path::Path;
use std::time::Duration;

use rocknet_config::environment::MemoryEnvironment;
use rocknet_config::{Config, Report};
use rustix::time::{ClockId, clock_gettime};

/// Path of the main file.
const FILE: &str = "/etc/rocknet/rocknet.toml";

/// Number of entries: as many as the largest customer of a hosting provider might generate.
const MANY: usize = 40_000;

/// Maximum processor time of a check. A linear check takes less than a second, even unoptimised, and a quadratic
/// check takes minutes. The load of other processes does not count, so a busy machine does not matter.
const LINEAR: Duration = Duration::from_secs(20);

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a positive time")
}

/// Checks a configuration, and fails if that takes [`LINEAR`] or longer. `what`: name of the test case; if it begins
/// with `include`, the files `0.toml`, `1.toml` and so on exist and are empty.
#[track_caller]
fn timed(what: &str, text: &str) -> Result<Config, Report> {
    let mut environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    if what.starts_with("include") {
        for number in 0..MANY {
            let file = format!("/etc/rocknet/{number}.toml");
            environment.files.insert(file.into(), String::new());
        }
    }
    let begun = processor_time();
    let read = rocknet_config::parse(text, Path::new(FILE), &environment);
    let took = processor_time() - begun;
    println!("{what}: {took:?}");
    assert!(took < LINEAR, "{what}: {took:?}");
    read.map(|loaded| loaded.config)
}

/// Returns the text of [`MANY`] entries. `entry`: returns the entry with a number.
fn each(entry: impl Fn(usize) -> String) -> String {
    (0..MANY).map(entry).collect()
}

/// Returns a site with a root and further keys.
fn site(keys: &str) -> String {
    format!("[site.\"example.com\"]\nroot = \"/w\"\n{keys}\n")
}

#[test]
fn forty_thousand_entries_are_checked_in_linear_time() {
    // Return a site with a map: `table` with the entries in an inline table, `below` with the entries below a header.
    let table = |name: &str, entries: String| site(&format!("{name} = {{ {entries} }}"));
    let below = |name: &str, entries: String| site(&format!("[site.\"example.com\".{name}]\n{entries}"));
    // Returns a site with fields in `headers`, and with a route that has these entries in its own `headers`.
    let route_of = |entries: String| {
        let inherited = below("headers", each(|n| format!("X-{n} = \"a\"\n")));
        format!("{inherited}[site.\"example.com\".route.\"/x/*\".headers]\n{entries}")
    };
    for (what, text) in [
        ("headers", below("headers", each(|n| format!("X-{n} = \"a\"\n")))),
        (
            "headers on one line",
            table("headers", each(|n| format!("X-{n} = \"a\", "))),
        ),
        (
            "headers of a route over those of its site",
            route_of(each(|n| format!("x-{n} = \"b\"\n"))),
        ),
        (
            "redirects",
            below("redirects", each(|n| format!("\"/{n}\" = \"/x/{n}\"\n"))),
        ),
        ("push", below("push", each(|n| format!("\"/{n}\" = \"/x/{n}\"\n")))),
        (
            "routes",
            site("") + &each(|n| format!("[site.\"example.com\".route.\"/{n}\"]\nbrowse = true\n")),
        ),
        ("sites", each(|n| format!("[site.\"a{n}.test\"]\nroot = \"/w\"\n"))),
        (
            "sites by port",
            each(|n| format!("[site.\"10.0.{}.{}:81\"]\nroot = \"/w\"\n", n / 250, n % 250)),
        ),
        (
            "listen",
            site(&format!("listen = [{}]", each(|n| format!("{}, ", n + 1000)))),
        ),
        (
            "index",
            site(&format!("index = [{}]", each(|n| format!("\"{n}.html\", ")))),
        ),
        (
            "try",
            site(&format!("try = [{}]", each(|n| format!("\"/{n}.html\", ")))),
        ),
        (
            "trusted_proxies",
            format!(
                "[server]\ntrusted_proxies = [{}]\n{}",
                each(|n| format!("\"10.0.{}.{}\", ", n / 250, n % 250)),
                site("")
            ),
        ),
        (
            "includes",
            format!("include = [{}]\n{}", each(|n| format!("\"{n}.toml\", ")), site("")),
        ),
    ] {
        if let Err(report) = timed(what, &text) {
            panic!("{what}:\n{report}");
        }
    }
}

#[test]
fn forty_thousand_mistakes_are_reported_in_linear_time() {
    // Return a site with a map: `table` with the entries in an inline table, `below` with the entries below a header.
    let table = |name: &str, entries: String| site(&format!("{name} = {{ {entries} }}"));
    let below = |name: &str, entries: String| site(&format!("[site.\"example.com\".{name}]\n{entries}"));
    for (what, text, message) in [
        (
            "headers that differ in case",
            below(
                "headers",
                each(|n| match n % 2 {
                    0 => format!("X-{n} = \"a\"\n"),
                    _ => format!("x-{} = \"a\"\n", n - 1),
                }),
            ),
            "is defined twice",
        ),
        (
            "headers without a value",
            table("headers", each(|n| format!("X-{n} = 1, "))),
            "takes a string",
        ),
        (
            "keys written twice",
            table("headers", each(|_| "A = \"a\", ".to_owned())),
            "is defined twice",
        ),
        (
            "errors",
            table("errors", each(|n| format!("{n} = \"/x\", "))),
            "is not an error status",
        ),
        (
            "redirects",
            table("redirects", each(|n| format!("\"/{n}\" = \"x\", "))),
            "neither a path nor a URL",
        ),
        (
            "files of a page to push",
            table("push", format!("\"/\" = [{}]", each(|n| format!("\"/{n}\", ")))),
            "more than 32 files",
        ),
        (
            "aliases",
            site(&format!("aliases = [{}]", each(|n| format!("\"a{n}.test\", ")))),
            "more than 1000 aliases",
        ),
        (
            "rules",
            site(&format!("rule = [{}]", "{ respond = 404 }, ".repeat(MANY))),
            "more than 256 rules",
        ),
        (
            "paths of a rule",
            site(&format!(
                "rule = [{{ respond = 404, path = [{}] }}]",
                each(|n| format!("\"/{n}\", "))
            )),
            "more than 64",
        ),
        (
            "methods of a rule",
            site(&format!(
                "rule = [{{ respond = 404, method = [{}] }}]",
                each(|n| format!("\"a{n}\", "))
            )),
            "more than 64",
        ),
        (
            "proxy",
            site(&format!("proxy = [{}]", each(|n| format!("\"http://a{n}:1\", ")))),
            "more than 256 servers",
        ),
        (
            "unknown keys",
            site(&each(|n| format!("unknown_{n} = 1\n"))),
            "unknown key",
        ),
        (
            "listeners written twice, and a mistake",
            site(&format!("listen = [{}\"x\"]", "80, ".repeat(MANY))),
            "is not an address to listen on",
        ),
        (
            "addresses that overlap",
            site(&format!(
                "listen = [{}]",
                each(|n| format!("{0}, \"0.0.0.0:{0}\", ", n + 1000))
            )),
            "overlaps",
        ),
        (
            "networks",
            format!("[server]\ntrusted_proxies = [{}]\n{}", "\"x\", ".repeat(MANY), site("")),
            "is not an address or network",
        ),
        (
            "includes that are not there",
            format!("include = [{}]\n{}", each(|n| format!("\"a/{n}.toml\", ")), site("")),
            "cannot read",
        ),
    ] {
        match timed(what, &text) {
            Ok(_) => panic!("{what}: accepted"),
            Err(report) => assert!(report.to_string().contains(message), "{what}:\n{report}"),
        }
    }
}
