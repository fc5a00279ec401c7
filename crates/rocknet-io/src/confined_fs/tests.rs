//! Tests of lookups and of attempts to leave a root, with the lookup by the kernel and with the walk.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::CWD;

use super::*;

/// Content of the file in the directory `outside` next to the root. Only links under `Symlinks::Owner` and
/// `Symlinks::All` lead to this file.
const SECRET: &str = "outside the root";

/// Temporary directory with the directories `root` and `outside`. Each file below `root` contains its own name.
pub(super) struct TestTree {
    directory: tempfile::TempDir,
}

impl TestTree {
    pub(super) fn new() -> Self {
        let tree = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(tree.root().join("sub/deep")).unwrap();
        fs::create_dir(tree.outside()).unwrap();
        fs::write(tree.outside().join("secret"), SECRET).unwrap();
        fs::write(tree.root().join("file"), "file").unwrap();
        fs::write(tree.root().join("sub/page"), "page").unwrap();
        tree
    }

    /// Returns the path of the directory to which lookups are confined.
    pub(super) fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    /// Returns the path of a directory beside the root.
    pub(super) fn outside(&self) -> PathBuf {
        self.directory.path().join("outside")
    }

    /// Creates a symbolic link `name` below the root.
    pub(super) fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.root().join(name)).unwrap();
    }

    /// Returns the same root twice: one that uses the kernel, and one that uses the walk only.
    pub(super) fn with_both_lookups(&self) -> [Root; 2] {
        let mut walked = Root::open(self.root()).unwrap();
        walked.lookup = system::KernelLookup::NONE;
        [Root::open(self.root()).unwrap(), walked]
    }
}

/// Returns an outcome as text: the content of a file, `/` for a directory, or the name of the error.
pub(super) fn outcome(opened: Result<OpenedFile, OpenError>) -> String {
    match opened {
        Ok(OpenedFile {
            meta: Meta {
                kind: FileKind::Directory,
                ..
            },
            ..
        }) => "/".into(),
        Ok(OpenedFile { mut file, meta }) => {
            let mut content = String::new();
            file.read_to_string(&mut content).unwrap();
            assert_eq!(meta.size, content.len() as u64);
            content
        }
        Err(error) => format!("{error:?}"),
    }
}

/// Creates a FIFO.
pub(super) fn fifo(path: &Path) {
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
}

/// Opens paths with both lookups. A row is a path and the expected [`outcome`].
fn check(tree: &TestTree, symlinks: Symlinks, rows: &[(&str, &str)]) {
    for root in tree.with_both_lookups() {
        for (path, expected) in rows {
            let context = format!("{path:?} with {symlinks:?} by {:?}", root.lookup);
            let opened = outcome(root.open_file(path.as_bytes(), symlinks));
            assert_eq!(opened, *expected, "{context}");
            let stat = root.stat(path.as_bytes(), symlinks);
            assert_eq!(
                stat.is_ok(),
                root.open_file(path.as_bytes(), symlinks).is_ok(),
                "stat of {context}"
            );
            // The cached lookup has the same outcome or reports that it would block.
            let cached = outcome(root.open_cached(path.as_bytes(), symlinks));
            assert!(
                cached == *expected || cached == "WouldBlock",
                "{context} from the kernel's cache: {cached}"
            );
        }
    }
}

#[test]
fn opens_files_and_directories() {
    let tree = TestTree::new();
    let rows = [
        ("file", "file"),
        ("/file", "file"),
        ("//file", "file"),
        ("sub/page", "page"),
        ("sub//page", "page"),
        ("sub/./page", "page"),
        ("sub", "/"),
        ("sub/", "/"),
        ("sub/.", "/"),
        ("", "/"),
        ("/", "/"),
        (".", "/"),
        ("none", "NotFound"),
        ("none/page", "NotFound"),
        ("file/", "NotFound"),
        ("file/.", "NotFound"),
        ("file/page", "NotFound"),
        ("sub/none", "NotFound"),
        ("file\0", "NotFound"),
        ("..", "Escapes"),
        ("../outside/secret", "Escapes"),
        ("sub/../../outside/secret", "Escapes"),
        ("sub/../file", "Escapes"),
        ("sub/..", "Escapes"),
        ("..file", "NotFound"),
    ];
    for symlinks in [Symlinks::Inside, Symlinks::Owner, Symlinks::All] {
        check(&tree, symlinks, &rows);
        // Linux permits names of 255 bytes and paths of 4,095 bytes.
        let long_name = "x".repeat(256);
        let long_path = "sub/".repeat(1_100);
        check(&tree, symlinks, &[(&long_name, "NotFound"), (&long_path, "NotFound")]);
    }
}

