//! Response head that is rendered once for each HTTP version, so that sending it only copies its bytes.

use crate::fields::FieldList;
use crate::status::Status;
use crate::{h1, h2, h3};

/// Head in the form of each version, complete except for its date. It is rendered when the response is created, not
/// when it is sent.
#[derive(Debug)]
pub struct PreparedHeads {
    /// Status of the response.
    pub status: Status,
    /// Size of the response body in bytes.
    pub length: u64,
    /// Head for HTTP/1.
    pub h1: h1::PreparedHead,
    /// Head for HTTP/2.
    pub h2: h2::PreparedHead,
    /// Head for HTTP/3.
    pub h3: h3::PreparedHead,
}

impl PreparedHeads {
    /// Renders a head for a response body of `length` bytes. The heads for HTTP/2 and HTTP/3 omit fields that these
    /// versions do not allow. Errors are not reported, because `fields` come from the configuration and from the
    /// server, which have validated them already.
    pub fn new(status: Status, fields: &FieldList, length: u64) -> PreparedHeads {
        PreparedHeads {
            status,
            length,
            h1: h1::PreparedHead::new(status, fields, length),
            h2: render_h2(status, fields, length),
            h3: render_h3(status, fields, length),
        }
    }

    /// Returns the approximate memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        size_of::<PreparedHeads>() + self.h1.memory_size() + self.h2.memory_size() + self.h3.memory_size()
    }
}

/// Renders the head for HTTP/2, without the fields that are invalid there.
fn render_h2(status: Status, fields: &FieldList, length: u64) -> h2::PreparedHead {
    let length = status.allows_body().then_some(length);
    let all = || fields.bytes();
    h2::PreparedHead::new(status, length, all())
        .or_else(|_| {
            let valid = all().filter(|field| h2::PreparedHead::new(status, None, [*field]).is_ok());
            h2::PreparedHead::new(status, length, valid)
        })
        // Never reached, because all remaining fields are valid.
        .unwrap_or_else(|_| h2::PreparedHead::bare(status, length))
}

/// Renders the head for HTTP/3, without the fields that are invalid there.
fn render_h3(status: Status, fields: &FieldList, length: u64) -> h3::PreparedHead {
    let length = status.allows_body().then_some(length);
    let all = || fields.bytes();
    h3::PreparedHead::new(status, length, all())
        .or_else(|_| {
            let valid = all().filter(|field| h3::PreparedHead::new(status, None, [*field]).is_ok());
            h3::PreparedHead::new(status, length, valid)
        })
        // Never reached, because all remaining fields are valid.
        .unwrap_or_else(|_| h3::PreparedHead::bare(status, length))
}
