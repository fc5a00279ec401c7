//! Choice of a file of the configuration: by its name, or by the keys that it defines.

use std::io;
use std::path::{Component, Path, PathBuf};

use rocknet_config::edit::Editor;
use rocknet_control::api::ApiError;
use rocknet_control::config::Edit;

use super::super::config_file::read;

/// Returns the file with a name. A relative name is resolved in the folder of the main file, `main`.
///
/// # Errors
///
/// Status 404 if the configuration has no such file.
pub fn find(files: &[PathBuf], main: &Path, name: &Path) -> Result<PathBuf, ApiError> {
    let wanted = main.parent().unwrap_or(Path::new("/")).join(name);
    let real = wanted.canonicalize().ok();
    let is_wanted = |file: &&PathBuf| **file == wanted || real.is_some() && file.canonicalize().ok() == real;
    files.iter().find(is_wanted).cloned().ok_or_else(|| {
        let message = format!("{} is not a file of this configuration", name.display());
        ApiError::new(404, message)
    })
}

/// Maximum length in bytes of each path segment in the name of a new file. File systems permit 255, which leaves room
/// for the suffix of the temporary name under which the file is written.
const MAX_NAME: usize = 100;

/// Returns the path of a new file. `name` is relative to the folder of the main file, `main`. The caller must check
/// that the configuration includes the file.
///
/// # Errors
///
/// Status 400 for a name that is not relative, or that has characters other than ASCII letters, digits, `.`, `_`, `-`
/// and slashes. Status 400 too if a path segment begins with a dot or is longer than `MAX_NAME`. Status 409 if the
/// path exists, even as a dangling link, and 422 if its folder does not exist.
pub fn new_file(main: &Path, name: &Path) -> Result<PathBuf, ApiError> {
    let is_part = |part: Component<'_>| {
        let text = part.as_os_str().as_encoded_bytes();
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        matches!(part, Component::Normal(_))
            && !text.starts_with(b".")
            && text.len() <= MAX_NAME
            && text.iter().all(is_allowed)
    };
    let shown = name.display();
    let text = name.as_os_str().as_encoded_bytes();
    // Rejects `.` and repeated slashes, which `components` skips.
    let is_plain = text.split(|&byte| byte == b'/').count() == name.components().count();
    if text.is_empty() || !is_plain || !name.components().all(is_part) {
        let message = format!(
            "{shown:?} is not a valid name of a new file: write a path relative to the folder of the main file, of \
             letters, digits, `.`, `_`, `-` and `/`, such as `sites/shop.toml`"
        );
        return Err(ApiError::new(400, message));
    }
    let path = main.parent().unwrap_or(Path::new("/")).join(name);
    if path.symlink_metadata().is_ok() {
        return Err(ApiError::new(409, format!("{} exists already", path.display())));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        return Err(ApiError::new(
            422,
            format!("the folder {} does not exist: create it first", folder.display()),
        ));
    }
    Ok(path)
}

/// Returns the file that the edits apply to. Returns `None` if no file has their keys or there is only one file; the
/// edits then apply to the main file. Reads each file once.
///
/// # Errors
///
/// Status 422 if the edits concern several files.
pub fn of_edits(files: &[PathBuf], edits: &[Edit]) -> Result<Option<PathBuf>, ApiError> {
    let mut found: Option<PathBuf> = None;
    if files.len() < 2 {
        return Ok(None);
    }
    let paths: Vec<_> = edits.iter().map(Edit::path).collect();
    for file in defining_each(files, &paths, read).into_iter().flatten() {
        if let Some(other) = found.as_ref().filter(|other| *other != file) {
            let (one, other) = (other.display(), file.display());
            let message = format!("the edits concern two files, {one} and {other}: send them separately");
            return Err(ApiError::new(422, message));
        }
        found = Some(file.clone());
    }
    Ok(found)
}

/// Returns the file that defines a key. If no file does, returns the file that defines the innermost table around the
/// key, or `None`. If several files qualify, returns the first. Skips files that cannot be read or edited.
pub fn defining(files: &[PathBuf], path: &[&str]) -> Option<PathBuf> {
    let found = defining_each(files, &[path], read);
    found.into_iter().flatten().next().cloned()
}

