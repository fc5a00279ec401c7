//! Site over HTTP/3 for the clients: files of known content, and an upstream below `/app/`.

use crate::Failure;
use crate::conform::folder::open_folder;
use crate::conform::server::TestServer;
use crate::conform::upstreams::upstream::{self, Upstream};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};

/// Python packages of the upstream, in fixed versions.
pub const UPSTREAM_PACKAGES: [&str; 2] = ["uvicorn==0.54.0", "websockets==16.0"];
/// Table that accepts early data, for the argument `routes` of [`TestSite::start`].
pub const EARLY_DATA: &str = "[tls]\nearly_data = true\n";
/// One worker, because the threshold for Retry counts the handshakes of a worker.
const SERVER: &str =
    "[server]\nstate = \"state\"\nworkers = 1\n[log]\naccess = \"access.log\"\nerrors = \"errors.log\"\n";
/// Site of the local CA. The name of the host is the one in its certificate.
const SITE: &str = "[site.localhost]\ntls = \"local\"\nroot = \"www\"\n";
/// Field that is worth an entry of the dynamic table.
const FIELDS: &str = "headers = { X-Site = \"A value that is worth an entry\" }\n";
/// Permits request bodies to the upstream that are larger than by default.
const LIMITS: &str = "limits = { body_size = \"2GiB\" }\n";
/// Size of the large file in bytes: larger than all windows.
const LARGE: usize = 20_000_000;
/// Number of small files that are requested in parallel.
const PARTS: usize = 100;

/// Number of ports that are tried.
const PORT_ATTEMPTS: u32 = 100;

/// A running site with its upstream.
pub struct TestSite {
    pub server: TestServer,
    _upstream: Upstream,
    home: tempfile::TempDir,
}

impl TestSite {
    /// Starts the upstream with Python's `packages`, and the server. `routes`: more tables of the server's
    /// configuration.
    pub fn start(program: &Path, packages: &Path, routes: &str) -> Result<TestSite, Failure> {
        Self::start_at(0, program, packages, routes)
    }

    /// Starts the site as `start` does, at a port. The server announces HTTP/3 only at a port that is configured.
    pub fn start_at(port: u16, program: &Path, packages: &Path, routes: &str) -> Result<TestSite, Failure> {
        let home = open_folder()?;
        for (name, text) in upstream::PROGRAMS {
            fs::write(home.path().join(name), text)?;
        }
        write_files(&home.path().join("www"))?;
        let upstream = Upstream::start(&upstream::UVICORN, "one", home.path(), packages)?;
        let listen = format!("listen = \"https://127.0.0.1:{port}\"\n");
        let route = format!(
            "[site.localhost.route.\"/app/*\"]\nproxy = {{ to = \"{}\", strip = \"/app\" }}\n{LIMITS}",
            upstream.url()
        );
        fs::write(
            home.path().join("rocknet.toml"),
            format!("{SERVER}{SITE}{listen}{FIELDS}{route}{routes}"),
        )?;
        let server = TestServer::start(program, &["run"], home.path())?;
        Ok(TestSite {
            server,
            _upstream: upstream,
            home,
        })
    }

    /// Returns the folder of the server's configuration and logs, in which it runs.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the file with the root certificate of the local CA.
    pub fn roots(&self) -> PathBuf {
        self.home().join("state/local/ca.pem")
    }

    /// Returns the folder of the files.
    pub fn files(&self) -> PathBuf {
        self.home().join("www")
    }
}

/// Returns a port that the kernel has just chosen for TCP, and that is free for UDP too.
pub fn free_port() -> Result<u16, Failure> {
    for _ in 0..PORT_ATTEMPTS {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        if UdpSocket::bind(address).is_ok() {
            return Ok(address.port());
        }
    }
    Err("no port is free for TCP and UDP".into())
}

/// Writes the files of the site. The bytes of the large one do not repeat, so a piece at a wrong place changes the
/// digest.
fn write_files(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder.join("parts"))?;
    fs::write(folder.join("small.txt"), "Thirteen byte")?;
    fs::write(folder.join("large.bin"), noise(LARGE))?;
    for number in 0..PARTS {
        fs::write(
            folder.join(format!("parts/{number}.txt")),
            format!("part {number}\n").repeat(1 + number * 40),
        )?;
    }
    Ok(())
}

/// Returns bytes of a linear congruential generator, the same in each run.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state: u64 = 7;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_the_large_file_do_not_repeat() {
        let bytes = noise(100_000);
        for period in 1..1000 {
            assert_ne!(bytes[..1000], bytes[period..1000 + period], "{period}");
        }
        assert_eq!(bytes, noise(100_000));
    }
}
