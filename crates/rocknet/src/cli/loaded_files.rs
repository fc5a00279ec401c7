//! Reads the files of a configuration and records the revisions of their texts. One file may have a text other than
//! the one on disk.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rocknet_config::environment::{Environment, FileKind, ProcessEnvironment, is_match};

use super::config_file::revision;

/// Revisions of the texts that the server has loaded, by file.
#[derive(Debug, Default)]
pub struct LoadedRevisions(RefCell<BTreeMap<PathBuf, String>>);

impl LoadedRevisions {
    /// Reads the revisions of files. A file that cannot be read has none.
    pub fn read(files: impl IntoIterator<Item = PathBuf>) -> LoadedRevisions {
        let revisions = files.into_iter().filter_map(|file| {
            let revision = ProcessEnvironment.read(&file).ok().map(|text| revision(&text))?;
            Some((file, revision))
        });
        LoadedRevisions(RefCell::new(revisions.collect()))
    }

    /// Returns true if the server has loaded this text of a file.
    pub fn contains(&self, file: &Path, revision: &str) -> bool {
        self.0.borrow().get(file).is_some_and(|loaded| loaded == revision)
    }

    /// Returns the revisions by file.
    pub fn all(&self) -> BTreeMap<PathBuf, String> {
        self.0.borrow().clone()
    }

    /// Replaces the revisions with the revisions that `read` has recorded for `files`, the files of the
    /// configuration.
    pub fn replace(&self, read: ConfigFiles<'_>, files: &[PathBuf]) {
        let mut revisions = read.revisions.into_inner();
        let loaded = files.iter().filter_map(|file| revisions.remove_entry(file));
        self.0.replace(loaded.collect());
    }
}

/// Environment in which the files of a configuration are read.
pub struct ConfigFiles<'e> {
    /// Environment that reads the files on disk and carries out all other checks.
    inner: &'e dyn Environment,
    /// File with a text other than the one on disk; without a text, the file counts as missing.
    replaced: Option<(&'e Path, Option<&'e str>)>,
    /// Revisions of the texts that were read. They include files that values name by `${file:PATH}`.
    revisions: RefCell<BTreeMap<PathBuf, String>>,
}

impl<'e> ConfigFiles<'e> {
    /// Reads the files on disk.
    pub fn new(inner: &'e dyn Environment) -> ConfigFiles<'e> {
        ConfigFiles {
            inner,
            replaced: None,
            revisions: RefCell::default(),
        }
    }

    /// Reads the files on disk, but uses `text` for `file`, which need not exist. If `text` is `None`, `file` counts
    /// as missing.
    pub fn with_text(inner: &'e dyn Environment, file: &'e Path, text: Option<&'e str>) -> ConfigFiles<'e> {
        ConfigFiles {
            replaced: Some((file, text)),
            ..ConfigFiles::new(inner)
        }
    }
}

impl Environment for ConfigFiles<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.inner.variable(name)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let text = match self.replaced {
            Some((file, Some(text))) if file == path => text.to_owned(),
            Some((file, None)) if file == path => return Err(io::ErrorKind::NotFound.into()),
            _ => self.inner.read(path)?,
        };
        self.revisions.borrow_mut().insert(path.to_owned(), revision(&text));
        Ok(text)
    }

    fn matching(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let mut found = self.inner.matching(pattern)?;
        match self.replaced {
            Some((file, None)) => found.retain(|known| known != file),
            Some((file, Some(_))) if is_match(pattern, file) && !found.iter().any(|known| known == file) => {
                found.push(file.to_owned());
                found.sort();
            }
            _ => {}
        }
        Ok(found)
    }

    fn folders(&self, parent: &Path) -> io::Result<Vec<String>> {
        self.inner.folders(parent)
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        match self.replaced {
            Some((file, text)) if file == path => text.map(|_| FileKind::File),
            _ => self.inner.kind(path),
        }
    }

    fn current_dir(&self) -> PathBuf {
        self.inner.current_dir()
    }

