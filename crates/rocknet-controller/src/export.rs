//! Converts Rust functions and types to the tables that a library exports. Panics do not unwind into the server.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::request::{Level, Log, Request};
use crate::{Outcome, abi};

/// State of a library from loading to unloading, shared by all its controllers.
pub trait Library: Sized + Send + Sync + 'static {
    /// Initializes the library when it is loaded. `log` writes to the log of the server.
    ///
    /// # Errors
    ///
    /// An error is logged and rejects the configuration that names the library.
    fn init(log: Log<'_>) -> Outcome<Self>;
}

/// Library without state.
impl Library for () {
    fn init(_: Log<'_>) -> Outcome<Self> {
        Ok(())
    }
}

/// Controller that gets the whole request body and responds in one call. [`export!`](crate::export!) implements it for
/// functions.
pub trait SimpleController<L> {
    /// Responds to a request.
    ///
    /// # Errors
    ///
    /// An error is logged, and the response becomes 500.
    fn answer(library: &L, request: &mut Request<'_>) -> Outcome;
}

/// Controller that handles a request in several calls, for bodies that are too large for memory or produced gradually.
///
/// One value exists for each request. It is dropped when the request has ended, regardless of the reason.
pub trait Controller<L>: Sized + Send + 'static {
    /// True if the request body is passed to [`Controller::take`] in pieces.
    const TAKES: bool;
    /// True if the response body comes from [`Controller::give`] in pieces.
    const GIVES: bool;

    /// Called when the request head has arrived, and without `TAKES` the whole request body too.
    ///
    /// # Errors
    ///
    /// An error is logged, and the response becomes 500.
    fn begin(library: &L, request: &mut Request<'_>) -> Outcome<Self>;

    /// Receives a piece of the request body; `None` at its end, after which the response begins.
    ///
    /// # Errors
    ///
    /// An error is logged, and the response becomes 500.
    fn take(&mut self, _library: &L, _request: &mut Request<'_>, _piece: Option<&[u8]>) -> Outcome {
        Ok(())
    }

    /// Writes more of the response body into `room`. Returns the number of bytes; 0 ends the body.
    ///
    /// # Errors
    ///
    /// An error is logged, and the response is aborted, so that the client notices that it is incomplete.
    fn give(&mut self, _library: &L, _request: &mut Request<'_>, _room: &mut [u8]) -> Outcome<usize> {
        Ok(0)
    }
}

/// Table of a library. Its pointers refer to static data.
#[repr(transparent)]
pub struct LibraryTable(abi::RawLibrary);

// SAFETY: the table points to static data that is never written.
unsafe impl Sync for LibraryTable {}

impl LibraryTable {
    /// Returns a table with these controllers for a library with the state `L`.
    pub const fn new<L: Library>(controllers: &'static [abi::RawController]) -> LibraryTable {
        LibraryTable(abi::RawLibrary {
            size: size_of::<abi::RawLibrary>() as u32,
            abi_major: abi::MAJOR,
            abi_minor: abi::MINOR,
            init: Some(init::<L>),
            drop: Some(drop_library::<L>),
            controllers: controllers.as_ptr(),
            controller_size: size_of::<abi::RawController>() as u32,
            controller_count: controllers.len() as u32,
        })
    }

    /// Returns a pointer to the table, which is the return value of `rocknet_library`.
    pub const fn get(&'static self) -> *const abi::RawLibrary {
        &raw const self.0
    }
}

/// Returns the table entry of a function. Used by [`export!`](crate::export!).
pub const fn simple_entry<L: Library, C: SimpleController<L>>(name: &'static CStr) -> abi::RawController {
    abi::RawController {
        name: name.as_ptr(),
        answer: Some(answer::<L, C>),
        take: None,
        give: None,
        end: None,
    }
}

/// Returns the table entry of a [`Controller`] type. Used by [`export!`](crate::export!).
pub const fn streaming_entry<L: Library, C: Controller<L>>(name: &'static CStr) -> abi::RawController {
    abi::RawController {
        name: name.as_ptr(),
        answer: Some(begin::<L, C>),
        take: if C::TAKES { Some(take::<L, C>) } else { None },
        give: if C::GIVES { Some(give::<L, C>) } else { None },
        end: Some(end::<C>),
    }
}

/// Exports functions and types as a library: first the type of its state, then its controllers by name.
///
/// Use it once in a crate. A type that implements [`Controller`] is preceded by the word `type`.
///
/// ```standalone_crate
/// # use rocknet_controller::{Controller, Outcome, Request, export};
/// # fn hello(_: &(), _: &mut Request<'_>) -> Outcome { Ok(()) }
/// # struct Upload;
/// # impl Controller<()> for Upload {
/// #     const TAKES: bool = true;
/// #     const GIVES: bool = false;
/// #     fn begin(_: &(), _: &mut Request<'_>) -> Outcome<Upload> { Ok(Upload) }
/// # }
/// export! {
///     ();
///     "hello" => hello,
///     "upload" => type Upload,
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export {
    ($library:ty; $($name:literal => $($controller:ident)+),+ $(,)?) => {
        const _: () = {
            const CONTROLLERS: &[$crate::abi::RawController] = &[$($crate::export!(@entry $library, $name, $($controller)+)),+];
            static TABLE: $crate::LibraryTable = $crate::LibraryTable::new::<$library>(CONTROLLERS);

            /// Returns the table of this library.
            #[unsafe(no_mangle)]
            pub extern "C" fn rocknet_library() -> *const $crate::abi::RawLibrary {
                TABLE.get()
            }
        };
    };
    (@entry $library:ty, $name:literal, type $controller:ident) => {
        $crate::streaming_entry::<$library, $controller>($crate::c_name(concat!($name, "\0")))
    };
    (@entry $library:ty, $name:literal, $controller:ident) => {{
        struct This;
        impl $crate::SimpleController<$library> for This {
            fn answer(library: &$library, request: &mut $crate::Request<'_>) -> $crate::Outcome {
                $controller(library, request)
            }
        }
        $crate::simple_entry::<$library, This>($crate::c_name(concat!($name, "\0")))
    }};
}

/// Converts the name of a controller, which must end in NUL. Used by [`export!`](crate::export!).
///
/// # Panics
///
/// Panics, at compile time in [`export!`](crate::export!), if the name does not end in NUL or contains another NUL.
pub const fn c_name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("the name of a controller must not contain NUL"),
    }
}