#[test]
fn inside_follows_links_within_the_root_and_all_follows_any_link() {
    let tree = TestTree::new();
    let (root, outside) = (tree.root(), tree.outside());
    tree.link("relative", "sub/page");
    tree.link("up", "sub/deep/../page");
    tree.link("directory", "sub/deep/..");
    tree.link("absolute", root.join("sub/page"));
    tree.link("absolute_directory", root.join("sub/"));
    tree.link("absolute_root", &root);
    tree.link("chain", "relative");
    tree.link("chain_absolute", root.join("absolute_directory/page"));
    tree.link("sub/back", "../file");
    tree.link("here", ".");
    tree.link("out", "../outside/secret");
    tree.link("out_directory", "../outside");
    tree.link("out_absolute", outside.join("secret"));
    tree.link("out_disguised", root.join("../outside/secret"));
    tree.link("out_and_in", "../root/file");
    tree.link("sub/out_twice", "../../outside/secret");
    tree.link("out_chain", "out");
    tree.link("passwd", "/etc/passwd");
    tree.link("proc", "/proc/self/root/etc/passwd");
    // Path outside the root whose text begins with the root's path.
    tree.link("sibling", format!("{}x/file", root.display()));
    tree.link("loop", "loop");
    tree.link("loop_a", "loop_b");
    tree.link("loop_b", "loop_a");
    tree.link("loop_absolute", root.join("loop_absolute"));
    tree.link("dangling", "none");
    check(
        &tree,
        Symlinks::Inside,
        &[
            ("relative", "page"),
            ("up", "page"),
            ("directory", "/"),
            ("directory/page", "page"),
            ("absolute", "page"),
            ("absolute_directory", "/"),
            ("absolute_directory/page", "page"),
            ("absolute_root", "/"),
            ("absolute_root/absolute_root/sub/page", "page"),
            ("chain", "page"),
            ("chain_absolute", "page"),
            ("sub/back", "file"),
            ("absolute_directory/back", "file"),
            ("here/here/file", "file"),
            ("relative/", "NotFound"),
            ("out", "Escapes"),
            ("out_directory", "Escapes"),
            ("out_directory/secret", "Escapes"),
            ("out_absolute", "Escapes"),
            ("out_disguised", "Escapes"),
            ("out_and_in", "Escapes"),
            ("sub/out_twice", "Escapes"),
            ("out_chain", "Escapes"),
            ("passwd", "Escapes"),
            ("proc", "Escapes"),
            ("sibling", "Escapes"),
            ("loop", "NotFound"),
            ("loop_a", "NotFound"),
            ("loop_absolute", "NotFound"),
            ("dangling", "NotFound"),
        ],
    );
    check(
        &tree,
        Symlinks::All,
        &[
            ("relative", "page"),
            ("out", SECRET),
            ("out_directory/secret", SECRET),
            ("out_absolute", SECRET),
            ("loop", "NotFound"),
            ("dangling", "NotFound"),
            ("../outside/secret", "Escapes"),
        ],
    );
}

#[test]
fn follows_as_many_links_as_the_kernel() {
    // Linux follows at most 40 links in one lookup. The path `link39` leads through 40 links, `link40` through 41.
    let tree = TestTree::new();
    tree.link("link0", "file");
    for step in 1..=40 {
        tree.link(&format!("link{step}"), format!("link{}", step - 1));
    }
    check(&tree, Symlinks::Inside, &[("link39", "file"), ("link40", "NotFound")]);
}

