//! Access to environment variables and files while a configuration is read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::finding::Severity;
use crate::glob;
use crate::model::{CertificateFiles, HostPattern};
use crate::source::{MAX_FILE_BYTES, MAX_FILES};

/// Type of the file at a path, after symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Socket, FIFO or device.
    Other,
}

/// Finding about the files of a site's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFinding {
    /// Index of the certificate in the list of the site's certificates.
    pub at: usize,
    /// File that has the problem.
    pub part: CertificatePart,
    /// `Error` if the site cannot be served with these files.
    pub severity: Severity,
    /// True if the certificate has expired, or is not valid yet.
    pub is_about_validity: bool,
    /// Description of the problem.
    pub message: String,
    /// Remedy.
    pub help: String,
}

/// File of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificatePart {
    /// Certificate and its chain.
    Certificate,
    /// Private key.
    Key,
    /// OCSP response.
    Ocsp,
}

/// Finding about a password file, or about a file with keys of signed URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordFileFinding {
    /// `Error` if the file cannot be used.
    pub severity: Severity,
    /// Description of the problem.
    pub message: String,
    /// Remedy.
    pub help: String,
}

/// Access to environment variables and files: those of the process ([`ProcessEnvironment`]), or texts in memory
/// ([`MemoryEnvironment`]).
pub trait Environment {
    /// Returns an environment variable, for `${NAME}`; `None` if it is not set, or is not UTF-8.
    fn variable(&self, name: &str) -> Option<String>;
    /// Reads a text file, for the configuration, its includes and `${file:PATH}`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is larger than `MAX_FILE_BYTES` (16 MiB) or is not UTF-8.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Returns the existing files that match a pattern with `*` and `?` in any of its parts, sorted. A missing
    /// folder contains no matches.
    ///
    /// # Errors
    ///
    /// Fails if an existing folder cannot be read, or if more than `MAX_FILES` (65,536) files match.
    fn matching(&self, pattern: &Path) -> io::Result<Vec<PathBuf>>;
    /// Returns the names of the folders in a folder, in any order; links to folders are included. Names that begin with
    /// a dot, or are not UTF-8, are left out.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    fn folders(&self, parent: &Path) -> io::Result<Vec<String>>;
    /// Returns the type of the file at a path; `None` if the path does not exist or cannot be examined.
    fn kind(&self, path: &Path) -> Option<FileKind>;
    /// Returns the current directory, which a relative path of the main configuration file is resolved against. The
    /// path is empty if the directory cannot be determined.
    fn current_dir(&self) -> PathBuf;

    /// Returns the environment that this one wraps, if there is one. The default implementations of all methods below
    /// forward to it, so that a wrapper cannot lack a check by mistake.
    fn inner(&self) -> Option<&dyn Environment> {
        None
    }

    /// Returns true if this account may not examine the path, because a folder above it denies access. Without a
    /// wrapped environment, the default implementation returns false.
    fn is_hidden(&self, path: &Path) -> bool {
        self.inner().is_some_and(|inner| inner.is_hidden(path))
    }

    /// Loads certificates and keys as the server does, and returns the findings for a site with these names. Without a
    /// wrapped environment, the default implementation returns no findings.
    fn certificate_findings(&self, files: &[CertificateFiles], names: &[HostPattern]) -> Vec<CertificateFinding> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.certificate_findings(files, names))
    }

    /// Reads a password file as the server does, and returns the findings. Without a wrapped environment, the default
    /// implementation returns no findings.
    fn password_file_findings(&self, file: &Path) -> Vec<PasswordFileFinding> {
        let inner = self.inner();
        inner.map_or_else(Vec::new, |inner| inner.password_file_findings(file))
    }

    /// Reads a file with keys of signed URLs as the server does, and returns the findings. Without a wrapped
    /// environment, the default implementation returns no findings.
    fn url_key_findings(&self, file: &Path) -> Vec<PasswordFileFinding> {
        self.inner().map_or_else(Vec::new, |inner| inner.url_key_findings(file))
    }

    /// Loads files of CA certificates as the server does, for client certificates and for upstreams. Returns the error;
    /// `None` if the files can be used. Without a wrapped environment, the default implementation returns `None`.
    fn ca_certificates_error(&self, files: &[PathBuf]) -> Option<String> {
        self.inner()?.ca_certificates_error(files)
    }

    /// Loads lists of revoked client certificates as the server does. Returns the error; `None` if the files can be
    /// used. Without a wrapped environment, the default implementation returns `None`.
    fn revocation_lists_error(&self, files: &[PathBuf]) -> Option<String> {
        self.inner()?.revocation_lists_error(files)
    }

    /// Returns true if the folder of a log file does not exist, so that the server cannot create the file. Without a
    /// wrapped environment, the default implementation returns false.
    fn lacks_log_folder(&self, file: &Path) -> bool {
        self.inner().is_some_and(|inner| inner.lacks_log_folder(file))
    }

    /// Returns the reason why the program cannot load the shared libraries of controllers; `None` if it can. Without a
    /// wrapped environment, the default implementation returns `None`.
    fn controllers_error(&self) -> Option<&'static str> {
        self.inner()?.controllers_error()
    }
}

/// Returns true if a path matches a pattern with `*` and `?` in any of its parts. No file needs to exist.
pub fn is_match(pattern: &Path, path: &Path) -> bool {
    let (mut parts, mut names) = (pattern.components(), path.components());
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name))
                if glob::matches(&part.as_os_str().to_string_lossy(), &name.as_os_str().to_string_lossy()) => {}
            _ => return false,
        }
    }
}

