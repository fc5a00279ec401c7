//! Loads a library: checks its table before the first call, and calls its `drop` when the last reference is gone.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::path::Path;

use super::call::{self, SERVER};
use crate::abi;
use crate::request::Level;

/// Maximum number of entries of a table. More entries indicate an invalid table.
const MAX_CONTROLLERS: usize = 1024;
/// Sizes of the tables in version 1.0, which every library of this major version has at least. Later versions append
/// fields.
const MIN_TABLE: usize = size_of::<abi::RawLibrary>();
const MIN_CONTROLLER: usize = size_of::<abi::RawController>();

/// Library of controllers that has been loaded and initialized.
pub struct LoadedLibrary {
    table: abi::RawLibrary,
    /// Pointer that `init` of the library has stored; null otherwise.
    stored_pointer: *mut c_void,
    entries: Vec<(String, abi::RawController)>,
    /// Unloads the library when dropped, so it must be the last field. `None` if the library is linked into this
    /// program.
    _library: Option<libloading::Library>,
}

// SAFETY: the contract permits calls of all functions in the tables on any thread, and no field changes.
unsafe impl Send for LoadedLibrary {}
// SAFETY: as above. `stored_pointer` belongs to the library, and the contract states that calls for different
// requests may overlap.
unsafe impl Sync for LoadedLibrary {}

/// Start of every table.
#[repr(C)]
struct TableHeader {
    size: u32,
    major: u16,
    minor: u16,
}

/// Reason why a library was rejected. In the texts, “it” is the library.
#[derive(Debug)]
pub enum LoadError {
    /// The system's loader failed with this message.
    NotLoaded(String),
    /// The library does not export `rocknet_library`.
    NoEntry,
    /// The library is built for another major version of the ABI.
    Version {
        /// Major version of the library.
        major: u16,
        /// Minor version of the library.
        minor: u16,
    },
    /// The table of the library is invalid.
    Table(&'static str),
    /// `init` of the library returned this value.
    Init(i32),
}

impl LoadedLibrary {
    /// Loads a library and calls its `init`. `log` receives log lines that belong to no request. All libraries share
    /// one receiver: the one that this process passed first.
    ///
    /// Constructors of the library run during this call, with the privileges of this process.
    ///
    /// # Errors
    ///
    /// Returns the reason if the library cannot be loaded, its table is invalid or `init` fails.
    pub fn load(path: &Path, log: fn(Level, &[u8])) -> Result<LoadedLibrary, LoadError> {
        call::set_log(log);
        let library = open(path)?;
        // SAFETY: the function has this type by contract, and its symbol is used while the library is loaded.
        let entry = unsafe { library.get::<abi::EntryFn>(abi::ENTRY.as_bytes()) }.map_err(|_| LoadError::NoEntry)?;
        let entry = *entry;
        LoadedLibrary::initialize(entry, Some(library))
    }

    /// Uses a library that is linked into this program, by its `rocknet_library` function. `log` is as for
    /// [`LoadedLibrary::load`].
    ///
    /// # Errors
    ///
    /// Returns the reason if its table is invalid or `init` fails.
    pub fn linked(entry: abi::EntryFn, log: fn(Level, &[u8])) -> Result<LoadedLibrary, LoadError> {
        call::set_log(log);
        LoadedLibrary::initialize(entry, None)
    }

    /// Checks the table that `entry` returns, and calls `init` of the library. `library` is `None` if it is linked into
    /// this program.
    fn initialize(entry: abi::EntryFn, library: Option<libloading::Library>) -> Result<LoadedLibrary, LoadError> {
        // SAFETY: the function takes no arguments and returns a table that lives as long as the library.
        let start = unsafe { entry() };
        // SAFETY: a table of any version begins with its size and version.
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
        // SAFETY: the table states this size, and its pointers and numbers may all be zero.
        let table: abi::RawLibrary = unsafe { read_known_part(start.cast(), size) };
        let entries = entries(&table)?;
        let mut library = LoadedLibrary {
            table: abi::RawLibrary { drop: None, ..table },
            stored_pointer: std::ptr::null_mut(),
            entries,
            _library: library,
        };
        if let Some(init) = library.table.init {
            // SAFETY: the arguments follow the contract: the server's table is static, and `stored_pointer` is a field
            // of `library`.
            let code = unsafe { init(&raw const SERVER, &raw mut library.stored_pointer) };
            if code != abi::OK {
                return Err(LoadError::Init(code));
            }
        }
        // Set only after `init`, because `drop` must not be called after a failed `init`.
        library.table.drop = table.drop;
        Ok(library)
    }