/// Returns the file that defines each of these keys, like [`defining`]. Calls `read` once for each file, so that only
/// one text at a time is in memory.
fn defining_each<'f>(
    files: &'f [PathBuf],
    paths: &[impl AsRef<[&'f str]>],
    mut read: impl FnMut(&Path) -> io::Result<String>,
) -> Vec<Option<&'f PathBuf>> {
    let mut best: Vec<Option<(usize, &PathBuf)>> = vec![None; paths.len()];
    for file in files {
        let Ok(text) = read(file) else { continue };
        let mut editor = None;
        for (path, best) in paths.iter().zip(&mut best) {
            let path = path.as_ref();
            // Every file may have sites, so the table `site` alone does not identify the file of a site.
            let least = if path.first() == Some(&"site") { 2 } else { 1 };
            // A text without the name of the site or section is not parsed, because there may be thousands of files.
            if !path.get(least - 1).is_some_and(|name| text.contains(name)) {
                continue;
            }
            let editor = editor.get_or_insert_with(|| Editor::new(&text).ok());
            let depth = editor.as_ref().map_or(0, |editor| editor.depth(path));
            if depth >= least && best.is_none_or(|(known, _)| known < depth) {
                *best = Some((depth, file));
            }
        }
    }
    best.into_iter().map(|best| best.map(|(_, file)| file)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn keys_are_edited_where_they_are_defined() {
        let folder = tempfile::tempdir().unwrap();
        let texts = [
            (
                "rocknet.toml",
                "[server]\nworkers = 1\n[site.\"a.test\"]\nroot = '/a'\n",
            ),
            ("b.toml", "[site.\"b.test\"]\nroot = '/b'\n[log]\nlevel = 'warn'\n"),
            ("c.toml", "[server]\nmode = 'dev'\nbroken"),
            ("d.toml", "[server]\nmode = 'dev'\n"),
        ];
        let files = texts.map(|(name, text)| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            file
        });
        let name = |path: &[&str]| {
            let file = defining(&files, path)?;
            Some(file.file_name()?.to_str()?.to_owned())
        };
        // Each row has the path of a key and the file that defines the key or its innermost table. `c.toml` is
        // invalid and is therefore skipped.
        for (path, expected) in [
            (&["site", "a.test", "root"][..], Some("rocknet.toml")),
            (&["site", "b.test", "browse"], Some("b.toml")),
            (&["site", "b.test"], Some("b.toml")),
            (&["site", "c.test", "root"], None),
            (&["server", "workers"], Some("rocknet.toml")),
            (&["server", "mode"], Some("d.toml")),
            (&["server", "user"], Some("rocknet.toml")),
            (&["log", "access"], Some("b.toml")),
            (&["cache", "memory"], None),
            (&[], None),
        ] {
            assert_eq!(name(path).as_deref(), expected, "{path:?}");
        }
        let remove = |path: &[&str]| Edit::Remove {
            path: path.iter().map(|part| (*part).to_owned()).collect(),
        };
        // Edits of `rocknet.toml`, of `b.toml`, and of a key that no file has.
        let (a, b, new) = (
            remove(&["site", "a.test"]),
            remove(&["site", "b.test"]),
            remove(&["cache"]),
        );
        assert_eq!(of_edits(&files, &[new.clone(), b.clone()]), Ok(Some(files[1].clone())));
        assert_eq!(of_edits(&files, &[new]), Ok(None));
        assert_eq!(of_edits(&files, &[a, b]).unwrap_err().status, 422);
    }

    #[test]
    fn each_file_is_read_once_for_all_edits() {
        let files: Vec<PathBuf> = (0..10).map(|number| format!("/{number}.toml").into()).collect();
        let names: Vec<String> = (0..100).map(|number| format!("s{number}.test")).collect();
        let paths: Vec<[&str; 2]> = names.iter().map(|name| ["site", name.as_str()]).collect();
        let mut reads = Vec::new();
        let found = defining_each(&files, &paths, |file| {
            reads.push(file.to_owned());
            // Each file has ten of the sites.
            let first = 10 * (reads.len() - 1);
            Ok((first..first + 10)
                .map(|number| format!("[site.\"s{number}.test\"]\n"))
                .collect())
        });
        for (number, found) in found.iter().enumerate() {
            assert_eq!(*found, Some(&files[number / 10]), "{number}");
        }
        assert_eq!(reads, files);
    }

    #[test]
    fn only_files_of_the_configuration_have_names() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("rocknet.toml");
        let files = [main.clone(), folder.path().join("b.toml")];
        for file in [&files[0], &files[1], &folder.path().join("secret")] {
            fs::write(file, "").unwrap();
        }
        // Name of a file, and its index in `files` if it is found.
        for (name, expected) in [
            ("b.toml", Some(1)),
            ("./b.toml", Some(1)),
            ("rocknet.toml", Some(0)),
            ("secret", None),
            ("../b.toml", None),
            ("/etc/passwd", None),
        ] {
            let found = find(&files, &main, Path::new(name));
            assert_eq!(found.ok(), expected.map(|at: usize| files[at].clone()), "{name}");
        }
        assert_eq!(find(&files, &main, &files[1]), Ok(files[1].clone()));
    }

    #[test]
    fn invalid_names_of_new_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sites")).unwrap();
        fs::write(folder.path().join("sites/old.toml"), "").unwrap();
        let main = folder.path().join("rocknet.toml");
        let found = |name: &str| new_file(&main, Path::new(name)).map_err(|error| error.status);
        assert_eq!(found("sites/a-1_b.toml"), Ok(folder.path().join("sites/a-1_b.toml")));
        assert_eq!(found("a.toml"), Ok(folder.path().join("a.toml")));
        let long = "x".repeat(MAX_NAME + 1);
        for name in [
            "",
            ".",
            "..",
            "/etc/a.toml",
            "../a.toml",
            "sites/../../a.toml",
            "sites/./a.toml",
            "sites//a.toml",
            "sites/a.toml/",
            "sites/.a.toml",
            ".hidden/a.toml",
            "sites/a b.toml",
            "sites/a*.toml",
            "sites/a\n.toml",
            "sites/a\0.toml",
            "sites\\a.toml",
            "sites/ä.toml",
            &long,
        ] {
            assert_eq!(found(name), Err(400), "{name:?}");
        }
        assert_eq!(found("sites/old.toml"), Err(409));
        assert_eq!(found("sites"), Err(409));
        assert_eq!(found("none/a.toml"), Err(422));
        assert_eq!(found("sites/old.toml/a.toml"), Err(422));
        std::os::unix::fs::symlink("nowhere", folder.path().join("sites/link.toml")).unwrap();
        assert_eq!(found("sites/link.toml"), Err(409));
    }
}
