//! The contract as `include/rocknet_controller.h` has it, in Rust's words; what each part means is told there.

use std::ffi::{c_char, c_void};

pub const MAJOR: u16 = 1;
pub const MINOR: u16 = 0;

/// The one function that a library exports.
pub const ENTRY: &str = "rocknet_library";

pub const OK: i32 = 0;
pub const ENOUGH: i32 = 1;
pub const LATE: i32 = -1;
pub const INVALID: i32 = -2;
pub const TOO_MUCH: i32 = -3;
pub const NOT_YOURS: i32 = -4;
pub const UNKNOWN: i32 = -5;

pub const METHOD: u32 = 1;
pub const PATH: u32 = 2;
pub const DECODED_PATH: u32 = 3;
pub const QUERY: u32 = 4;
pub const TARGET: u32 = 5;
pub const HOST: u32 = 6;
pub const VERSION: u32 = 7;
pub const SCHEME: u32 = 8;
pub const CLIENT_ADDRESS: u32 = 9;
pub const CLIENT_PORT: u32 = 10;
pub const CLIENT_CERTIFICATE: u32 = 11;
pub const TLS_VERSION: u32 = 12;
pub const TLS_CIPHER: u32 = 13;
pub const SERVER_NAME: u32 = 14;
pub const USER: u32 = 15;

/// Everything from the first to the last can be asked for.
pub const FIRST_TEXT: u32 = METHOD;
pub const LAST_TEXT: u32 = USER;

pub const ERROR: u32 = 1;
pub const WARN: u32 = 2;
pub const INFO: u32 = 3;
pub const DEBUG: u32 = 4;

/// `rocknet_text`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawText {
    pub data: *const c_char,
    pub size: usize,
}

impl RawText {
    pub const ABSENT: RawText = RawText {
        data: std::ptr::null(),
        size: 0,
    };

    /// Good for as long as `bytes` are.
    pub fn of(bytes: &[u8]) -> RawText {
        RawText {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }
}

/// The part of `rocknet_request` that both sides know.
#[derive(Debug)]
#[repr(C)]
pub struct RawRequest {
    pub server: *const RawServer,
}

/// `rocknet_server`
#[derive(Debug)]
#[repr(C)]
pub struct RawServer {
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub read: unsafe extern "C" fn(*const RawRequest, u32) -> RawText,
    pub field: unsafe extern "C" fn(*const RawRequest, *const c_char, usize, usize) -> RawText,
    pub field_at: unsafe extern "C" fn(*const RawRequest, usize, *mut RawText, *mut RawText) -> i32,
    pub content: unsafe extern "C" fn(*const RawRequest) -> RawText,
    pub set_status: unsafe extern "C" fn(*mut RawRequest, u32) -> i32,
    pub add_field: unsafe extern "C" fn(*mut RawRequest, *const c_char, usize, *const c_char, usize) -> i32,
    pub write: unsafe extern "C" fn(*mut RawRequest, *const c_void, usize) -> i32,
    pub state: unsafe extern "C" fn(*const RawRequest) -> *mut c_void,
    pub set_state: unsafe extern "C" fn(*mut RawRequest, *mut c_void) -> i32,
    pub log: unsafe extern "C" fn(*const RawRequest, u32, *const c_char, usize),
}

pub type AnswerFn = unsafe extern "C" fn(*mut RawRequest, *mut c_void) -> i32;
pub type TakeFn = unsafe extern "C" fn(*mut RawRequest, *mut c_void, *const c_char, usize) -> i32;
pub type GiveFn = unsafe extern "C" fn(*mut RawRequest, *mut c_void, *mut c_char, usize) -> i64;
pub type EndFn = unsafe extern "C" fn(*mut c_void, *mut c_void);
pub type InitFn = unsafe extern "C" fn(*const RawServer, *mut *mut c_void) -> i32;
pub type DropFn = unsafe extern "C" fn(*mut c_void);

/// `rocknet_controller`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawController {
    pub name: *const c_char,
    pub answer: Option<AnswerFn>,
    pub take: Option<TakeFn>,
    pub give: Option<GiveFn>,
    pub end: Option<EndFn>,
}

/// `rocknet_library_table`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawLibrary {
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub init: Option<InitFn>,
    pub drop: Option<DropFn>,
    pub controllers: *const RawController,
    pub controller_size: u32,
    pub controller_count: u32,
}

/// `rocknet_library`
pub type EntryFn = unsafe extern "C" fn() -> *const RawLibrary;
