//! Folders of the user, as the XDG base directory specification names them.

use std::ffi::OsString;
use std::path::PathBuf;

/// Returns the folder of the files that this program writes for its user: `rocknet` in `$XDG_CONFIG_HOME` or
/// `~/.config`; `None` without a home folder.
pub fn settings_folder() -> Option<PathBuf> {
    let folder = below(variable, "XDG_CONFIG_HOME", ".config")?;
    Some(folder.join("rocknet"))
}

/// Returns the folder of data: `$XDG_DATA_HOME` or `~/.local/share`; `None` without a home folder.
pub fn data_folder() -> Option<PathBuf> {
    below(variable, "XDG_DATA_HOME", ".local/share")
}

/// Returns the folder that a variable names, or a path in the home folder.
fn below(variable: impl Fn(&str) -> Option<OsString>, name: &str, path: &str) -> Option<PathBuf> {
    let named = variable(name).map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(variable("HOME")?).join(path)))
}

/// Returns the value of an environment variable; `None` if it is empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_comes_before_the_home_folder() {
        let both = |name: &str| Some(OsString::from(if name == "HOME" { "/home/ann" } else { "/data" }));
        let home = |name: &str| (name == "HOME").then(|| "/home/ann".into());
        let folder = |found: Option<PathBuf>| found.unwrap_or_default().to_string_lossy().into_owned();
        assert_eq!(folder(below(both, "XDG_DATA_HOME", ".local/share")), "/data");
        assert_eq!(
            folder(below(home, "XDG_DATA_HOME", ".local/share")),
            "/home/ann/.local/share"
        );
        assert_eq!(below(|_| None, "XDG_DATA_HOME", ".local/share"), None);
    }
}
