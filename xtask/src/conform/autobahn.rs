//! Runs Autobahn's WebSocket cases against an echo server, directly and through the proxy with each I/O back end. The
//! verdicts must be the same.

pub mod wstest;

use super::server::TestServer;
use crate::bench::free_port;
use crate::command::{command, output};
use crate::{Failure, tools};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Set of Autobahn's cases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cases {
    /// Cases of RFC 6455, without those that only measure performance (9.*).
    Messages,
    /// Cases of RFC 7692 (permessage-deflate). They take many times as long, because each sends 1,000 messages of up to
    /// 128 KiB.
    Deflate,
}

impl Cases {
    /// Returns the command of the echo server. Autobahn's echo server does not compress, and Autobahn's server that
    /// does compress takes hours.
    fn echo(self, interpreter: &Path, port: u16) -> Result<Command, Failure> {
        match self {
            Cases::Messages => {
                let mut echo = command(interpreter);
                let url = format!("ws://127.0.0.1:{port}");
                echo.args(["-c", WSTEST, "-m", "echoserver", "-w", &url]);
                Ok(echo)
            }
            Cases::Deflate => {
                let mut echo = command("python3");
                echo.env("PYTHONPATH", tools::python_packages("websockets", PACKAGES)?);
                echo.args(["-c", include_str!("autobahn/echo.py"), &port.to_string()]);
                Ok(echo)
            }
        }
    }

    fn client(self, interpreter: &Path) -> Command {
        let mut client = command(interpreter);
        match self {
            Cases::Messages => client.args(["-c", WSTEST]),
            Cases::Deflate => client.args(["-c", include_str!("autobahn/quick.py")]),
        };
        client.args(["-m", "fuzzingclient", "-s"]);
        client
    }

    /// Returns the selected cases, the excluded ones, and the number of cases.
    fn chosen(self) -> (&'static [&'static str], &'static [&'static str], usize) {
        match self {
            Cases::Messages => (&["*"], &["9.*", "12.*", "13.*"], 247),
            Cases::Deflate => (&["12.*", "13.*"], &[], 216),
        }
    }
}

/// Python code that starts Autobahn's program.
const WSTEST: &str = "from autobahntestsuite import wstest; wstest.run()";
/// Echo server with compression, in a fixed version.
const PACKAGES: &[&str] = &["websockets==16.0"];
/// Name of the echo server without a proxy.
const DIRECT: &str = "direct";
/// I/O back ends of the proxy, which are also the names of the tested proxies.
const BACKENDS: [&str; 2] = ["epoll", "io_uring"];
/// Maximum repetitions of cases whose verdicts differ. If a violation immediately follows a message, the echo server
/// may or may not echo the message (NON-STRICT), depending on whether both arrived in one read. That happens without a
/// proxy too, because TCP decides how the bytes are split.
const ROUNDS: usize = 10;
/// Timeout for the start of the echo server.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Autobahn's verdict on one case.
#[derive(Deserialize, PartialEq, Eq, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    behavior: String,
    behavior_close: String,
    remote_close_code: Option<u16>,
}

impl Verdict {
    /// Returns true if the case failed or is UNIMPLEMENTED. UNIMPLEMENTED means that compression was not negotiated, so
    /// nothing was tested.
    fn has_failed(&self) -> bool {
        let bad = ["FAILED", "UNIMPLEMENTED"];
        bad.contains(&self.behavior.as_str()) || bad.contains(&self.behavior_close.as_str())
    }
}

type Verdicts = BTreeMap<String, BTreeMap<String, Verdict>>;

/// An echo server, killed when dropped.
struct EchoServer(Child);