    /// Returns the names of the controllers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn entries(&self) -> &[(String, abi::RawController)] {
        &self.entries
    }

    pub(super) fn stored_pointer(&self) -> *mut c_void {
        self.stored_pointer
    }
}

fn open(path: &Path) -> Result<libloading::Library, LoadError> {
    // SAFETY: the operator chose the code that runs on loading by naming the library in the configuration.
    unsafe { libloading::Library::new(path) }.map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        LoadError::NotLoaded(cause.unwrap_or_else(|| error.to_string()))
    })
}

/// Reads the entries of the controllers, with their names.
fn entries(table: &abi::RawLibrary) -> Result<Vec<(String, abi::RawController)>, LoadError> {
    let (count, size) = (table.controller_count as usize, table.controller_size as usize);
    if count == 0 || table.controllers.is_null() {
        return Err(LoadError::Table("it has no controllers"));
    }
    if size < MIN_CONTROLLER || !size.is_multiple_of(align_of::<abi::RawController>()) {
        return Err(LoadError::Table("the size of its controller entries is invalid"));
    }
    if count > MAX_CONTROLLERS {
        return Err(LoadError::Table("it has more than 1,024 controllers"));
    }
    let mut entries = Vec::with_capacity(count);
    for number in 0..count {
        // SAFETY: the table states this number of entries of this size. All fields of an entry may be zero.
        let entry: abi::RawController =
            unsafe { read_known_part(table.controllers.cast::<u8>().add(number * size), size) };
        if entry.name.is_null() || entry.answer.is_none() {
            return Err(LoadError::Table("one of its controllers has no name or no function"));
        }
        // SAFETY: names end in NUL by contract.
        let name = unsafe { CStr::from_ptr(entry.name) };
        entries.push((name.to_string_lossy().into_owned(), entry));
    }
    Ok(entries)
}

/// Copies the part of a table that both sides know. Fields of `T` after this part are zero.
///
/// # Safety
///
/// There must be `size` bytes at `start`, and zero must be a valid value for every field of `T`.
unsafe fn read_known_part<T>(start: *const u8, size: usize) -> T {
    let mut table = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the copy stays within both sizes. The remaining bytes are zero, which is valid.
    unsafe {
        std::ptr::copy_nonoverlapping(start, table.as_mut_ptr().cast(), size.min(size_of::<T>()));
        table.assume_init()
    }
}

impl Drop for LoadedLibrary {
    fn drop(&mut self) {
        if let Some(drop_library) = self.table.drop {
            // SAFETY: the last reference is gone, so no call is running, and `drop` is called only here.
            unsafe { drop_library(self.stored_pointer) }
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NotLoaded(error) => f.write_str(error),
            LoadError::NoEntry => write!(
                f,
                "it is not a controller library: the symbol `{}` is missing",
                abi::ENTRY
            ),
            LoadError::Version { major, minor } => write!(
                f,
                "it is built for version {major}.{minor} of the ABI, but this server has {}.{}: rebuild it with \
                 rocknet_controller.h of this server",
                abi::MAJOR,
                abi::MINOR
            ),
            LoadError::Table(what) => f.write_str(what),
            LoadError::Init(code) => write!(
                f,
                "its `init` failed with {code}; see the log lines before this one, if it wrote any"
            ),
        }
    }
}

impl std::error::Error for LoadError {}
