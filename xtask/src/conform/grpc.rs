//! Runs gRPC's own client and server in Python (grpcio) with the built server between them, without and with TLS. The
//! server program is that of `examples/grpc`.

use super::server::TestServer;
use crate::command::{command, output};
use crate::{Failure, repository, tools};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Python package of client and server, in a fixed version.
const PACKAGES: &[&str] = &["grpcio==1.85.1"];
/// Timeout for a line of output: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Names and configurations of the proxy's listeners.
const LISTENERS: [(&str, &str); 2] = [
    (
        "without TLS",
        "[server]\nh2c = true\nstate = \"state\"\n[site.default]\nlisten = \"127.0.0.1:0\"\n",
    ),
    (
        "under TLS",
        "[server]\nstate = \"state\"\n[site.localhost]\nlisten = \"https://127.0.0.1:0\"\ntls = \"local\"\n",
    ),
];

pub fn run(program: &Path) -> Result<(), Failure> {
    let packages = tools::python_packages("grpc", PACKAGES)?;
    let home = tempfile::tempdir()?;
    let client = home.path().join("client.py");
    fs::write(&client, include_str!("grpc/client.py"))?;
    for (listener, site) in LISTENERS {
        let mut echo = ExampleServer::start(&packages)?;
        let settings = format!("{site}proxy = \"h2c://127.0.0.1:{}\"\n", echo.port);
        fs::write(home.path().join("rocknet.toml"), settings)?;
        let server = TestServer::start(program, &["run"], home.path())?;
        let address = format!("127.0.0.1:{}", server.port()?);
        let roots = home.path().join("state/local/ca.pem");
        let call = |what: &str| -> Result<(), Failure> {
            let mut client_command = command("python3");
            client_command.arg(&client).args([what, &address]);
            if site.contains("https://") {
                client_command.arg(&roots);
            }
            output(client_command.env("PYTHONPATH", &packages)).map_err(|wrong| format!("{listener}: {wrong}"))?;
            Ok(())
        };
        call("calls")?;
        // The echo program prints this line once a client has cancelled a call.
        echo.await_line("gave up")?;
        drop(echo);
        call("unavailable")?;
        println!("{listener}: calls of all four kinds, errors, deadlines and a missing server are correct");
    }
    Ok(())
}

/// Server program of the example, killed when dropped.
struct ExampleServer {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
    port: u16,
}

impl ExampleServer {
    fn start(packages: &Path) -> Result<ExampleServer, Failure> {
        let mut child = Command::new("python3")
            .arg(repository::root().join("examples/grpc/echo.py"))
            .arg("0")
            .env("PYTHONPATH", packages)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let (line, lines) = channel();
        if let Some(printed) = child.stdout.take() {
            thread::spawn(move || {
                for read in BufReader::new(printed).lines().map_while(Result::ok) {
                    let _ = line.send(read);
                }
            });
        }
        let mut echo = ExampleServer { child, lines, port: 0 };
        let port = echo.await_line("listening at ")?;
        echo.port = port.parse().map_err(|_| format!("no port: {port}"))?;
        Ok(echo)
    }

    /// Waits for a line with this prefix and returns the rest.
    fn await_line(&mut self, start: &str) -> Result<String, Failure> {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT);
            let line = line.map_err(|_| format!("examples/grpc/echo.py did not print {start:?}"))?;
            if let Some(rest) = line.strip_prefix(start) {
                return Ok(rest.to_owned());
            }
        }
    }
}

impl Drop for ExampleServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
