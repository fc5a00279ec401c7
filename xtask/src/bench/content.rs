//! The site that every server serves: made anew for each run in a temporary folder.

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

/// A document root and the folders around it; gone when dropped.
pub struct Site {
    folder: TempDir,
}

/// What servers of TLS lanes answer with.
pub struct Certificate {
    pub chain: PathBuf,
    pub key: PathBuf,
}

const HELLO: &str = "Hello, world!";

impl Site {
    pub fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("rocknet-bench-").tempdir()?;
        // Servers started as root drop to a user that must be able to read this.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let site = Self { folder };
        fs::create_dir(site.root())?;
        fs::write(site.file(Page::Hello)?, HELLO)?;
        Ok(site)
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// An empty folder for one server's configuration and logs.
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

    /// A certificate for this machine that nobody trusts, made when it is first asked for.
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
            // The address is for Caddy: it has no certificate for clients that ask for none by name.
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

    /// A folder of so many files, on the disk to the last byte: `1.bin`, `2.bin` and so on.
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

    /// The file behind `page`, or the content that is posted there, written when it is first asked for.
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

/// The folder of many files of one size.
pub fn cold_name(size: u64) -> String {
    format!("cold-{size}")
}

/// The last part of a page's URL and the name of its file.
pub fn name(page: Page) -> String {
    match page {
        Page::Hello => "hello.html".into(),
        Page::Script => "hello.php".into(),
        Page::File(length) => format!("{length}.bin"),
        Page::Missing => "nothing-here.html".into(),
        Page::Post(_) => "length".into(),
    }
}

/// The statuses of right answers.
pub fn statuses(page: Page) -> &'static [u16] {
    match page {
        Page::Hello | Page::Script | Page::File(_) => &[200],
        Page::Missing => &[404],
        Page::Post(_) => &[200, 308],
    }
}

/// Where a POST is sent on to by servers that have no handler for it.
pub const POST_REDIRECT: &str = "/hello.html";

/// The bytes of a right answer's body, where they are known.
pub fn length(page: Page) -> Option<u64> {
    match page {
        Page::Hello => Some(HELLO.len() as u64),
        // nginx sends what an application says nothing of the length of in chunks.
        Page::Script => None,
        Page::File(length) => Some(length),
        Page::Missing | Page::Post(_) => None,
    }
}

fn fill(path: &Path, length: u64) -> io::Result<()> {
    if length >= GIB {
        // A hole reads from the page cache as data does, and spares the disk a gigabyte.
        return File::create(path)?.set_len(length);
    }
    let bytes = noise(length.min(MIB) as usize);
    let mut file = File::create(path)?;
    for at in (0..length).step_by(bytes.len().max(1)) {
        file.write_all(&bytes[..(length - at).min(bytes.len() as u64) as usize])?;
    }
    Ok(())
}

/// Bytes that no server could make smaller, from the plainest of generators.
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
