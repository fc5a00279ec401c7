//! Server of the step with its upstream, files and scripts, and the configurations that are loaded one after another.

use crate::Failure;
use crate::command::{output, output_alone};
use crate::conform::folder::open_folder;
use crate::conform::http3::site::{free_port, noise};
use crate::conform::server::TestServer;
use crate::conform::upstreams::upstream::{self, Upstream};
use serde_json::Value;
use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the file that is downloaded slowly, in bytes. It is larger than all buffers on the way.
const LARGE: usize = 12_000_000;
/// Number of sites in each configuration that no client uses, so that a configuration that is not freed shows in the
/// memory.
const OTHER_SITES: usize = 100;
/// Maximum lines of the error log in an error.
const MAX_LINES: usize = 30;
/// Part of the warning about a server that keeps root's rights, as in a container.
const ROOT_WARNING: &str = "running as root";
/// Scripts of the site.
const SCRIPTS: [(&str, &str); 1] = [("digest.php", include_str!("../http3/transfers/digest.php"))];

/// Configuration of one reload.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Number of the reload, which values of some keys depend on.
    pub number: usize,
    /// Value of `server.workers`.
    pub workers: usize,
    /// Additional listeners of the site.
    pub extra: &'static [Extra],
}

/// Additional listener with TLS and HTTP/3.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    First,
    Second,
    /// The port of `Second` at all addresses of the machine.
    SecondEverywhere,
}

/// The server with its configuration file.
pub struct ReloadSite {
    program: PathBuf,
    backend: &'static str,
    home: tempfile::TempDir,
    upstream: Upstream,
    /// Port without TLS, port with TLS and HTTP/3, and the ports of the additional listeners.
    ports: [u16; 4],
    /// Killed when dropped, unless an upgrade has replaced it.
    _server: TestServer,
    is_stopped: Cell<bool>,
}

impl ReloadSite {
    /// Starts the upstream with Python's `packages`, and the server with an I/O back end.
    pub fn start(program: &Path, backend: &'static str, packages: &Path) -> Result<ReloadSite, Failure> {
        let home = open_folder()?;
        for (name, text) in upstream::PROGRAMS {
            fs::write(home.path().join(name), text)?;
        }
        fs::create_dir_all(home.path().join("www/php"))?;
        fs::write(home.path().join("www/small.txt"), "Thirteen byte")?;
        fs::write(home.path().join("www/large.bin"), noise(LARGE))?;
        for (name, text) in SCRIPTS {
            fs::write(home.path().join("www/php").join(name), text)?;
        }
        let upstream = Upstream::start(&upstream::UVICORN, "one", home.path(), packages)?;
        let mut ports = [0; 4];
        for at in 0..ports.len() {
            ports[at] = std::iter::repeat_with(free_port)
                .find(|port| port.as_ref().map_or(true, |port| !ports.contains(port)))
                .ok_or("no port")??;
        }
        let text = text(backend, ports, &upstream.url(), FIRST);
        fs::write(home.path().join("rocknet.toml"), text)?;
        let server = TestServer::start(program, &["run"], home.path())?;
        Ok(ReloadSite {
            program: program.to_owned(),
            backend,
            home,
            upstream,
            ports,
            _server: server,
            is_stopped: Cell::new(false),
        })
    }

    /// Writes a configuration and loads it.
    pub fn reload(&self, shape: Shape) -> Result<(), Failure> {
        let text = text(self.backend, self.ports, &self.upstream.url(), shape);
        fs::write(self.home.path().join("rocknet.toml"), text)?;
        self.rocknet(&["reload"]).map(drop)
    }

    /// Runs a command of the program in the folder of the server, and returns its output.
    pub fn rocknet(&self, arguments: &[&str]) -> Result<String, Failure> {
        output(
            Command::new(&self.program)
                .args(arguments)
                .current_dir(self.home.path()),
        )
    }

    /// Returns the status that the server reports.
    pub fn status(&self) -> Result<Value, Failure> {
        let mut command = Command::new(&self.program);
        command.args(["status", "--json"]).current_dir(self.home.path());
        Ok(serde_json::from_str(&output_alone(&mut command)?)?)
    }

    /// Returns the ID of the process that serves now.
    pub fn process(&self) -> Result<u32, Failure> {
        let process = self.status()?["pid"].as_u64().and_then(|id| u32::try_from(id).ok());
        process.ok_or_else(|| "no process ID in the status".into())
    }

