//! Loads the first pages that people see in headless Chromium: the server's own pages, and an app that needs its
//! script.

use super::server::TestServer;
use crate::Failure;
use crate::command::shown;
use crate::repository;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Seconds after which a browser that hangs is stopped.
const TIMEOUT_SECONDS: &str = "60";
/// Options of the browser. The sandbox is off, because it does not run as root and the pages come from this repository.
/// Other options prevent requests to other hosts.
const OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--dump-dom",
];
/// Marks of page errors in the browser's log: a blocked style, a script of the wrong type, an exception.
const ERROR_MARKS: &[&str] = &[":CONSOLE", "Content Security Policy", "Uncaught"];

pub fn run(program: &Path) -> Result<(), Failure> {
    let empty = tempfile::tempdir()?;
    // An empty folder and no configuration, as at the very first start.
    let fresh = TestServer::start(program, &["run"], empty.path())?;
    check(
        &fresh,
        "/",
        &["<title>RockNet is running</title>", "<svg", "rocknet serve ./my-site"],
    )?;
    drop(fresh);

    let examples = repository::root().join("examples");
    let downloads = TestServer::of_folder(program, &examples.join("downloads/www"))?;
    check(
        &downloads,
        "/",
        &["<title>Index of /</title>", "href=\"./2025/\"", "README.txt"],
    )?;
    check(
        &downloads,
        "/2025/?sort=name&order=desc",
        &["aria-sort=\"descending\"", "log-11.txt", "log-2.txt"],
    )?;
    check(
        &downloads,
        "/nowhere",
        &["<title>404 Not Found</title>", "<h1>Not Found</h1>"],
    )?;
    drop(downloads);

    // The example runs with its own configuration on another port.
    let spa = examples.join("spa");
    let root = format!("root = \"{}\"", spa.join("www").display());
    let settings = fs::read_to_string(spa.join("rocknet.toml"))?;
    let settings = settings.replace("\":8080\"", "\":0\"").replace("root = \"www\"", &root);
    fs::write(empty.path().join("rocknet.toml"), settings)?;
    let spa = TestServer::start(program, &["run"], empty.path())?;
    // The script fills the page according to the path. Without the script, the page would show its text about
    // JavaScript.
    check(&spa, "/tides/ebb", &["<h1>Ebb</h1>", "<output>the water goes</output>"])?;
    check(&spa, "/about", &["<h1>About</h1>", "found at <code>/about</code>"])
}

/// Loads a page. After its scripts have run, its DOM must contain `parts` in this order, without errors in the log.
fn check(server: &TestServer, path: &str, parts: &[&str]) -> Result<(), Failure> {
    let url = server.url(path);
    let (dom, log) = load(&url, None)?;
    judge(&dom, &log, parts).map_err(|wrong| format!("{url}: {wrong}"))?;
    println!("{path} is correct");
    Ok(())
}

/// Loads a URL in a new browser and returns the DOM and the log. `home` is the home folder with the root
/// certificates that the browser trusts.
pub fn load(url: &str, home: Option<&Path>) -> Result<(String, String), Failure> {
    load_with(&[], url, home)
}

/// Loads a URL as `load` does, with more options.
pub fn load_with(options: &[&str], url: &str, home: Option<&Path>) -> Result<(String, String), Failure> {
    load_with_quic(&[&["--disable-quic"], options].concat(), url, home)
}

/// Loads a URL as `load_with` does, in a browser that may use QUIC.
pub fn load_with_quic(options: &[&str], url: &str, home: Option<&Path>) -> Result<(String, String), Failure> {
    let profile = tempfile::tempdir()?;
    let mut command = Command::new("timeout");
    command.args([TIMEOUT_SECONDS, "chromium"]).args(OPTIONS).args(options);
    command
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(url)
        .stdin(Stdio::null());
    if let Some(home) = home {
        command.env("HOME", home);
    }
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", shown(&command)))?;
    let (dom, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if !output.status.success() {
        return Err(format!("{url}: {} ended with {}\n{log}", shown(&command), output.status).into());
    }
    Ok((dom.into_owned(), log.into_owned()))
}

/// Checks that the DOM contains `parts` in this order and that the log has no errors.
pub fn judge(dom: &str, log: &str, parts: &[&str]) -> Result<(), String> {
    let mut rest = dom;
    for part in parts {
        let at = rest
            .find(part)
            .ok_or_else(|| format!("no {part:?} in order in\n{dom}"))?;
        rest = &rest[at + part.len()..];
    }
    let error = log
        .lines()
        .find(|line| ERROR_MARKS.iter().any(|mark| line.contains(mark)));
    error.map_or(Ok(()), |line| Err(line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_must_contain_its_parts_in_order_without_errors() {
        let refused = "[1:1:ERROR:CONSOLE(7)] \"Refused to apply inline style\"";
        let rows: [(&str, &str, &[&str], bool); 5] = [
            (
                "<p>a</p><p>b</p>",
                "[1:ERROR:bus.cc(1)] no bus",
                &["<p>a", "<p>b"],
                true,
            ),
            ("<p>b</p><p>a</p>", "", &["<p>a", "<p>b"], false),
            ("<p>a</p>", "", &["<p>a", "<p>a"], false),
            ("", "", &["<p>"], false),
            ("<p>a</p>", refused, &["<p>a"], false),
        ];
        for (dom, log, parts, expected) in rows {
            assert_eq!(judge(dom, log, parts).is_ok(), expected, "{dom:?} {log:?} {parts:?}");
        }
    }
}