#[test]
fn a_root_opened_through_a_link_is_known_by_both_names() {
    let tree = TestTree::new();
    let alias = tree.directory.path().join("alias");
    symlink(tree.root(), &alias).unwrap();
    tree.link("by_alias", alias.join("file"));
    tree.link("by_name", tree.root().join("file"));
    let root = Root::open(&alias).unwrap();
    assert_eq!(root.path(), alias);
    for name in ["by_alias", "by_name"] {
        assert_eq!(
            outcome(root.open_file(name.as_bytes(), Symlinks::Inside)),
            "file",
            "{name}"
        );
    }
}

#[test]
fn a_directory_renamed_away_is_still_the_root() {
    let tree = TestTree::new();
    for root in tree.with_both_lookups() {
        let moved = tree.directory.path().join("moved");
        fs::rename(tree.root(), &moved).unwrap();
        symlink(tree.outside(), tree.root()).unwrap();
        assert_eq!(outcome(root.open_file(b"file", Symlinks::Inside)), "file");
        assert_eq!(outcome(root.open_file(b"secret", Symlinks::Inside)), "NotFound");
        fs::remove_file(tree.root()).unwrap();
        fs::rename(&moved, tree.root()).unwrap();
    }
}

#[test]
fn follows_links_to_files_of_the_same_owner() {
    let tree = TestTree::new();
    tree.link("own", "sub/page");
    tree.link("own_out", tree.outside().join("secret"));
    tree.link("own_up", "../outside/secret");
    tree.link("own_directory", "../outside");
    // `/` and `/etc/passwd` belong to root.
    tree.link("own_slash", "/");
    tree.link("to_root_user", "/etc/passwd");
    let mut rows = vec![
        ("own", "page"),
        ("own_out", SECRET),
        ("own_up", SECRET),
        ("own_directory", "/"),
        ("own_directory/secret", SECRET),
    ];
    // Only root can give a file to another user.
    if rustix::process::getuid().is_root() {
        /// Any user other than root.
        const OTHER_USER: u32 = 65_534;
        rustix::fs::chownat(
            CWD,
            tree.root().join("to_root_user"),
            Some(rustix::fs::Uid::from_raw(OTHER_USER)),
            None,
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .unwrap();
        fs::write(tree.root().join("theirs"), "theirs").unwrap();
        chown(tree.root().join("theirs"), Some(OTHER_USER), None).unwrap();
        tree.link("to_theirs", "theirs");
        tree.link("chain", "own_chain");
        tree.link("own_chain", "theirs");
        rows.extend([
            ("own_slash", "/"),
            ("to_root_user", "Forbidden"),
            ("theirs", "theirs"),
            ("to_theirs", "Forbidden"),
            ("chain", "Forbidden"),
        ]);
    } else {
        rows.extend([("to_root_user", "Forbidden"), ("own_slash", "Forbidden")]);
    }
    check(&tree, Symlinks::Owner, &rows);
}

#[test]
fn special_files_are_not_found_and_opening_them_does_not_hang() {
    let tree = TestTree::new();
    fifo(&tree.root().join("fifo"));
    let _listener = UnixListener::bind(tree.root().join("socket")).unwrap();
    tree.link("zero", "/dev/zero");
    tree.link("terminal", "/dev/tty");
    check(
        &tree,
        Symlinks::Inside,
        &[("fifo", "NotFound"), ("fifo/", "NotFound"), ("socket", "NotFound")],
    );
    check(
        &tree,
        Symlinks::All,
        &[
            ("fifo", "NotFound"),
            ("socket", "NotFound"),
            ("zero", "NotFound"),
            ("terminal", "NotFound"),
        ],
    );
}

#[test]
fn reports_size_time_permissions_and_identity() {
    let tree = TestTree::new();
    let path = tree.root().join("sub/page");
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_700_000_000_123_456_789);
    let before_1970 = std::time::UNIX_EPOCH - std::time::Duration::from_nanos(1_500_000_000);
    for (time, nanoseconds) in [(modified, 1_700_000_000_123_456_789), (before_1970, -1_500_000_000)] {
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
        for root in tree.with_both_lookups() {
            let meta = root.open_file(b"sub/page", Symlinks::Inside).unwrap().meta;
            assert_eq!(
                (meta.size, meta.modified_ns, meta.kind),
                (4, nanoseconds, FileKind::File)
            );
            assert_eq!(meta, root.stat(b"sub/page", Symlinks::Inside).unwrap());
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            assert_eq!(root.stat(b"sub/page", Symlinks::Inside).unwrap().mode, 0o640);
            let other = root.stat(b"file", Symlinks::Inside).unwrap();
            assert!(other.device == meta.device && other.inode != meta.inode);
        }
    }
}

