//! Which configuration file is meant when none is named.

use std::path::{Component, Path, PathBuf};

use rocknet_config::{Code, Finding, Report, Severity};

use super::Failure;

/// The configuration that a command works with: FILE and `-c FILE` mean the same.
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
    /// The file, if one is named.
    pub fn named(&self) -> Option<&Path> {
        self.file.as_deref().or(self.config.as_deref())
    }

    /// The file that is named, or the first there is.
    pub fn named_or_found(&self) -> Result<PathBuf, Failure> {
        named_or_found(self.named())
    }
}

/// The name of a file as messages show it: absolute, in a folder without `..` and links. A link that is the file itself
/// keeps its name, because it may lead elsewhere when the file is read again.
pub fn absolute(file: &Path) -> PathBuf {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    match (whole.parent(), whole.file_name()) {
        (Some(folder), Some(name)) => resolved(folder).join(name),
        _ => whole,
    }
}

/// A folder as messages show it: absolute, and without `..` where it is there. Links keep their names otherwise.
pub fn resolved(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    if whole.components().any(|part| part == Component::ParentDir) {
        // `..` after a link leads to the folder above its target, which only the file system knows.
        return whole.canonicalize().unwrap_or(whole);
    }
    whole.components().collect()
}

/// Where a configuration is looked for, in this order: beside the person who types, then where packages put it.
pub const CONFIG_PATHS: [&str; 2] = ["rocknet.toml", "/etc/rocknet/rocknet.toml"];

/// The first file there is. One that cannot be read counts: it is better told than passed over.
pub fn find() -> Option<PathBuf> {
    CONFIG_PATHS
        .into_iter()
        .map(Path::new)
        .find(|path| path.symlink_metadata().is_ok())
        .map(Path::to_path_buf)
}

/// The file that was named, or the first there is.
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
