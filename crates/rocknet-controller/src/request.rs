//! A request as a controller in Rust sees it, and the answer it gives.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::marker::PhantomData;

use crate::abi::{self, RawText};

/// One request, for the time of one call. What is read from it lives as long as that call.
pub struct Request<'call> {
    raw: *mut abi::RawRequest,
    /// The pointer stays on the thread of the call.
    call: PhantomData<&'call mut abi::RawRequest>,
}

/// Why the server did not take something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The answer has begun already.
    Late,
    /// Not a status, name or value that can be sent; the answer becomes 500.
    Invalid,
    /// More than the server takes; the answer becomes 500.
    TooMuch,
    /// The field belongs to the connection; the answer goes on without it.
    NotYours,
    /// The server is older than what was asked for.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl<'call> Request<'call> {
    /// # Safety
    ///
    /// `raw` has been passed to a call that outlives `'call`, and nobody else uses it meanwhile.
    pub(crate) unsafe fn new(raw: *mut abi::RawRequest) -> Request<'call> {
        Request { raw, call: PhantomData }
    }

    fn server(&self) -> &'call abi::RawServer {
        // SAFETY: the request is good for the time of the call, and its server outlives that.
        unsafe { &*(*self.raw).server }
    }

    fn read(&self, what: u32) -> Option<&'call [u8]> {
        // SAFETY: the request is good, and texts that are read from it live as long as the call.
        unsafe { bytes((self.server().read)(self.raw, what)) }
    }

    pub fn method(&self) -> &'call [u8] {
        self.read(abi::METHOD).unwrap_or_default()
    }

    /// As it was sent, without the query.
    pub fn path(&self) -> &'call [u8] {
        self.read(abi::PATH).unwrap_or_default()
    }

    /// With `%XX` decoded and `.`, `..` and `//` resolved: what routes are matched with.
    pub fn decoded_path(&self) -> &'call [u8] {
        self.read(abi::DECODED_PATH).unwrap_or_default()
    }

    /// What follows the first `?`.
    pub fn query(&self) -> Option<&'call [u8]> {
        self.read(abi::QUERY)
    }

    /// Path and query as they were sent, before any rule of the site.
    pub fn target(&self) -> &'call [u8] {
        self.read(abi::TARGET).unwrap_or_default()
    }

    /// Host and port that the client asked for, as they were sent.
    pub fn host(&self) -> &'call [u8] {
        self.read(abi::HOST).unwrap_or_default()
    }

    /// `HTTP/1.1`, `HTTP/2.0`
    pub fn version(&self) -> &'call [u8] {
        self.read(abi::VERSION).unwrap_or_default()
    }

    pub fn is_https(&self) -> bool {
        self.read(abi::SCHEME) == Some(b"https")
    }

    /// `None`: it came by a Unix socket.
    pub fn client_address(&self) -> Option<&'call [u8]> {
        self.read(abi::CLIENT_ADDRESS)
    }

    pub fn client_port(&self) -> Option<&'call [u8]> {
        self.read(abi::CLIENT_PORT)
    }

    /// Whom the client's certificate names.
    pub fn client_certificate(&self) -> Option<&'call [u8]> {
        self.read(abi::CLIENT_CERTIFICATE)
    }

    /// `TLSv1.2`, `TLSv1.3`; `None`: in the clear.
    pub fn tls_version(&self) -> Option<&'call [u8]> {
        self.read(abi::TLS_VERSION)
    }

    /// As IANA names it: `TLS_AES_128_GCM_SHA256`; `None`: in the clear.
    pub fn tls_cipher(&self) -> Option<&'call [u8]> {
        self.read(abi::TLS_CIPHER)
    }

    /// The name that the client asked for in its handshake; `None`: in the clear, or it named none.
    pub fn server_name(&self) -> Option<&'call [u8]> {
        self.read(abi::SERVER_NAME)
    }

    /// The user whose password the server has verified (`auth`).
    pub fn user(&self) -> Option<&'call [u8]> {
        self.read(abi::USER)
    }

    /// The value of the first field of that name, whatever its case.
    pub fn field(&self, name: &str) -> Option<&'call [u8]> {
        // SAFETY: as in `read`; the name is only looked at during the call.
        unsafe { bytes((self.server().field)(self.raw, name.as_ptr().cast(), name.len(), 0)) }
    }

    /// All fields, in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&'call [u8], &'call [u8])> + use<'call> {
        let (raw, server) = (self.raw, self.server());
        (0..).map_while(move |index| {
            let (mut name, mut value) = (RawText::ABSENT, RawText::ABSENT);
            // SAFETY: as in `read`; both places are our own.
            unsafe {
                match (server.field_at)(raw, index, &raw mut name, &raw mut value) {
                    abi::OK => Some((bytes(name)?, bytes(value).unwrap_or_default())),
                    _ => None,
                }
            }
        })
    }

    /// All content; empty for controllers that take it in pieces.
    pub fn content(&self) -> &'call [u8] {
        // SAFETY: as in `read`.
        unsafe { bytes((self.server().content)(self.raw)) }.unwrap_or_default()
    }

    /// From 200 to 599. An answer without status is 500.
    pub fn set_status(&mut self, status: u16) -> Result<(), Refused> {
        // SAFETY: the request is good, and nobody else uses it.
        check(unsafe { (self.server().set_status)(self.raw, status.into()) })
    }

    pub fn add_field(&mut self, name: &str, value: &str) -> Result<(), Refused> {
        let (name, name_size): (*const c_char, _) = (name.as_ptr().cast(), name.len());
        let (value, value_size): (*const c_char, _) = (value.as_ptr().cast(), value.len());
        // SAFETY: the request is good, and the server copies both.
        check(unsafe { (self.server().add_field)(self.raw, name, name_size, value, value_size) })
    }

    /// Adds to the body.
    pub fn write(&mut self, data: &[u8]) -> Result<(), Refused> {
        let start: *const c_void = data.as_ptr().cast();
        // SAFETY: the request is good, and the server copies the bytes.
        check(unsafe { (self.server().write)(self.raw, start, data.len()) })
    }

    /// A line in the server's log.
    pub fn log(&self, level: Level, line: &str) {
        log(self.server(), self.raw, level, line);
    }

    pub(crate) fn state(&self) -> *mut c_void {
        // SAFETY: the request is good.
        unsafe { (self.server().state)(self.raw) }
    }

    pub(crate) fn set_state(&mut self, state: *mut c_void) -> Result<(), Refused> {
        // SAFETY: the request is good; what the state is, the server does not ask.
        check(unsafe { (self.server().set_state)(self.raw, state) })
    }
}

