//! Server side of the ABI: loads libraries, checks their tables and calls their controllers.
//!
//! A library is trusted, because its code runs with the privileges of the process. The checks find only mistakes of an
//! honest library: a different version, a table that is too short, a missing name.

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

/// Controller of a loaded library. The library remains loaded while a value of this type exists.
#[derive(Clone)]
pub struct LoadedController(Arc<ControllerEntry>);

struct ControllerEntry {
    library: Arc<LoadedLibrary>,
    entry: abi::RawController,
    name: String,
}

// SAFETY: the entry contains function pointers, and a name pointer that is no longer used. The contract permits calls
// of the functions on any thread.
unsafe impl Send for ControllerEntry {}
// SAFETY: as above. The contract states that calls for different requests may overlap.
unsafe impl Sync for ControllerEntry {}

/// State that a controller keeps for one request between calls. Dropping it calls `end` of the controller.
#[derive(Default)]
pub struct RequestState {
    /// Pointer that the controller has set, and the controller itself; `None` until a controller sets a pointer.
    held: Option<(*mut c_void, LoadedController)>,
}

// SAFETY: the contract permits each call to come on a different thread.
unsafe impl Send for RequestState {}

/// Result of a call that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The controller needs the rest of the request body, if there is any (`ROCKNET_OK`).
    Continue,
    /// The controller needs no more of the request body (`ROCKNET_ENOUGH`).
    Enough,
}

/// Failure of a call, with the value that the controller returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallError(pub i64);

impl LoadedController {
    /// Returns the controller of this name, if the library has it.
    pub fn find(library: &Arc<LoadedLibrary>, name: &str) -> Option<LoadedController> {
        let (name, entry) = library.entries().iter().find(|(own, _)| own == name)?;
        Some(LoadedController(Arc::new(ControllerEntry {
            library: Arc::clone(library),
            entry: *entry,
            name: name.clone(),
        })))
    }

    /// Returns the name in the library's table.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the library that contains the controller.
    pub fn library(&self) -> &Arc<LoadedLibrary> {
        &self.0.library
    }

    /// Returns true if the controller takes the request body in pieces, by [`LoadedController::take`].
    pub fn takes(&self) -> bool {
        self.0.entry.take.is_some()
    }

    /// Returns true if the controller produces its response body in pieces, by [`LoadedController::give`].
    pub fn gives(&self) -> bool {
        self.0.entry.give.is_some()
    }

    /// Calls `answer` of the controller.
    ///
    /// # Errors
    ///
    /// Returns the value of the controller if it is neither `ROCKNET_OK` nor `ROCKNET_ENOUGH`.
    pub fn answer(
        &self,
        request: &dyn RequestView,
        response: &mut dyn ResponseWriter,
        state: &mut RequestState,
    ) -> Result<Progress, CallError> {
        let Some(function) = self.0.entry.answer else {
            return Err(CallError(abi::UNKNOWN.into()));
        };
        let library_pointer = self.0.library.stored_pointer();
        self.call(request, response, state, |call| {
            // SAFETY: the function has these parameters by contract. `call` outlives its execution, and
            // `library_pointer` is the pointer that the library has stored.
            progress(unsafe { function(call, library_pointer) })
        })
    }

    /// Passes a piece of the request body to `take`, or its end as `None`.
    ///
    /// # Errors
    ///
    /// Returns the value of the controller if it is neither `ROCKNET_OK` nor `ROCKNET_ENOUGH`, and `ROCKNET_UNKNOWN`
    /// without `take`.
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
        let library_pointer = self.0.library.stored_pointer();
        let (data, size) = piece.map_or((std::ptr::null(), 0), |piece| (piece.as_ptr().cast(), piece.len()));
        self.call(request, response, state, |call| {
            // SAFETY: as in `answer`. The piece outlives the call too.
            progress(unsafe { function(call, library_pointer, data, size) })
        })
    }

    /// Calls `give` to write more of the response body into `room`. Returns the number of bytes: 0 at the end of the
    /// body, and for a controller without `give`.
    ///
    /// # Errors
    ///
    /// Returns the value of the controller if it is negative or exceeds `room`.
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
        let library_pointer = self.0.library.stored_pointer();
        let (start, size) = (room.as_mut_ptr().cast(), room.len());
        self.call(request, response, state, |call| {
            // SAFETY: as in `answer`. The buffer outlives the call too, and nothing else uses it.
            let given = unsafe { function(call, library_pointer, start, size) };
            match usize::try_from(given) {
                Ok(given) if given <= size => Ok(given),
                // A negative value is an error of the controller. A value above `size` is a wrong count or an overflow.
                _ => Err(CallError(given)),
            }
        })
    }

    /// Makes one call of the controller, and keeps the state that the controller has set.
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

/// Converts the value that `answer` or `take` returned.
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
            // SAFETY: the state belongs to the controller, no later call uses the state, and the library is still
            // loaded.
            unsafe { end(state, controller.0.library.stored_pointer()) }
        }
    }
}

impl fmt::Debug for LoadedController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedController({})", self.0.name)
    }
}
