//! The head of an answer rendered once, so that sending it again is a copy.

use rocknet_proto::status::Status;
use rocknet_proto::{h1, h2};

use rocknet_handler::response::FieldList;

/// A head that lacks nothing but the date, in the form of each version. It is rendered when the response is made, not when
/// it is sent.
#[derive(Debug)]
pub struct Prepared {
    pub status: Status,
    /// Bytes of the content that belongs to it.
    pub length: u64,
    pub h1: h1::PreparedHead,
    pub h2: h2::PreparedHead,
}

impl Prepared {
    pub fn new(status: Status, fields: &FieldList, length: u64) -> Prepared {
        Prepared {
            status,
            length,
            h1: h1::PreparedHead::new(status, fields, length),
            h2: render(status, fields, length),
        }
    }

    /// Memory it takes, roughly.
    pub fn size(&self) -> usize {
        size_of::<Prepared>() + self.h1.size() + self.h2.size()
    }
}

/// Renders the head for HTTP/2. A field that cannot be sent there is left out: fields come from the configuration and from
/// the server, which have checked them already.
fn render(status: Status, fields: &FieldList, length: u64) -> h2::PreparedHead {
    let length = status.allows_content().then_some(length);
    let all = || fields.bytes();
    h2::PreparedHead::new(status, length, all())
        .or_else(|_| {
            let good = all().filter(|field| h2::PreparedHead::new(status, None, [*field]).is_ok());
            h2::PreparedHead::new(status, length, good)
        })
        .unwrap_or_else(|_| h2::PreparedHead::bare(status, length))
}
