//! Finds the configuration file if the command line names none, and formats paths for messages.

use std::path::{Component, Path, PathBuf};

use rocknet_config::{Code, Finding, Report, Severity};

use super::Failure;

/// The configuration file of a command. FILE and `-c FILE` are equivalent.
#[derive(Debug, clap::Args)]
pub struct ConfigFile {
    /// The configuration; by default the one that `rocknet run` would serve
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "file")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    /// Returns the named file, if there is one.
    pub fn named(&self) -> Option<&Path> {
        self.file.as_deref().or(self.config.as_deref())
    }

    /// Returns the named file, or the first of [`CONFIG_PATHS`] that exists.
    pub fn named_or_found(&self) -> Result<PathBuf, Failure> {
        named_or_found(self.named())
    }
}

/// Returns the path by which a file is shown, compared and read again: absolute, and without `..` if the folder exists.
/// A link keeps its name, because it may point to another file when the file is read again.
pub fn absolute(file: &Path) -> PathBuf {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    match (whole.parent(), whole.file_name()) {
        (Some(folder), Some(name)) => resolved(folder).join(name),
        _ => whole,
    }
}

/// Returns the path of a folder for messages: absolute, and without `..` if the folder exists. Links keep their names,
/// unless `..` follows them.
pub fn resolved(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let parts: Vec<Component<'_>> = whole.components().collect();
    let Some(last) = parts.iter().rposition(|part| *part == Component::ParentDir) else {
        return parts.iter().collect();
    };
    // `..` after a link leads to the folder above the link's target, so the file system has to resolve the path.
    let before: PathBuf = parts[..=last].iter().collect();
    let Ok(mut resolved) = before.canonicalize() else {
        return whole;
    };
    resolved.extend(&parts[last + 1..]);
    resolved
}

/// Paths of the configuration in search order: the current folder, then the location that packages use.
pub const CONFIG_PATHS: [&str; 2] = ["rocknet.toml", "/etc/rocknet/rocknet.toml"];

/// Returns the first of [`CONFIG_PATHS`] that exists. An unreadable file counts, so that its error is reported instead
/// of ignored.
pub fn find() -> Option<PathBuf> {
    CONFIG_PATHS
        .into_iter()
        .map(Path::new)
        .find(|path| path.symlink_metadata().is_ok())
        .map(Path::to_path_buf)
}

/// Returns the named file, or the first of [`CONFIG_PATHS`] that exists.
pub fn named_or_found(named: Option<&Path>) -> Result<PathBuf, Failure> {
    named
        .map(Path::to_path_buf)
        .or_else(find)
        .ok_or_else(|| Failure::Configuration(not_found()))
}

fn not_found() -> Report {
    let [here, system] = CONFIG_PATHS;
    let finding = Finding {
        severity: Severity::Error,
        code: Code::Unreadable,
        message: format!("there is no configuration: neither ./{here} nor {system}"),
        help: Some("name a file, or write one: [site.\":8080\"] and below it root = \"FOLDER\"".to_owned()),
        location: None,
        related: Vec::new(),
    };
    Report {
        findings: vec![finding],
        omitted: 0,
    }
}
