//! The WebSocket cases of Autobahn, once against its own echo server and once through the proxy before it: what it thinks
//! of each must be the same.

pub mod wstest;

use super::server::Server;
use crate::Failure;
use crate::bench::free_port;
use crate::command::{command, output};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Which cases: those of RFC 6455, without the ones that only measure (9.*), and those of RFC 7692 (permessage-deflate),
/// which take many times as long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cases {
    Messages,
    Deflate,
}

impl Cases {
    /// Which of its servers echoes: only one of them agrees to compress.
    fn server(self) -> &'static str {
        match self {
            Cases::Messages => "echoserver",
            Cases::Deflate => "testeeserver",
        }
    }

    /// What is asked for, what of it is left out, and how many that are.
    fn chosen(self) -> (&'static [&'static str], &'static [&'static str], usize) {
        match self {
            Cases::Messages => (&["*"], &["9.*", "12.*", "13.*"], 247),
            Cases::Deflate => (&["12.*", "13.*"], &[], 216),
        }
    }
}

/// What it calls those that it asks.
const DIRECT: &str = "direct";
const PROXIED: &str = "proxied";
/// How often cases are tried again that differ. Where a message is followed by an offence at once, the echo server answers the
/// message or not (NON-STRICT) by whether both came in one piece: so it does without a proxy, and pieces are TCP's matter.
const ROUNDS: usize = 10;
/// The longest the echo server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(50);

/// What it thinks of one case.
#[derive(Deserialize, PartialEq, Eq, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    behavior: String,
    behavior_close: String,
    remote_close_code: Option<u16>,
}

impl Verdict {
    /// A case is UNIMPLEMENTED where nobody agreed to compress: nothing was tried then.
    fn has_failed(&self) -> bool {
        let bad = ["FAILED", "UNIMPLEMENTED"];
        bad.contains(&self.behavior.as_str()) || bad.contains(&self.behavior_close.as_str())
    }
}

type Verdicts = BTreeMap<String, BTreeMap<String, Verdict>>;

/// The echo server; it is killed when dropped.
struct Echo(Child);

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn run(program: &Path, cases: Cases) -> Result<(), Failure> {
    let wstest = wstest::path()?;
    let home = tempfile::tempdir()?;
    let port = free_port()?;
    let _echo = echo(&wstest, cases.server(), port, home.path())?;
    // The echo server wants to be asked by its own name.
    let settings = format!(
        "[server]\nstate = \"state\"\n[site.\":0\"]\n\
         proxy = {{ to = [\"http://127.0.0.1:{port}\"], headers = {{ Host = \"127.0.0.1:{port}\" }} }}\n"
    );
    fs::write(home.path().join("rocknet.toml"), settings)?;
    let server = Server::start(program, &["run"], home.path())?;

    let urls = [
        (DIRECT, format!("ws://127.0.0.1:{port}")),
        (PROXIED, format!("ws://127.0.0.1:{}", server.port()?)),
    ];
    let (chosen, left_out, count) = cases.chosen();
    println!("{count} cases twice");
    let verdicts = ask(&wstest, home.path(), &urls, chosen, left_out)?;
    let mut different = judge(&verdicts, count)?;
    for _ in 0..ROUNDS {
        if different.is_empty() {
            break;
        }
        println!("again: {}", different.join(", "));
        let cases: Vec<&str> = different.iter().map(String::as_str).collect();
        let verdicts = ask(&wstest, home.path(), &urls, &cases, &[])?;
        different = judge(&verdicts, cases.len())?;
    }
    if !different.is_empty() {
        return Err(format!("never the same through the proxy: {}", different.join(", ")).into());
    }
    println!("{count} cases, the same through the proxy: {}", sorts(&verdicts));
    Ok(())
}

/// Has Autobahn ask both, one after the other.
fn ask(
    wstest: &Path,
    home: &Path,
    urls: &[(&str, String)],
    cases: &[&str],
    left_out: &[&str],
) -> Result<Verdicts, Failure> {
    let reports = home.join("reports");
    let servers: Vec<_> = urls
        .iter()
        .map(|(agent, url)| serde_json::json!({ "agent": agent, "url": url }))
        .collect();
    let asked = serde_json::json!({
        "outdir": reports,
        "servers": servers,
        "cases": cases,
        "exclude-cases": left_out,
        "exclude-agent-cases": {},
    });
    let file = home.join("cases.json");
    fs::write(&file, asked.to_string())?;
    let mut client = command(wstest);
    client.args(["-m", "fuzzingclient", "-s"]).arg(&file);
    output(client.current_dir(home))?;
    Ok(serde_json::from_str(&fs::read_to_string(reports.join("index.json"))?)?)
}

