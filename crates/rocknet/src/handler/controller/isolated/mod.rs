//! Isolated controllers: a library runs in a process of its own, whose death is an answer of 502 and not the server's.
//!
//! ```text
//!   server                                                 a process for each library
//!   conversation.rs ── frames on a connection of its own ── inside.rs: a thread for each connection ⇄ the library
//!   place.rs: how many at once                               │
//!   supervisor.rs: a thread for each ─── control.rs ─────────┘ loads, tells what it has, logs
//!        └─ process.rs: started, listened to, ended; started again when it dies
//! ```
//! The process is this program, started anew: it has the rights that the server has at that moment, and of its descriptors
//! none but an end of each of these sockets. It ends with the server, however that ends.

mod body;
mod control;
mod conversation;
mod inside;
mod place;
mod process;
mod supervisor;
mod supervisors;

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use self::control::Entry;
use self::supervisor::Supervised;

pub use self::conversation::answer;
pub use self::supervisors::Supervisors;

/// How this program is told that it is to run a library. Nobody types it.
const WORD: &str = "run-isolated-library";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Where the program is that runs libraries: one whose `main` asks [`entered`]. Without it there are no isolated controllers.
/// The first who says so is heard.
pub fn run_by(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
}

fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// Whether this process was started to run a library, and how it ended then. To be asked before anything else is done.
pub fn entered() -> Option<ExitCode> {
    let is_meant = std::env::args_os().nth(1).as_deref() == Some(OsStr::new(WORD));
    is_meant.then(inside::run)
}

/// A library that runs in a process of its own, for as long as this is held.
pub struct Isolated {
    supervised: Arc<Supervised>,
    entries: Vec<Entry>,
}

/// A controller of it.
#[derive(Clone)]
pub struct Controller {
    library: Arc<Isolated>,
    number: u16,
    takes: bool,
    gives: bool,
}

impl Isolated {
    /// Starts a process and has it load the library, of which `image` is a copy that nobody changes. The error says what
    /// was wrong.
    pub fn load(path: &Path, image: File, supervisors: &Supervisors) -> Result<Isolated, String> {
        if program().is_none() {
            return Err("this program cannot run libraries in processes of their own: remove `isolate`".to_owned());
        }
        let (supervised, entries) = supervisors.start(path, image)?;
        Ok(Isolated { supervised, entries })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        self.supervised.end();
    }
}

impl Controller {
    pub fn find(library: &Arc<Isolated>, name: &str) -> Option<Controller> {
        let found = library.entries.iter().position(|entry| entry.name == name)?;
        let Entry { takes, gives, .. } = library.entries[found];
        Some(Controller {
            library: Arc::clone(library),
            number: u16::try_from(found).ok()?,
            takes,
            gives,
        })
    }
}

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
