//! Tests of both ways to create an unnamed file: the folder remains empty, and other users cannot open the file.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

use super::*;

/// Function that creates an unnamed file in a folder.
type Create = fn(&Path) -> io::Result<File>;

#[test]
fn the_folder_stays_empty() {
    for create in [create_unnamed as Create, create_and_unlink] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = create(folder.path()).expect("a file");
        let meta = file.metadata().expect("its metadata");
        assert_eq!((meta.nlink(), meta.mode() & 0o777), (0, 0o600));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        file.write_all_at(b"hello", 3).expect("written");
        let mut read = [0; 8];
        file.read_exact_at(&mut read, 0).expect("read");
        assert_eq!(&read, b"\0\0\0hello");
    }
}

#[test]
fn an_unusable_folder_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    for create in [create_unnamed as Create, create_and_unlink] {
        for (path, expected) in [
            (folder.path().join("missing"), ErrorKind::NotFound),
            (file.clone(), ErrorKind::NotADirectory),
        ] {
            assert_eq!(create(&path).expect_err("no file").kind(), expected, "{path:?}");
        }
    }
}

#[test]
fn errors_are_classified() {
    for (errno, full, exhausted) in [
        (Errno::NOSPC, true, false),
        (Errno::DQUOT, true, false),
        (Errno::MFILE, false, true),
        (Errno::NFILE, false, true),
        (Errno::IO, false, false),
        (Errno::ACCESS, false, false),
    ] {
        let error = errno.into();
        assert_eq!(
            (is_full(&error), is_resource_exhausted(&error)),
            (full, exhausted),
            "{errno}"
        );
    }
}
