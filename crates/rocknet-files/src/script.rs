//! Which files are scripts, and what of a path says so.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a path leads to that PHP has to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// The folder it was found in, free of links: a release that is switched by a link is another folder to PHP's cache.
    pub root: Box<OsStr>,
    /// Below the root, with a slash in front: `/index.php`.
    pub name: Box<str>,
    /// What follows the script in the path of the request; empty, or with a slash in front.
    pub path_info: Box<str>,
}

impl Script {
    pub fn new(root: &Path, name: &str, path_info: &str) -> Script {
        Script {
            root: root.as_os_str().into(),
            name: name.into(),
            path_info: path_info.into(),
        }
    }

    /// Bytes it takes in memory.
    pub fn size(&self) -> usize {
        size_of::<Script>() + self.root.len() + self.name.len() + self.path_info.len()
    }

    /// Where it lies on disk.
    pub fn file(&self) -> Vec<u8> {
        let root = self.root.as_bytes();
        [root.strip_suffix(b"/").unwrap_or(root), self.name.as_bytes()].concat()
    }
}

/// What may be done with a file of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameClass {
    /// To be run.
    Script,
    /// Holds code, or what a visitor left in a folder for uploads: neither run nor shown.
    Refused,
    /// A file as any other.
    File,
}

/// Endings of files that PHP runs on some servers. Here they are not, so what is in them would be shown.
const CODE: [&str; 9] = ["phtml", "phar", "pht", "phps", "php3", "php4", "php5", "php7", "php8"];
/// Folders that applications keep uploads in. What a visitor has put there must never run.
const UPLOADS: &str = "uploads";

impl NameClass {
    /// By the path below the root. Only ASCII letters have two cases here: a name whose length changes when its case does
    /// leads nowhere else.
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
            // PHP itself runs nothing of another case, and a file system may take it for the same file.
            _ if ending.eq_ignore_ascii_case(b"php") => NameClass::Refused,
            _ if CODE.iter().any(|code| ending.eq_ignore_ascii_case(code.as_bytes())) => NameClass::Refused,
            _ => NameClass::File,
        }
    }
}

/// The places where a path may be a script with more behind it: `/a.php/b` at 6. The first is meant, if there is such a
/// file.
pub fn script_ends(path: &str) -> impl Iterator<Item = usize> {
    path.match_indices(".php/").map(|(at, _)| at + ".php".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_run() {
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
            ("index.p\u{212a}p", NameClass::File),
            ("x.php/y", NameClass::File),
            ("", NameClass::File),
        ] {
            assert_eq!(NameClass::of(path.as_bytes()), kind, "{path}");
        }
    }

    #[test]
    fn scripts_in_the_middle_of_a_path() {
        for (path, places) in [
            ("/a.php/b", &[6][..]),
            ("/a.php/b.php/c", &[6, 12]),
            ("/a.php", &[]),
            ("/a.php/", &[6]),
            ("/a.phpx/b", &[]),
        ] {
            assert_eq!(script_ends(path).collect::<Vec<_>>(), places, "{path}");
        }
        let script = Script::new(Path::new("/srv/www"), "/a/b.php", "/c");
        assert_eq!(script.file(), b"/srv/www/a/b.php");
        assert_eq!(Script::new(Path::new("/"), "/b.php", "").file(), b"/b.php");
    }
}
