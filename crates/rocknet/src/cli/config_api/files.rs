//! Choice of a file of the configuration: by its name, or by the keys that it defines.

use std::path::{Path, PathBuf};

use rocknet_config::edit::Editor;
use rocknet_control::api::ApiError;
use rocknet_control::config::Edit;

use super::super::config_file::read;

/// Returns the file with a name. `main`: the main file. A relative name is resolved in its folder.
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

/// Returns the file that edits concern; `None` if no file has their keys, or if there is only the main file.
///
/// # Errors
///
/// Status 422 if the edits concern several files.
pub fn of_edits(files: &[PathBuf], edits: &[Edit]) -> Result<Option<PathBuf>, ApiError> {
    let mut found: Option<PathBuf> = None;
    if files.len() < 2 {
        return Ok(None);
    }
    for edit in edits {
        let Some(file) = defining(files, &edit.path()) else {
            continue;
        };
        if let Some(other) = found.as_ref().filter(|other| **other != file) {
            let (one, other) = (other.display(), file.display());
            let message = format!("the edits concern two files, {one} and {other}: send them separately");
            return Err(ApiError::new(422, message));
        }
        found = Some(file);
    }
    Ok(found)
}

/// Returns the file that defines a key. If no file does, returns the file that defines the innermost of the tables that
/// would contain the key, or `None`. Of several such files, the first one is returned. Files that cannot be read or
/// edited are left out.
pub fn defining(files: &[PathBuf], path: &[&str]) -> Option<PathBuf> {
    // Minimum number of leading parts of `path` that the file has to define. Every file may have sites, so a file with
    // the table `site` alone does not match: it needs the table of the wanted site.
    let min_depth = if path.first() == Some(&"site") { 2 } else { 1 };
    let name = path.get(min_depth - 1)?;
    let mut best: Option<(usize, &PathBuf)> = None;
    for file in files {
        // A text without the name is not parsed, because there may be thousands of files.
        let Some(text) = read(file).ok().filter(|text| text.contains(name)) else {
            continue;
        };
        let depth = Editor::new(&text).map_or(0, |editor| editor.depth(path));
        if depth >= min_depth && best.is_none_or(|(best_depth, _)| best_depth < depth) {
            best = Some((depth, file));
        }
    }
    best.map(|(_, file)| file.clone())
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
        // Path of a key, and the file that defines the key or its innermost table. `c.toml` is not valid, so it is left
        // out.
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
    fn only_files_of_the_configuration_are_found() {
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
}
