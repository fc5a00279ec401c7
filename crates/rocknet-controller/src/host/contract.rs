//! Traits that the server implements for a call: access to the request, and the response under construction.

use crate::request::{Level, Refused};

/// Readable parts of a request. They do not change during a call.
pub trait RequestView {
    /// Returns a property, such as [`crate::abi::METHOD`]; `None` if it is absent or unknown.
    fn read(&self, property: u32) -> Option<&[u8]>;
    /// Returns the value of the `nth` header field of this name, counted from 0 and ignoring case; `None` after the
    /// last one.
    fn field(&self, name: &[u8], nth: usize) -> Option<&[u8]>;
    /// Returns name and value of the header field at `index`, in the order of the request; `None` after the last one.
    fn field_at(&self, index: usize) -> Option<(&[u8], &[u8])>;
    /// Returns the request body; empty for controllers that take it in pieces.
    fn content(&self) -> &[u8];
}

/// Receiver of a response.
///
/// An implementation must remember that it refused something, because libraries can ignore the results.
pub trait ResponseWriter {
    /// Sets the status, which must be from 200 to 599.
    ///
    /// # Errors
    ///
    /// Returns the reason if the status is refused.
    fn set_status(&mut self, status: u32) -> Result<(), Refused>;
    /// Adds a header field.
    ///
    /// # Errors
    ///
    /// Returns the reason if the field is refused.
    fn add_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refused>;
    /// Appends to the response body.
    ///
    /// # Errors
    ///
    /// Returns the reason if the bytes are refused.
    fn write(&mut self, data: &[u8]) -> Result<(), Refused>;
    /// Makes the response 500, because a library passed a null pointer or an impossible length.
    fn mark_invalid(&mut self);
    /// Writes a line to the log of the server.
    fn log(&self, level: Level, line: &[u8]);
}
