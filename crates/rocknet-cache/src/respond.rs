//! Responses made of stored ones: whole, as 304, or in part.

use std::borrow::Cow;
use std::sync::Arc;

use rocknet_handler::fixed;
use rocknet_handler::response::{Body, FieldList, Part, Response};
use rocknet_handler::services::Services;
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::semantics::conditional::{self, Outcome, Preconditions, Validators};
use rocknet_proto::semantics::multipart::{Boundary, MultipartRanges};
use rocknet_proto::semantics::range::{self, ByteRange, ContentRange, Ranges};
use rocknet_proto::status::Status;

use crate::status::{CacheStatus, add_status};
use crate::stored::StoredResponse;

/// Room in bytes for fields that are added to stored ones: `Age`, `Cache-Status`, and some of the filters.
const ROOM: usize = 256;

/// Returns the response to a request from a stored response, with the fields `Age` and `Cache-Status`. `age`: seconds;
/// `None`: the response has just arrived, and its upstream has sent no age.
pub fn from_stored(
    stored: &Arc<StoredResponse>,
    request: &Request<'_>,
    services: &Services,
    age: Option<u64>,
    status: CacheStatus,
) -> Response {
    let mut response = Response::new(stored.status);
    response.fields = stored.fields.clone_with_room(ROOM);
    response.error_page = stored.error_page;
    response.is_negotiated = stored.is_negotiated;
    if let Some(age) = age {
        response.fields.add("Age", age.to_string());
    }
    let mut response = match unusual(stored, &response.fields, request, services) {
        Some(unusual) => unusual,
        None => {
            if !stored.body.is_empty() {
                response.body = stored.body.clone().into();
            }
            // The page of the route may replace the body of an error.
            if !stored.status.is_error() {
                response.stored = Some(Arc::<StoredResponse>::clone(stored));
            }
            response
        }
    };
    add_status(&mut response, status);
    response
}

/// Request fields without which the whole response is sent.
const SELECTING: [KnownField; 5] = [
    KnownField::IfMatch,
    KnownField::IfNoneMatch,
    KnownField::IfModifiedSince,
    KnownField::IfUnmodifiedSince,
    KnownField::Range,
];

/// Returns the response if it is not the whole stored one: 304, 412, 206 or 416.
fn unusual(
    stored: &StoredResponse,
    fields: &FieldList,
    request: &Request<'_>,
    services: &Services,
) -> Option<Response> {
    // Most requests have none of these fields, and reading the validators is the most expensive part of a hit.
    if !stored.status.is_success() || !SELECTING.iter().any(|name| request.fields.contains(*name)) {
        return None;
    }
    let validators = stored.validators();
    if let Some(response) = preconditions(&validators, fields, request) {
        return Some(response);
    }
    let range = request.fields.get(KnownField::Range)?;
    let is_usable = stored.status == Status::OK
        && request.method == Method::Get
        && !request.fields.is_repeated(KnownField::Range)
        && !stored.body.is_empty();
    let same = |value| conditional::if_range(value, &validators);
    if !is_usable || !request.fields.get(KnownField::IfRange).is_none_or(same) {
        return None;
    }
    match range::parse(range, stored.body.len() as u64) {
        Ranges::Whole => None,
        Ranges::One(part) => Some(partial(stored, fields, part)),
        Ranges::Many(parts) => Some(multipart(stored, fields, &parts, services)),
        Ranges::Unsatisfiable => {
            let range = ContentRange::unsatisfied(stored.body.len() as u64);
            Some(fixed::error(Status::RANGE_NOT_SATISFIABLE).with("Content-Range", text(range.as_bytes())))
        }
    }
}

/// Returns 304 or 412 if the preconditions of the request require it. `fields`: those of the response.
pub fn preconditions(validators: &Validators<'_>, fields: &FieldList, request: &Request<'_>) -> Option<Response> {
    let (if_match, if_none_match) = (
        joined(&request.fields, KnownField::IfMatch),
        joined(&request.fields, KnownField::IfNoneMatch),
    );
    let preconditions = Preconditions {
        if_match: if_match.as_deref(),
        if_none_match: if_none_match.as_deref(),
        if_modified_since: request.fields.get(KnownField::IfModifiedSince),
        if_unmodified_since: request.fields.get(KnownField::IfUnmodifiedSince),
    };
    // `true`: there is a current representation.
    match conditional::evaluate(request.method, &preconditions, validators, true) {
        Outcome::Proceed => None,
        Outcome::NotModified => {
            let mut response = Response::new(Status::NOT_MODIFIED);
            response.fields = fields.clone();
            // These fields describe a body (RFC 9110 §15.4.5).
            response.fields.retain(|name| {
                let prefix = name.get(..8);
                !prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case("Content-"))
                    || name.eq_ignore_ascii_case("Content-Location")
                    || name.eq_ignore_ascii_case("Content-Security-Policy")
            });
            Some(response)
        }
        Outcome::PreconditionFailed => Some(fixed::error(Status::PRECONDITION_FAILED)),
    }
}

fn partial(stored: &StoredResponse, fields: &FieldList, part: ByteRange) -> Response {
    let mut response = Response::new(Status::PARTIAL_CONTENT);
    response.fields = fields.clone();
    let range = ContentRange::new(part, stored.body.len() as u64);
    response.fields.add("Content-Range", text(range.as_bytes()));
    // A content coding that is applied afterwards would change the bytes that the range counts.
    response.is_negotiated = true;
    response.body(stored.body.slice(bounds(part)))
}

fn multipart(stored: &StoredResponse, fields: &FieldList, ranges: &[ByteRange], services: &Services) -> Response {
    let content_type = fields.value("Content-Type").map(str::as_bytes);
    let random = [services.random().to_ne_bytes(), services.random().to_ne_bytes()].concat();
    let mut boundary = [0; 16];
    boundary.copy_from_slice(&random);
    let frame = MultipartRanges::new(ranges, stored.body.len() as u64, content_type, Boundary::new(boundary));
    let mut value = Vec::new();
    frame.write_content_type(&mut value);
    let mut parts = Vec::with_capacity(ranges.len() * 2 + 1);
    for range in ranges {
        let mut head = Vec::new();
        frame.write_part_head(*range, &mut head);
        parts.push(Part::Bytes(head.into()));
        parts.push(Part::Bytes(stored.body.slice(bounds(*range))));
    }
    let mut end = Vec::new();
    frame.write_end(&mut end);
    parts.push(Part::Bytes(end.into()));
    let mut response = Response::new(Status::PARTIAL_CONTENT);
    response.fields = fields.clone();
    response.fields.set("Content-Type", text(&value));
    response.is_negotiated = true;
    response.body = Body::Parts(parts);
    response
}

/// Returns the range as an index into a body in memory, whose length is a `usize`.
fn bounds(range: ByteRange) -> std::ops::Range<usize> {
    let bounds = range.bounds();
    bounds.start as usize..bounds.end as usize
}

/// Joins all values of a list field. Copies only if the field occurs more than once.
fn joined<'a>(fields: &Fields<'a>, name: KnownField) -> Option<Cow<'a, [u8]>> {
    if fields.is_repeated(name) {
        return Some(Cow::Owned(fields.get_all(name).collect::<Vec<_>>().join(&b", "[..])));
    }
    fields.get(name).map(Cow::Borrowed)
}

/// Converts a value that this server has made to a string. The value is ASCII.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
