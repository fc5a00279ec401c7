//! Interface of a controller in Rust to its request and to the response under construction.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::marker::PhantomData;

use crate::abi::{self, RawText};

/// Request during one call of a controller. Everything read from it lives as long as that call.
///
/// It also collects the response. Status, header fields and body can be set in any order.
pub struct Request<'call> {
    raw: *mut abi::RawRequest,
    /// Binds the pointer to the lifetime of the call and to its thread.
    call: PhantomData<&'call mut abi::RawRequest>,
}

/// Reason why the server refused a part of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The response has begun already.
    Late,
    /// The status, name or value cannot be sent. The response becomes 500.
    Invalid,
    /// A limit of the server is exceeded. The response becomes 500.
    TooMuch,
    /// The field is `Date` or belongs to the connection. The response continues without it.
    NotYours,
    /// The server is too old to support the function.
    Unknown,
}

/// Level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// The request failed.
    Error,
    /// A problem that the operator should look at.
    Warn,
    /// Normal operation.
    Info,
    /// Details for finding an error.
    Debug,
}

impl<'call> Request<'call> {
    /// Wraps the request of a call.
    ///
    /// # Safety
    ///
    /// `raw` must have been passed to a call that outlives `'call`, and no other code may use it during `'call`.
    pub(crate) unsafe fn new(raw: *mut abi::RawRequest) -> Request<'call> {
        Request { raw, call: PhantomData }
    }

    fn server(&self) -> &'call abi::RawServer {
        // SAFETY: the request is valid during the call, and the table of the server outlives the call.
        unsafe { &*(*self.raw).server }
    }

    fn read(&self, property: u32) -> Option<&'call [u8]> {
        // SAFETY: the request is valid, and texts that are read from it live as long as the call.
        unsafe { bytes((self.server().read)(self.raw, property)) }
    }

    /// Returns the method (RFC 9110 §9), such as `GET`.
    pub fn method(&self) -> &'call [u8] {
        self.read(abi::METHOD).unwrap_or_default()
    }

    /// Returns the percent-encoded path without the query, as the client sent it or as changed by a rewrite rule.
    pub fn path(&self) -> &'call [u8] {
        self.read(abi::PATH).unwrap_or_default()
    }

    /// Returns the path that routes are matched with: `%XX` is decoded, and `.`, `..` and `//` are resolved.
    pub fn decoded_path(&self) -> &'call [u8] {
        self.read(abi::DECODED_PATH).unwrap_or_default()
    }

    /// Returns the query, which is the part after the first `?`; `None` if there is no query. A rewrite rule may have
    /// changed the query.
    pub fn query(&self) -> Option<&'call [u8]> {
        self.read(abi::QUERY)
    }

    /// Returns the request target as the client sent it, before any rule of the site: usually path and query.
    pub fn target(&self) -> &'call [u8] {
        self.read(abi::TARGET).unwrap_or_default()
    }

    /// Returns host and port of the request as the client sent them.
    pub fn host(&self) -> &'call [u8] {
        self.read(abi::HOST).unwrap_or_default()
    }

    /// Returns the version: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`.
    pub fn version(&self) -> &'call [u8] {
        self.read(abi::VERSION).unwrap_or_default()
    }

    /// Returns true if the client used `https`.
    pub fn is_https(&self) -> bool {
        self.read(abi::SCHEME) == Some(b"https")
    }

    /// Returns the IP address of the client, or `None` for a Unix socket.
    pub fn client_address(&self) -> Option<&'call [u8]> {
        self.read(abi::CLIENT_ADDRESS)
    }

    /// Returns the port of the client as decimal digits, if it is known.
    pub fn client_port(&self) -> Option<&'call [u8]> {
        self.read(abi::CLIENT_PORT)
    }

    /// Returns the subject of the certificate that the client authenticated with (`CN=bob, O=Example`), or `None`
    /// without a certificate.
    pub fn client_certificate(&self) -> Option<&'call [u8]> {
        self.read(abi::CLIENT_CERTIFICATE)
    }

    /// Returns the TLS version (`TLSv1.2` or `TLSv1.3`), or `None` without TLS.
    pub fn tls_version(&self) -> Option<&'call [u8]> {
        self.read(abi::TLS_VERSION)
    }

    /// Returns the IANA name of the cipher suite (`TLS_AES_128_GCM_SHA256`), or `None` without TLS.
    pub fn tls_cipher(&self) -> Option<&'call [u8]> {
        self.read(abi::TLS_CIPHER)
    }

    /// Returns the server name of the TLS handshake (SNI), or `None` without TLS or without a name.
    pub fn server_name(&self) -> Option<&'call [u8]> {
        self.read(abi::SERVER_NAME)
    }

    /// Returns the user that the server authenticated (`auth`), by a password, a client certificate, an authority or a
    /// login provider, or `None` if no user is known.
    pub fn user(&self) -> Option<&'call [u8]> {
        self.read(abi::USER)
    }

    /// Returns the value of the first header field of this name, ignoring case, or `None` if there is no such field.
    pub fn field(&self, name: &str) -> Option<&'call [u8]> {
        // SAFETY: as in `read`. The name is only read during the call.
        unsafe { bytes((self.server().field)(self.raw, name.as_ptr().cast(), name.len(), 0)) }
    }

    /// Returns names and values of all header fields in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&'call [u8], &'call [u8])> + use<'call> {
        let (raw, server) = (self.raw, self.server());
        (0..).map_while(move |index| {
            let (mut name, mut value) = (RawText::ABSENT, RawText::ABSENT);
            // SAFETY: as in `read`. `name` and `value` are local variables.
            unsafe {
                match (server.field_at)(raw, index, &raw mut name, &raw mut value) {
                    abi::OK => Some((bytes(name)?, bytes(value).unwrap_or_default())),
                    _ => None,
                }
            }
        })
    }

    /// Returns the request body; empty for controllers that take it in pieces.
    pub fn content(&self) -> &'call [u8] {
        // SAFETY: as in `read`.
        unsafe { bytes((self.server().content)(self.raw)) }.unwrap_or_default()
    }

    /// Sets the status of the response, from 200 to 599. A response without status becomes 500.
    ///
    /// # Errors
    ///
    /// Returns [`Refused::Invalid`] for another status, and [`Refused::Late`] once the response has begun.
    pub fn set_status(&mut self, status: u16) -> Result<(), Refused> {
        // SAFETY: the request is valid, and nothing else uses it.
        check(unsafe { (self.server().set_status)(self.raw, status.into()) })
    }

    /// Adds a header field to the response.
    ///
    /// # Errors
    ///
    /// - [`Refused::NotYours`] for `Date` and for fields of the connection,
    /// - [`Refused::Invalid`] for a name or value that cannot be sent,
    /// - [`Refused::TooMuch`] beyond the server's limits,
    /// - [`Refused::Late`] once the response has begun.
    pub fn add_field(&mut self, name: &str, value: &str) -> Result<(), Refused> {
        let (name, name_size): (*const c_char, _) = (name.as_ptr().cast(), name.len());
        let (value, value_size): (*const c_char, _) = (value.as_ptr().cast(), value.len());
        // SAFETY: the request is valid, and the server copies name and value.
        check(unsafe { (self.server().add_field)(self.raw, name, name_size, value, value_size) })
    }

    /// Appends to the response body.
    ///
    /// # Errors
    ///
    /// Returns [`Refused::TooMuch`] if the body exceeds 16 MiB, and [`Refused::Late`] once the response has begun.
    pub fn write(&mut self, data: &[u8]) -> Result<(), Refused> {
        let start: *const c_void = data.as_ptr().cast();
        // SAFETY: the request is valid, and the server copies the bytes.
        check(unsafe { (self.server().write)(self.raw, start, data.len()) })
    }

    /// Writes a line to the log of the server.
    pub fn log(&self, level: Level, line: &str) {
        log(self.server(), self.raw, level, line);
    }

    pub(crate) fn state(&self) -> *mut c_void {
        // SAFETY: the request is valid.
        unsafe { (self.server().state)(self.raw) }
    }

    pub(crate) fn set_state(&mut self, state: *mut c_void) -> Result<(), Refused> {
        // SAFETY: the request is valid, and the server does not dereference the state.
        check(unsafe { (self.server().set_state)(self.raw, state) })
    }
}

/// Log of the server, for code without a request.
#[derive(Clone, Copy)]
pub struct Log<'call>(pub(crate) &'call abi::RawServer);

impl Log<'_> {
    /// Writes a line.
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
    // SAFETY: the request is valid or null, and the line is only read during the call.
    unsafe { (server.log)(request, level, line.as_ptr().cast(), line.len()) }
}

/// Returns the bytes of a text, or `None` if it is absent.
///
/// # Safety
///
/// The text must live as long as `'call`.
unsafe fn bytes<'call>(text: RawText) -> Option<&'call [u8]> {
    if text.data.is_null() {
        return None;
    }
    // SAFETY: the text states its size, and its bytes live as long as `'call`.
    Some(unsafe { std::slice::from_raw_parts(text.data.cast(), text.size) })
}

/// Converts the return value of a function of the server.
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
            Refused::Late => "the response has begun already",
            Refused::Invalid => "the status, name or value cannot be sent",
            Refused::TooMuch => "a limit of the server is exceeded",
            Refused::NotYours => "the field is `Date` or belongs to the connection",
            Refused::Unknown => "the server is too old for this function",
        })
    }
}

impl std::error::Error for Refused {}
