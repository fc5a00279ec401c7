//! Runs an application server of another project as a process: started on a Unix socket or a port, stopped by SIGTERM,
//! and restarted at the same address.

use crate::Failure;
use crate::command::shown;
use crate::conform::server;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for a start or a stop: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// Applications and the WebSocket client, by file name in the folder of the step.
pub const PROGRAMS: [(&str, &str); 4] = [
    ("wsgi.py", include_str!("wsgi.py")),
    ("asgi.py", include_str!("asgi.py")),
    ("server.js", include_str!("server.js")),
    ("sockets.py", include_str!("sockets.py")),
];

/// A kind of application server.
pub struct UpstreamKind {
    pub name: &'static str,
    /// Command line without the address, which is appended.
    command: &'static [&'static str],
    /// True if the server listens on a Unix socket instead of a port.
    is_unix: bool,
    /// True if the server supports WebSocket.
    pub websocket: bool,
    /// True if the server counts its connections and reports the number at `/connections`.
    pub counts: bool,
}

const GUNICORN: UpstreamKind = UpstreamKind {
    name: "gunicorn",
    command: &[
        "python3",
        "-m",
        "gunicorn",
        "wsgi:app",
        "--no-control-socket",
        "--worker-class=gthread",
        "--threads=16",
        "--keep-alive=60",
        "--bind",
    ],
    is_unix: true,
    websocket: false,
    counts: false,
};

/// Server in Python that needs no other program.
pub const UVICORN: UpstreamKind = UpstreamKind {
    name: "uvicorn",
    command: &["python3", "-m", "uvicorn", "asgi:app", "--no-access-log", "--port"],
    is_unix: false,
    websocket: true,
    counts: false,
};

const NODE: UpstreamKind = UpstreamKind {
    name: "Node",
    command: &["node", "server.js"],
    is_unix: false,
    websocket: true,
    counts: true,
};

pub const KINDS: [&UpstreamKind; 3] = [&GUNICORN, &UVICORN, &NODE];

/// A running application server, stopped when dropped.
pub struct Upstream {
    kind: &'static UpstreamKind,
    folder: PathBuf,
    packages: PathBuf,
    child: Child,
    /// Path of the socket, or the port.
    address: String,
}

impl Upstream {
    /// Starts an application server in `folder`, with Python's `packages`. `name` distinguishes servers of one kind.
    pub fn start(kind: &'static UpstreamKind, name: &str, folder: &Path, packages: &Path) -> Result<Self, Failure> {
        let address = if kind.is_unix {
            folder.join(format!("{name}.sock")).display().to_string()
        } else {
            "0".to_owned()
        };
        let (child, address) = launch(kind, folder, packages, &address)?;
        Ok(Self {
            kind,
            folder: folder.to_owned(),
            packages: packages.to_owned(),
            child,
            address,
        })
    }

    /// Returns the server's address for the configuration of the proxy.
    pub fn url(&self) -> String {
        if self.kind.is_unix {
            format!("unix:{}", self.address)
        } else {
            format!("http://127.0.0.1:{}", self.address)
        }
    }

    /// Sends SIGTERM and waits until the server has stopped.
    pub fn stop(&mut self) -> Result<(), Failure> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM)?;
        }
        let start = Instant::now();
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > TIMEOUT {
                return Err(format!("{} did not stop", self.kind.name).into());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Starts the server again at the same address.
    pub fn restart(&mut self) -> Result<(), Failure> {
        (self.child, _) = launch(self.kind, &self.folder, &self.packages, &self.address)?;
        Ok(())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // SIGTERM comes first, because gunicorn's worker process would outlive a main process that is killed.
        if self.stop().is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Starts a server, waits until it accepts connections, and returns the process and the server's address.
fn launch(kind: &UpstreamKind, folder: &Path, packages: &Path, address: &str) -> Result<(Child, String), Failure> {
    let mut command = Command::new(kind.command[0]);
    command.args(&kind.command[1..]);
    command.arg(if kind.is_unix {
        format!("unix:{address}")
    } else {
        address.to_owned()
    });
    command
        .current_dir(folder)
        .env("PYTHONPATH", packages)
        // Folder of Debian's packages, so that a Node from another source finds them too.
        .env("NODE_PATH", "/usr/share/nodejs")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("{}: {error}", shown(&command)))?;
    let (line, lines) = channel();
    let outputs: [Option<Box<dyn std::io::Read + Send>>; 2] = [
        child.stdout.take().map(|output| Box::new(output) as _),
        child.stderr.take().map(|output| Box::new(output) as _),
    ];
    for output in outputs.into_iter().flatten() {
        let line = line.clone();
        thread::spawn(move || {
            // The output is read to the end, because a full pipe would block the server.
            for read in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = line.send(read);
            }
        });
    }
    let started = Instant::now();
    let mut printed = String::new();
    loop {
        if child.try_wait()?.is_some() || started.elapsed() > TIMEOUT {
            return Err(format!("`{}` did not start:\n{printed}", shown(&command)).into());
        }
        if kind.is_unix && UnixStream::connect(address).is_ok() {
            return Ok((child, address.to_owned()));
        }
        let Ok(line) = lines.recv_timeout(POLL) else {
            continue;
        };
        let port = server::url(&line).and_then(|url| url.rsplit(':').next());
        if let Some(port) = port.filter(|_| !kind.is_unix) {
            return Ok((child, port.to_owned()));
        }
        printed.push_str(&line);
        printed.push('\n');
    }
}
