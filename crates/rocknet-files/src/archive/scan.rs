//! Finds the files and folders of an archive: those to which the listings below its folder lead.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::ZipLimits;
use rocknet_io::confined_fs::{DirEntry, FileKind, Meta, Root};
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use super::format::ArchiveEntry;
use super::request::ArchiveRequest;
use crate::disk_lookup::DiskLookup;
use crate::failure_log;
use crate::path_access::PathAccess;
use crate::resolve::{self, Target, logged_status};
use crate::script::NameClass;
use crate::tree::Tree;

/// Maximum number of bytes of all paths of an archive. It bounds the memory of the list of entries.
const MAX_PATHS: usize = 8 << 20;
/// Number of names that are read for each entry that an archive may have. Names that are left out, such as those of
/// hidden files, count too.
const NAMES_FOR_EACH_ENTRY: usize = 4;

/// The content of an archive, before it is sent.
pub struct Scanned {
    /// Files and folders. A folder precedes its content.
    pub entries: Vec<ArchiveEntry>,
    /// The root in which the entries were found. A replacement of the folder of the site does not affect the archive.
    pub root: Arc<Root>,
    /// Path of the folder of the archive below the root.
    pub relative: Vec<u8>,
    /// Length of the first folder in the names of the entries, with its slash.
    pub prefix: usize,
}

/// Finds the entries of an archive. `name`: name of the folder in the archive. `is_wanted` returns false once the
/// result is of no use. Blocks on the disk.
///
/// # Errors
///
/// Returns the status of the response if the folder cannot be read or exceeds a limit.
pub fn scan(
    request: &ArchiveRequest,
    name: &str,
    access: &dyn PathAccess,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Scanned, Status> {
    let tree = &request.tree;
    let root = tree.root().map_err(|_| Status::NOT_FOUND)?;
    let mut scan = Scan {
        lookup: DiskLookup::blocking(),
        tree,
        limits: &request.limits,
        access,
        entries: Vec::new(),
        folders: Vec::new(),
        paths: 0,
        size: 0,
        names: 0,
    };
    let top = root
        .stat(&request.relative, tree.symlinks)
        .map_err(|error| logged_status(&error, tree, &request.relative))?;
    scan.folders.push(Folder {
        path: request.path.to_string(),
        relative: request.relative.clone(),
        name: format!("{name}/"),
        depth: 0,
        modified_unix: seconds(&top),
        above: Rc::new(Above::of(&top, None)),
    });
    while let Some(folder) = scan.folders.pop() {
        if !is_wanted() {
            return Err(Status::SERVICE_UNAVAILABLE);
        }
        scan.read(&root, &folder)?;
    }
    Ok(Scanned {
        entries: scan.entries,
        root,
        relative: request.relative.clone(),
        prefix: name.len() + 1,
    })
}

/// State of a scan.
struct Scan<'s> {
    lookup: DiskLookup,
    tree: &'s Tree,
    limits: &'s ZipLimits,
    access: &'s dyn PathAccess,
    entries: Vec<ArchiveEntry>,
    /// Folders that are not read yet.
    folders: Vec<Folder>,
    /// Bytes of all paths so far.
    paths: usize,
    /// Size of all files so far.
    size: u64,
    /// Number of names read so far.
    names: usize,
}

/// A folder to read.
struct Folder {
    /// Decoded path in URLs, with a slash at both ends.
    path: String,
    /// Path below the root.
    relative: Vec<u8>,
    /// Path in the archive, with a slash at the end.
    name: String,
    depth: usize,
    modified_unix: i64,
    above: Rc<Above>,
}

/// Identity of a folder, and of the folders above it. A symbolic link to one of them would never end.
struct Above {
    device: u64,
    inode: u64,
    parent: Option<Rc<Above>>,
}

impl Above {
    fn of(meta: &Meta, parent: Option<Rc<Above>>) -> Above {
        Above {
            device: meta.device,
            inode: meta.inode,
            parent,
        }
    }

    fn contains(&self, meta: &Meta) -> bool {
        let mut folder = Some(self);
        while let Some(above) = folder {
            if (above.device, above.inode) == (meta.device, meta.inode) {
                return true;
            }
            folder = above.parent.as_deref();
        }
        false
    }
}

