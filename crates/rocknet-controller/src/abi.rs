//! Declarations of `include/rocknet_controller.h` in Rust. The header describes the contract in full.
//!
//! Types with a counterpart in the header are named `Raw*`, and types of its functions `*Fn`.

use std::ffi::{c_char, c_void};

/// Major version of the ABI (`ROCKNET_ABI_MAJOR`). The server loads libraries of its own major version.
pub const MAJOR: u16 = 1;
/// Minor version of the ABI (`ROCKNET_ABI_MINOR`).
pub const MINOR: u16 = 0;

/// Name of the one function that a library exports, of type [`EntryFn`].
pub const ENTRY: &str = "rocknet_library";

/// Result for success.
pub const OK: i32 = 0;
/// Result of a controller that needs no more of the request body.
pub const ENOUGH: i32 = 1;
/// Result of the server: the response has begun already, or this call must not change it.
pub const LATE: i32 = -1;
/// Result of the server: the status, name or value cannot be sent. The response becomes 500.
pub const INVALID: i32 = -2;
/// Result of the server: a limit is exceeded. The response becomes 500.
pub const TOO_MUCH: i32 = -3;
/// Result of the server: the field is `Date` or belongs to the connection. The response continues without it.
pub const NOT_YOURS: i32 = -4;
/// Result of the server: the server is too old to support the function or property, or no header field has this index.
pub const UNKNOWN: i32 = -5;

/// Property: method.
pub const METHOD: u32 = 1;
/// Property: percent-encoded path without the query, as the client sent it or as changed by a rewrite rule.
pub const PATH: u32 = 2;
/// Property: path with `%XX` decoded and `.`, `..` and `//` resolved, which routes are matched with.
pub const DECODED_PATH: u32 = 3;
/// Property: query, which is the part after the first `?`; absent if there is no query. A rewrite rule may have changed
/// the query.
pub const QUERY: u32 = 4;
/// Property: request target as the client sent it, before any rule of the site: usually path and query.
pub const TARGET: u32 = 5;
/// Property: host and port of the request as the client sent them.
pub const HOST: u32 = 6;
/// Property: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`.
pub const VERSION: u32 = 7;
/// Property: `https` or `http`.
pub const SCHEME: u32 = 8;
/// Property: IP address of the client; absent for a Unix socket.
pub const CLIENT_ADDRESS: u32 = 9;
/// Property: port of the client in decimal digits; absent if it is not known, and for a Unix socket.
pub const CLIENT_PORT: u32 = 10;
/// Property: subject of the certificate that the client authenticated with; absent without a certificate.
pub const CLIENT_CERTIFICATE: u32 = 11;
/// Property: `TLSv1.2` or `TLSv1.3`; absent without TLS.
pub const TLS_VERSION: u32 = 12;
/// Property: IANA name of the cipher suite; absent without TLS.
pub const TLS_CIPHER: u32 = 13;
/// Property: server name of the TLS handshake (SNI); absent without TLS and without a name.
pub const SERVER_NAME: u32 = 14;
/// Property: user that the server authenticated, by a password, a client certificate, an authority or a login provider;
/// absent if no user is known.
pub const USER: u32 = 15;

/// Lowest property. All values up to [`LAST_PROPERTY`] are properties.
pub const FIRST_PROPERTY: u32 = METHOD;
/// Highest property.
pub const LAST_PROPERTY: u32 = USER;

/// Log level: error.
pub const ERROR: u32 = 1;
/// Log level: warning.
pub const WARN: u32 = 2;
/// Log level: information.
pub const INFO: u32 = 3;
/// Log level: debugging.
pub const DEBUG: u32 = 4;

/// Bytes that are owned elsewhere (`rocknet_text`). They do not end in NUL.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawText {
    /// First byte; null if the text is absent.
    pub data: *const c_char,
    /// Number of bytes.
    pub size: usize,
}

impl RawText {
    /// Absent text.
    pub const ABSENT: RawText = RawText {
        data: std::ptr::null(),
        size: 0,
    };

