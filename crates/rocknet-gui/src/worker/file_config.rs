//! Reads the configuration while the server is stopped, so that the window lists its websites.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rocknet_config::model::{Php, Settings, Site};
use rocknet_config::{Finding, WatchedFiles};
use rocknet_control::SiteKind;

use crate::job::{FileConfig, FileFinding, FileSite};

/// Maximum number of findings that the window lists. A file that is no configuration has an error in each line.
const MAX_FINDINGS: usize = 50;

/// Time after which a configuration with findings is read again. A folder that was missing may be there by now.
const REPEATED: Duration = Duration::from_secs(5);

/// Reads the configuration of a stopped server.
#[derive(Default)]
pub struct FileReader {
    last: Option<Reading>,
}

/// The last configuration that was read, with its files.
struct Reading {
    file: PathBuf,
    watched: WatchedFiles,
    config: FileConfig,
    at: Instant,
}

impl Reading {
    fn is_current(&self, now: Instant) -> bool {
        let is_fresh = now.saturating_duration_since(self.at) < REPEATED;
        self.watched.are_unchanged() && (is_fresh || self.config.findings.is_empty())
    }
}

impl FileReader {
    /// Reads a configuration; `None` if it is the same as the last time.
    pub fn read(&mut self, file: &Path, now: Instant) -> Option<FileConfig> {
        let last = self.last.take().filter(|last| last.file == file);
        match last {
            Some(last) if last.is_current(now) => {
                self.last = Some(last);
                None
            }
            last => {
                let watched = WatchedFiles::default();
                let config = read(file, &watched);
                let is_new = last.is_none_or(|last| last.config != config);
                self.last = Some(Reading {
                    file: file.to_owned(),
                    watched,
                    config: config.clone(),
                    at: now,
                });
                is_new.then_some(config)
            }
        }
    }
}

fn read(file: &Path, watched: &WatchedFiles) -> FileConfig {
    let (config, findings) = match rocknet_config::check(file, watched) {
        Ok(loaded) => (Some(loaded.config), loaded.warnings),
        // Values with errors are missing, but the other websites are listed.
        Err(report) => (rocknet_config::load_despite_errors(file, watched).ok(), report.findings),
    };
    let mut listed = FileConfig {
        file: file.to_owned(),
        findings: findings
            .iter()
            .take(MAX_FINDINGS)
            .map(|found| finding(file, found))
            .collect(),
        ..FileConfig::default()
    };
    if let Some(config) = config {
        listed.sites = config.sites.iter().map(site).collect();
        let disabled = config.disabled_sites.iter().map(|site| FileSite {
            name: site.name.clone(),
            is_disabled: true,
            ..FileSite::default()
        });
        listed.sites.extend(disabled);
        listed.sites.sort_by(|one, other| one.name.cmp(&other.name));
    }
    listed
}

fn site(site: &Site) -> FileSite {
    FileSite {
        name: site.name.clone(),
        root: site.settings.root.clone(),
        kind: kind(site),
        php: match &site.settings.php {
            Some(Php::Managed { version, .. }) => version.to_string(),
            _ => String::new(),
        },
        is_disabled: false,
    }
}

/// Returns the kind of the responses where no route applies.
fn kind(site: &Site) -> SiteKind {
    match &site.settings {
        Settings { proxy: Some(_), .. } => SiteKind::Proxy,
        Settings {
            controller: Some(_), ..
        } => SiteKind::Controller,
        Settings {
            application: Some(_), ..
        } => SiteKind::Application,
        Settings { root: Some(_), .. } => SiteKind::Files,
        Settings { welcome_page: true, .. } => SiteKind::Welcome,
        Settings { redirects, .. } if !redirects.is_empty() => SiteKind::Redirect,
        _ if !site.routes.is_empty() || !site.rules.is_empty() => SiteKind::Routes,
        _ => SiteKind::Nothing,
    }
}

fn finding(main: &Path, finding: &Finding) -> FileFinding {
    let name = |file: &Path| {
        file.file_name()
            .unwrap_or(file.as_os_str())
            .to_string_lossy()
            .into_owned()
    };
    FileFinding {
        is_error: finding.is_error(),
        place: match &finding.location {
            Some(at) => format!("{}:{}", name(&at.file), at.line),
            None => name(main),
        },
        message: finding.message.clone(),
        help: finding.help.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_configuration_is_read_again_once_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rocknet.toml");
        let text = "[server]\nmode = \"dev\"\n[site.\"b.test\"]\nroot = \".\"\nphp = \"8.2\"\n\
                    [site.\"a.test\"]\nproxy = \"http://127.0.0.1:3000\"\n[site.\"c.test\"]\nenabled = false\nroot = \".\"\n";
        fs::write(&file, text).unwrap();
        let (mut reader, now) = (FileReader::default(), Instant::now());
        let config = reader.read(&file, now).expect("a first reading");
        let shown: Vec<_> = config
            .sites
            .iter()
            .map(|site| (site.name.as_str(), site.kind, site.php.as_str(), site.is_disabled))
            .collect();
        assert_eq!(
            shown,
            [
                ("a.test", SiteKind::Proxy, "", false),
                ("b.test", SiteKind::Files, "8.2", false),
                ("c.test", SiteKind::Other, "", true),
            ]
        );
        assert!(
            !config.findings.iter().any(|finding| finding.is_error),
            "{:?}",
            config.findings
        );
        // A broken website is listed with its error, and the other websites stay.
        fs::write(&file, format!("{text}[site.\"d.test\"]\nrot = \"x\"\n")).unwrap();
        let config = reader.read(&file, now).expect("a change");
        assert_eq!(config.sites.len(), 4);
        let error = config
            .findings
            .iter()
            .find(|finding| finding.is_error)
            .expect("an error");
        assert!(
            error.place == "rocknet.toml:12" && error.message.contains("rot"),
            "{error:?}"
        );
        assert!(error.help.contains("root"), "{error:?}");
    }

    #[test]
    fn findings_are_looked_up_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rocknet.toml");
        let root = folder.path().join("www");
        fs::write(&file, format!("[site.\":8080\"]\nroot = {root:?}\n")).unwrap();
        let (mut reader, now) = (FileReader::default(), Instant::now());
        let config = reader.read(&file, now).expect("a first reading");
        assert!(!config.findings.is_empty(), "the folder is missing");
        // Nothing has changed, so nothing is reported.
        assert_eq!(reader.read(&file, now + REPEATED), None);
        fs::create_dir(&root).unwrap();
        let config = reader.read(&file, now + 2 * REPEATED).expect("a new reading");
        assert!(config.findings.is_empty(), "{config:?}");
        // Without findings, only an edit leads to another reading.
        assert_eq!(reader.read(&file, now + 9 * REPEATED), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_finding() {
        let folder = tempfile::tempdir().unwrap();
        // A folder in place of the file, bytes that are no text, and a text that is no TOML.
        let odd = folder.path().join("odd.toml");
        fs::create_dir(&odd).unwrap();
        let binary = folder.path().join("binary.toml");
        fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
        let broken = folder.path().join("broken.toml");
        fs::write(&broken, "[site.\"a.test\"\n").unwrap();
        for file in [odd, binary, broken, folder.path().join("missing.toml")] {
            let config = FileReader::default().read(&file, Instant::now()).expect("a reading");
            assert!(config.sites.is_empty(), "{config:?}");
            assert!(config.findings.iter().any(|finding| finding.is_error), "{config:?}");
        }
    }
}
