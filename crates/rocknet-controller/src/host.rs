//! The server's side of the contract: libraries are loaded and checked, and their controllers called.
//!
//! What a library gives is taken at its word: it is code that runs with the rights of the process. What is checked is what
//! an honest library gets wrong: another version, a table that is too short, a name that is not there.

mod call;
mod contract;
pub mod frame;
mod library;

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

pub use contract::{RequestView, ResponseWriter};
pub use library::{LoadError, LoadedLibrary};

use crate::abi;
use call::Call;

/// A controller of a library, which stays loaded for as long as one of these lives.
#[derive(Clone)]
pub struct LoadedController(Arc<ControllerEntry>);

struct ControllerEntry {
    library: Arc<LoadedLibrary>,
    entry: abi::RawController,
    name: String,
}

// SAFETY: the entry holds functions, and a name that is not used any more; the contract lets the functions be called on
// any thread.
unsafe impl Send for ControllerEntry {}
// SAFETY: as above; the contract says that calls for different requests overlap.
unsafe impl Sync for ControllerEntry {}

/// What a controller keeps of one request from call to call. When this is dropped it is told that the request has ended.
#[derive(Default)]
pub struct RequestState {
    /// What the controller has set, and whose it is.
    held: Option<(*mut c_void, LoadedController)>,
}

// SAFETY: the contract lets every call come on another thread.
unsafe impl Send for RequestState {}

/// How a call ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Continue,
    /// No more content is wanted.
    Enough,
}

/// What a controller gave instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallError(pub i64);

impl LoadedController {
    /// The one of that name, if the library has it.
    pub fn find(library: &Arc<LoadedLibrary>, name: &str) -> Option<LoadedController> {
        let (name, entry) = library.entries().iter().find(|(own, _)| own == name)?;
        Some(LoadedController(Arc::new(ControllerEntry {
            library: Arc::clone(library),
            entry: *entry,
            name: name.clone(),
        })))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn library(&self) -> &Arc<LoadedLibrary> {
        &self.0.library
    }

    /// Whether content is taken in pieces, by [`Controller::take`].
    pub fn takes(&self) -> bool {
        self.0.entry.take.is_some()
    }

    /// Whether more of the body comes from [`Controller::give`].
    pub fn gives(&self) -> bool {
        self.0.entry.give.is_some()
    }

    pub fn answer(
        &self,
        request: &dyn RequestView,
        response: &mut dyn ResponseWriter,
        state: &mut RequestState,
    ) -> Result<Progress, CallError> {
        let Some(function) = self.0.entry.answer else {
            return Err(CallError(abi::UNKNOWN.into()));
        };
        let user = self.0.library.user();
        self.call(request, response, state, |call| {
            // SAFETY: this is what the contract says the function takes; the call outlives it, and `user` is its own.
            progress(unsafe { function(call, user) })
        })
    }

    /// A piece of content, or its end.
    pub fn take(
        &self,
        request: &dyn RequestView,
        response: &mut dyn ResponseWriter,
        state: &mut RequestState,
        piece: Option<&[u8]>,
    ) -> Result<Progress, CallError> {
        let Some(function) = self.0.entry.take else {
            return Err(CallError(abi::UNKNOWN.into()));
        };
        let user = self.0.library.user();
        let (data, size) = piece.map_or((std::ptr::null(), 0), |piece| (piece.as_ptr().cast(), piece.len()));
        self.call(request, response, state, |call| {
            // SAFETY: as in `answer`; the piece outlives the call too.
            progress(unsafe { function(call, user, data, size) })
        })
    }

    /// Has more of the body put into `room`, and tells how much: 0 at the end.
    pub fn give(
        &self,
        request: &dyn RequestView,
        response: &mut dyn ResponseWriter,
        state: &mut RequestState,
        room: &mut [u8],
    ) -> Result<usize, CallError> {
        let Some(function) = self.0.entry.give else {
            return Ok(0);
        };
        let user = self.0.library.user();
        let (start, size) = (room.as_mut_ptr().cast(), room.len());
        self.call(request, response, state, |call| {
            // SAFETY: as in `answer`; the room outlives the call too, and nobody else uses it.
            let given = unsafe { function(call, user, start, size) };
            match usize::try_from(given) {
                Ok(given) if given <= size => Ok(given),
                // It has written beyond its room, or cannot count.
                _ => Err(CallError(given)),
            }
        })
    }

    fn call<T>(
        &self,
        request: &dyn RequestView,
        response: &mut dyn ResponseWriter,
        state: &mut RequestState,
        function: impl FnOnce(*mut abi::RawRequest) -> T,
    ) -> T {
        let before = state.held.as_ref().map_or(std::ptr::null_mut(), |held| held.0);
        let mut call = Call::new(request, response, before);
        let result = function(call.raw());
        let after = call.state();
        match &mut state.held {
            Some(held) => held.0 = after,
            None if after.is_null() => {}
            held => *held = Some((after, self.clone())),
        }
        result
    }
}

fn progress(code: i32) -> Result<Progress, CallError> {
    match code {
        abi::OK => Ok(Progress::Continue),
        abi::ENOUGH => Ok(Progress::Enough),
        code => Err(CallError(code.into())),
    }
}

impl Drop for RequestState {
    fn drop(&mut self) {
        if let Some((state, controller)) = self.held.take()
            && let (false, Some(end)) = (state.is_null(), controller.0.entry.end)
        {
            // SAFETY: the state is the controller's own, nothing else will be called with it, and the library is held.
            unsafe { end(state, controller.0.library.user()) }
        }
    }
}

impl fmt::Debug for LoadedController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedController({})", self.0.name)
    }
}
