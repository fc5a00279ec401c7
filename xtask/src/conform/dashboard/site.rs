//! The server whose dashboard is tested.

use super::super::server::TestServer;
use crate::Failure;
use crate::command::{output, output_alone};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Settings of every server: its state folder, and a port of the control API that the kernel chooses.
const SETTINGS: &str = "# Comments are kept.\ninclude = [\"sites/*.toml\"]\n[server]\nstate = \"state\"\n\n[admin]\nlisten = \"127.0.0.1:0\"\n";

/// Three websites: files, another server, and HTTPS.
const SITES: &str = r#"
[site."files.localhost"]
listen = "http://127.0.0.1:0"
root = "www"

[site."shop.localhost"]
listen = "http://127.0.0.1:0"
proxy = "UPSTREAM"

[site."secure.localhost"]
listen = "https://127.0.0.2:0"
root = "www"
tls = "local"

[log]
access = "stdout"
"#;

/// A website in an included file.
const INCLUDED: &str = "# Included.\n[site.\"notes.localhost\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"../www\"\n";

/// Requests that give the charts something to show.
const REQUESTS: usize = 200;

/// A running server with its folder.
pub struct DashboardSite {
    program: PathBuf,
    folder: tempfile::TempDir,
    server: RunningSite,
    _upstream: Option<TcpListener>,
}

enum RunningSite {
    /// A server without websites, which prints no URL.
    Bare(Child),
    Serving(TestServer),
}

impl DashboardSite {
    /// Starts a server without websites.
    pub fn empty(program: &Path) -> Result<DashboardSite, Failure> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("rocknet.toml"), SETTINGS)?;
        let child = Command::new(program)
            .arg("run")
            .current_dir(folder.path())
            .env_remove("ROCKNET_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(DashboardSite {
            program: program.to_owned(),
            folder,
            server: RunningSite::Bare(child),
            _upstream: None,
        })
    }

    /// Starts a server with four websites.
    pub fn full(program: &Path) -> Result<DashboardSite, Failure> {
        let folder = tempfile::Builder::new().prefix("rocknet-").tempdir()?;
        let www = folder.path().join("www");
        fs::create_dir(&www)?;
        fs::create_dir(folder.path().join("garden"))?;
        fs::write(www.join("index.html"), "<title>Files</title>")?;
        fs::create_dir(folder.path().join("sites"))?;
        fs::write(folder.path().join("sites/notes.toml"), INCLUDED)?;
        let upstream = TcpListener::bind("127.0.0.1:0")?;
        let sites = SITES.replace("UPSTREAM", &format!("http://{}", upstream.local_addr()?));
        fs::write(folder.path().join("rocknet.toml"), format!("{SETTINGS}{sites}"))?;
        let server = TestServer::start(program, &["run"], folder.path())?;
        Ok(DashboardSite {
            program: program.to_owned(),
            folder,
            server: RunningSite::Serving(server),
            _upstream: Some(upstream),
        })
    }

    /// Returns a new link to the dashboard. Waits until the server has its control socket.
    pub fn link(&self) -> Result<String, Failure> {
        let socket = self.folder.path().join("state/admin/control.sock");
        let printed = Command::new(&self.program)
            .args(["dashboard", "--socket"])
            .arg(&socket)
            .output()?;
        if printed.status.success() {
            return Ok(String::from_utf8_lossy(&printed.stdout).trim().to_owned());
        }
        // The bare server prints nothing when it is ready.
        for _ in 0..CONNECT_ATTEMPTS {
            if std::os::unix::net::UnixStream::connect(&socket).is_ok() {
                break;
            }
            std::thread::sleep(CONNECT_PAUSE);
        }
        let mut command = Command::new(&self.program);
        let link = output_alone(command.args(["dashboard", "--socket"]).arg(&socket))?;
        Ok(link.trim().to_owned())
    }

    /// Returns the port of a website.
    pub fn port(&self) -> Result<u16, Failure> {
        match &self.server {
            RunningSite::Serving(server) => server.port(),
            RunningSite::Bare(_) => Err("the server has no website".into()),
        }
    }

    /// Sends the usual number of requests to a website.
    pub fn visit(&self) -> Result<(), Failure> {
        self.visit_times(REQUESTS)
    }

    /// Sends requests to a website, over one connection.
    pub fn visit_times(&self, requests: usize) -> Result<(), Failure> {
        let RunningSite::Serving(server) = &self.server else {
            return Ok(());
        };
        let mut stream = TcpStream::connect(("127.0.0.1", server.port()?))?;
        for _ in 0..requests {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: files.localhost\r\n\r\n")?;
            let mut received = [0; 1024];
            if stream.read(&mut received)? == 0 {
                return Err("the website has closed the connection".into());
            }
        }
        Ok(())
    }

    /// Returns the text of the configuration file.
    pub fn config(&self) -> Result<String, Failure> {
        Ok(fs::read_to_string(self.file())?)
    }

    /// Returns the path of the included file.
    pub fn included(&self) -> PathBuf {
        self.folder.path().join("sites/notes.toml")
    }

    /// Replaces the configuration file, as an editor does.
    pub fn write_config(&self, text: &str) -> Result<(), Failure> {
        Ok(fs::write(self.file(), text)?)
    }

    /// Removes the configuration file.
    pub fn remove_config(&self) -> Result<(), Failure> {
        Ok(fs::remove_file(self.file())?)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("rocknet.toml")
    }

    /// Returns the token that permits no changes.
    pub fn read_token(&self) -> Result<String, Failure> {
        let text = fs::read_to_string(self.folder.path().join("state/admin/read-token"))?;
        Ok(text.trim().to_owned())
    }

    /// Checks that the present configuration is valid.
    pub fn check(&self) -> Result<(), Failure> {
        output(Command::new(&self.program).arg("check").arg(self.file())).map(drop)
    }
}

impl Drop for RunningSite {
    fn drop(&mut self) {
        if let RunningSite::Bare(child) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Attempts to connect to a server that has just been started, and the pause between them.
const CONNECT_ATTEMPTS: u32 = 500;
const CONNECT_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
