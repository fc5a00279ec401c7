//! Creates the site that all servers serve, in a temporary folder for each run.

use super::page::{GIB, MIB, Page};
use super::variant::KeyKind;
use crate::Failure;
use crate::command::output;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Document root and the folders around it; deleted when dropped.
pub struct Site {
    folder: TempDir,
}

/// Certificate chain and key for TLS lanes.
pub struct Certificate {
    pub chain: PathBuf,
    pub key: PathBuf,
}

const HELLO: &str = "Hello, world!";

impl Site {
    pub fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("rocknet-bench-").tempdir()?;
        // Servers started as root switch to another user, which must be able to read the folder.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let site = Self { folder };
        fs::create_dir(site.root())?;
        fs::write(site.file(Page::Hello)?, HELLO)?;
        Ok(site)
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Returns an empty folder for the configuration and logs of one server.
    pub fn scratch(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self
            .folder
            .path()
            .join(name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o777))?;
        Ok(folder)
    }

    /// Returns a self-signed certificate for this machine, created on first use.
    pub fn certificate(&self, kind: KeyKind) -> Result<Certificate, Failure> {
        let (name, form): (_, &[&str]) = match kind {
            KeyKind::Ecdsa => ("ecdsa", &["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]),
            KeyKind::Rsa => ("rsa", &["rsa:2048"]),
        };
        let certificate = Certificate {
            chain: self.folder.path().join(format!("{name}.pem")),
            key: self.folder.path().join(format!("{name}.key")),
        };
        if !certificate.chain.exists() {
            let mut openssl = Command::new("openssl");
            openssl.args(["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
            // If a client sends no server name, Caddy looks for a certificate for the address.
            openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-newkey"]);
            openssl.args(form);
            openssl
                .arg("-keyout")
                .arg(&certificate.key)
                .arg("-out")
                .arg(&certificate.chain);
            output(&mut openssl)?;
        }
        Ok(certificate)
    }

    /// Creates a folder with `count` files named `1.bin`, `2.bin` and so on, and flushes them to disk.
    pub fn many(&self, folder: &str, size: u64, count: u64) -> io::Result<Vec<PathBuf>> {
        let folder = self.root().join(folder);
        fs::create_dir(&folder)?;
        let bytes = noise(size.min(MIB) as usize);
        let files: Vec<PathBuf> = (1..=count).map(|number| folder.join(format!("{number}.bin"))).collect();
        for path in &files {
            let mut file = File::create(path)?;
            for at in (0..size).step_by(bytes.len()) {
                file.write_all(&bytes[..(size - at).min(bytes.len() as u64) as usize])?;
            }
        }
        for path in &files {
            File::open(path)?.sync_data()?;
        }
        Ok(files)
    }

    /// Returns the file of `page`, created on first use. For a POST, this is the file with the request body.
    pub fn file(&self, page: Page) -> io::Result<PathBuf> {
        let page = match page {
            Page::Post(length) => Page::File(length),
            other => other,
        };
        let path = self.root().join(name(page));
        if let Page::File(length) = page
            && !path.exists()
        {
            fill(&path, length)?;
        }
        if page == Page::Script && !path.exists() {
            fs::write(&path, format!("<?php echo '{HELLO}';\n"))?;
        }
        Ok(path)
    }
}

/// Returns the name of the folder with many files of `size` bytes.
pub fn cold_name(size: u64) -> String {
    format!("cold-{size}")
}

/// Returns the last segment of a page's URL, which is also the name of its file. For a POST it is `length`, to which a
/// handler or a redirect responds.
pub fn name(page: Page) -> String {
    match page {
        Page::Hello => "hello.html".into(),
        Page::Script => "hello.php".into(),
        Page::File(length) => format!("{length}.bin"),
        Page::Missing => "nothing-here.html".into(),
        Page::Post(_) => "length".into(),
    }
}

/// Returns the statuses of correct responses.
pub fn statuses(page: Page) -> &'static [u16] {
    match page {
        Page::Hello | Page::Script | Page::File(_) => &[200],
        Page::Missing => &[404],
        Page::Post(_) => &[200, 308],
    }
}

/// Redirect target for a POST at servers without a handler for it.
pub const POST_REDIRECT: &str = "/hello.html";

/// Returns the length of a correct response body; `None` if it differs between servers.
pub fn length(page: Page) -> Option<u64> {
    match page {
        Page::Hello => Some(HELLO.len() as u64),
        // nginx sends the response of an application in chunks if the application sets no Content-Length.
        Page::Script => None,
        Page::File(length) => Some(length),
        Page::Missing | Page::Post(_) => None,
    }
}

fn fill(path: &Path, length: u64) -> io::Result<()> {
    if length >= GIB {
        // A sparse file is served from the page cache like any file, but needs no gigabyte of disk.
        return File::create(path)?.set_len(length);
    }
    let bytes = noise(length.min(MIB) as usize);
    let mut file = File::create(path)?;
    for at in (0..length).step_by(bytes.len().max(1)) {
        file.write_all(&bytes[..(length - at).min(bytes.len() as u64) as usize])?;
    }
    Ok(())
}

/// Returns bytes that do not compress, from a simple generator.
fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut state = 0x2545_f491_u32;
    for byte in &mut bytes {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        *byte = state as u8;
    }
    bytes
}