    /// Returns the ports without TLS and with it.
    pub fn ports(&self) -> (u16, u16) {
        (self.ports[0], self.ports[1])
    }

    /// Returns the port of an additional listener.
    pub fn extra_port(&self, extra: Extra) -> u16 {
        match extra {
            Extra::First => self.ports[2],
            Extra::Second | Extra::SecondEverywhere => self.ports[3],
        }
    }

    /// Returns the file with the root certificate of the local CA.
    pub fn roots(&self) -> PathBuf {
        self.home.path().join("state/local/ca.pem")
    }

    /// Returns the folder of the files.
    pub fn files(&self) -> PathBuf {
        self.home.path().join("www")
    }

    fn errors(&self) -> String {
        fs::read_to_string(self.home.path().join("errors.log")).unwrap_or_default()
    }

    /// Returns the last lines of the error log.
    pub fn last_errors(&self) -> String {
        let text = self.errors();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(MAX_LINES)..].join("\n")
    }

    /// Fails if the error log has warnings or errors.
    pub fn check_log(&self) -> Result<(), Failure> {
        let text = self.errors();
        let is_wrong =
            |line: &&str| line.contains(" ERROR ") || line.contains(" WARN ") && !line.contains(ROOT_WARNING);
        let wrong: Vec<&str> = text.lines().filter(is_wrong).take(MAX_LINES).collect();
        if text.is_empty() || !wrong.is_empty() {
            return Err(format!("the error log has unexpected lines:\n{}", wrong.join("\n")).into());
        }
        Ok(())
    }

    /// Stops the server, which may be another process than the one that was started.
    pub fn stop(&self) -> Result<(), Failure> {
        self.is_stopped.set(true);
        self.rocknet(&["stop"]).map(drop)
    }
}

impl Drop for ReloadSite {
    fn drop(&mut self) {
        if !self.is_stopped.get() {
            let _ = self.stop();
        }
    }
}

/// Configuration with which the server starts.
pub const FIRST: Shape = Shape {
    number: 0,
    workers: 1,
    extra: &[],
};

/// Returns the text of a configuration. `ports`: as in [`ReloadSite`].
fn text(backend: &str, [clear, secure, first, second]: [u16; 4], upstream: &str, shape: Shape) -> String {
    let Shape { number, workers, extra } = shape;
    let mut listen = vec![format!("https://127.0.0.1:{secure}")];
    listen.extend(extra.iter().map(|extra| match extra {
        Extra::First => format!("https://127.0.0.1:{first}"),
        Extra::Second => format!("https://127.0.0.1:{second}"),
        Extra::SecondEverywhere => format!("https://{second}"),
    }));
    // `keep_alive` is longer than by default, because the clients leave connections idle, and a timeout must not end
    // these.
    let mut text = format!(
        "[server]\nstate = \"state\"\nbackend = \"{backend}\"\nworkers = {workers}\n\
         [log]\nerrors = \"errors.log\"\naccess = \"access.log\"\n[cache]\nmemory = \"{}MiB\"\n[limits]\nkeep_alive = \"{}s\"\n",
        64 + number % 2,
        100 + number % 7
    );
    let sites = [
        ("site.default", format!("listen = \"http://127.0.0.1:{clear}\"\n")),
        ("site.localhost", format!("listen = {listen:?}\ntls = \"local\"\n")),
    ];
    for (site, keys) in sites {
        let _ = write!(
            text,
            "[{site}]\n{keys}root = \"www\"\nheaders = {{ X-Reload = \"{number}\" }}\ncompress = {}\n\
             [{site}.route.\"/app/*\"]\nproxy = {{ to = \"{upstream}\", strip = \"/app\" }}\n\
             [{site}.route.\"/php/*\"]\nphp = \"auto\"\n",
            number.is_multiple_of(2)
        );
    }
    // Some sites come and go.
    for other in 0..OTHER_SITES + number % 3 {
        let _ = write!(
            text,
            "[site.\"s{other}.test\"]\nlisten = \"http://127.0.0.1:{clear}\"\nroot = \"www\"\n\
             redirects = {{ \"/old\" = \"/{number}\" }}\n"
        );
    }
    text
}
