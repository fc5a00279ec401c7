//! Finds the files and folders of an archive: those that the client can reach from the requested folder by following
//! listings. A scan runs in short steps, so that it ends soon after the client has disconnected, and does not occupy a
//! thread while other jobs wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rocknet_io::confined_fs::{DirEntry, FileKind, Meta, OpenDirectory, OpenError, Root, Symlinks};
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use super::folder::{Above, ArchiveFolder, join};
use super::format::{ArchiveEntry, Length};
use super::limit::ArchivePermit;
use super::request::ArchiveRequest;
use super::version::FileVersion;
use crate::disk_lookup::DiskLookup;
use crate::failure_log::{self, ArchiveBound};
use crate::path_access::PathAccess;
use crate::resolve::{self, Target, logged_status};
use crate::script::NameClass;
use crate::tree::Tree;

/// Maximum total length in bytes of the paths that a scan keeps: those of the entries and of the folders still to be
/// read, and the names in the folder that is being read. It bounds the memory of a scan.
const MAX_PATHS: usize = 8 << 20;
/// Maximum number of names that a scan reads, as a multiple of `browse.zip.entries`. Names that are left out, such as
/// those of hidden files, count too, because reading them takes time.
const NAMES_FOR_EACH_ENTRY: usize = 4;

/// Number of names after which a step ends, so that other jobs of the pool run between two steps. Opening a folder and
/// adding an entry count as one name each.
const STEP_NAMES: usize = 256;
/// Time after which a step ends, even if a slow disk has returned fewer names.
const STEP_TIME: Duration = Duration::from_millis(20);
/// Number of names that are read from a folder at once: fewer than [`STEP_NAMES`], so that a step ends within a large
/// folder.
const NAMES_AT_ONCE: usize = 64;

/// The content of an archive, before it is sent.
pub struct Scanned {
    /// Files and folders. A folder precedes its content.
    pub entries: Vec<ScannedEntry>,
    /// The root in which the entries were found. Their content is read from it, even if another folder takes its path
    /// meanwhile.
    pub root: Arc<Root>,
    /// Symbolic links that are followed.
    pub symlinks: Symlinks,
    /// Path of the requested folder below the root.
    pub relative: Vec<u8>,
    /// Length in bytes of the top folder's name with its slash, with which the names of all entries begin.
    pub prefix: usize,
    /// Length of the archive without compression.
    pub length: u64,
    /// Counts the archive until it was sent.
    pub _permit: ArchivePermit,
}

/// A file or folder of an archive, before it is sent.
pub struct ScannedEntry {
    /// The entry in the archive.
    pub entry: ArchiveEntry,
    /// State of the file; `None` for a folder.
    pub version: Option<FileVersion>,
}

/// Result of a step of a scan.
pub enum Step<A> {
    /// The scan has not ended.
    More(Box<Scan<A>>),
    /// The scan has ended.
    Done(Box<Scanned>),
}

/// State of a scan.
pub struct Scan<A> {
    request: ArchiveRequest,
    /// Name of the requested folder in the archive.
    name: String,
    access: A,
    permit: ArchivePermit,
    lookup: DiskLookup,
    root: Arc<Root>,
    stage: Stage,
    entries: Vec<ScannedEntry>,
    length: Length,
    /// Folders that are not read yet. The last one is read first.
    folders: Vec<ArchiveFolder>,
    /// Bytes of the paths of `entries`.
    paths: usize,
    /// Bytes of the paths of `folders`.
    folder_paths: usize,
    /// Size of all files so far.
    size: u64,
    /// Number of names read so far.
    names: usize,
}

/// The next part of a scan.
enum Stage {
    /// The last of the folders that are not read yet.
    NextFolder,
    /// The rest of the names of a folder.
    Reading(Box<Reading>),
    /// The rest of the entries of a folder, in order.
    Adding(Box<Adding>),
    End,
}

struct Reading {
    folder: ArchiveFolder,
    directory: OpenDirectory,
    found: Vec<DirEntry>,
    /// Bytes of the names in `found`.
    name_bytes: usize,
}