    fn inner(&self) -> Option<&dyn Environment> {
        Some(self.inner)
    }
}

#[cfg(test)]
mod tests {
    use rocknet::certificates::ServerEnvironment;
    use rocknet_config::environment::MemoryEnvironment;
    use rocknet_config::model::CertificateFiles;

    use super::*;

    #[test]
    fn the_revisions_of_the_texts_that_were_read_are_known() {
        let mut memory = MemoryEnvironment {
            // The roots of the sites count as existing folders.
            any_directory: true,
            ..MemoryEnvironment::default()
        };
        let main = Path::new("/etc/r.toml");
        let site = Path::new("/etc/sites/a.toml");
        memory
            .files
            .insert(main.into(), "include = [\"sites/*.toml\"]\n".into());
        memory
            .files
            .insert(site.into(), "[site.\":80\"]\nroot = \"${file:/key}\"\n".into());
        memory.files.insert("/key".into(), "/secret".into());
        let text = "[site.\":81\"]\nroot = \"${file:/key}\"\n";
        let files = ConfigFiles::with_text(&memory, site, Some(text));
        let config = rocknet_config::check(main, &files).unwrap().config;
        assert_eq!(config.sites[0].name, ":81");
        let loaded = LoadedRevisions::default();
        loaded.replace(files, &config.files);
        assert!(loaded.contains(site, &revision(text)));
        assert!(loaded.contains(main, &revision("include = [\"sites/*.toml\"]\n")));
        assert!(!loaded.contains(Path::new("/key"), &revision("/secret")));
    }

    #[test]
    fn all_checks_of_files_are_carried_out() {
        let folder = tempfile::tempdir().unwrap();
        let bad = folder.path().join("bad");
        std::fs::write(&bad, "\0 nonsense\n").unwrap();
        let server = ServerEnvironment::new();
        let files = ConfigFiles::new(&server);
        let certificate = CertificateFiles {
            cert: bad.clone(),
            key: bad.clone(),
            ocsp: None,
        };
        assert!(!files.certificate_findings(&[certificate], &[]).is_empty());
        assert!(!files.password_file_findings(&bad).is_empty());
        assert!(!files.url_key_findings(&bad).is_empty());
        assert!(files.ca_certificates_error(std::slice::from_ref(&bad)).is_some());
        assert!(files.revocation_lists_error(std::slice::from_ref(&bad)).is_some());
        assert!(files.lacks_log_folder(&folder.path().join("missing/error.log")));
    }

    #[test]
    fn a_file_is_added_or_taken_as_missing() {
        let mut memory = MemoryEnvironment {
            any_directory: true,
            ..MemoryEnvironment::default()
        };
        let main = Path::new("/etc/r.toml");
        let text = "include = [\"sites/*.toml\"]\n[site.\":80\"]\nroot = \"/a\"\n";
        memory.files.insert(main.into(), text.into());
        let files = |file: &str, text: Option<&str>| {
            let environment = ConfigFiles::with_text(&memory, Path::new(file), text);
            let checked = rocknet_config::check(main, &environment);
            checked.unwrap_or_else(|report| panic!("{report}")).config.files
        };
        let added = Some("[site.\":81\"]\nroot = \"/b\"\n");
        assert_eq!(
            files("/etc/sites/b.toml", added),
            [main, Path::new("/etc/sites/b.toml")]
        );
        // The pattern does not match these files.
        for other in ["/etc/sites/b.txt", "/etc/b.toml", "/etc/sites/b/c.toml"] {
            assert_eq!(files(other, added), [main]);
        }
        memory
            .files
            .insert("/etc/sites/a.toml".into(), "[site.\":82\"]\nroot = \"/c\"\n".into());
        let environment = ConfigFiles::with_text(&memory, Path::new("/etc/sites/a.toml"), None);
        assert_eq!(rocknet_config::check(main, &environment).unwrap().config.files, [main]);
    }
}