/// Where there is no request: the server's log.
#[derive(Clone, Copy)]
pub struct Log<'call>(pub(crate) &'call abi::RawServer);

impl Log<'_> {
    pub fn line(&self, level: Level, line: &str) {
        log(self.0, std::ptr::null(), level, line);
    }
}

fn log(server: &abi::RawServer, request: *const abi::RawRequest, level: Level, line: &str) {
    let level = match level {
        Level::Error => abi::ERROR,
        Level::Warn => abi::WARN,
        Level::Info => abi::INFO,
        Level::Debug => abi::DEBUG,
    };
    // SAFETY: the request is good or absent, and the line is only looked at during the call.
    unsafe { (server.log)(request, level, line.as_ptr().cast(), line.len()) }
}

/// # Safety
///
/// The text lives as long as `'call`.
unsafe fn bytes<'call>(text: RawText) -> Option<&'call [u8]> {
    if text.data.is_null() {
        return None;
    }
    // SAFETY: it says how many bytes there are, and they live that long.
    Some(unsafe { std::slice::from_raw_parts(text.data.cast(), text.size) })
}

fn check(result: i32) -> Result<(), Refused> {
    Err(match result {
        abi::OK => return Ok(()),
        abi::LATE => Refused::Late,
        abi::TOO_MUCH => Refused::TooMuch,
        abi::NOT_YOURS => Refused::NotYours,
        abi::UNKNOWN => Refused::Unknown,
        _ => Refused::Invalid,
    })
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Late => "the answer has begun already",
            Refused::Invalid => "this cannot be sent",
            Refused::TooMuch => "this is more than the server takes",
            Refused::NotYours => "the field belongs to the connection",
            Refused::Unknown => "the server is too old for this",
        })
    }
}

impl std::error::Error for Refused {}
