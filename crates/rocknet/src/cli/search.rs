//! Which configuration file is meant when none is named.

use std::path::{Path, PathBuf};

use rocknet_config::{Code, Finding, Report, Severity};

use super::Failure;

/// Where a configuration is looked for, in this order: beside the person who types, then where packages put it.
pub const PLACES: [&str; 2] = ["rocknet.toml", "/etc/rocknet/rocknet.toml"];

/// The first file there is. One that cannot be read counts: it is better told than passed over.
pub fn find() -> Option<PathBuf> {
    PLACES
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
        .ok_or_else(|| Failure::Configuration(nothing_found()))
}

fn nothing_found() -> Report {
    let [here, system] = PLACES;
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
