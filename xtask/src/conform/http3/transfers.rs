//! Transfers large bodies over HTTP/3 with quic-go: a gibibyte from a file and through the proxy in both directions,
//! and smaller ones with PHP. Compares digests, and bounds the memory of the server.

use super::quic_go::QuicGoClient;
use super::site::{TestSite, UPSTREAM_PACKAGES};
use crate::conform::server::TestServer;
use crate::packages::{self, Purpose};
use crate::{Failure, tools};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Size of the largest body in bytes.
const LENGTH: usize = 1 << 30;
/// Route to scripts.
const PHP: &str = "[site.localhost.route.\"/php/*\"]\nphp = \"auto\"\n";
const SCRIPTS: [(&str, &str); 2] = [
    ("digest.php", include_str!("transfers/digest.php")),
    ("send.php", include_str!("transfers/send.php")),
];
/// Maximum growth of the server's peak memory in KiB during all transfers: buffers of a few connections, and the
/// files of PHP in the cache.
const GROWTH_MAX: u64 = 64 * 1024;

pub fn run(program: &Path) -> Result<(), Failure> {
    packages::require(Purpose::Applications)?;
    let client = QuicGoClient::build()?;
    let packages = tools::python_packages("http3-upstream", &UPSTREAM_PACKAGES)?;
    let folder = tempfile::tempdir()?;
    let huge = folder.path().join("huge.bin");
    let upstream = TestServer::of_folder(program, folder.path())?;
    let proxy = format!(
        "[site.localhost.route.\"/files/*\"]\nproxy = {{ to = \"{}\", strip = \"/files\" }}\n",
        upstream.url("")
    );
    let site = TestSite::start(program, &packages, &format!("{proxy}{PHP}"))?;
    let scripts = site.files().join("php");
    fs::create_dir(&scripts)?;
    for (name, text) in SCRIPTS {
        fs::write(scripts.join(name), text)?;
    }
    let large = site.files().join("large.bin");
    write_huge(&huge, &fs::read(&large)?)?;
    fs::hard_link(&huge, site.files().join("huge.bin"))?;

    let before = site.server.peak_memory_kib()?;
    let (port, state) = (site.server.port()?, site.home().join("state"));
    client.get(port, &state, "/huge.bin", &huge)?;
    client.get(port, &state, "/files/huge.bin", &huge)?;
    client.put(port, &state, "/app/digest", &huge)?;
    client.get(port, &state, "/php/send.php", &large)?;
    client.put(port, &state, "/php/digest.php", &large)?;
    let growth = site.server.peak_memory_kib()? - before;
    if growth > GROWTH_MAX {
        return Err(format!("the peak memory of the server grew by {growth} KiB").into());
    }
    println!("the peak memory of the server grew by {growth} KiB");
    Ok(())
}

/// Writes the largest body: copies of `block`, each after its number.
fn write_huge(path: &Path, block: &[u8]) -> Result<(), Failure> {
    let mut file = File::create(path)?;
    let mut written = 0;
    for number in 0_u64.. {
        let number = number.to_be_bytes();
        for piece in [&number[..], block] {
            let length = piece.len().min(LENGTH - written);
            file.write_all(&piece[..length])?;
            written += length;
        }
        if written == LENGTH {
            break;
        }
    }
    Ok(())
}
