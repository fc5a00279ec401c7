//! Logs files that were not sent, with site, file, reason and remedy.

use std::io;

use rocknet_io::confined_fs::OpenError;
use tracing::Level;

use crate::tree::Tree;
use rocknet_log::throttle::Cause;

/// Maximum number of lines about missing files per second and site. A page under development may refer to several
/// missing files.
const MISSING_A_SECOND: u32 = 20;

// Names of causes, for which lines are limited separately.
const FORBIDDEN: &str = "no permission to read a file";
const LINK_OUT: &str = "a symbolic link leads out of the root";
const NOT_FOUND: &str = "a file does not exist";

/// Returns the cause by which the number of lines is limited.
fn cause<'c>(tree: &'c Tree, level: Level, what: &'static str) -> Cause<'c> {
    Cause {
        level,
        what,
        site: &tree.route.label.site,
        subject: "",
    }
}

/// Logs 403 for a file or folder that this process has no permission to read. The reason is its mode or owner, or the
/// mode or owner of a folder above it. Also logs 403 for a symbolic link to a file of another owner, if `symlinks`
/// forbids such links.
pub fn forbidden(tree: &Tree, relative: &[u8]) {
    if cause(tree, Level::WARN, FORBIDDEN).may_be_logged() {
        let file = tree.folder().join(&*String::from_utf8_lossy(relative));
        let user = rocknet_io::privileges::effective_uid();
        tracing::warn!(
            site = %tree.route.label.site,
            file = %file.display(),
            help = "chmod o+r the file (o+rx if it is a folder) and o+x the folders above it, or change their owner",
            "403 Forbidden: the user of the server (uid {user}) has no permission to read the file, or a symbolic \
             link leads to a file of another owner"
        );
    }
}

/// Logs a link that leads out of the root. The request is treated as if the link did not exist: it gets the front
/// controller, if there is one, and otherwise 404.
pub fn link_out(tree: &Tree, relative: &[u8]) {
    if cause(tree, Level::WARN, LINK_OUT).may_be_logged() {
        let file = tree.folder().join(&*String::from_utf8_lossy(relative));
        tracing::warn!(
            site = %tree.route.label.site,
            file = %file.display(),
            help = "set symlinks = \"owner\" to follow links whose targets have the owner of the link, or serve the \
                    target by a route with `alias`",
            "a symbolic link leads out of the root and is not followed"
        );
    }
}

/// Logs 403 for a file whose name or folder prevents it from being sent.
pub fn not_sent(tree: &Tree, relative: &[u8], why: &'static str) {
    if cause(tree, Level::INFO, why).may_be_logged() {
        let file = tree.folder().join(&*String::from_utf8_lossy(relative));
        tracing::info!(
            site = %tree.route.label.site,
            file = %file.display(),
            "403 Forbidden: the file is not sent: {why}"
        );
    }
}

/// Logs 404 at level debug, and at info for a site in `dev` mode.
pub fn not_found(tree: &Tree, path: &str) {
    let level = if tree.route.label.is_dev {
        Level::INFO
    } else {
        Level::DEBUG
    };
    if !cause(tree, level, NOT_FOUND).may_be_logged_in_burst(MISSING_A_SECOND) {
        return;
    }
    let (site, root) = (&tree.route.label.site, tree.folder().display());
    if tree.route.label.is_dev {
        tracing::info!(%site, path, %root, "404 Not Found: no file below the root has this path");
    } else {
        tracing::debug!(%site, path, %root, "404 Not Found: no file below the root has this path");
    }
}

/// Limit of an archive that a folder would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveBound {
    /// Number of files and folders.
    Entries,
    /// Number of names read, including those of hidden files, which are left out: four times that of `Entries`.
    Names,
    /// Number of folders inside each other.
    Depth,
    /// Size of all files.
    Size,
    /// Length of all paths, with those of folders that are not read yet.
    Paths,
}

/// Logs 403 for an archive that would exceed a limit. `relative`: path of its folder below the root.
pub fn archive_limit(tree: &Tree, relative: &[u8], bound: ArchiveBound) {
    const RAISE: &str = "raise the limit, or turn archives off for this folder";
    let (what, help) = match bound {
        ArchiveBound::Entries => ("it has more files and folders than browse.zip.entries", RAISE),
        ArchiveBound::Names => (
            "the number of its names, including hidden ones, is more than four times browse.zip.entries",
            RAISE,
        ),
        ArchiveBound::Depth => ("its folders are deeper than browse.zip.depth", RAISE),
        ArchiveBound::Size => ("its files are larger than browse.zip.size", RAISE),
        ArchiveBound::Paths => (
            "the paths of its files and folders are longer than 8 MiB in total, a limit that no key changes",
            "download its folders one by one",
        ),
    };
    if cause(tree, Level::WARN, what).may_be_logged() {
        let folder = tree.folder().join(&*String::from_utf8_lossy(relative));
        tracing::warn!(
            site = %tree.route.label.site,
            folder = %folder.display(),
            help,
            "403 Forbidden: the folder is not sent as a zip archive: {what}"
        );
    }
}

/// Logs a folder that was found, but cannot be read any more, and is left out of an archive.
pub fn archive_without(tree: &Tree, relative: &[u8], error: &OpenError) {
    if cause(tree, Level::DEBUG, "a folder is left out of a zip archive").may_be_logged() {
        let folder = tree.folder().join(&*String::from_utf8_lossy(relative));
        tracing::debug!(
            site = %tree.route.label.site,
            folder = %folder.display(),
            "the folder is left out of a zip archive, because it cannot be read any more: {error}"
        );
    }
}

/// Logs an archive that ends early, because one of its files cannot be sent as it was found.
pub fn archive_cut(tree: &Tree, relative: &[u8], error: &io::Error) {
    if cause(tree, Level::WARN, "a zip archive is cut off").may_be_logged() {
        tracing::warn!(
            site = %tree.route.label.site,
            folder = %tree.folder().display(),
            file = %String::from_utf8_lossy(relative),
            "a zip archive is cut off, because a file cannot be sent as it was found: {error}"
        );
    }
}

/// Logs a shortage of descriptors or memory.
pub fn shortage(tree: &Tree, error: &OpenError) {
    if cause(tree, Level::WARN, "a file cannot be opened").may_be_logged() {
        tracing::warn!(site = %tree.route.label.site, folder = %tree.folder().display(), "cannot open a file: {error}");
    }
}

/// Logs a file that cannot be read.
pub fn unreadable(tree: &Tree, relative: &[u8], error: &io::Error) {
    if cause(tree, Level::ERROR, "a file cannot be read").may_be_logged() {
        let file = String::from_utf8_lossy(relative);
        tracing::error!(
            site = %tree.route.label.site,
            folder = %tree.folder().display(),
            %file,
            "cannot read the file: {error}"
        );
    }
}

/// Logs that the folder of a site cannot be used. `what` is the first part of the message.
pub fn root(tree: &Tree, error: &io::Error, what: &'static str) {
    if cause(tree, Level::ERROR, what).may_be_logged() {
        let help = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "create the folder, or correct `root`",
            io::ErrorKind::PermissionDenied => {
                "chmod o+rx the folder and o+x the folders above it, so that the user of the server can read it"
            }
            _ => "",
        };
        tracing::error!(site = %tree.route.label.site, folder = %tree.folder().display(), help, "{what}: {error}");
    }
}
