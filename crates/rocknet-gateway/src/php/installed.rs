//! Finds the installed versions of PHP by the program names and folders of common systems.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rocknet_config::model::PhpVersion;

use rocknet_io::program;

/// Server API (SAPI) of a PHP program that serves FastCGI. php-fpm is preferred, because it starts worker processes on
/// demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sapi {
    /// `php-fpm`.
    Fpm,
    /// `php-cgi`.
    Cgi,
}

/// An installed PHP program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
    /// Server API.
    pub sapi: Sapi,
    /// Path of the program.
    pub program: PathBuf,
}

impl Installed {
    /// Returns the version, such as `8.2`.
    pub fn version(&self) -> String {
        format!("{}.{}", self.major, self.minor)
    }
}

/// Folders of programs. Debian, Fedora, Alpine, SUSE and Arch use the first two; container images and manual builds use
/// the others.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
/// Folders of systems where each version has its own folder (Remi's packages for Fedora, Gentoo, Homebrew). Each entry
/// has the path before the folder `php*` and the path after it.
const SLOTS: [(&str, &str); 5] = [
    ("/opt/remi", "root/usr/sbin"),
    ("/usr/lib64", "bin"),
    ("/usr/lib", "bin"),
    ("/opt/homebrew/opt", "sbin"),
    ("/usr/local/opt", "sbin"),
];
/// Timeout of `php -v`, which normally takes milliseconds.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns one program for each installed version, the newest first. Blocks on the disk, and may run programs.
pub fn all() -> Vec<Installed> {
    let slots = SLOTS.iter().flat_map(|(above, below)| {
        let entries = fs::read_dir(above).into_iter().flatten().flatten();
        let of_php = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"php"));
        of_php.map(move |entry| entry.path().join(below))
    });
    let folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).chain(slots).collect();
    in_folders(&folders)
}

/// Returns the program for the version that the configuration names; `None` if that version is not installed. If the
/// configuration names no version or only a major version, returns the newest match. `all` must be sorted with the
/// newest version first.
pub fn choose(all: &[Installed], wanted: PhpVersion) -> Option<&Installed> {
    all.iter().find(|one| match wanted {
        PhpVersion::Newest => true,
        PhpVersion::Of { major, minor } => one.major == major && minor.is_none_or(|minor| one.minor == minor),
    })
}

/// Returns one program for each version in these folders, the newest version first. php-fpm is preferred to php-cgi,
/// and earlier folders to later ones.
fn in_folders(folders: &[PathBuf]) -> Vec<Installed> {
    let mut found = Vec::new();
    // Several names can lead to the same program.
    let mut seen = BTreeSet::new();
    for folder in folders {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort_unstable();
        for path in paths {
            let Some((sapi, rest)) = path.file_name().and_then(|name| sapi_in_name(name.to_str()?)) else {
                continue;
            };
            let is_new = fs::canonicalize(&path).is_ok_and(|real| seen.insert(real));
            if !is_new || !is_program(&path) {
                continue;
            }
            let Some((major, minor)) = version_in_name(rest).or_else(|| queried_version(&path)) else {
                continue;
            };
            found.push(Installed {
                major,
                minor,
                sapi,
                program: path,
            });
        }
    }
    found.sort_by_key(|one| (std::cmp::Reverse((one.major, one.minor)), one.sapi));
    found.dedup_by_key(|one| (one.major, one.minor));
    found
}

/// Returns the server API of a program name and the remainder of the name: php-fpm and `8.2` for `php-fpm8.2`. The
/// remainder is a version, empty, or `-legacy` (Arch). Returns `None` if the name does not name a PHP program.
fn sapi_in_name(name: &str) -> Option<(Sapi, &str)> {
    let is_rest = |rest: &&str| rest.is_empty() || *rest == "-legacy" || version_in_name(rest).is_some();
    let fpm = name.strip_prefix("php-fpm").map(|rest| (Sapi::Fpm, rest));
    let found = fpm.or_else(|| name.strip_prefix("php-cgi").map(|rest| (Sapi::Cgi, rest)));
    found.filter(|(_, rest)| is_rest(rest))
}