#[test]
fn may_contain_finds_only_regular_files() {
    let tree = TestTree::new();
    tree.link("link", "file");
    tree.link("dangling", "none");
    let root = Root::open(tree.root()).unwrap();
    for (path, expected) in [
        ("file", true),
        ("/file", true),
        ("link", true),
        ("file.br", false),
        ("sub", false),
        ("dangling", false),
        ("../outside/secret", false),
        ("file\0", false),
    ] {
        assert_eq!(root.may_contain(path.as_bytes()), expected, "{path:?}");
    }
}

#[test]
fn opens_a_path_from_the_cache_after_a_lookup() {
    /// Number of attempts. One is not enough, because the kernel drops a name between two calls if memory is short.
    const TRIES: usize = 100;
    let tree = TestTree::new();
    let [root, walked] = tree.with_both_lookups();
    for symlinks in [Symlinks::Inside, Symlinks::All] {
        let mut look_ups = (0..TRIES).map(|_| {
            root.open_file(b"sub/page", symlinks).unwrap();
            outcome(root.open_cached(b"sub/page", symlinks))
        });
        let found = look_ups.any(|outcome| outcome == "page");
        assert_eq!(found, root.lookup.has_cached(), "{symlinks:?} by {:?}", root.lookup);
        assert_eq!(outcome(walked.open_cached(b"sub/page", symlinks)), "WouldBlock");
    }
    assert_eq!(outcome(root.open_cached(b"sub/page", Symlinks::Owner)), "WouldBlock");
}

#[test]
#[cfg(target_os = "linux")]
fn mounts_below_a_root_have_no_cached_lookup() {
    use std::os::unix::fs::MetadataExt;
    // A file system in memory that nearly every system mounts. A remote one mounted below a local root would block.
    let mount = std::path::Path::new("/dev/shm");
    let device = |path: &std::path::Path| std::fs::metadata(path).map(|found| found.dev());
    let is_mount = device(mount).is_ok_and(|own| device("/".as_ref()).is_ok_and(|root| root != own));
    assert!(is_mount, "/dev/shm is no mount");
    let file = tempfile::NamedTempFile::new_in(mount).expect("a file");
    let below_root = file.path().strip_prefix("/").expect("an absolute path");
    let relative = below_root.as_os_str().as_encoded_bytes();
    let above = Root::open("/").expect("a folder");
    for symlinks in [Symlinks::Inside, Symlinks::All] {
        assert!(above.open_file(relative, symlinks).is_ok());
        assert_eq!(outcome(above.open_cached(relative, symlinks)), "WouldBlock");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn remote_file_systems_have_no_cached_lookup() {
    // `/proc` is in fact local, but it stands in for a remote file system here, because it is not on the list of local
    // file systems.
    let has_proc = std::fs::metadata("/proc/version").is_ok() && std::fs::metadata("/proc/self/status").is_ok();
    assert!(has_proc, "no /proc");
    let remote = Root::open("/proc").expect("a folder");
    assert!(!remote.has_cached_lookup());
    assert_eq!(outcome(remote.open_cached(b"version", Symlinks::Inside)), "WouldBlock");
    // A cached lookup from a local root fails as well, because the kernel revalidates names in `/proc`.
    let above = Root::open("/").expect("a folder");
    for symlinks in [Symlinks::Inside, Symlinks::All] {
        assert_eq!(outcome(above.open_cached(b"proc/version", symlinks)), "WouldBlock");
        assert!(above.open_file(b"proc/version", symlinks).is_ok());
    }
}
