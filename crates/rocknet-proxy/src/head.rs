//! Head of an upstream's response, without the fields that are not forwarded.

use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use rocknet_proto::fields::{Field, KnownField, KnownFieldSet};
use rocknet_proto::h1::{ResponseBodyFraming, connection_options};
use rocknet_proto::response;
use rocknet_proto::semantics::date;
use rocknet_proto::status::Status;

use crate::upgrade_request::UpgradeRequest;
use rocknet_handler::response::{FieldList, Stream};

/// Fields that are not forwarded: fields that frame a message or control its connection, and fields that RockNet sets
/// itself.
const NOT_PASSED: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Connection,
    KnownField::ContentLength,
    KnownField::Date,
    KnownField::KeepAlive,
    KnownField::ProxyConnection,
    KnownField::Server,
    KnownField::Te,
    KnownField::Trailer,
    KnownField::TransferEncoding,
    KnownField::Upgrade,
]);

/// Response head to forward.
pub struct ResponseHead {
    pub status: Status,
    pub fields: FieldList,
    /// Length of the response body in bytes, if it is known. In a response without a body, such as one to HEAD, it is
    /// the value of `Content-Length`.
    pub length: Option<u64>,
    /// Value of `Date` in seconds since 1970; `None` without a valid one. The field is not forwarded, but the response
    /// cache needs its value.
    pub date: Option<u64>,
}

impl ResponseHead {
    /// Builds the head. `upgrade` is the protocol switch that the upstream accepted, if any. The fields of the switch
    /// that are meant for the proxy are dropped.
    pub fn new(
        response: &response::Response<'_>,
        framing: ResponseBodyFraming,
        upgrade: Option<&UpgradeRequest>,
    ) -> ResponseHead {
        // `Connection` nominates further fields that are not forwarded (RFC 9110 §7.6.1).
        let nominates = response.fields.contains(KnownField::Connection);
        let is_passed = |field: &Field<'_>| {
            let is_own = field.known.is_some_and(|known| NOT_PASSED.contains(known))
                || upgrade.is_some_and(|upgrade| upgrade.is_for_proxy(field.name));
            let is_nominated =
                || nominates && connection_options(response.fields).any(|name| name.eq_ignore_ascii_case(field.name));
            !is_own && !is_nominated()
        };
        let passed = response.fields.lines().filter(is_passed);
        let fields = FieldList::from_fields(passed);
        let content_length = response.fields.get(KnownField::ContentLength);
        let length = match framing {
            ResponseBodyFraming::Length(length) => Some(length),
            ResponseBodyFraming::None => {
                content_length.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok())
            }
            ResponseBodyFraming::Chunked | ResponseBodyFraming::UntilClose => None,
        };
        ResponseHead {
            status: response.status,
            fields,
            length,
            date: response.fields.get(KnownField::Date).and_then(date::parse),
        }
    }

    /// Returns the fields, without the status and the length.
    pub fn into_fields(self) -> FieldList {
        self.fields
    }
}

/// Body of a response to HEAD: has a length in bytes, if it is known, but is not sent.
pub struct OmittedBody(pub Option<u64>);

impl Stream for OmittedBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(None))
    }

    fn length(&self) -> Option<u64> {
        self.0
    }
}