struct Adding {
    folder: ArchiveFolder,
    found: std::vec::IntoIter<(String, DirEntry)>,
    /// Number of folders that were not read yet when the first entry was added.
    before: usize,
}

impl<A: PathAccess> Scan<A> {
    /// Starts a scan. `name`: name of the requested folder in the archive. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// Returns the status of the response if the folder cannot be read.
    pub fn start(
        request: ArchiveRequest,
        name: String,
        access: A,
        permit: ArchivePermit,
    ) -> Result<Box<Scan<A>>, Status> {
        let tree = &request.tree;
        let root = tree.root().map_err(|_| Status::NOT_FOUND)?;
        let top = root
            .stat(&request.relative, tree.symlinks)
            .map_err(|error| logged_status(&error, tree, &request.relative))?;
        let folder = ArchiveFolder {
            tree: Arc::clone(tree),
            path: request.path.to_string(),
            relative: request.relative.clone(),
            name: format!("{name}/"),
            depth: 0,
            modified_unix: seconds(&top),
            above: Arc::new(Above::of(&top, None)),
        };
        Ok(Box::new(Scan {
            name,
            access,
            permit,
            lookup: DiskLookup::blocking_in(Arc::clone(&root)),
            root,
            stage: Stage::NextFolder,
            entries: Vec::new(),
            length: Length::default(),
            folder_paths: folder.path_bytes(),
            folders: vec![folder],
            paths: 0,
            size: 0,
            names: 0,
            request,
        }))
    }

    /// Scans further for a short time. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// Returns the status of the response if a folder cannot be read or the archive would exceed a limit.
    pub fn step(mut self: Box<Self>) -> Result<Step<A>, Status> {
        let begin = Instant::now();
        let mut names = 0;
        while names < STEP_NAMES && begin.elapsed() < STEP_TIME {
            let stage = std::mem::replace(&mut self.stage, Stage::End);
            self.stage = match stage {
                Stage::NextFolder => {
                    names += 1;
                    self.open_next()?
                }
                Stage::Reading(reading) => self.read(reading, &mut names)?,
                Stage::Adding(adding) => {
                    names += 1;
                    self.add_next(adding)?
                }
                Stage::End => return Ok(Step::Done(Box::new(self.finish()))),
            };
        }
        Ok(Step::More(self))
    }

    fn finish(self) -> Scanned {
        Scanned {
            length: self.length.finish(self.entries.len()),
            entries: self.entries,
            root: self.root,
            symlinks: self.request.tree.symlinks,
            prefix: self.name.len() + 1,
            relative: self.request.relative,
            _permit: self.permit,
        }
    }

    /// Opens the next folder.
    fn open_next(&mut self) -> Result<Stage, Status> {
        let Some(folder) = self.folders.pop() else {
            return Ok(Stage::End);
        };
        self.folder_paths -= folder.path_bytes();
        match self.root.open_directory(&folder.relative, folder.tree.symlinks) {
            Ok(directory) => Ok(Stage::Reading(Box::new(Reading {
                folder,
                directory,
                found: Vec::new(),
                name_bytes: 0,
            }))),
            Err(error) => Self::left_out(&folder, &error),
        }
    }

    /// Leaves out a folder that was removed or became inaccessible meanwhile. For the top folder of the archive, this
    /// is an error.
    fn left_out(folder: &ArchiveFolder, error: &OpenError) -> Result<Stage, Status> {
        let is_gone = matches!(error, OpenError::NotFound | OpenError::Forbidden | OpenError::Escapes);
        if is_gone && folder.depth > 0 {
            failure_log::archive_without(&folder.tree, &folder.relative, error);
            return Ok(Stage::NextFolder);
        }
        Err(logged_status(error, &folder.tree, &folder.relative))
    }

