//! A head rendered for HTTP/2.

use rocknet_proto::h2::PreparedHead;
use rocknet_proto::status::Status;

use crate::response::FieldList;

/// Fields come from the configuration or from us, checked already; one that could not be sent would be a mistake of
/// ours, and is left out.
pub fn render(status: Status, fields: &FieldList, length: u64) -> PreparedHead {
    let length = status.allows_content().then_some(length);
    let all = || fields.bytes();
    PreparedHead::new(status, length, all())
        .or_else(|_| {
            let good = all().filter(|field| PreparedHead::new(status, None, [*field]).is_ok());
            PreparedHead::new(status, length, good)
        })
        .unwrap_or_else(|_| PreparedHead::bare(status, length))
}
