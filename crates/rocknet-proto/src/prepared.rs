//! Response head that is rendered once for every HTTP version, so that sending it again is a copy.

use crate::fields::FieldList;
use crate::status::Status;
use crate::{h1, h2};

/// Head that lacks only its date, in the form of each version. It is rendered when the response is made, not when it is sent.
#[derive(Debug)]
pub struct PreparedHeads {
    pub status: Status,
    /// Bytes of the response body that belongs to the head.
    pub length: u64,
    pub h1: h1::PreparedHead,
    pub h2: h2::PreparedHead,
}

impl PreparedHeads {
    /// Renders a head for a response body of `length` bytes. A field that HTTP/2 cannot carry is left out there: fields come from
    /// the configuration and from the server, which have checked them already.
    pub fn new(status: Status, fields: &FieldList, length: u64) -> PreparedHeads {
        PreparedHeads {
            status,
            length,
            h1: h1::PreparedHead::new(status, fields, length),
            h2: render_h2(status, fields, length),
        }
    }

    /// Returns the memory that the heads take, roughly, in bytes.
    pub fn size(&self) -> usize {
        size_of::<PreparedHeads>() + self.h1.size() + self.h2.size()
    }
}

fn render_h2(status: Status, fields: &FieldList, length: u64) -> h2::PreparedHead {
    let length = status.allows_body().then_some(length);
    let all = || fields.bytes();
    h2::PreparedHead::new(status, length, all())
        .or_else(|_| {
            let good = all().filter(|field| h2::PreparedHead::new(status, None, [*field]).is_ok());
            h2::PreparedHead::new(status, length, good)
        })
        .unwrap_or_else(|_| h2::PreparedHead::bare(status, length))
}