impl Scan<'_> {
    /// Adds a folder and its files to the archive, and its folders to those that are read later.
    fn read(&mut self, root: &Root, folder: &Folder) -> Result<(), Status> {
        if folder.depth > 0 {
            self.push(ArchiveEntry::new(folder.name.clone(), 0, folder.modified_unix))?;
        }
        let most = self.limits.entries.saturating_mul(NAMES_FOR_EACH_ENTRY) - self.names;
        let listed = root
            .list(&folder.relative, self.tree.symlinks, most)
            .map_err(|error| logged_status(&error, self.tree, &folder.relative))?;
        self.names += listed.entries.len();
        if listed.truncated {
            return Err(self.exceeds("entries"));
        }
        let mut entries: Vec<(String, DirEntry)> = listed
            .entries
            .into_iter()
            .filter_map(|mut entry| Some((std::mem::take(&mut entry.name).into_string().ok()?, entry)))
            .filter(|(name, _)| !name.starts_with('.'))
            .collect();
        entries.sort_unstable_by(|(one, _), (two, _)| one.cmp(two));
        let first = self.folders.len();
        for (name, entry) in entries {
            let relative = join(&folder.relative, name.as_bytes());
            match entry.meta.kind {
                FileKind::File => {
                    let path = format!("{}{name}", folder.path);
                    self.add_file(&path, &relative, format!("{}{name}", folder.name))?;
                }
                FileKind::Directory => self.add_folder(folder, &name, relative, &entry.meta)?,
            }
        }
        // The last folder is read first.
        self.folders[first..].reverse();
        Ok(())
    }

    /// Adds a file if a request for its path would get it.
    fn add_file(&mut self, path: &str, relative: &[u8], name: String) -> Result<(), Status> {
        // A lookup of these files would log that they are not sent.
        let of_site = self.tree.of_site(&format!("/{}", String::from_utf8_lossy(relative)));
        let is_program = self.tree.is_program(&of_site)
            || self.tree.runs_scripts && NameClass::of(of_site.as_bytes()) != NameClass::File;
        if is_program || !self.is_reachable(path) {
            return Ok(());
        }
        match resolve::resolve(&self.lookup, self.tree, path) {
            Target::File {
                opened,
                relative: found,
            } if found == relative => {
                self.size = self.size.saturating_add(opened.meta.size);
                if self.size > self.limits.size {
                    return Err(self.exceeds("size"));
                }
                self.push(ArchiveEntry::new(name, opened.meta.size, seconds(&opened.meta)))
            }
            _ => Ok(()),
        }
    }

    /// Adds a folder if a request for its path would list it, or its index file if it has one.
    fn add_folder(&mut self, parent: &Folder, name: &str, relative: Vec<u8>, meta: &Meta) -> Result<(), Status> {
        let path = format!("{}{name}/", parent.path);
        if self.tree.is_program(&path) || parent.above.contains(meta) || !self.is_reachable(&path) {
            return Ok(());
        }
        let folder = Folder {
            name: format!("{}{name}/", parent.name),
            depth: parent.depth + 1,
            modified_unix: seconds(meta),
            above: Rc::new(Above::of(meta, Some(Rc::clone(&parent.above)))),
            path,
            relative,
        };
        match resolve::resolve(&self.lookup, self.tree, &folder.path) {
            Target::Directory { relative: found } if found == folder.relative => {
                if folder.depth > self.limits.depth {
                    return Err(self.exceeds("depth"));
                }
                self.folders.push(folder);
                Ok(())
            }
            Target::File { relative: found, .. } => {
                let index = found
                    .strip_prefix(&folder.relative[..])
                    .and_then(|rest| rest.strip_prefix(b"/"))
                    .and_then(|index| std::str::from_utf8(index).ok());
                match index {
                    Some(index) => {
                        self.push(ArchiveEntry::new(folder.name.clone(), 0, seconds(meta)))?;
                        let path = format!("{}{index}", folder.path);
                        self.add_file(&path, &found, format!("{}{index}", folder.name))
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns true if a request for the path would reach this tree.
    fn is_reachable(&self, path: &str) -> bool {
        let is_own = SafePath::from_decoded(path).is_ok_and(|safe| safe.as_str() == path && !safe.has_dot_segment());
        is_own && self.access.reaches_tree(path)
    }

    fn push(&mut self, entry: ArchiveEntry) -> Result<(), Status> {
        self.paths += entry.name.len();
        if self.entries.len() >= self.limits.entries || self.paths > MAX_PATHS {
            return Err(self.exceeds("entries"));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Logs that the folder exceeds a limit, and returns the status of the response.
    fn exceeds(&self, key: &'static str) -> Status {
        failure_log::archive_limit(self.tree, key);
        Status::FORBIDDEN
    }
}

/// Returns the time of the last change in seconds.
fn seconds(meta: &Meta) -> i64 {
    i64::try_from(meta.modified_ns.div_euclid(1_000_000_000)).unwrap_or(0)
}

/// Joins the path of a folder below the root with a name.
fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder {
        b"." | b"" => name.to_vec(),
        folder => [folder, b"/", name].concat(),
    }
}

impl Scanned {
    /// Returns the path of an entry below the root.
    pub fn path_of(&self, entry: &ArchiveEntry) -> Vec<u8> {
        join(&self.relative, &entry.name.as_bytes()[self.prefix..])
    }
}
