//! Libraries in use: one for each file, shared by all who name it, and loaded anew when the file has changed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rocknet_config::model;
use rocknet_controller::host::{self, Library};
use rustix::fs::{MemfdFlags, memfd_create};

use super::isolated::Isolated;
use super::{draft, isolated};

/// Bytes of a library: with everything linked into it and its symbols there are some of a hundred million.
const MAX_LIBRARY: u64 = 512 * 1024 * 1024;

/// Why a controller is not to be had.
#[derive(Debug)]
pub enum LoadError {
    Unreadable(io::Error),
    TooLarge,
    Library(host::LoadError),
    /// What the process of an isolated one says.
    Isolated(String),
    NoController {
        has: Vec<String>,
    },
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp([u64; 4]);

impl Stamp {
    fn of(file: &Metadata) -> Stamp {
        let changed = file.mtime().cast_unsigned().wrapping_mul(1_000_000_000);
        let changed = changed.wrapping_add(file.mtime_nsec().cast_unsigned());
        Stamp([file.dev(), file.ino(), changed, file.size()])
    }
}

/// Libraries that are held by some snapshot or request, as they were when they were loaded.
struct Shelf<L>(Mutex<BTreeMap<PathBuf, (Stamp, Weak<L>)>>);

static HERE: Shelf<Library> = Shelf::new();
static ISOLATED: Shelf<Isolated> = Shelf::new();

/// The controller that is meant, its library loaded if it is not yet as it is now.
pub fn controller(wanted: &model::Controller) -> Result<host::Controller, LoadError> {
    let path = &wanted.library;
    let library = HERE.library(path, |image| load(path, &image))?;
    host::Controller::find(&library, &wanted.name).ok_or_else(|| LoadError::NoController {
        has: library.names().map(str::to_owned).collect(),
    })
}

/// The same in a process of its own.
pub fn isolated(wanted: &model::Controller) -> Result<isolated::Controller, LoadError> {
    let path = &wanted.library;
    let library = ISOLATED.library(path, |image| Isolated::load(path, image).map_err(LoadError::Isolated))?;
    isolated::Controller::find(&library, &wanted.name).ok_or_else(|| LoadError::NoController {
        has: library.names().map(str::to_owned).collect(),
    })
}

impl<L> Shelf<L> {
    const fn new() -> Shelf<L> {
        Shelf(Mutex::new(BTreeMap::new()))
    }

    /// The library of a file, loaded of a copy of it if it is not yet as it is now.
    fn library(&self, path: &Path, load: impl FnOnce(File) -> Result<L, LoadError>) -> Result<Arc<L>, LoadError> {
        let file = File::open(path).map_err(LoadError::Unreadable)?;
        let stamp = Stamp::of(&file.metadata().map_err(LoadError::Unreadable)?);
        // Held while a library begins: two who want the same one get the same one.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, library)) = all.get(path)
            && let (true, Some(library)) = (*known == stamp, library.upgrade())
        {
            return Ok(library);
        }
        let library = Arc::new(load(image(&file)?)?);
        all.retain(|_, (_, library)| library.strong_count() > 0);
        all.insert(path.to_owned(), (stamp, Arc::downgrade(&library)));
        Ok(library)
    }
}

fn load(path: &Path, image: &File) -> Result<Library, LoadError> {
    let name = name(image);
    let library = Library::load(&name, draft::log).map_err(|error| match error {
        // Its author knows the file by another name.
        host::LoadError::NotLoaded(text) => {
            host::LoadError::NotLoaded(text.replace(&*name.to_string_lossy(), &path.to_string_lossy()))
        }
        error => error,
    });
    library.map_err(LoadError::Library)
}

/// A copy of the file that nobody else has. A library that is loaded is mapped, and whoever writes over its file would
/// write into the code that runs; and the system's loader gives what it has already for a file that it knows.
fn image(file: &File) -> Result<File, LoadError> {
    let copy =
        memfd_create("rocknet-controller", MemfdFlags::CLOEXEC).map_err(|error| LoadError::Unreadable(error.into()))?;
    let mut copy = File::from(copy);
    let copied = io::copy(&mut file.take(MAX_LIBRARY + 1), &mut copy).map_err(LoadError::Unreadable)?;
    if copied > MAX_LIBRARY {
        return Err(LoadError::TooLarge);
    }
    Ok(copy)
}

/// A name for an open file by which no other was ever loaded: descriptors are used again, and the loader would take one
/// name for one library. The number stands in the slashes, which mean the same however many there are.
fn name(image: &File) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = String::from("/proc/self");
    for bit in 0..u32::BITS {
        name.push_str(if number >> bit & 1 == 1 { "//" } else { "/." });
    }
    name.push_str(&format!("/fd/{}", image.as_raw_fd()));
    name.into()
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable(error) => error.fmt(f),
            LoadError::TooLarge => write!(f, "it has more than {} MiB", MAX_LIBRARY >> 20),
            LoadError::Library(error) => error.fmt(f),
            LoadError::Isolated(why) => f.write_str(why),
            LoadError::NoController { has } => write!(f, "it has no such controller, but `{}`", has.join("`, `")),
        }
    }
}

impl std::error::Error for LoadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_given_twice_and_each_leads_to_the_file() {
        let here = File::open("/proc/self/exe").expect("this program");
        let inode = here.metadata().expect("its state").ino();
        let names: Vec<PathBuf> = (0..100).map(|_| name(&here)).collect();
        for (number, name) in names.iter().enumerate() {
            assert_eq!(
                std::fs::metadata(name).expect("a file").ino(),
                inode,
                "{}",
                name.display()
            );
            let text = name.as_os_str();
            assert!(
                names[..number].iter().all(|other| other.as_os_str() != text),
                "{}",
                name.display()
            );
        }
    }
}
