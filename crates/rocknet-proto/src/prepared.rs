//! Response head that is rendered once for each HTTP version, so that sending it only copies its bytes.

use crate::fields::FieldList;
use crate::status::Status;
use crate::{h1, h2};

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
}

impl PreparedHeads {
    /// Renders a head for a response body of `length` bytes. The head for HTTP/2 omits fields that HTTP/2 does not
    /// allow. Errors are not reported, because `fields` come from the configuration and from the server, which have
    /// validated them already.
    pub fn new(status: Status, fields: &FieldList, length: u64) -> PreparedHeads {
        PreparedHeads {
            status,
            length,
            h1: h1::PreparedHead::new(status, fields, length),
            h2: render_h2(status, fields, length),
        }
    }

    /// Returns the approximate memory in use, in bytes.
    pub fn size(&self) -> usize {
        size_of::<PreparedHeads>() + self.h1.size() + self.h2.size()
    }
}

fn render_h2(status: Status, fields: &FieldList, length: u64) -> h2::PreparedHead {
    let length = status.allows_body().then_some(length);
    let all = || fields.bytes();
    h2::PreparedHead::new(status, length, all())
        .or_else(|_| {
            let valid = all().filter(|field| h2::PreparedHead::new(status, None, [*field]).is_ok());
            h2::PreparedHead::new(status, length, valid)
        })
        .unwrap_or_else(|_| h2::PreparedHead::bare(status, length))
}
