//! Tests of replacing, creating and removing configuration files.

use std::os::unix::fs::symlink;
use std::time::SystemTime;

use super::*;

#[test]
fn a_replaced_file_keeps_its_mode_and_its_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&file, &link).unwrap();
    assert!(matches!(replace(&link, "other", "new"), Err(ReplaceError::Changed)));
    assert_eq!(read(&file).unwrap(), "old");
    replace(&link, "old", "new").unwrap();
    assert_eq!(read(&file).unwrap(), "new");
    assert!(link.is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    // No temporary file is left beside the file and the link.
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_failed_replacement_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.toml");
    // The file does not exist, then it is a folder, and then it is a file that cannot be compared.
    assert!(replace(&file, "", "new").is_err());
    fs::create_dir(&file).unwrap();
    assert!(replace(&file, "", "new").is_err());
    fs::remove_dir(&file).unwrap();
    fs::write(&file, "old").unwrap();
    assert!(replace_if(&file, "new", |_| Err(io::Error::other("unreadable"))).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(read(&file).unwrap(), "old");
}

#[test]
fn files_are_created_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (main, file) = (folder.path().join("r.toml"), folder.path().join("a.toml"));
    fs::write(&main, "").unwrap();
    fs::set_permissions(&main, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(read_existing(&file).unwrap(), None);
    create(&file, &main, "new").unwrap();
    assert_eq!(read_existing(&file).unwrap().as_deref(), Some("new"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let exists = create(&file, &main, "other").unwrap_err();
    assert!(matches!(exists, ReplaceError::Io(error) if error.kind() == io::ErrorKind::AlreadyExists));
    // A dangling link is not followed.
    let link = folder.path().join("b.toml");
    symlink(folder.path().join("nowhere"), &link).unwrap();
    assert!(create(&link, &main, "other").is_err());
    assert!(matches!(remove(&file, "other"), Err(ReplaceError::Changed)));
    remove(&file, "new").unwrap();
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 2, "the main file and the link");
}

#[test]
fn old_files_of_killed_processes_are_removed_and_files_of_operators_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    fs::write(&file, "old").unwrap();
    let old = SystemTime::now() - 2 * ABANDONED_AGE;
    let (digits, one_less) = ("1".repeat(DIGITS), "1".repeat(DIGITS - 1));
    let of = |name: &str, modified| {
        let path = folder.path().join(name);
        fs::write(&path, "part").unwrap();
        let written = OpenOptions::new().append(true).open(&path).unwrap();
        written.set_modified(modified).unwrap();
        path
    };
    let abandoned = of(&format!("a.toml.rocknet-{digits}.new"), old);
    let kept = [
        // A process may still be writing this file.
        of(&format!("a.toml.rocknet-0{one_less}.new"), SystemTime::now()),
        // Operators may have created these files.
        of("a.toml.20261128.new", old),
        of("a.toml.0.new", old),
        of("a.toml.-5.new", old),
        of(&format!("a.toml.{digits}.new"), old),
        of(&format!("a.toml.rocknet-{one_less}.new"), old),
        of(&format!("a.toml.rocknet--{one_less}.new"), old),
        of(&format!("a.toml.rocknet-{one_less}x.new"), old),
        of(&format!("b.toml.rocknet-{digits}.new"), old),
    ];
    replace(&file, "old", "new").unwrap();
    assert!(!abandoned.exists());
    for path in &kept {
        assert!(path.exists(), "{}", path.display());
    }
    // A file that `NewFile::create` creates has a name of this form.
    let new = NewFile::create(&file).unwrap();
    let name = new.path.as_ref().and_then(|path| path.file_name()).unwrap();
    assert!(is_of_new_file(name, OsStr::new("a.toml")), "{name:?}");
}

#[test]
fn texts_that_cannot_be_edited_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    for (bytes, expected) in [
        (vec![b'#'; MAX_TEXT + 1], "larger than 256 KiB"),
        (vec![0xff], "not UTF-8"),
    ] {
        fs::write(&file, bytes).unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    fs::write(&file, vec![b'#'; MAX_TEXT]).unwrap();
    assert_eq!(read(&file).unwrap().len(), MAX_TEXT);
    fs::remove_file(&file).unwrap();
    let missing = replace(&file, "", "x").unwrap_err();
    assert!(matches!(missing, ReplaceError::Io(error) if error.kind() == io::ErrorKind::NotFound));
}

#[test]
fn revisions_differ_if_texts_do() {
    assert_eq!(revision("a"), revision("a"));
    assert_ne!(revision("a"), revision("b"));
    assert_eq!(revision("").len(), 2 * REVISION_BYTES);
}
