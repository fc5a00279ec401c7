//! Starts installed servers such as nginx and HAProxy, in the foreground and in a temporary folder.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{DEADLINE, Folder};

/// A running server. It is killed when the value is dropped.
pub struct Peer(Child);

impl Peer {
    /// Starts a server and waits until it listens at the socket file `socket`. `log` is the file with its error
    /// messages.
    pub fn start(folder: &Folder, program: &str, arguments: &[&str], socket: &str, log: &str) -> Peer {
        let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
        let path = folders.iter().map(|folder| Path::new(folder).join(program));
        let path = path.into_iter().find(|path| path.is_file());
        let path = path.unwrap_or_else(|| panic!("{program} is missing: `cargo xtask test` installs it"));
        let output = std::fs::File::options()
            .create(true)
            .append(true)
            .open(folder.path(log));
        let child = Command::new(path)
            .args(arguments)
            .current_dir(folder.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output.expect("a file for its output"))
            .spawn();
        let mut peer = Peer(child.unwrap_or_else(|error| panic!("{program}: {error}")));
        let began = Instant::now();
        while UnixStream::connect(folder.path(socket)).is_err() {
            let log = || std::fs::read_to_string(folder.path(log)).unwrap_or_default();
            let ended = peer.0.try_wait().expect("a child");
            assert!(ended.is_none(), "{program} has exited: {ended:?} {}", log());
            assert!(began.elapsed() < DEADLINE, "{program} does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
        peer
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