    /// Reads the next names of a folder. Adds the folder to the archive once all its names are read.
    fn read(&mut self, mut reading: Box<Reading>, names: &mut usize) -> Result<Stage, Status> {
        let found = self
            .root
            .read_directory(&mut reading.directory, NAMES_AT_ONCE, &mut reading.found);
        let count = match found {
            Ok(count) => count,
            Err(error) => return Self::left_out(&reading.folder, &error),
        };
        *names += count;
        self.names += count;
        let new = reading.found.iter().rev().take(count);
        reading.name_bytes += new.map(|entry| entry.name.len()).sum::<usize>();
        self.check_paths(reading.name_bytes)?;
        if self.names > self.request.limits.entries.saturating_mul(NAMES_FOR_EACH_ENTRY) {
            return Err(self.exceeds(ArchiveBound::Names));
        }
        // Fewer names are returned only at the end of the folder.
        if count == NAMES_AT_ONCE {
            return Ok(Stage::Reading(reading));
        }
        let Reading { folder, found, .. } = *reading;
        if folder.depth > 0 {
            self.push(ArchiveEntry::new(folder.name.clone(), 0, folder.modified_unix), None)?;
        }
        let mut found: Vec<(String, DirEntry)> = found
            .into_iter()
            .filter_map(|mut entry| Some((std::mem::take(&mut entry.name).into_string().ok()?, entry)))
            .filter(|(name, _)| !name.starts_with('.'))
            .collect();
        found.sort_unstable_by(|(one, _), (two, _)| one.cmp(two));
        Ok(Stage::Adding(Box::new(Adding {
            folder,
            found: found.into_iter(),
            before: self.folders.len(),
        })))
    }

    /// Adds the next file or folder of a folder.
    fn add_next(&mut self, mut adding: Box<Adding>) -> Result<Stage, Status> {
        let Some((name, entry)) = adding.found.next() else {
            // The last folder is read first.
            self.folders[adding.before..].reverse();
            return Ok(Stage::NextFolder);
        };
        let folder = &adding.folder;
        let relative = join(&folder.relative, name.as_bytes());
        match entry.meta.kind {
            FileKind::File => {
                let path = format!("{}{name}", folder.path);
                self.add_file(&path, &relative, format!("{}{name}", folder.name))?;
            }
            FileKind::Directory => self.add_folder(folder, &name, relative, &entry.meta)?,
        }
        Ok(Stage::Adding(adding))
    }

    /// Adds a file if a request for its path would get it.
    fn add_file(&mut self, path: &str, relative: &[u8], name: String) -> Result<(), Status> {
        let Some(tree) = self.tree_at(path) else { return Ok(()) };
        // `resolve` would log that a program or script is not sent, so these files are left out before. Like `resolve`,
        // this code recognizes them by the site's path of the file itself, not by the requested `path`. The two differ
        // if `try` leads to another folder: with `try = ["/b{path}"]`, a request for `/x.php` gets `/b/x.php`.
        let site_path = tree.of_site(&format!("/{}", String::from_utf8_lossy(relative)));
        let is_file = NameClass::of(site_path.as_bytes()) == NameClass::File;
        if tree.is_program(&site_path) || tree.runs_scripts && !is_file {
            return Ok(());
        }
        let opened = match resolve::resolve(&self.lookup, &tree, path) {
            Target::File {
                opened,
                relative: found,
            } if found == relative => opened,
            _ => return Ok(()),
        };
        let Ok(version) = FileVersion::of(&opened.file) else {
            return Ok(());
        };
        self.size = self.size.saturating_add(opened.meta.size);
        if self.size > self.request.limits.size {
            return Err(self.exceeds(ArchiveBound::Size));
        }
        let entry = ArchiveEntry::new(name, opened.meta.size, seconds(&opened.meta));
        self.push(entry, Some(version))
    }

