//! A loaded library: checked before anything of it is called, ended when nobody holds it any more.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::path::Path;

use super::call::{self, SERVER};
use crate::abi;
use crate::request::Level;

/// More are in no library: a table that says so is none.
const MAX_CONTROLLERS: usize = 1024;
/// The tables of version 1.0, which every library of this major version has at least. What later versions add stands
/// behind that, and does not count here.
const MIN_TABLE: usize = size_of::<abi::RawLibrary>();
const MIN_CONTROLLER: usize = size_of::<abi::RawController>();

pub struct LoadedLibrary {
    table: abi::RawLibrary,
    user: *mut c_void,
    entries: Vec<(String, abi::RawController)>,
    /// Unloads the library when it is dropped, behind everything else.
    _library: Option<libloading::Library>,
}

// SAFETY: the contract lets everything in the tables be called on any thread, and nothing here changes.
unsafe impl Send for LoadedLibrary {}
// SAFETY: as above; `user` is the library's, which is told that calls overlap.
unsafe impl Sync for LoadedLibrary {}

/// How every table begins.
#[repr(C)]
struct TableHeader {
    size: u32,
    major: u16,
    minor: u16,
}

/// Why a library was not taken.
#[derive(Debug)]
pub enum LoadError {
    /// What the system's loader says.
    NotLoaded(String),
    /// A library, but not of controllers.
    NoEntry,
    Version {
        major: u16,
        minor: u16,
    },
    /// What it says of itself cannot be.
    Table(&'static str),
    Init(i32),
}

impl LoadedLibrary {
    /// Loads a library and begins it. Whatever runs when a library is loaded runs here, with the rights of this process.
    /// `log` is where lines go that belong to no request.
    pub fn load(path: &Path, log: fn(Level, &[u8])) -> Result<LoadedLibrary, LoadError> {
        call::set_log(log);
        let library = open(path)?;
        // SAFETY: this is how the contract has the function, and its symbol is used while the library is loaded.
        let entry = unsafe { library.get::<abi::EntryFn>(abi::ENTRY.as_bytes()) }.map_err(|_| LoadError::NoEntry)?;
        let entry = *entry;
        LoadedLibrary::initialize(entry, Some(library))
    }

    /// A library that is linked into this program: what `entry` gives is part of it.
    pub fn linked(entry: abi::EntryFn, log: fn(Level, &[u8])) -> Result<LoadedLibrary, LoadError> {
        call::set_log(log);
        LoadedLibrary::initialize(entry, None)
    }

    fn initialize(entry: abi::EntryFn, library: Option<libloading::Library>) -> Result<LoadedLibrary, LoadError> {
        // SAFETY: it takes nothing, and gives a table that lives as long as the library.
        let start = unsafe { entry() };
        // SAFETY: a table begins with its size and version, whatever its version is.
        let Some(&TableHeader { size, major, minor }) = (unsafe { start.cast::<TableHeader>().as_ref() }) else {
            return Err(LoadError::Table("it has no table"));
        };
        if major != abi::MAJOR {
            return Err(LoadError::Version { major, minor });
        }
        let size = size as usize;
        if size < MIN_TABLE {
            return Err(LoadError::Table("its table is too short"));
        }
        // SAFETY: it says that so many bytes are there, and the pointers and numbers of a table may all be zero.
        let table: abi::RawLibrary = unsafe { read_known_part(start.cast(), size) };
        let entries = entries(&table)?;
        let mut library = LoadedLibrary {
            table: abi::RawLibrary { drop: None, ..table },
            user: std::ptr::null_mut(),
            entries,
            _library: library,
        };
        if let Some(init) = library.table.init {
            // SAFETY: this is how the contract has it; the server's table is static, and the place is ours.
            let code = unsafe { init(&raw const SERVER, &raw mut library.user) };
            if code != abi::OK {
                return Err(LoadError::Init(code));
            }
        }
        // Only what has begun is ended.
        library.table.drop = table.drop;
        Ok(library)
    }

    /// The names of its controllers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn entries(&self) -> &[(String, abi::RawController)] {
        &self.entries
    }

    pub(super) fn user(&self) -> *mut c_void {
        self.user
    }
}

fn open(path: &Path) -> Result<libloading::Library, LoadError> {
    // SAFETY: what runs when it is loaded is the operator's choice, who wrote its name into the configuration.
    unsafe { libloading::Library::new(path) }.map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        LoadError::NotLoaded(cause.unwrap_or_else(|| error.to_string()))
    })
}

fn entries(table: &abi::RawLibrary) -> Result<Vec<(String, abi::RawController)>, LoadError> {
    let (count, size) = (table.controller_count as usize, table.controller_size as usize);
    if count == 0 || table.controllers.is_null() {
        return Err(LoadError::Table("it has no controllers"));
    }
    if size < MIN_CONTROLLER || !size.is_multiple_of(align_of::<abi::RawController>()) {
        return Err(LoadError::Table(
            "the entries of its controllers have a size that cannot be",
        ));
    }
    if count > MAX_CONTROLLERS {
        return Err(LoadError::Table("it says that it has more than 1,024 controllers"));
    }
    let mut entries = Vec::with_capacity(count);
    for number in 0..count {
        // SAFETY: it says that so many entries of that size are there; all in them may be zero.
        let entry: abi::RawController =
            unsafe { read_known_part(table.controllers.cast::<u8>().add(number * size), size) };
        if entry.name.is_null() || entry.answer.is_none() {
            return Err(LoadError::Table("one of its controllers has no name or no function"));
        }
        // SAFETY: the contract says that names end in NUL.
        let name = unsafe { CStr::from_ptr(entry.name) };
        entries.push((name.to_string_lossy().into_owned(), entry));
    }
    Ok(entries)
}

/// As much of a table as both sides know; what the other does not have is zero.
///
/// # Safety
///
/// There are `size` bytes at `start`, and zero is a good value for every part of `T`.
unsafe fn read_known_part<T>(start: *const u8, size: usize) -> T {
    let mut table = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: no more is read than is there, and no more written than there is room for; the rest is zero, and good.
    unsafe {
        std::ptr::copy_nonoverlapping(start, table.as_mut_ptr().cast(), size.min(size_of::<T>()));
        table.assume_init()
    }
}

impl Drop for LoadedLibrary {
    fn drop(&mut self) {
        if let Some(end) = self.table.drop {
            // SAFETY: nobody holds the library any more, so no call is under way, and this is the only one of its end.
            unsafe { end(self.user) }
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NotLoaded(error) => f.write_str(error),
            LoadError::NoEntry => write!(
                f,
                "it is a library, but has no controllers: `{}` is missing",
                abi::ENTRY
            ),
            LoadError::Version { major, minor } => write!(
                f,
                "it is built for version {major}.{minor} of the contract, and this server has {}.{}: build it anew with \
                 rocknet_controller.h of this server",
                abi::MAJOR,
                abi::MINOR
            ),
            LoadError::Table(what) => f.write_str(what),
            LoadError::Init(code) => write!(
                f,
                "its `init` failed with {code}; the lines before tell more, if it wrote some"
            ),
        }
    }
}

impl std::error::Error for LoadError {}
