//! What a call may read of a request, and where it puts its answer.

use crate::request::{Level, Refused};

/// What can be read of a request. All of it stays as it is while a controller is called.
pub trait RequestView {
    /// `what` is one of [`crate::abi::METHOD`] and so on; `None` for what is absent or unknown.
    fn read(&self, what: u32) -> Option<&[u8]>;
    /// The value of the nth field of that name, whatever its case.
    fn field(&self, name: &[u8], nth: usize) -> Option<&[u8]>;
    fn field_at(&self, index: usize) -> Option<(&[u8], &[u8])>;
    fn content(&self) -> &[u8];
}

/// What takes an answer. What it refuses it has to remember: libraries need not look.
pub trait ResponseWriter {
    fn set_status(&mut self, status: u32) -> Result<(), Refused>;
    fn add_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refused>;
    fn write(&mut self, data: &[u8]) -> Result<(), Refused>;
    /// Something was given that is nothing: no memory, or a length that no memory has.
    fn mark_invalid(&mut self);
    fn log(&self, level: Level, line: &[u8]);
}