    /// Adds a folder if a request for its path would list it, or its index file if it has one.
    fn add_folder(&mut self, parent: &ArchiveFolder, name: &str, relative: Vec<u8>, meta: &Meta) -> Result<(), Status> {
        let path = format!("{}{name}/", parent.path);
        // A symbolic link can lead to `parent` or to a folder above it. Following it would never end.
        if parent.above.contains(meta) {
            return Ok(());
        }
        // Requests below the path of CGI programs (`/cgi-bin/`) run programs, whatever the folder contains.
        let Some(tree) = self.tree_at(&path).filter(|tree| !tree.is_program(&path)) else {
            return Ok(());
        };
        let folder = ArchiveFolder {
            name: format!("{}{name}/", parent.name),
            depth: parent.depth + 1,
            modified_unix: seconds(meta),
            above: Arc::new(Above::of(meta, Some(Arc::clone(&parent.above)))),
            tree,
            path,
            relative,
        };
        match resolve::resolve(&self.lookup, &folder.tree, &folder.path) {
            Target::Directory { relative: found } if found == folder.relative => {
                if folder.depth > self.request.limits.depth {
                    return Err(self.exceeds(ArchiveBound::Depth));
                }
                // Each of these folders becomes an entry when it is read.
                if self.entries.len() + self.folders.len() >= self.request.limits.entries {
                    return Err(self.exceeds(ArchiveBound::Entries));
                }
                self.folder_paths += folder.path_bytes();
                self.folders.push(folder);
                self.check_paths(0)
            }
            Target::File { relative: found, .. } => {
                let index = found
                    .strip_prefix(&folder.relative[..])
                    .and_then(|rest| rest.strip_prefix(b"/"))
                    .and_then(|index| std::str::from_utf8(index).ok());
                match index {
                    Some(index) => {
                        self.push(ArchiveEntry::new(folder.name.clone(), 0, seconds(meta)), None)?;
                        let path = format!("{}{index}", folder.path);
                        self.add_file(&path, &found, format!("{}{index}", folder.name))
                    }
                    // A `fallback` or `try` leads to a file outside of the folder.
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns the tree that a request for the path would reach. Returns `None` unless it is the tree of the archive,
    /// or leads to the same files with the same link policy and offers archives too.
    fn tree_at(&self, path: &str) -> Option<Arc<Tree>> {
        let safe = SafePath::from_decoded(path).ok()?;
        if safe.as_str() != path || safe.has_dot_segment() {
            return None;
        }
        let own = &self.request.tree;
        let tree = self.access.tree_at(path)?;
        let offers_zip = tree.browse.as_ref().is_some_and(|browse| browse.zip.is_some());
        (Arc::ptr_eq(&tree, own) || offers_zip && tree.is_at_same_place(own) && tree.symlinks == own.symlinks)
            .then_some(tree)
    }

    fn push(&mut self, mut entry: ArchiveEntry, version: Option<FileVersion>) -> Result<(), Status> {
        self.paths += entry.name.len();
        if self.entries.len() >= self.request.limits.entries {
            return Err(self.exceeds(ArchiveBound::Entries));
        }
        self.check_paths(0)?;
        self.length.add(&mut entry);
        self.entries.push(ScannedEntry { entry, version });
        Ok(())
    }

    /// Returns an error if the paths occupy too much memory. `names`: bytes of the names of the folder that is read.
    fn check_paths(&self, names: usize) -> Result<(), Status> {
        match self.paths + self.folder_paths + names > MAX_PATHS {
            true => Err(self.exceeds(ArchiveBound::Paths)),
            false => Ok(()),
        }
    }

    /// Logs that the folder exceeds a limit, and returns the status of the response.
    fn exceeds(&self, bound: ArchiveBound) -> Status {
        failure_log::archive_limit(&self.request.tree, &self.request.relative, bound);
        Status::FORBIDDEN
    }
}

/// Returns the time of the last change in seconds.
fn seconds(meta: &Meta) -> i64 {
    i64::try_from(meta.modified_ns.div_euclid(1_000_000_000)).unwrap_or(0)
}

impl Scanned {
    /// Returns the path of an entry below the root.
    pub fn path_of(&self, entry: &ArchiveEntry) -> Vec<u8> {
        join(&self.relative, &entry.name.as_bytes()[self.prefix..])
    }
}
