//! Runs h2spec, which violates each rule of HTTP/2 and judges the responses.

use super::server::TestServer;
use crate::command::{cargo, command, run as run_command};
use crate::tools::H2SPEC;
use crate::{Failure, repository};
use std::fs;
use std::path::Path;

/// Seconds after which a missing response fails the case: more than a busy machine needs.
const TIMEOUT_SECONDS: &str = "4";
const CLEAR: &str = "\
[server]
workers = 1
h2c = true
[site.default]
listen = \"127.0.0.1:0\"
root = \".\"
";
const TLS: &str = "\
[server]
workers = 1
state = \"state\"
[site.localhost]
listen = \"https://127.0.0.1:0\"
root = \".\"
tls = \"local\"
";

/// Runs all cases without and with TLS. The cases need a path that reads a request body and responds to GET with a
/// body. The program under test is therefore the example `echo`, which adds a handler for that path to the server.
pub fn run(_: &Path) -> Result<(), Failure> {
    let h2spec = H2SPEC.path()?;
    run_command(cargo().args(["build", "--locked", "--quiet", "-p", "rocknet", "--example", "echo"]))?;
    let program = repository::target().join("debug/examples/echo");
    for (name, configuration, options) in [("without TLS", CLEAR, &[][..]), ("over TLS", TLS, &["-t", "-k"])] {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("rocknet.toml"), configuration)?;
        let server = TestServer::start(&program, &["rocknet.toml"], folder.path())?;
        let port = server.port()?.to_string();
        let mut run = command(&h2spec);
        run.args([
            "--strict",
            "-h",
            "localhost",
            "-P",
            "/echo",
            "-o",
            TIMEOUT_SECONDS,
            "-p",
            &port,
        ]);
        let printed = run.args(options).output()?;
        let printed = String::from_utf8_lossy(&printed.stdout);
        // The last part of the output repeats the failed cases with the expected behaviour.
        let failures = printed
            .rsplit_once("Failures:")
            .map_or(&*printed, |(_, failures)| failures);
        let summary = judge(&printed).map_err(|wrong| format!("{name}: {wrong}\n{failures}"))?;
        println!("{name}: {summary}");
    }
    Ok(())
}

/// Fails unless every case passed. A skipped case is a failure too, because nothing was tested.
fn judge(printed: &str) -> Result<&str, String> {
    let last = printed
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| line.contains(" tests, "));
    let Some(summary) = last else {
        return Err("no result in h2spec's output".to_owned());
    };
    let count = |word: &str| {
        let part = summary.split(", ").find(|part| part.ends_with(word))?;
        part.split(' ').next()?.parse::<u32>().ok()
    };
    match (count("tests"), count("passed")) {
        (Some(all), Some(passed)) if all > 0 && all == passed => Ok(summary),
        _ => Err(summary.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_must_pass() {
        let rows = [
            (
                "Finished in 1.2 seconds\n146 tests, 146 passed, 0 skipped, 0 failed\n",
                true,
            ),
            ("146 tests, 145 passed, 0 skipped, 1 failed", false),
            ("146 tests, 145 passed, 1 skipped, 0 failed", false),
            ("0 tests, 0 passed, 0 skipped, 0 failed", false),
            ("Error: connection refused", false),
            ("", false),
        ];
        for (printed, expected) in rows {
            assert_eq!(judge(printed).is_ok(), expected, "{printed:?}");
        }
    }
}