impl EchoServer {
    /// Creates the folder `home`, starts an echo server on a free port, and waits until the server accepts connections.
    fn start(interpreter: &Path, cases: Cases, home: &Path) -> Result<(EchoServer, u16), Failure> {
        fs::create_dir(home)?;
        let log = File::create(home.join("echo.log"))?;
        let port = free_port()?;
        let mut echo = cases.echo(interpreter, port)?;
        echo.current_dir(home).stdin(Stdio::null());
        let mut echo = EchoServer(echo.stdout(log.try_clone()?).stderr(log).spawn()?);
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if echo.0.try_wait()?.is_some() || started.elapsed() > TIMEOUT {
                let printed = fs::read_to_string(home.join("echo.log"))?;
                return Err(format!("the echo server did not start:\n{printed}").into());
            }
            thread::sleep(POLL);
        }
        Ok((echo, port))
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A tested server with its own echo server. All servers are tested at the same time, and one echo process would be too
/// slow for all of them.
struct TestedServer {
    name: &'static str,
    url: String,
    home: PathBuf,
    _echo: EchoServer,
    _proxy: Option<TestServer>,
}

impl TestedServer {
    fn direct(interpreter: &Path, cases: Cases, home: &Path) -> Result<TestedServer, Failure> {
        let home = home.join(DIRECT);
        let (echo, port) = EchoServer::start(interpreter, cases, &home)?;
        Ok(TestedServer {
            name: DIRECT,
            url: format!("ws://127.0.0.1:{port}"),
            home,
            _echo: echo,
            _proxy: None,
        })
    }

    fn proxied(
        interpreter: &Path,
        cases: Cases,
        home: &Path,
        program: &Path,
        backend: &'static str,
    ) -> Result<TestedServer, Failure> {
        let home = home.join(backend);
        let (echo, port) = EchoServer::start(interpreter, cases, &home)?;
        // The echo server accepts only its own address in Host.
        let settings = format!(
            "[server]\nstate = \"state\"\nbackend = \"{backend}\"\n[site.\":0\"]\n\
             proxy = {{ to = [\"http://127.0.0.1:{port}\"], headers = {{ Host = \"127.0.0.1:{port}\" }} }}\n"
        );
        fs::write(home.join("rocknet.toml"), settings)?;
        let proxy = TestServer::start(program, &["run"], &home)?;
        Ok(TestedServer {
            name: backend,
            url: format!("ws://127.0.0.1:{}", proxy.port()?),
            home,
            _echo: echo,
            _proxy: Some(proxy),
        })
    }

