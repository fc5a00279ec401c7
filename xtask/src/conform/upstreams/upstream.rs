//! A server of another project as a process: started on a socket file or a port, stopped as its operator would, started
//! again where it was.

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

/// The longest it may take to start or to stop: far more than on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(10);

/// The applications and the client, by the names they have in the folder of the step.
pub const PROGRAMS: [(&str, &str); 4] = [
    ("wsgi.py", include_str!("wsgi.py")),
    ("asgi.py", include_str!("asgi.py")),
    ("server.js", include_str!("server.js")),
    ("sockets.py", include_str!("sockets.py")),
];

/// A kind of server.
pub struct Kind {
    pub name: &'static str,
    /// Its command up to where it listens, which comes last.
    words: &'static [&'static str],
    /// Whether it listens at a socket file, else at a port.
    file: bool,
    /// Whether it speaks WebSocket.
    pub websocket: bool,
    /// Whether it tells how many connections it has seen.
    pub counts: bool,
}

pub const KINDS: [&Kind; 3] = [
    &Kind {
        name: "gunicorn",
        words: &[
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
        file: true,
        websocket: false,
        counts: false,
    },
    &Kind {
        name: "uvicorn",
        words: &["python3", "-m", "uvicorn", "asgi:app", "--no-access-log", "--port"],
        file: false,
        websocket: true,
        counts: false,
    },
    &Kind {
        name: "Node",
        words: &["node", "server.js"],
        file: false,
        websocket: true,
        counts: true,
    },
];

/// A running server. It is killed when dropped.
pub struct Upstream {
    kind: &'static Kind,
    folder: PathBuf,
    packages: PathBuf,
    child: Child,
    /// Where it listens: the path of a file, or a port.
    place: String,
}

impl Upstream {
    /// Starts one whose program lies in `folder`; Python finds its `packages`. `name` tells it from others of its kind.
    pub fn start(kind: &'static Kind, name: &str, folder: &Path, packages: &Path) -> Result<Self, Failure> {
        let place = if kind.file {
            folder.join(format!("{name}.sock")).display().to_string()
        } else {
            "0".to_owned()
        };
        let (child, place) = launch(kind, folder, packages, &place)?;
        Ok(Self {
            kind,
            folder: folder.to_owned(),
            packages: packages.to_owned(),
            child,
            place,
        })
    }

    /// How the configuration of the proxy calls it.
    pub fn url(&self) -> String {
        if self.kind.file {
            format!("unix:{}", self.place)
        } else {
            format!("http://127.0.0.1:{}", self.place)
        }
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(&mut self) -> Result<(), Failure> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM)?;
        }
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() {
            if asked.elapsed() > PATIENCE {
                return Err("it did not stop".into());
            }
            thread::sleep(STEP);
        }
        Ok(())
    }

    /// Starts it where it was.
    pub fn start_again(&mut self) -> Result<(), Failure> {
        (self.child, _) = launch(self.kind, &self.folder, &self.packages, &self.place)?;
        Ok(())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // gunicorn's process for requests ends with the one that is asked, and would outlive one that is killed.
        if self.stop().is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Starts it and waits until it listens; says where.
fn launch(kind: &Kind, folder: &Path, packages: &Path, place: &str) -> Result<(Child, String), Failure> {
    let mut command = Command::new(kind.words[0]);
    command.args(&kind.words[1..]);
    command.arg(if kind.file {
        format!("unix:{place}")
    } else {
        place.to_owned()
    });
    command
        .current_dir(folder)
        .env("PYTHONPATH", packages)
        // Where Debian's packages lie, also for a Node that is not Debian's.
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
            // Read to the end, though nobody listens any more: a full pipe would hold the server.
            for read in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = line.send(read);
            }
        });
    }
    let started = Instant::now();
    let mut said = String::new();
    loop {
        if child.try_wait()?.is_some() || started.elapsed() > PATIENCE {
            return Err(format!("`{}` did not start:\n{said}", shown(&command)).into());
        }
        if kind.file && UnixStream::connect(place).is_ok() {
            return Ok((child, place.to_owned()));
        }
        let Ok(line) = lines.recv_timeout(STEP) else {
            continue;
        };
        let port = server::url(&line).and_then(|url| url.rsplit(':').next());
        if let Some(port) = port.filter(|_| !kind.file) {
            return Ok((child, port.to_owned()));
        }
        said.push_str(&line);
        said.push('\n');
    }
}
