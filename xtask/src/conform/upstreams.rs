//! Runs common application servers for Python and Node behind the proxy: gunicorn on a Unix socket, uvicorn and Node on
//! ports. Tests bodies in both directions, events, keep-alive, WebSocket, and restarts under load.

mod environment;
mod load;
mod restart;
pub mod upstream;

use self::environment::Environment;
use self::upstream::{KINDS, UpstreamKind};
use super::session::Session;
use crate::command::{command, output};
use crate::{Failure, tools};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Servers in Python and the WebSocket client, in fixed versions.
const PACKAGES: &[&str] = &["gunicorn==27.0.1", "uvicorn==0.54.0", "websockets==16.0"];
/// Site that serves HTTP/1.1 and HTTP/2.
const SITE: &str = "[site.localhost]\nlisten = \"https://127.0.0.1:0\"\ntls = \"local\"\n";
const VERSIONS: [&str; 2] = ["--http2", "--http1.1"];
/// Bytes of a request body: more than all buffers between client and upstream.
const CONTENT: usize = 10_000_000;
/// Body of `/pieces`: the numbers below `PIECES` in four digits, each repeated `TIMES` times.
const PIECES: usize = 1000;
const TIMES: usize = 250;
/// Number of requests on one client connection.
const REQUESTS: usize = 300;
/// Maximum upstream connections for these requests. One is usual, but on a busy machine a connection may become too old
/// for reuse.
const CONNECTIONS: u32 = 10;
/// Timeout for an event: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

pub fn run(program: &Path) -> Result<(), Failure> {
    let packages = tools::python_packages("upstreams", PACKAGES)?;
    let home = tempfile::tempdir()?;
    for (name, text) in upstream::PROGRAMS {
        fs::write(home.path().join(name), text)?;
    }
    let environment = Environment {
        program,
        packages: &packages,
        home: home.path(),
    };
    for kind in KINDS {
        exchange(&environment, kind).map_err(|wrong| format!("{}: {wrong}", kind.name))?;
        restart::alone(&environment, kind)?;
        restart::in_turn(&environment, kind)?;
    }
    Ok(())
}

/// Runs the requests to one kind of upstream, one after another.
fn exchange(environment: &Environment<'_>, kind: &'static UpstreamKind) -> Result<(), Failure> {
    let upstream = environment.upstream(kind, "one")?;
    let server = environment.serve(SITE, &[&upstream])?;
    let session = Session::new(&server, &environment.home.join("state"))?;
    for version in VERSIONS {
        let session = session.with_version(version);
        session.get("/hello")?.expect(200, &["hello"])?;
        session.get("/nowhere")?.expect(404, &["nothing here"])?;
        let page = session.get("/pieces")?;
        let pieces = (0..PIECES).map(|number| format!("{number:04}").repeat(TIMES));
        if page.text() != pieces.collect::<String>() {
            return Err(page.wrong("other pieces"));
        }
        content(environment, &session)?;
        events(&session)?;
        println!("{} {version}: bodies, pieces, events", kind.name);
    }
    if kind.counts {
        keep_alive(&session.with_version("--http1.1"))?;
    }
    if kind.websocket {
        let url = session.url("/echo").replace("https://", "wss://");
        let mut client = command("python3");
        client
            .arg(environment.home.join("sockets.py"))
            .arg(&url)
            .arg(session.roots());
        output(client.env("PYTHONPATH", environment.packages))?;
        println!("{}: WebSocket", kind.name);
    }
    Ok(())
}

/// Sends a request body with its length, and without a known length.
fn content(environment: &Environment<'_>, session: &Session) -> Result<(), Failure> {
    let file = environment.home.join("content");
    let bytes: Vec<u8> = (0..CONTENT).map(|at| (at * 31 + at / 251) as u8).collect();
    fs::write(&file, &bytes)?;
    let digest = output(Command::new("sha256sum").arg(&file))?;
    let expected = format!("{CONTENT} {}", digest.split(' ').next().unwrap_or_default());
    let argument = format!("@{}", file.display());
    session
        .request("/digest", &["--data-binary", &argument])?
        .expect(200, &[&expected])?;
    let mut curl = session.curl("/digest", &["-X", "POST", "-T", "-"]);
    let response = session.page("/digest", curl.stdin(File::open(&file)?))?;
    response.expect(200, &[&expected])?;
    Ok(())
}

/// Checks streaming: the second event is sent after the client has read the first, so it arrives only if no buffer
/// delays them.
fn events(session: &Session) -> Result<(), Failure> {
    let mut curl = session.curl("/events", &["-N"]);
    let mut child = curl.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let (line, lines) = channel();
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || {
            for read in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = line.send(read);
            }
        });
    }
    let next_event = || loop {
        match lines.recv_timeout(TIMEOUT) {
            Ok(line) if line.is_empty() => {}
            other => return other.unwrap_or_default(),
        }
    };
    let first = next_event();
    session.get("/go")?.expect(200, &["gone"])?;
    let second = next_event();
    let _ = child.kill();
    child.wait()?;
    if (first.as_str(), second.as_str()) == ("data: first", "data: second") {
        return Ok(());
    }
    Err(format!("the events were {first:?} and {second:?}").into())
}

/// Checks that many requests of one client use few upstream connections.
fn keep_alive(session: &Session) -> Result<(), Failure> {
    let count = || -> Result<u32, Failure> { Ok(session.get("/connections")?.text().parse()?) };
    let before = count()?;
    let mut curl = session.curl(&format!("/hello?[1-{REQUESTS}]"), &["-o", "/dev/null"]);
    let response = output(&mut curl)?;
    let good = response.lines().filter(|line| *line == "200").count();
    let opened = count()? - before;
    if good != REQUESTS || opened > CONNECTIONS {
        return Err(format!("{good} of {REQUESTS} requests succeeded, over {opened} connections").into());
    }
    println!("{REQUESTS} requests used {opened} connections");
    Ok(())
}
