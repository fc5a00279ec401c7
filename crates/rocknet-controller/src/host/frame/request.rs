//! Requests of clients in the form in which the process of a library receives them.

use std::ops::Range;

use super::super::RequestView;
use super::{InvalidFrame, read_pairs, read_text, write_pair};
use crate::abi;

/// Encodes all parts of a request that a controller can read, except the body: the properties, then the header fields.
/// The byte before a property is 1 if the property is present, and 0 otherwise.
pub fn encode_request(request: &dyn RequestView) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(REQUEST_SIZE);
    for property in abi::FIRST_PROPERTY..=abi::LAST_PROPERTY {
        let text = request.read(property);
        bytes.push(u8::from(text.is_some()));
        if let Some(text) = text {
            bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(text);
        }
    }
    for (name, value) in (0..).map_while(|index| request.field_at(index)) {
        write_pair(&mut bytes, name, value);
    }
    bytes
}

/// Usual size of an encoded request, in bytes.
const REQUEST_SIZE: usize = 1024;

/// Number of properties.
const PROPERTIES: usize = (abi::LAST_PROPERTY - abi::FIRST_PROPERTY + 1) as usize;

/// Request as received by the process that runs the library.
#[derive(Debug)]
pub struct ReceivedRequest {
    bytes: Vec<u8>,
    /// Position of each property in `bytes`; the first one is `FIRST_PROPERTY`.
    properties: [Option<Range<usize>>; PROPERTIES],
    /// Positions of the name and value of each header field in `bytes`.
    fields: Vec<(Range<usize>, Range<usize>)>,
    content: Vec<u8>,
}

impl ReceivedRequest {
    /// Parses a request from [`encode_request`].
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are incomplete.
    pub fn read(bytes: &[u8]) -> Result<ReceivedRequest, InvalidFrame> {
        let range_of = |part: &[u8]| {
            let start = part.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + part.len()
        };
        let mut remaining = bytes;
        let mut properties = [const { None }; PROPERTIES];
        for property in &mut properties {
            let (&is_present, after) = remaining.split_first().ok_or(InvalidFrame)?;
            remaining = after;
            if is_present == 1 {
                *property = Some(range_of(read_text(&mut remaining).ok_or(InvalidFrame)?));
            }
        }
        let mut fields = Vec::new();
        for field in read_pairs(remaining) {
            let (name, value) = field?;
            fields.push((range_of(name), range_of(value)));
        }
        Ok(ReceivedRequest {
            properties,
            fields,
            bytes: bytes.to_vec(),
            content: Vec::new(),
        })
    }

    /// Returns the request with this body.
    pub fn with_content(mut self, content: &[u8]) -> ReceivedRequest {
        self.content = content.to_vec();
        self
    }
}

impl RequestView for ReceivedRequest {
    fn read(&self, property: u32) -> Option<&[u8]> {
        let index = property.checked_sub(abi::FIRST_PROPERTY)?;
        let range = self.properties.get(index as usize)?.clone()?;
        Some(&self.bytes[range])
    }

    fn field(&self, name: &[u8], nth: usize) -> Option<&[u8]> {
        let has_name = |range: &Range<usize>| self.bytes[range.clone()].eq_ignore_ascii_case(name);
        let mut all = self.fields.iter().filter(|(name, _)| has_name(name));
        all.nth(nth).map(|(_, value)| &self.bytes[value.clone()])
    }

    fn field_at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let (name, value) = self.fields.get(index)?;
        Some((&self.bytes[name.clone()], &self.bytes[value.clone()]))
    }

    fn content(&self) -> &[u8] {
        &self.content
    }
}
