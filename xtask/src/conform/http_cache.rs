//! Runs the npm package `http-cache-tests`, which judges caches by RFC 9111, against the response cache in front of the
//! server of the package.

mod notes;

use super::server::{TestServer, url};
use crate::command::{command, output_alone};
use crate::{Failure, tools};
use serde::Deserialize;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const VERSION: &str = "0.4.5";
/// Number of required tests that must pass.
const GOAL: usize = 140;
const SCRIPT: &str = include_str!("http_cache/run.mjs");
/// The tests also judge how a cache obeys requests, and heuristic freshness. Both are off by default.
const SETTINGS: &str = "cache = { obey_clients = true, heuristic = true }";
/// Settings of most sites, whose results are counted too.
const DEFAULT_SETTINGS: &str = "cache = true";

/// Result of one test.
#[derive(Deserialize)]
struct CacheTest {
    id: String,
    name: String,
    /// Message of a test that failed.
    failure: Option<String>,
}

/// Results of all tests by their importance.
#[derive(Deserialize)]
struct Outcomes {
    required: Vec<CacheTest>,
    optimal: Vec<CacheTest>,
    check: Vec<CacheTest>,
}

/// The server of the package, killed when dropped.
struct Origin {
    child: Child,
    url: String,
}

impl Origin {
    fn start(package: &Path, home: &Path) -> Result<Origin, Failure> {
        let mut server = command("node");
        server
            .arg(package.join("server/server.mjs"))
            .current_dir(home)
            .envs([("npm_config_protocol", "http"), ("npm_config_port", "0")])
            .env("npm_config_pidfile", home.join("server.pid"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = server.spawn()?;
        let mut line = String::new();
        if let Some(printed) = child.stdout.take() {
            BufReader::new(printed).read_line(&mut line)?;
        }
        let port = url(&line).and_then(|url| url.trim_end_matches('/').rsplit(':').next());
        Ok(Origin {
            url: format!(
                "http://localhost:{}",
                port.ok_or("the server of the tests printed no URL")?
            ),
            child,
        })
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the tests with both settings. Fails if fewer required ones than [`GOAL`] pass, or if one without a note fails.
/// `results`: the folder that gets a page with the results.
pub fn run(program: &Path, results: Option<&Path>) -> Result<(), Failure> {
    let script = tools::npm_file("http-cache-tests", VERSION, "cli.mjs")?;
    let package: PathBuf = script.parent().ok_or("the package has no folder")?.into();
    let outcomes = run_with(program, &package, SETTINGS)?;
    let by_default = run_with(program, &package, DEFAULT_SETTINGS)?;
    for test in &outcomes.required {
        if let Some(failure) = &test.failure {
            println!("failed: {}: {}: {failure}", test.id, test.name);
        }
    }
    println!("{SETTINGS}: {}", summary(&outcomes));
    println!("{DEFAULT_SETTINGS}: {}", summary(&by_default));
    if let Some(folder) = results {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("http-cache.md"), to_page(&outcomes, &by_default))?;
    }
    judge(&outcomes)
}

/// Runs the tests against a server whose site has these settings.
fn run_with(program: &Path, package: &Path, settings: &str) -> Result<Outcomes, Failure> {
    let home = tempfile::tempdir()?;
    let origin = Origin::start(package, home.path())?;
    fs::write(
        home.path().join("rocknet.toml"),
        format!(
            "[server]\nstate = \"state\"\n[site.\":0\"]\nproxy = \"{}\"\n{settings}\n",
            origin.url
        ),
    )?;
    let server = TestServer::start(program, &["run"], home.path())?;
    let run = home.path().join("run.mjs");
    fs::write(&run, SCRIPT)?;
    let mut tests = command("node");
    tests.args(["--no-warnings".as_ref(), run.as_os_str(), package.as_os_str()]);
    let printed = output_alone(tests.arg(server.url("").trim_end_matches('/')))?;
    Ok(serde_json::from_str(&printed)?)
}

fn passed(tests: &[CacheTest]) -> usize {
    tests.iter().filter(|test| test.failure.is_none()).count()
}

fn judge(outcomes: &Outcomes) -> Result<(), Failure> {
    let is_unexpected = |test: &&CacheTest| test.failure.is_some() && notes::of(&test.id).is_none();
    let unexpected: Vec<&str> = outcomes
        .required
        .iter()
        .filter(is_unexpected)
        .map(|test| &*test.id)
        .collect();
    if !unexpected.is_empty() {
        return Err(format!("failures without a note: {}", unexpected.join(", ")).into());
    }
    match passed(&outcomes.required) {
        passed if passed >= GOAL => Ok(()),
        passed => Err(format!("only {passed} required tests pass, and {GOAL} must").into()),
    }
}

fn summary(outcomes: &Outcomes) -> String {
    format!(
        "{} of {} required tests pass, {} of {} optional ones",
        passed(&outcomes.required),
        outcomes.required.len(),
        passed(&outcomes.optimal),
        outcomes.optimal.len()
    )
}

/// Returns the page with the results.
fn to_page(outcomes: &Outcomes, by_default: &Outcomes) -> String {
    let mut page = format!(
        "# Conformance of the response cache\n\n\
         `cargo xtask conform http-cache --results docs/conformance` runs the npm package `http-cache-tests` {VERSION} \
         through the\nresponse cache with `{SETTINGS}`, and writes this page.\n\n{}.\n\n\
         With the default settings, `{DEFAULT_SETTINGS}`: {}.\n",
        summary(outcomes),
        summary(by_default)
    );
    for (title, tests) in [("Required", &outcomes.required), ("Optional", &outcomes.optimal)] {
        let _ = write!(
            page,
            "\n## {title} tests that fail\n\n| test | is | failure | cause |\n|---|---|---|---|\n"
        );
        for test in tests {
            let Some(failure) = &test.failure else { continue };
            let cause = match notes::of(&test.id) {
                Some((cause, note)) => format!("{}: {note}", cause.as_str()),
                None => String::new(),
            };
            let cells = [&test.name, failure, &cause].map(|text| cell(text));
            let _ = writeln!(page, "| `{}` | {} |", test.id, cells.join(" | "));
        }
    }
    let _ = write!(
        page,
        "\n## Behaviour that is not judged\n\n| test | is | result |\n|---|---|---|\n"
    );
    for test in &outcomes.check {
        let result = if test.failure.is_none() { "yes" } else { "no" };
        let _ = writeln!(page, "| `{}` | {} | {result} |", test.id, cell(&test.name));
    }
    page
}

/// Returns a text as a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_required_tests_must_pass() {
        let of = |passed: usize, failed: usize| {
            let test = |id: &str, failure: Option<&str>| {
                let failure = failure.map_or("null".to_owned(), |text| format!("\"{text}\""));
                format!(r#"{{"id": "{id}", "name": "b|c", "failure": {failure}}}"#)
            };
            let failing = test("other-date-update", Some("Assertion: d|e"));
            let required = [vec![test("a", None); passed], vec![failing; failed]].concat();
            let text = format!(
                r#"{{"required": [{}], "optimal": [{}], "check": []}}"#,
                required.join(","),
                test("a", None)
            );
            serde_json::from_str::<Outcomes>(&text).expect("results")
        };
        assert!(judge(&of(GOAL, 20)).is_ok());
        assert!(judge(&of(GOAL - 1, 0)).is_err());
        let mut unexpected = of(GOAL, 1);
        unexpected.required[GOAL].id = "unknown".to_owned();
        assert!(judge(&unexpected).is_err_and(|error| error.to_string().contains("unknown")));
        let page = to_page(&of(1, 1), &of(0, 2));
        assert!(
            page.contains("1 of 2 required tests pass, 1 of 1 optional ones."),
            "{page}"
        );
        assert!(page.contains("`cache = true`: 0 of 2 required tests pass"), "{page}");
        let row = "| `other-date-update` | b\\|c | Assertion: d\\|e | deliberate: the server sets";
        assert!(page.contains(row), "{page}");
    }
}