    /// Returns a text that refers to `bytes` and is valid as long as they are.
    pub fn of(bytes: &[u8]) -> RawText {
        RawText {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }
}

/// Part of a request whose layout the ABI defines (`rocknet_request`).
#[derive(Debug)]
#[repr(C)]
pub struct RawRequest {
    /// Functions of the server. Private fields of the server follow.
    pub server: *const RawServer,
}

/// Functions that the server offers to libraries (`rocknet_server`).
#[derive(Debug)]
#[repr(C)]
pub struct RawServer {
    /// Size of the server's table in bytes.
    pub size: u32,
    /// Major version of the server's ABI.
    pub abi_major: u16,
    /// Minor version of the server's ABI.
    pub abi_minor: u16,
    /// Returns a property such as [`METHOD`].
    pub read: unsafe extern "C" fn(*const RawRequest, u32) -> RawText,
    /// Returns the value of the nth header field of a name, counted from 0 and ignoring case. The arguments are the
    /// name, its size, and n.
    pub field: unsafe extern "C" fn(*const RawRequest, *const c_char, usize, usize) -> RawText,
    /// Stores name and value of the header field at an index, or returns [`UNKNOWN`] after the last one.
    pub field_at: unsafe extern "C" fn(*const RawRequest, usize, *mut RawText, *mut RawText) -> i32,
    /// Returns the request body.
    pub content: unsafe extern "C" fn(*const RawRequest) -> RawText,
    /// Sets the status of the response.
    pub set_status: unsafe extern "C" fn(*mut RawRequest, u32) -> i32,
    /// Adds a header field to the response: name and value, each with its size.
    pub add_field: unsafe extern "C" fn(*mut RawRequest, *const c_char, usize, *const c_char, usize) -> i32,
    /// Appends to the response body.
    pub write: unsafe extern "C" fn(*mut RawRequest, *const c_void, usize) -> i32,
    /// Returns the state of the request; null if none was set.
    pub state: unsafe extern "C" fn(*const RawRequest) -> *mut c_void,
    /// Sets the state of the request.
    pub set_state: unsafe extern "C" fn(*mut RawRequest, *mut c_void) -> i32,
    /// Writes a line to the log. The request may be null.
    pub log: unsafe extern "C" fn(*const RawRequest, u32, *const c_char, usize),
}

/// Function that responds to a request; the second argument is the pointer that `init` of the library stored, which the
/// C header calls `user`. Returns [`OK`] or [`ENOUGH`]; any other value is a failure.
pub type AnswerFn = unsafe extern "C" fn(*mut RawRequest, *mut c_void) -> i32;
/// Function that receives a piece of the request body with its size, or null at the end of the body. Returns the same
/// values as [`AnswerFn`].
pub type TakeFn = unsafe extern "C" fn(*mut RawRequest, *mut c_void, *const c_char, usize) -> i32;
/// Function that writes more of the response body into a buffer of the given size. Returns the number of bytes; 0 ends
/// the body, and a negative value aborts the response.
pub type GiveFn = unsafe extern "C" fn(*mut RawRequest, *mut c_void, *mut c_char, usize) -> i64;
/// Function that frees the state of a request, which is the first argument.
pub type EndFn = unsafe extern "C" fn(*mut c_void, *mut c_void);
/// Function that initializes a library and may store a pointer for the later calls. Returns [`OK`]; any other value is
/// a failure.
pub type InitFn = unsafe extern "C" fn(*const RawServer, *mut *mut c_void) -> i32;
/// Function that is called before a library is unloaded, and frees what the pointer of `init` refers to.
pub type DropFn = unsafe extern "C" fn(*mut c_void);

/// Table entry of one controller (`rocknet_controller`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawController {
    /// Name in the configuration, which ends in NUL.
    pub name: *const c_char,
    /// Responds to a request; required.
    pub answer: Option<AnswerFn>,
    /// Receives the request body in pieces; optional.
    pub take: Option<TakeFn>,
    /// Produces the response body in pieces; optional.
    pub give: Option<GiveFn>,
    /// Frees the state of a request; optional.
    pub end: Option<EndFn>,
}

/// Table of a library (`rocknet_library_table`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawLibrary {
    /// Size of the table in bytes.
    pub size: u32,
    /// Major version of the library's ABI.
    pub abi_major: u16,
    /// Minor version of the library's ABI.
    pub abi_minor: u16,
    /// Called once when the library is loaded; optional.
    pub init: Option<InitFn>,
    /// Called once after the last request has ended; optional.
    pub drop: Option<DropFn>,
    /// First controller of an array.
    pub controllers: *const RawController,
    /// Size of one array element in bytes.
    pub controller_size: u32,
    /// Number of array elements.
    pub controller_count: u32,
}

/// Function that a library exports as [`ENTRY`]: returns its table.
pub type EntryFn = unsafe extern "C" fn() -> *const RawLibrary;
