//! Call of a controller, and the server functions that the controller can use during it.

use std::ffi::{c_char, c_void};
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::{RequestView, ResponseWriter};
use crate::abi::{self, RawText};
use crate::request::{Level, Refused};

/// Request as passed to libraries, followed by fields that only the server uses.
#[repr(C)]
pub struct Call<'call> {
    request: abi::RawRequest,
    view: &'call dyn RequestView,
    response: &'call mut dyn ResponseWriter,
    state: *mut c_void,
    /// Confines the call to its thread.
    thread: PhantomData<*mut ()>,
}

impl<'call> Call<'call> {
    pub fn new(
        view: &'call dyn RequestView,
        response: &'call mut dyn ResponseWriter,
        state: *mut c_void,
    ) -> Call<'call> {
        Call {
            request: abi::RawRequest {
                server: &raw const SERVER,
            },
            view,
            response,
            state,
            thread: PhantomData,
        }
    }

    /// Returns the pointer for the library. It is valid until the call is moved or used otherwise.
    pub fn raw(&mut self) -> *mut abi::RawRequest {
        (&raw mut *self).cast()
    }

    pub fn state(&self) -> *mut c_void {
        self.state
    }
}

/// Receiver of log lines that belong to no request.
static LOG: OnceLock<fn(Level, &[u8])> = OnceLock::new();

/// Sets the receiver of log lines that belong to no request. Only the first call has an effect.
pub fn set_log(log: fn(Level, &[u8])) {
    let _ = LOG.set(log);
}

/// Functions that the server offers to libraries.
pub static SERVER: abi::RawServer = abi::RawServer {
    size: size_of::<abi::RawServer>() as u32,
    abi_major: abi::MAJOR,
    abi_minor: abi::MINOR,
    read,
    field,
    field_at,
    content,
    set_status,
    add_field,
    write,
    state,
    set_state,
    log,
};

/// Returns the call that a library's request pointer belongs to; `None` for a null pointer.
///
/// # Safety
///
/// `request` must be null, or have been passed to the library by a call that has not returned.
unsafe fn call<'call>(request: *const abi::RawRequest) -> Option<&'call Call<'call>> {
    // SAFETY: every request that is passed to a library is the first field of a call, which outlives its use.
    unsafe { request.cast::<Call<'call>>().as_ref() }
}

/// Returns the same as [`call`], as a mutable reference.
///
/// # Safety
///
/// As for [`call`].
unsafe fn call_mut<'call>(request: *mut abi::RawRequest) -> Option<&'call mut Call<'call>> {
    // SAFETY: as above, and only one thread uses a request.
    unsafe { request.cast::<Call<'call>>().as_mut() }
}

/// Returns the bytes that a library passes, or `None` if the arguments are invalid.
///
/// # Safety
///
/// There must be `size` bytes at `data`, unless it is null.
unsafe fn bytes<'call>(data: *const c_char, size: usize) -> Option<&'call [u8]> {
    if data.is_null() {
        return (size == 0).then_some(&[]);
    }
    // A length above `isize::MAX` is a negative number that the library cast to unsigned.
    isize::try_from(size).ok()?;
    // SAFETY: the caller guarantees it.
    Some(unsafe { std::slice::from_raw_parts(data.cast(), size) })
}

fn text(bytes: Option<&[u8]>) -> RawText {
    bytes.map_or(RawText::ABSENT, RawText::of)
}

fn code_of(result: Result<(), Refused>) -> i32 {
    match result {
        Ok(()) => abi::OK,
        Err(Refused::Late) => abi::LATE,
        Err(Refused::Invalid) => abi::INVALID,
        Err(Refused::TooMuch) => abi::TOO_MUCH,
        Err(Refused::NotYours) => abi::NOT_YOURS,
        Err(Refused::Unknown) => abi::UNKNOWN,
    }
}

unsafe extern "C" fn read(request: *const abi::RawRequest, property: u32) -> RawText {
    // SAFETY: libraries pass the pointer they received.
    text(unsafe { call(request) }.and_then(|call| call.view.read(property)))
}

