//! Choice of a file of the configuration: by its name, or by the keys that it defines.

use std::io;
use std::path::{Path, PathBuf};

use rocknet_config::edit::Editor;
use rocknet_control::api::ApiError;
use rocknet_control::config::Edit;

use super::file::read;

/// Returns the file with a name. `main`: the main file, whose folder a relative name is relative to.
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

/// Returns the file that edits concern; `None` if no file has their keys. Each file is read once.
///
/// # Errors
///
/// Status 422 if they concern several files.
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

/// Returns the file that defines a key, or the innermost of its tables; `None` if no file does. Files that cannot be
/// read or edited are left out.
pub fn defining(files: &[PathBuf], path: &[&str]) -> Option<PathBuf> {
    let found = defining_each(files, &[path], read);
    found.into_iter().flatten().next().cloned()
}

/// Returns the file that defines each of these keys, as [`defining`] does. `read`: reads a file; called once for each,
/// so that only one text is in memory.
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
            // Every file may have sites, so the table of the sites does not tell which file has one of them.
            let least = if path.first() == Some(&"site") { 2 } else { 1 };
            // A text without the name is not parsed, because there may be thousands of files.
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
