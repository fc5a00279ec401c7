//! The head of an answer rendered once, so that sending it again is a copy.

use rocknet_proto::h2::PreparedHead;
use rocknet_proto::status::Status;

use crate::protocol::{h1, h2};
use crate::response::FieldList;

/// A head that needs nothing more but the date. Each protocol renders its own form of it here, when the answer is
/// made, not when it is sent.
#[derive(Debug)]
pub struct Prepared {
    pub status: Status,
    /// Bytes of the content that belongs to it.
    pub length: u64,
    pub h1: h1::Block,
    pub h2: PreparedHead,
}

impl Prepared {
    pub fn new(status: Status, fields: &FieldList, length: u64) -> Prepared {
        Prepared {
            status,
            length,
            h1: h1::Block::render(status, fields, length),
            h2: h2::render(status, fields, length),
        }
    }

    /// Memory it takes, roughly.
    pub fn size(&self) -> usize {
        size_of::<Prepared>() + self.h1.size() + self.h2.size()
    }
}