/// Starts it, and waits until it listens.
fn echo(wstest: &Path, mode: &str, port: u16, home: &Path) -> Result<Echo, Failure> {
    let log = File::create(home.join("echo.log"))?;
    let mut echo = command(wstest);
    echo.args(["-m", mode, "-w", &format!("ws://127.0.0.1:{port}")]);
    echo.current_dir(home).stdin(Stdio::null());
    let mut echo = Echo(echo.stdout(log.try_clone()?).stderr(log).spawn()?);
    let started = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if echo.0.try_wait()?.is_some() || started.elapsed() > PATIENCE {
            let said = fs::read_to_string(home.join("echo.log"))?;
            return Err(format!("the echo server of Autobahn did not start:\n{said}").into());
        }
        thread::sleep(STEP);
    }
    Ok(echo)
}

/// The cases whose verdicts differ. All must have been tried both ways and none may have failed, or the same verdicts would
/// say little.
fn judge(verdicts: &Verdicts, count: usize) -> Result<Vec<String>, String> {
    let none = BTreeMap::new();
    let of = |agent| verdicts.get(agent).unwrap_or(&none);
    let (direct, proxied) = (of(DIRECT), of(PROXIED));
    if (direct.len(), proxied.len()) != (count, count) {
        return Err(format!(
            "{} cases were tried directly and {} through the proxy, not {count}",
            direct.len(),
            proxied.len()
        ));
    }
    for (agent, verdicts) in [(DIRECT, direct), (PROXIED, proxied)] {
        let failed = |(_, verdict): &(&String, &Verdict)| verdict.has_failed();
        let failed: Vec<_> = verdicts.iter().filter(failed).map(|(case, _)| case.as_str()).collect();
        if !failed.is_empty() {
            return Err(format!("failed, {agent}: {}", failed.join(", ")));
        }
    }
    let differ = |case: &&String| direct.get(*case) != proxied.get(*case);
    Ok(direct.keys().filter(differ).cloned().collect())
}

/// How many there are of each.
fn sorts(verdicts: &Verdicts) -> String {
    let mut sorts = BTreeMap::new();
    for verdict in verdicts.get(PROXIED).into_iter().flat_map(BTreeMap::values) {
        *sorts.entry(verdict.behavior.as_str()).or_insert(0) += 1;
    }
    let sorts: Vec<_> = sorts.iter().map(|(sort, count)| format!("{count} {sort}")).collect();
    sorts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_to_be_the_same_and_good() {
        let good = r#"{"behavior": "OK", "behaviorClose": "OK", "remoteCloseCode": 1000, "duration": 2}"#;
        let other = r#"{"behavior": "OK", "behaviorClose": "OK", "remoteCloseCode": 1002, "duration": 2}"#;
        let gone = r#"{"behavior": "NON-STRICT", "behaviorClose": "INFORMATIONAL", "remoteCloseCode": null}"#;
        let failed = r#"{"behavior": "FAILED", "behaviorClose": "OK", "remoteCloseCode": 1000}"#;
        let of = |direct: &str, proxied: &str| {
            format!(
                r#"{{"direct": {{"1.1": {direct}, "1.2": {good}}}, "proxied": {{"1.1": {proxied}, "1.2": {good}}}}}"#
            )
        };
        let untried = r#"{"behavior": "UNIMPLEMENTED", "behaviorClose": "UNCLEAN", "remoteCloseCode": 1000}"#;
        let rows = [
            (of(untried, untried), Err("failed, direct: 1.1".to_owned())),
            (of(good, good), Ok(vec![])),
            (of(gone, gone), Ok(vec![])),
            (of(good, other), Ok(vec!["1.1".to_owned()])),
            (of(good, gone), Ok(vec!["1.1".to_owned()])),
            (of(failed, failed), Err("failed, direct: 1.1".to_owned())),
            (of(good, failed), Err("failed, proxied: 1.1".to_owned())),
            (
                format!(r#"{{"direct": {{"1.1": {good}, "1.2": {good}}}}}"#),
                Err("2 cases were tried directly and 0 through the proxy, not 2".to_owned()),
            ),
        ];
        for (text, expected) in rows {
            let verdicts: Verdicts = serde_json::from_str(&text).expect("verdicts");
            assert_eq!(judge(&verdicts, 2), expected, "{text}");
        }
    }
}
