//! The head of an upstream's response, cleared of what is the connection's.

use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use rocknet_proto::fields::{Field, Known, KnownSet};
use rocknet_proto::h1::{ResponseBodyFraming, connection_options};
use rocknet_proto::response;
use rocknet_proto::status::Status;

use crate::wish::Wish;
use rocknet_handler::response::{FieldList, Stream};

/// Fields that frame a message or rule its connection, and those that this server says of itself.
const NOT_PASSED: KnownSet = KnownSet::of(&[
    Known::Connection,
    Known::ContentLength,
    Known::Date,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::Server,
    Known::Te,
    Known::Trailer,
    Known::TransferEncoding,
    Known::Upgrade,
]);

/// A head as it is passed on.
pub struct Head {
    pub status: Status,
    pub fields: FieldList,
    /// As it was told: to HEAD, of content that is not sent.
    pub length: Option<u64>,
}

impl Head {
    pub fn new(response: &response::Response<'_>, content: ResponseBodyFraming, wish: Option<&Wish>) -> Head {
        let nominates = response.fields.contains(Known::Connection);
        let is_passed = |field: &Field<'_>| {
            let is_own = field.known.is_some_and(|known| NOT_PASSED.contains(known))
                || wish.is_some_and(|wish| wish.is_own(field.name));
            let is_nominated =
                || nominates && connection_options(response.fields).any(|name| name.eq_ignore_ascii_case(field.name));
            !is_own && !is_nominated()
        };
        let passed = response.fields.lines().filter(is_passed);
        let fields = FieldList::from_fields(passed);
        let told = response.fields.get(Known::ContentLength);
        let length = match content {
            ResponseBodyFraming::Length(length) => Some(length),
            ResponseBodyFraming::None => told.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok()),
            ResponseBodyFraming::Chunked | ResponseBodyFraming::UntilClose => None,
        };
        Head {
            status: response.status,
            fields,
            length,
        }
    }
}

impl Head {
    pub fn into_fields(self) -> FieldList {
        self.fields
    }
}

/// Content that is not sent: the answer to HEAD.
pub struct Unsent(pub Option<u64>);

impl Stream for Unsent {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(None))
    }

    fn length(&self) -> Option<u64> {
        self.0
    }
}
