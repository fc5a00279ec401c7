//! The page of `examples/websocket` in headless Chromium, with its program behind the proxy: in the clear the browser asks
//! by `Upgrade`, over HTTP/2 by extended CONNECT, and hears its echo both times.

use super::browser;
use super::server::Server;
use super::trusted;
use crate::Failure;
use crate::repository;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What the page shows when it has been answered.
const HEARD: &str = "<output id=\"heard\">heard: ahoy</output>";

/// The page is looked at when it waits for nothing more, and not as soon as it is loaded: by the browser's own clock, which
/// stands still while it waits for the network.
const WAITING: &str = "--virtual-time-budget=5000";

/// The browser's clock may run on while a message is on its way: on a busy machine five of its seconds take no time at all.
const LOADS: u32 = 5;

/// The longest a line takes to get into the log: a tick of the worker's clock, and far more on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The listening address and keys of a site, and how the access log tells that a tunnel stood.
const WAYS: [(&str, &str); 2] = [
    ("[site.\":0\"]\n", "\"GET /echo HTTP/1.1\" 101 "),
    (
        "[site.localhost]\nlisten = \"https://127.0.0.1:0\"\ntls = \"local\"\n",
        "\"CONNECT /echo HTTP/2.0\" 200 ",
    ),
];

/// The program behind the proxy; it is killed when dropped.
struct Echo(Child);

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn run(program: &Path) -> Result<(), Failure> {
    let example = repository::root().join("examples/websocket");
    let mut child = Command::new("python3")
        .arg(example.join("echo.py"))
        .arg("0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let said = child.stdout.take();
    let _echo = Echo(child);
    let mut line = String::new();
    BufReader::new(said.ok_or("no output of echo.py")?).read_line(&mut line)?;
    let port = line.trim().rsplit(' ').next().unwrap_or_default();
    for (site, told) in WAYS {
        let home = tempfile::tempdir()?;
        let name = site.lines().next().unwrap_or_default().trim_end_matches(']');
        let settings = format!(
            "[server]\nstate = \"state\"\n[log]\naccess = \"access.log\"\n{site}root = \"{}\"\n\
             {name}.route.\"/echo\"]\nproxy = \"http://127.0.0.1:{port}\"\n",
            example.join("www").display()
        );
        fs::write(home.path().join("rocknet.toml"), settings)?;
        let server = Server::start(program, &["run"], home.path())?;
        if told.contains("HTTP/2.0") {
            trusted::rocknet(program, "trust", home.path())?;
        }
        let url = server.url("/");
        let mut loads = 0;
        loop {
            let (dom, log) = browser::load_with(&[WAITING], &url, Some(home.path()))?;
            loads += 1;
            if dom.contains(HEARD) {
                break;
            }
            if loads == LOADS {
                return Err(format!("{url}: nothing was heard\n{dom}\n{log}").into());
            }
        }
        let started = Instant::now();
        while !fs::read_to_string(home.path().join("access.log"))?.contains(told) {
            if started.elapsed() > PATIENCE {
                return Err(format!("{url}: no {told:?} in its log").into());
            }
            thread::sleep(Duration::from_millis(50));
        }
        println!("{url} hears its echo: {told}");
    }
    Ok(())
}