unsafe extern "C" fn field(request: *const abi::RawRequest, name: *const c_char, size: usize, nth: usize) -> RawText {
    // SAFETY: libraries pass the pointer they received, and names with their sizes.
    let (call, name) = unsafe { (call(request), bytes(name, size)) };
    text(call.and_then(|call| call.view.field(name?, nth)))
}

unsafe extern "C" fn field_at(
    request: *const abi::RawRequest,
    index: usize,
    name: *mut RawText,
    value: *mut RawText,
) -> i32 {
    // SAFETY: libraries pass the pointer they received.
    let Some(found) = (unsafe { call(request) }).and_then(|call| call.view.field_at(index)) else {
        return abi::UNKNOWN;
    };
    // SAFETY: libraries pass pointers to their own memory, or null.
    unsafe {
        if let Some(name) = name.as_mut() {
            *name = RawText::of(found.0);
        }
        if let Some(value) = value.as_mut() {
            *value = RawText::of(found.1);
        }
    }
    abi::OK
}

unsafe extern "C" fn content(request: *const abi::RawRequest) -> RawText {
    // SAFETY: libraries pass the pointer they received.
    text(unsafe { call(request) }.map(|call| call.view.content()))
}

unsafe extern "C" fn set_status(request: *mut abi::RawRequest, status: u32) -> i32 {
    // SAFETY: libraries pass the pointer they received.
    match unsafe { call_mut(request) } {
        Some(call) => code_of(call.response.set_status(status)),
        None => abi::INVALID,
    }
}

unsafe extern "C" fn add_field(
    request: *mut abi::RawRequest,
    name: *const c_char,
    name_size: usize,
    value: *const c_char,
    value_size: usize,
) -> i32 {
    // SAFETY: libraries pass the pointer they received, and texts with their sizes.
    let found = unsafe { (call_mut(request), bytes(name, name_size), bytes(value, value_size)) };
    match found {
        (Some(call), Some(name), Some(value)) => code_of(call.response.add_field(name, value)),
        (call, ..) => invalid_argument(call),
    }
}

unsafe extern "C" fn write(request: *mut abi::RawRequest, data: *const c_void, size: usize) -> i32 {
    // SAFETY: libraries pass the pointer they received, and bytes with their number.
    match unsafe { (call_mut(request), bytes(data.cast(), size)) } {
        (Some(call), Some(data)) => code_of(call.response.write(data)),
        (call, _) => invalid_argument(call),
    }
}

/// Handles a null pointer, or an impossible length, from a library.
fn invalid_argument(call: Option<&mut Call<'_>>) -> i32 {
    if let Some(call) = call {
        call.response.mark_invalid();
    }
    abi::INVALID
}

unsafe extern "C" fn state(request: *const abi::RawRequest) -> *mut c_void {
    // SAFETY: libraries pass the pointer they received.
    unsafe { call(request) }.map_or(std::ptr::null_mut(), |call| call.state)
}

unsafe extern "C" fn set_state(request: *mut abi::RawRequest, state: *mut c_void) -> i32 {
    // SAFETY: libraries pass the pointer they received.
    match unsafe { call_mut(request) } {
        Some(call) => {
            call.state = state;
            abi::OK
        }
        None => abi::INVALID,
    }
}

unsafe extern "C" fn log(request: *const abi::RawRequest, level: u32, line: *const c_char, size: usize) {
    // SAFETY: libraries pass the pointer they received, and lines with their sizes.
    let (call, Some(line)) = (unsafe { (call(request), bytes(line, size)) }) else {
        return;
    };
    let level = match level {
        abi::ERROR => Level::Error,
        abi::WARN => Level::Warn,
        abi::DEBUG => Level::Debug,
        _ => Level::Info,
    };
    match (call, LOG.get()) {
        (Some(call), _) => call.response.log(level, line),
        (None, Some(log)) => log(level, line),
        (None, None) => {}
    }
}