/// Environment of the process. It does not inspect certificates, CA certificates or password files.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        use std::io::Read;
        // Reading a FIFO or device could block indefinitely, so only regular files are read.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)?
            .take(MAX_FILE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 16 MiB"));
        }
        String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            let line = e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
            io::Error::new(io::ErrorKind::InvalidData, format!("not UTF-8 text (line {line})"))
        })
    }

    fn matching(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        // The search proceeds breadth first, one part of the pattern at a time, so that there is no recursion and only
        // matching folders are opened.
        let mut found = vec![PathBuf::new()];
        for part in pattern.components() {
            let text = part.as_os_str().to_string_lossy();
            let is_pattern = matches!(part, Component::Normal(_)) && glob::is_pattern(&text);
            let mut next = Vec::new();
            for base in found {
                if !is_pattern {
                    next.push(base.join(part));
                    continue;
                }
                let folder = if base.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    base.as_path()
                };
                let entries = match std::fs::read_dir(folder) {
                    Ok(entries) => entries,
                    Err(e) if e.kind() == io::ErrorKind::NotFound || e.kind() == io::ErrorKind::NotADirectory => {
                        continue;
                    }
                    Err(e) => return Err(e),
                };
                for entry in entries {
                    let name = entry?.file_name();
                    if glob::matches(&text, &name.to_string_lossy()) {
                        next.push(base.join(name));
                    }
                    if next.len() > MAX_FILES {
                        return Err(io::Error::other(format!("more than {MAX_FILES} files match")));
                    }
                }
            }
            found = next;
        }
        found.retain(|path| path.is_file());
        found.sort();
        Ok(found)
    }

    fn folders(&self, parent: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(parent)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            // Only a link needs a second system call.
            let is_folder = |kind: std::fs::FileType| kind.is_dir() || kind.is_symlink() && entry.path().is_dir();
            if !name.starts_with('.') && entry.file_type().is_ok_and(is_folder) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        let meta = std::fs::metadata(path).ok()?;
        Some(if meta.is_dir() {
            FileKind::Directory
        } else if meta.is_file() {
            FileKind::File
        } else {
            FileKind::Other
        })
    }

    fn is_hidden(&self, path: &Path) -> bool {
        let found = std::fs::metadata(path);
        matches!(found, Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }

    fn current_dir(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_default()
    }
}

/// Extensions of single files that sites serve, such as `/favicon.ico`.
const WEB_FILES: [&str; 10] = ["css", "html", "ico", "jpg", "js", "json", "png", "svg", "txt", "xml"];

/// Environment in memory, for tests and for texts that are not on disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryEnvironment {
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
    /// Files with their contents; their parent folders exist too.
    pub files: BTreeMap<PathBuf, String>,
    /// Further existing folders.
    pub directories: BTreeSet<PathBuf>,
    /// Treats every path that is not a file as an existing folder, or as an existing file if it has an extension of
    /// files of the web, such as `html`.
    pub any_directory: bool,
}

impl Environment for MemoryEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.files.get(path);
        text.cloned()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn matching(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.files.keys();
        Ok(files.filter(|path| is_match(pattern, path)).cloned().collect())
    }

    fn folders(&self, parent: &Path) -> io::Result<Vec<String>> {
        let below = |path: &PathBuf| {
            Some(
                path.strip_prefix(parent)
                    .ok()?
                    .components()
                    .next()?
                    .as_os_str()
                    .to_owned(),
            )
        };
        let files = self.files.keys().filter(|file| file.parent() != Some(parent));
        let names = files.chain(&self.directories).filter_map(below);
        let names: BTreeSet<_> = names.filter_map(|name| name.into_string().ok()).collect();
        Ok(names.into_iter().filter(|name| !name.starts_with('.')).collect())
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        if self.files.contains_key(path) {
            return Some(FileKind::File);
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        if self.any_directory && extension.is_some_and(|extension| WEB_FILES.contains(&extension)) {
            return Some(FileKind::File);
        }
        let is_folder = self.any_directory
            || self.directories.contains(path)
            || self
                .files
                .keys()
                .any(|file| file.parent().is_some_and(|parent| parent.starts_with(path)));
        is_folder.then_some(FileKind::Directory)
    }

    /// Returns the folder of the configuration file of an installed server.
    fn current_dir(&self) -> PathBuf {
        PathBuf::from("/etc/rocknet")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_files_only_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.toml", "a.toml", "c.txt", ".hidden.toml"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("d.toml")).unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/e.toml"), "").unwrap();
        let names = |pattern: &str| -> Vec<String> {
            let found = ProcessEnvironment.matching(&dir.path().join(pattern)).unwrap();
            found
                .iter()
                .map(|p| p.strip_prefix(dir.path()).unwrap().display().to_string())
                .collect()
        };
        // As in a shell, `*` does not match the leading dot of `.hidden.toml`.
        assert_eq!(names("*.toml"), ["a.toml", "b.toml"]);
        assert_eq!(names("*/?.toml"), ["sub/e.toml"]);
        assert_eq!(names("none/*.toml"), [""; 0]);
        assert_eq!(names("a.toml"), ["a.toml"]);
    }

    #[test]
    fn only_regular_text_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"a\nb\xff").unwrap();
        assert_eq!(
            ProcessEnvironment.read(&path).unwrap_err().to_string(),
            "not UTF-8 text (line 2)"
        );
        std::fs::write(&path, vec![b'#'; MAX_FILE_BYTES + 1]).unwrap();
        assert_eq!(
            ProcessEnvironment.read(&path).unwrap_err().to_string(),
            "larger than 16 MiB"
        );
        assert_eq!(
            ProcessEnvironment.read(dir.path()).unwrap_err().to_string(),
            "not a regular file"
        );
    }
}
