//! From Rust's functions and types to the tables that a library exports; nothing unwinds out of them.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::request::{Level, Log, Request};
use crate::{Outcome, abi};

/// What a library keeps from its loading to its end, shared by all its controllers.
pub trait Library: Sized + Send + Sync + 'static {
    /// An error refuses the configuration that names the library.
    fn init(log: Log<'_>) -> Outcome<Self>;
}

/// Nothing to keep.
impl Library for () {
    fn init(_: Log<'_>) -> Outcome<Self> {
        Ok(())
    }
}

/// A controller that is given all content, and answers at once. [`export!`] makes one of every function.
pub trait SimpleController<L> {
    fn answer(library: &L, request: &mut Request<'_>) -> Outcome;
}

/// A controller that goes on over several calls: for content too large to be held, or a body that is made bit by bit. It
/// is dropped when its request has ended, however that was.
pub trait Controller<L>: Sized + Send + 'static {
    /// Whether content is taken in pieces, and whether the body is given so.
    const TAKES: bool;
    const GIVES: bool;

    /// The head of the request is there, and without `TAKES` all content.
    fn begin(library: &L, request: &mut Request<'_>) -> Outcome<Self>;

    /// A piece of content; `None` at its end, where the answer begins.
    fn take(&mut self, _library: &L, _request: &mut Request<'_>, _piece: Option<&[u8]>) -> Outcome {
        Ok(())
    }

    /// Puts more of the body into `room` and says how much; 0 at the end.
    fn give(&mut self, _library: &L, _request: &mut Request<'_>, _room: &mut [u8]) -> Outcome<usize> {
        Ok(0)
    }
}

/// The table of a library. Its pointers lead to things that never change.
#[repr(transparent)]
pub struct LibraryTable(abi::RawLibrary);

// SAFETY: what it points to is static and never written.
unsafe impl Sync for LibraryTable {}

impl LibraryTable {
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

    pub const fn get(&'static self) -> *const abi::RawLibrary {
        &raw const self.0
    }
}

/// The entry of a plain controller.
pub const fn simple_entry<L: Library, P: SimpleController<L>>(name: &'static CStr) -> abi::RawController {
    abi::RawController {
        name: name.as_ptr(),
        answer: Some(answer::<L, P>),
        take: None,
        give: None,
        end: None,
    }
}

/// The entry of one that goes on over several calls.
pub const fn streaming_entry<L: Library, C: Controller<L>>(name: &'static CStr) -> abi::RawController {
    abi::RawController {
        name: name.as_ptr(),
        answer: Some(begin::<L, C>),
        take: if C::TAKES { Some(take::<L, C>) } else { None },
        give: if C::GIVES { Some(give::<L, C>) } else { None },
        end: Some(end::<C>),
    }
}

/// Makes a library of functions and types: what it keeps, then its controllers by name. Once in a crate.
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

/// The name of a controller, which ends in NUL and holds none before that.
pub const fn c_name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("the name of a controller holds no NUL"),
    }
}

/// What a function that must not unwind says when it would have.
const PANICKED: i32 = -100;
const FAILED: i32 = -101;

extern "C" fn init<L: Library>(server: *const abi::RawServer, user: *mut *mut c_void) -> i32 {
    // SAFETY: the server's table outlives the library.
    let log = Log(unsafe { &*server });
    match catch_unwind(AssertUnwindSafe(|| L::init(log))) {
        Ok(Ok(library)) => {
            // SAFETY: the server gives a place for it.
            unsafe { *user = Box::into_raw(Box::new(library)).cast() };
            abi::OK
        }
        Ok(Err(error)) => {
            log.line(Level::Error, &error.to_string());
            FAILED
        }
        Err(_) => PANICKED,
    }
}

extern "C" fn drop_library<L: Library>(user: *mut c_void) {
    // SAFETY: `init` made it, and this is called once, when nobody uses it any more.
    let library = unsafe { Box::from_raw(user.cast::<L>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(library)));
}

/// One call: the library, the request, and whatever goes wrong told in the log.
///
/// # Safety
///
/// `raw` and `user` are those of a call that the server makes, and `user` comes from `init` of the same library.
unsafe fn call<L: Library, T>(
    raw: *mut abi::RawRequest,
    user: *mut c_void,
    call_controller: impl FnOnce(&L, &mut Request<'_>) -> Outcome<T>,
) -> Result<T, i32> {
    // SAFETY: the caller says so.
    let (mut request, library) = unsafe { (Request::new(raw), &*user.cast::<L>()) };
    match catch_unwind(AssertUnwindSafe(|| call_controller(library, &mut request))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            request.log(Level::Error, &error.to_string());
            Err(FAILED)
        }
        Err(_) => Err(PANICKED),
    }
}

extern "C" fn answer<L: Library, P: SimpleController<L>>(raw: *mut abi::RawRequest, user: *mut c_void) -> i32 {
    // SAFETY: this stands in the table of `L`, and the server calls it with what belongs to it.
    unsafe { call::<L, ()>(raw, user, P::answer) }.err().unwrap_or(abi::OK)
}

extern "C" fn begin<L: Library, C: Controller<L>>(raw: *mut abi::RawRequest, user: *mut c_void) -> i32 {
    let call_controller = |library: &L, request: &mut Request<'_>| {
        let controller = Box::into_raw(Box::new(C::begin(library, request)?));
        if let Err(refused) = request.set_state(controller.cast()) {
            // SAFETY: it was made above, and nobody took it.
            drop(unsafe { Box::from_raw(controller) });
            return Err(refused.into());
        }
        Ok(())
    };
    // SAFETY: as in `answer`.
    unsafe { call::<L, ()>(raw, user, call_controller) }
        .err()
        .unwrap_or(abi::OK)
}

extern "C" fn take<L: Library, C: Controller<L>>(
    raw: *mut abi::RawRequest,
    user: *mut c_void,
    data: *const c_char,
    size: usize,
) -> i32 {
    let call_controller = |library: &L, request: &mut Request<'_>| {
        // SAFETY: the server gives that many bytes, or none.
        let piece = (!data.is_null()).then(|| unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) });
        // SAFETY: `begin` made it, and calls for one request never overlap.
        let controller = unsafe { request.state().cast::<C>().as_mut() };
        controller.ok_or("no state")?.take(library, request, piece)
    };
    // SAFETY: as in `answer`.
    unsafe { call::<L, ()>(raw, user, call_controller) }
        .err()
        .unwrap_or(abi::OK)
}

extern "C" fn give<L: Library, C: Controller<L>>(
    raw: *mut abi::RawRequest,
    user: *mut c_void,
    room: *mut c_char,
    size: usize,
) -> i64 {
    let call_controller = |library: &L, request: &mut Request<'_>| {
        // SAFETY: the server gives so much room, all of it written before.
        let room = unsafe { std::slice::from_raw_parts_mut(room.cast::<u8>(), size) };
        // SAFETY: `begin` made it, and calls for one request never overlap.
        let controller = unsafe { request.state().cast::<C>().as_mut() };
        controller.ok_or("no state")?.give(library, request, room)
    };
    // SAFETY: as in `answer`.
    match unsafe { call::<L, usize>(raw, user, call_controller) } {
        Ok(written) => i64::try_from(written).unwrap_or(i64::MAX),
        Err(code) => code.into(),
    }
}

extern "C" fn end<C>(state: *mut c_void, _user: *mut c_void) {
    // SAFETY: `begin` made it, and this is called once, when nobody uses it any more.
    let controller = unsafe { Box::from_raw(state.cast::<C>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(controller)));
}