/// Parses a version such as `8.2`, or `82` as Alpine writes it; `None` for other texts. Skips a hyphen before the
/// version.
fn version_in_name(rest: &str) -> Option<(u8, u8)> {
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let is_digits = |text: &str| !text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (major, minor) = match rest.split_once('.') {
        Some(parts) => parts,
        None if rest.len() >= 2 && rest.is_char_boundary(1) => rest.split_at(1),
        None => return None,
    };
    if !is_digits(major) || !is_digits(minor) {
        return None;
    }
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns true for a file that may be executed.
fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Runs the program with `-v`, which prints `PHP 8.2.36 (fpm-fcgi) (built: …`, and returns the version. Returns `None`
/// if the program fails, or prints something else.
fn queried_version(program: &Path) -> Option<(u8, u8)> {
    let mut command = Command::new(program);
    command
        .arg("-v")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let output = program::wait_with_output(command.spawn().ok()?, VERSION_TIMEOUT).ok()?;
    version_in_output(&String::from_utf8_lossy(&output.stdout))
}

/// Parses the version in the output of `php -v`; `None` if the output has another form.
fn version_in_output(text: &str) -> Option<(u8, u8)> {
    let mut parts = text.strip_prefix("PHP ")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sapi_and_version_are_read_from_names() {
        for (name, expected) in [
            ("php-fpm8.2", Some((Sapi::Fpm, Some((8, 2))))),
            ("php-fpm82", Some((Sapi::Fpm, Some((8, 2))))),
            ("php-fpm7.4", Some((Sapi::Fpm, Some((7, 4))))),
            ("php-fpm-8.3", Some((Sapi::Fpm, Some((8, 3))))),
            ("php-fpm810", Some((Sapi::Fpm, Some((8, 10))))),
            ("php-fpm", Some((Sapi::Fpm, None))),
            ("php-fpm-legacy", Some((Sapi::Fpm, None))),
            ("php-cgi8.2", Some((Sapi::Cgi, Some((8, 2))))),
            ("php-cgi", Some((Sapi::Cgi, None))),
            ("php-fpm8.2.bak", None),
            ("php-fpm.conf", None),
            ("php-fpm8", None),
            ("php8.2", None),
            ("php-fpm\u{e9}8", None),
        ] {
            let found = sapi_in_name(name).map(|(sapi, rest)| (sapi, version_in_name(rest)));
            assert_eq!(found, expected, "{name}");
        }
        for (output, expected) in [
            ("PHP 8.2.36 (fpm-fcgi) (built: Nov 18 2026)\n", Some((8, 2))),
            ("PHP 8.4.0RC1 (cgi-fcgi)", Some((8, 4))),
            ("something else", None),
            ("PHP 8", None),
        ] {
            assert_eq!(version_in_output(output), expected, "{output}");
        }
    }

    #[test]
    fn newer_versions_come_first_and_php_fpm_is_preferred_to_php_cgi() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("sbin"), folder.path().join("bin"));
        for (folder, name, script, mode) in [
            (&one, "php-fpm8.2", "", 0o755),
            (&two, "php-cgi8.2", "", 0o755),
            (&two, "php-cgi8.4", "", 0o755),
            (&one, "php-fpm8.10", "", 0o755),
            (&one, "php-fpm9.0", "", 0o644),
            (&two, "php-fpm", "echo PHP 7.4.33 \"($1)\"", 0o755),
            (&two, "php-fpm-legacy", "exit 1", 0o755),
        ] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink(one.join("php-fpm8.2"), one.join("php-fpm82")).unwrap();
        let found = in_folders(&[one, two, folder.path().join("none")]);
        let versions: Vec<_> = found.iter().map(|one| (one.version(), one.sapi)).collect();
        let expected = [
            ("8.10", Sapi::Fpm),
            ("8.4", Sapi::Cgi),
            ("8.2", Sapi::Fpm),
            ("7.4", Sapi::Fpm),
        ];
        assert_eq!(versions, expected.map(|(version, sapi)| (version.to_owned(), sapi)));
        for (wanted, expected) in [
            (PhpVersion::Newest, Some("8.10")),
            (
                PhpVersion::Of {
                    major: 8,
                    minor: Some(2),
                },
                Some("8.2"),
            ),
            (PhpVersion::Of { major: 8, minor: None }, Some("8.10")),
            (PhpVersion::Of { major: 7, minor: None }, Some("7.4")),
            (
                PhpVersion::Of {
                    major: 9,
                    minor: Some(0),
                },
                None,
            ),
        ] {
            let chosen = choose(&found, wanted).map(Installed::version);
            assert_eq!(chosen.as_deref(), expected, "{wanted}");
        }
    }
}
