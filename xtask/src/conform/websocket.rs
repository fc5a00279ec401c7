//! Loads the page of `examples/websocket` in headless Chromium, with its echo program behind the proxy. The browser
//! uses `Upgrade` without TLS and extended CONNECT over HTTP/2. The echo must arrive in both cases.

use super::access_log;
use super::browser;
use super::page_server::PageServer;
use super::server::TestServer;
use super::trusted;
use crate::Failure;
use crate::repository;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Output of the page after the echo.
const ECHO_SHOWN: &str = "<output id=\"heard\">heard: ahoy</output>";

/// Page that shows the example in a frame and copies the output of the example. The browser prints a page once it has
/// loaded, and this page has loaded only after its picture has arrived. [`PageServer`] sends the picture when the
/// script reports the echo.
const FRAME: &str = r#"<!doctype html>
<title>Waits for the echo</title>
<iframe src="/"></iframe><img src="/held/picture" alt=""><div></div>
<script>
  const frame = document.querySelector("iframe");
  const look = () => {
    const heard = frame.contentDocument?.getElementById("heard");
    if (!heard?.textContent.startsWith("heard")) return setTimeout(look, 20);
    document.querySelector("div").innerHTML = heard.outerHTML;
    fetch("/held/report");
  };
  look();
</script>
"#;

/// Configuration of a site, and the text in the access log that shows a tunnel.
const WAYS: [(&str, &str); 2] = [
    ("[site.\":0\"]\n", "\"GET /echo HTTP/1.1\" 101 "),
    (
        "[site.localhost]\nlisten = \"https://127.0.0.1:0\"\ntls = \"local\"\n",
        "\"CONNECT /echo HTTP/2.0\" 200 ",
    ),
];

/// Echo program behind the proxy, killed when dropped.
struct EchoProgram(Child);

impl Drop for EchoProgram {
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
    let printed = child.stdout.take();
    let _echo = EchoProgram(child);
    let mut line = String::new();
    BufReader::new(printed.ok_or("no output of echo.py")?).read_line(&mut line)?;
    let port = line.trim().rsplit(' ').next().unwrap_or_default();
    for (site, logged) in WAYS {
        let home = tempfile::tempdir()?;
        let name = site.lines().next().unwrap_or_default().trim_end_matches(']');
        let settings = format!(
            "[server]\nstate = \"state\"\n[log]\naccess = \"access.log\"\n{site}root = \"{}\"\n\
             {name}.route.\"/echo\"]\nproxy = \"http://127.0.0.1:{port}\"\n\
             {name}.route.\"/held/*\"]\nproxy = \"http://127.0.0.1:{}\"\n",
            example.join("www").display(),
            PageServer::start(FRAME)?.port
        );
        fs::write(home.path().join("rocknet.toml"), settings)?;
        let server = TestServer::start(program, &["run"], home.path())?;
        if logged.contains("HTTP/2.0") {
            trusted::rocknet(program, "trust", home.path())?;
        }
        let url = server.url("/held/page");
        let (dom, log) = browser::load(&url, Some(home.path()))?;
        if !dom.contains(ECHO_SHOWN) {
            return Err(format!("{url}: no echo on the page\n{dom}\n{log}").into());
        }
        access_log::await_text(&home.path().join("access.log"), logged)?;
        println!("{url} received its echo: {logged}");
    }
    Ok(())
}
