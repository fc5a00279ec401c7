//! PHP scripts: recognizes them by their names, and finds the positions of their names in a path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A script that PHP has to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// Document root: the root of the site without symbolic links. When a link is switched to another release, this
    /// path changes, so PHP's opcode cache does not run the old code.
    pub root: Box<OsStr>,
    /// Path of the script on the site, with a leading slash: `/index.php`. Without an alias, it is also the path below
    /// the root.
    pub name: Box<str>,
    /// Rest of the request's path after the script: empty, or with a leading slash.
    pub path_info: Box<str>,
    /// Query that `try` or `fallback` adds before the query of the request; empty without one.
    pub query: Box<str>,
    /// Place of the script below an alias; `None` without an alias.
    pub alias: Option<Box<AliasScript>>,
}

/// Place of a script below an alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasScript {
    /// URL path of the folder on the site, such as `/img` for the alias of a route `/img/*`.
    pub prefix: Box<str>,
    /// The folder of the alias on disk, without symbolic links.
    pub folder: Box<OsStr>,
    /// Path of the script on disk.
    pub file: Box<OsStr>,
}

impl Script {
    /// Creates a script from the root of its site, its path on the site, and the rest of the request's path.
    pub fn new(root: &Path, name: &str, path_info: &str) -> Script {
        Script {
            root: root.as_os_str().into(),
            name: name.into(),
            path_info: path_info.into(),
            query: Box::default(),
            alias: None,
        }
    }

    /// Returns the script with another `path_info`.
    pub fn with_path_info(self, path_info: &str) -> Script {
        Script {
            path_info: path_info.into(),
            ..self
        }
    }

    /// Returns the memory in bytes.
    pub fn size(&self) -> usize {
        let alias = self.alias.as_ref().map_or(0, |alias| {
            size_of::<AliasScript>() + alias.prefix.len() + alias.folder.len() + alias.file.len()
        });
        size_of::<Script>() + self.root.len() + self.name.len() + self.path_info.len() + self.query.len() + alias
    }

    /// Returns the path on disk.
    pub fn file(&self) -> Vec<u8> {
        if let Some(alias) = &self.alias {
            return alias.file.as_bytes().to_vec();
        }
        let root = self.root.as_bytes();
        [root.strip_suffix(b"/").unwrap_or(root), self.name.as_bytes()].concat()
    }
}

/// Class of a file by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameClass {
    /// A script to be run.
    Script,
    /// Code, or a script in a folder for uploads: neither run nor sent.
    Refused,
    /// An ordinary file.
    File,
}

/// File extensions that PHP runs on some servers. RockNet does not run these files, and it refuses them, because it
/// would otherwise send their source.
const CODE: [&str; 9] = ["phtml", "phar", "pht", "phps", "php3", "php4", "php5", "php7", "php8"];
/// Name of the folders in which applications store uploads. An uploaded file must never be run.
const UPLOADS: &str = "uploads";

impl NameClass {
    /// Classifies a path below the root. The case of ASCII letters is ignored, except that a script must have the
    /// extension `php` in lower case. Other letters are compared exactly.
    pub fn of(path: &[u8]) -> NameClass {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let Some(dot) = name.iter().rposition(|&byte| byte == b'.') else {
            return NameClass::File;
        };
        let ending = &name[dot + 1..];
        let mut folders = path[..path.len() - name.len()].split(|&byte| byte == b'/');
        match ending {
            b"php" if folders.any(|folder| folder.eq_ignore_ascii_case(UPLOADS.as_bytes())) => NameClass::Refused,
            b"php" => NameClass::Script,
            // PHP itself runs only the lower-case extension, but a case-insensitive file system may open the same file.
            _ if ending.eq_ignore_ascii_case(b"php") => NameClass::Refused,
            _ if CODE.iter().any(|code| ending.eq_ignore_ascii_case(code.as_bytes())) => NameClass::Refused,
            _ => NameClass::File,
        }
    }
}

/// Returns the positions at which the name of a script may end inside a path: 6 in `/a.php/b`. The first position at
/// which a script exists counts.
pub fn script_ends(path: &str) -> impl Iterator<Item = usize> {
    path.match_indices(".php/").map(|(at, _)| at + ".php".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_classified() {
        for (path, kind) in [
            ("index.php", NameClass::Script),
            ("a/b.c.php", NameClass::Script),
            (".php", NameClass::Script),
            ("index.PHP", NameClass::Refused),
            ("index.pHp", NameClass::Refused),
            ("a.phtml", NameClass::Refused),
            ("a.PHAR", NameClass::Refused),
            ("a.php5", NameClass::Refused),
            ("wp-content/uploads/2026/x.php", NameClass::Refused),
            ("Uploads/x.php", NameClass::Refused),
            ("uploads.php", NameClass::Script),
            ("uploads/x.jpg", NameClass::File),
            ("php", NameClass::File),
            ("index.php.txt", NameClass::File),
            // The extension has a letter that is not ASCII: the Kelvin sign.
            ("index.p\u{212a}p", NameClass::File),
            ("x.php/y", NameClass::File),
            ("", NameClass::File),
        ] {
            assert_eq!(NameClass::of(path.as_bytes()), kind, "{path}");
        }
    }

    #[test]
    fn scripts_in_the_middle_of_a_path_are_found() {
        for (path, positions) in [
            ("/a.php/b", &[6][..]),
            ("/a.php/b.php/c", &[6, 12]),
            ("/a.php", &[]),
            ("/a.php/", &[6]),
            ("/a.phpx/b", &[]),
        ] {
            assert_eq!(script_ends(path).collect::<Vec<_>>(), positions, "{path}");
        }
        let script = Script::new(Path::new("/srv/www"), "/a/b.php", "/c");
        assert_eq!(script.file(), b"/srv/www/a/b.php");
        assert_eq!(Script::new(Path::new("/"), "/b.php", "").file(), b"/b.php");
    }
}