    /// Runs Autobahn's cases against this server and returns the verdicts.
    fn run_cases(&self, mut client: Command, cases: &[&str], excluded: &[&str]) -> Result<Verdicts, Failure> {
        let reports = self.home.join("reports");
        let specification = serde_json::json!({
            "outdir": reports,
            "servers": [{ "agent": self.name, "url": self.url }],
            "cases": cases,
            "exclude-cases": excluded,
            "exclude-agent-cases": {},
        });
        let file = self.home.join("cases.json");
        fs::write(&file, specification.to_string())?;
        output(client.arg(&file).current_dir(&self.home))?;
        Ok(serde_json::from_str(&fs::read_to_string(reports.join("index.json"))?)?)
    }
}

pub fn run(program: &Path, cases: Cases) -> Result<(), Failure> {
    let interpreter = wstest::interpreter()?;
    let home = tempfile::tempdir()?;
    let mut servers = vec![TestedServer::direct(&interpreter, cases, home.path())?];
    for backend in BACKENDS {
        servers.push(TestedServer::proxied(
            &interpreter,
            cases,
            home.path(),
            program,
            backend,
        )?);
    }
    let (chosen, excluded, count) = cases.chosen();
    println!("{count} cases, directly and by {}", BACKENDS.join(" and "));
    let verdicts = run_all(&interpreter, cases, &servers, chosen, excluded)?;
    let mut different = judge(&verdicts, count)?;
    for _ in 0..ROUNDS {
        if different.is_empty() {
            break;
        }
        println!("repeating {}", different.join(", "));
        let again: Vec<&str> = different.iter().map(String::as_str).collect();
        let verdicts = run_all(&interpreter, cases, &servers, &again, &[])?;
        different = judge(&verdicts, again.len())?;
    }
    if !different.is_empty() {
        return Err(format!("cases that always differ through the proxy: {}", different.join(", ")).into());
    }
    println!("{count} cases, the same through the proxy: {}", summary(&verdicts));
    Ok(())
}

/// Tests all servers at the same time.
fn run_all<'a>(
    interpreter: &Path,
    cases: Cases,
    servers: &'a [TestedServer],
    chosen: &[&str],
    excluded: &[&str],
) -> Result<Verdicts, Failure> {
    let mut all = Verdicts::new();
    thread::scope(|scope| {
        let runs = |server: &'a TestedServer| {
            let client = cases.client(interpreter);
            scope.spawn(move || {
                server
                    .run_cases(client, chosen, excluded)
                    .map_err(|failure| failure.to_string())
            })
        };
        let runs: Vec<_> = servers.iter().map(runs).collect();
        for verdicts in runs {
            all.extend(verdicts.join().map_err(|_| "a thread that ran cases panicked")??);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(all)
}

/// Returns the cases whose verdicts differ from the direct ones. Fails if a case was not run or has failed, because
/// equal verdicts would then prove little.
fn judge(verdicts: &Verdicts, count: usize) -> Result<Vec<String>, String> {
    let none = BTreeMap::new();
    let of = |server| verdicts.get(server).unwrap_or(&none);
    for server in [DIRECT].into_iter().chain(BACKENDS) {
        let tried = of(server).len();
        if tried != count {
            return Err(format!("{tried} cases ran with {server} instead of {count}"));
        }
        let failed = |(_, verdict): &(&String, &Verdict)| verdict.has_failed();
        let failed: Vec<_> = of(server)
            .iter()
            .filter(failed)
            .map(|(case, _)| case.as_str())
            .collect();
        if !failed.is_empty() {
            return Err(format!("failed, {server}: {}", failed.join(", ")));
        }
    }
    let direct = of(DIRECT);
    let differ = |case: &&String| {
        BACKENDS
            .iter()
            .any(|backend| of(backend).get(*case) != direct.get(*case))
    };
    Ok(direct.keys().filter(differ).cloned().collect())
}

/// Formats the number of verdicts of each kind.
fn summary(verdicts: &Verdicts) -> String {
    let mut summary = BTreeMap::new();
    for verdict in verdicts.get(DIRECT).into_iter().flat_map(BTreeMap::values) {
        *summary.entry(verdict.behavior.as_str()).or_insert(0) += 1;
    }
    let summary: Vec<_> = summary.iter().map(|(sort, count)| format!("{count} {sort}")).collect();
    summary.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_verdicts_are_returned_and_failed_cases_are_errors() {
        let good = r#"{"behavior": "OK", "behaviorClose": "OK", "remoteCloseCode": 1000, "duration": 2}"#;
        let other = r#"{"behavior": "OK", "behaviorClose": "OK", "remoteCloseCode": 1002, "duration": 2}"#;
        let gone = r#"{"behavior": "NON-STRICT", "behaviorClose": "INFORMATIONAL", "remoteCloseCode": null}"#;
        let failed = r#"{"behavior": "FAILED", "behaviorClose": "OK", "remoteCloseCode": 1000}"#;
        let of = |direct: &str, proxied: &str| {
            format!(
                r#"{{"direct": {{"1.1": {direct}, "1.2": {good}}}, "epoll": {{"1.1": {direct}, "1.2": {good}}},
                    "io_uring": {{"1.1": {proxied}, "1.2": {good}}}}}"#
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
            (of(good, failed), Err("failed, io_uring: 1.1".to_owned())),
            (
                format!(r#"{{"direct": {{"1.1": {good}, "1.2": {good}}}}}"#),
                Err("0 cases ran with epoll instead of 2".to_owned()),
            ),
        ];
        for (text, expected) in rows {
            let verdicts: Verdicts = serde_json::from_str(&text).expect("verdicts");
            assert_eq!(judge(&verdicts, 2), expected, "{text}");
        }
    }
}