/// Return value after a panic, which must not unwind into the server. Neither this value nor [`FAILED`] is used by the
/// ABI itself.
const PANICKED: i32 = -100;
/// Return value after an error.
const FAILED: i32 = -101;

extern "C" fn init<L: Library>(server: *const abi::RawServer, library_pointer: *mut *mut c_void) -> i32 {
    // SAFETY: the server's table outlives the library.
    let log = Log(unsafe { &*server });
    match catch_unwind(AssertUnwindSafe(|| L::init(log))) {
        Ok(Ok(library)) => {
            // SAFETY: the server passes a valid pointer for the result.
            unsafe { *library_pointer = Box::into_raw(Box::new(library)).cast() };
            abi::OK
        }
        Ok(Err(error)) => {
            log.line(Level::Error, &error.to_string());
            FAILED
        }
        Err(_) => PANICKED,
    }
}

extern "C" fn drop_library<L: Library>(library_pointer: *mut c_void) {
    // SAFETY: `init` created the value, and the server calls this function once, when the library is no longer used.
    let library = unsafe { Box::from_raw(library_pointer.cast::<L>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(library)));
}

/// Makes one call of a controller. Errors are logged.
///
/// # Safety
///
/// `raw` and `library_pointer` must be the arguments of a call by the server, and `library_pointer` must come from
/// `init` of the same library.
unsafe fn call<L: Library, T>(
    raw: *mut abi::RawRequest,
    library_pointer: *mut c_void,
    call_controller: impl FnOnce(&L, &mut Request<'_>) -> Outcome<T>,
) -> Result<T, i32> {
    // SAFETY: the caller guarantees that both pointers are valid.
    let (mut request, library) = unsafe { (Request::new(raw), &*library_pointer.cast::<L>()) };
    match catch_unwind(AssertUnwindSafe(|| call_controller(library, &mut request))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            request.log(Level::Error, &error.to_string());
            Err(FAILED)
        }
        Err(_) => Err(PANICKED),
    }
}

extern "C" fn answer<L: Library, C: SimpleController<L>>(
    raw: *mut abi::RawRequest,
    library_pointer: *mut c_void,
) -> i32 {
    // SAFETY: this function is in the table of `L`, so the server calls it with the state of `L`.
    unsafe { call::<L, ()>(raw, library_pointer, C::answer) }
        .err()
        .unwrap_or(abi::OK)
}

extern "C" fn begin<L: Library, C: Controller<L>>(raw: *mut abi::RawRequest, library_pointer: *mut c_void) -> i32 {
    let call_controller = |library: &L, request: &mut Request<'_>| {
        let controller = Box::into_raw(Box::new(C::begin(library, request)?));
        if let Err(refused) = request.set_state(controller.cast()) {
            // SAFETY: `controller` was created above, and the server did not store it.
            drop(unsafe { Box::from_raw(controller) });
            return Err(refused.into());
        }
        Ok(())
    };
    // SAFETY: as in `answer`.
    unsafe { call::<L, ()>(raw, library_pointer, call_controller) }
        .err()
        .unwrap_or(abi::OK)
}

extern "C" fn take<L: Library, C: Controller<L>>(
    raw: *mut abi::RawRequest,
    library_pointer: *mut c_void,
    data: *const c_char,
    size: usize,
) -> i32 {
    let call_controller = |library: &L, request: &mut Request<'_>| {
        // SAFETY: the server passes `size` bytes, or null.
        let piece = (!data.is_null()).then(|| unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) });
        // SAFETY: `begin` created the state, and calls for one request never overlap.
        let controller = unsafe { request.state().cast::<C>().as_mut() };
        controller.ok_or("no state")?.take(library, request, piece)
    };
    // SAFETY: as in `answer`.
    unsafe { call::<L, ()>(raw, library_pointer, call_controller) }
        .err()
        .unwrap_or(abi::OK)
}

extern "C" fn give<L: Library, C: Controller<L>>(
    raw: *mut abi::RawRequest,
    library_pointer: *mut c_void,
    room: *mut c_char,
    size: usize,
) -> i64 {
    let call_controller = |library: &L, request: &mut Request<'_>| {
        // SAFETY: the server passes `size` initialized bytes.
        let room = unsafe { std::slice::from_raw_parts_mut(room.cast::<u8>(), size) };
        // SAFETY: `begin` created the state, and calls for one request never overlap.
        let controller = unsafe { request.state().cast::<C>().as_mut() };
        controller.ok_or("no state")?.give(library, request, room)
    };
    // SAFETY: as in `answer`.
    match unsafe { call::<L, usize>(raw, library_pointer, call_controller) } {
        Ok(written) => i64::try_from(written).unwrap_or(i64::MAX),
        Err(code) => code.into(),
    }
}

extern "C" fn end<C>(state: *mut c_void, _library_pointer: *mut c_void) {
    // SAFETY: `begin` created the state, and the server calls this function once, after all other calls for the
    // request.
    let controller = unsafe { Box::from_raw(state.cast::<C>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(controller)));
}
