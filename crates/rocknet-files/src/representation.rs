//! Selects the response to a request for an asset: negotiates the variant, evaluates the preconditions (RFC 9110 §13),
//! and applies ranges (§14).

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use bytes::Bytes;
use rocknet_proto::fields::{Fields, KnownField, KnownFieldSet};
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::semantics::conditional::{self, Outcome, Preconditions, Validators};
use rocknet_proto::semantics::multipart::{Boundary, MultipartRanges};
use rocknet_proto::semantics::negotiation::{self, AcceptEncoding, Coding};
use rocknet_proto::semantics::range::{self, ByteRange, ContentRange, Ranges};
use rocknet_proto::status::Status;

use crate::entry::{Asset, Content, PREFERRED_CODINGS, Variant};
use rocknet_handler::fixed;
use rocknet_handler::response::{Body, ErrorPage, FieldList, FilePart, Part, Response};
use rocknet_proto::PreparedHeads;

/// Response to a request for an asset.
pub enum Choice<'a> {
    /// Sends this head, and the content of the variant. `None` for a 304 response, which has no content.
    Send(&'a PreparedHeads, Option<&'a Variant>),
    /// Sends this response.
    Respond(Box<Response>),
    /// The variant with this coding is preferred but was not encoded yet.
    Encode(Coding),
}

/// Fields that may select something other than the complete plain variant.
const SELECTING_FIELDS: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::IfMatch,
    KnownField::IfNoneMatch,
    KnownField::IfModifiedSince,
    KnownField::IfUnmodifiedSince,
    KnownField::Range,
    KnownField::AcceptEncoding,
]);

/// Selects the response to a request for an asset.
#[inline]
pub fn choose<'a>(asset: &'a Asset, request: &Request<'_>) -> Choice<'a> {
    if !request.fields.contains_any(SELECTING_FIELDS) {
        return full(&asset.plain);
    }
    select(asset, request)
}

fn full(variant: &Variant) -> Choice<'_> {
    Choice::Send(&variant.full, Some(variant))
}

/// Selects the response to a request that has one of the [`SELECTING_FIELDS`].
fn select<'a>(asset: &'a Asset, request: &Request<'_>) -> Choice<'a> {
    let ranged = is_ranged(asset, request);
    let variant = match negotiated_variant(asset, request, ranged) {
        Ok(variant) => variant,
        Err(coding) => return not_encoded(asset, request, coding),
    };
    let Some(etag) = &variant.etag else {
        return full(variant);
    };
    let validators = Validators {
        etag: etag.as_bytes(),
        last_modified: asset.last_modified,
    };
    let fields = &request.fields;
    match evaluate(request, &validators) {
        Outcome::Proceed => {}
        Outcome::NotModified => {
            return match &variant.not_modified {
                Some(head) => Choice::Send(head, None),
                None => full(variant),
            };
        }
        Outcome::PreconditionFailed => return respond(fixed::error(Status::PRECONDITION_FAILED)),
    }
    let range = match fields.get(KnownField::Range) {
        Some(range) if ranged && !fields.is_repeated(KnownField::Range) => range,
        _ => return full(variant),
    };
    if fields
        .get(KnownField::IfRange)
        .is_some_and(|value| !conditional::if_range(value, &validators))
    {
        return full(variant);
    }
    match range::parse(range, variant.content.length()) {
        Ranges::Whole => full(variant),
        Ranges::One(part) => respond(partial(asset, variant, part)),
        Ranges::Many(parts) => respond(multipart(asset, variant, &parts)),
        Ranges::Unsatisfiable => respond(range_not_satisfiable(variant)),
    }
}

/// Returns true if the request has a `Range` field that this server may apply.
fn is_ranged(asset: &Asset, request: &Request<'_>) -> bool {
    request.method == Method::Get && request.fields.contains(KnownField::Range) && asset.status == Status::OK
}

/// Handles a request for a variant that is not cached. The variant of an open file is encoded while it is sent and
/// never cached, so its preconditions are evaluated here. For content in memory, the preconditions are evaluated once
/// the variant exists, because encoding may not make the content shorter, and then the plain variant is sent.
fn not_encoded<'a>(asset: &Asset, request: &Request<'_>, coding: Coding) -> Choice<'a> {
    let Some(etag) = asset
        .tag(coding)
        .filter(|_| matches!(asset.plain.content, Content::File(..)))
    else {
        return Choice::Encode(coding);
    };
    let validators = Validators {
        etag: etag.as_bytes(),
        last_modified: asset.last_modified,
    };
    match evaluate(request, &validators) {
        Outcome::Proceed => Choice::Encode(coding),
        Outcome::NotModified => respond(not_modified(asset, etag.as_bytes())),
        Outcome::PreconditionFailed => respond(fixed::error(Status::PRECONDITION_FAILED)),
    }
}

/// Returns the plain variant as a response and applies preconditions and ranges, for callers that change the response
/// before it is sent. Any method except HEAD is treated as GET.
pub fn full_response(asset: &Asset, request: &Request<'_>) -> Response {
    let variant = &asset.plain;
    let Some(etag) = &variant.etag else {
        return plain_response(asset);
    };
    let validators = Validators {
        etag: etag.as_bytes(),
        last_modified: asset.last_modified,
    };
    let method = file_method(request.method);
    match evaluate_as(method, request, &validators) {
        Outcome::Proceed => {}
        Outcome::NotModified => return not_modified(asset, etag.as_bytes()),
        Outcome::PreconditionFailed => return fixed::error(Status::PRECONDITION_FAILED),
    }
    let fields = &request.fields;
    let range = fields
        .get(KnownField::Range)
        .filter(|_| method == Method::Get && !fields.is_repeated(KnownField::Range));
    // False if `If-Range` names another version of the file.
    let is_same = || {
        let value = fields.get(KnownField::IfRange);
        value.is_none_or(|value| conditional::if_range(value, &validators))
    };
    match range
        .filter(|_| is_same())
        .map(|range| range::parse(range, variant.content.length()))
    {
        None | Some(Ranges::Whole) => plain_response(asset),
        Some(Ranges::One(part)) => partial(asset, variant, part),
        Some(Ranges::Many(parts)) => multipart(asset, variant, &parts),
        Some(Ranges::Unsatisfiable) => range_not_satisfiable(variant),
    }
}

/// Returns the 304 response for which [`choose`] has selected a prepared head, for callers that change the response
/// before it is sent.
pub fn not_modified_response(asset: &Asset, request: &Request<'_>) -> Response {
    let variant = negotiated_variant(asset, request, is_ranged(asset, request)).unwrap_or(&asset.plain);
    let etag = variant.etag.as_ref().map_or(&b""[..], |etag| etag.as_bytes());
    not_modified(asset, etag)
}

fn not_modified(asset: &Asset, etag: &[u8]) -> Response {
    let mut fields = asset.fields.clone();
    fields.remove("Content-Type");
    fields.remove("Accept-Ranges");
    fields.add("ETag", text(etag));
    Response {
        status: Status::NOT_MODIFIED,
        fields,
        body: Body::Empty,
        error_page: ErrorPage::IfEmpty,
        is_negotiated: true,
        upstream: None,
        cache_status: "",
        stored: None,
        is_no_offence: false,
        date: None,
    }
}

fn range_not_satisfiable(variant: &Variant) -> Response {
    let range = ContentRange::unsatisfied(variant.content.length());
    fixed::error(Status::RANGE_NOT_SATISFIABLE).with("Content-Range", text(range.as_bytes()))
}

fn evaluate(request: &Request<'_>, validators: &Validators<'_>) -> Outcome {
    evaluate_as(request.method, request, validators)
}

/// Evaluates the preconditions of RFC 9110 §13.2.2 for the variant that would be sent.
fn evaluate_as(method: Method, request: &Request<'_>, validators: &Validators<'_>) -> Outcome {
    let fields = &request.fields;
    let (if_match, if_none_match) = (
        joined(fields, KnownField::IfMatch),
        joined(fields, KnownField::IfNoneMatch),
    );
    let preconditions = Preconditions {
        if_match: if_match.as_deref(),
        if_none_match: if_none_match.as_deref(),
        if_modified_since: fields.get(KnownField::IfModifiedSince),
        if_unmodified_since: fields.get(KnownField::IfUnmodifiedSince),
    };
    // `true`: the representation exists.
    conditional::evaluate(method, &preconditions, validators, true)
}

/// Joins all values of a list field. Copies only if the field occurs more than once.
fn joined<'a>(fields: &Fields<'a>, name: KnownField) -> Option<Cow<'a, [u8]>> {
    if fields.is_repeated(name) {
        return Some(Cow::Owned(fields.get_all(name).collect::<Vec<_>>().join(&b", "[..])));
    }
    fields.get(name).map(Cow::Borrowed)
}

/// Converts a value generated by this server to a string. The value is ASCII.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the variant for this client, or the coding in which a preferred variant must be encoded first. Ranges always
/// apply to the plain variant.
fn negotiated_variant<'a>(asset: &'a Asset, request: &Request<'_>, ranged: bool) -> Result<&'a Variant, Coding> {
    if !asset.negotiates || ranged {
        return Ok(&asset.plain);
    }
    let accepted = AcceptEncoding::parse(joined(&request.fields, KnownField::AcceptEncoding).as_deref());
    if accepted == AcceptEncoding::IDENTITY {
        return Ok(&asset.plain);
    }
    // If the operator provides precompressed files, the existing variants take precedence over variants that the server
    // would still have to encode. Without such files, the preferred coding is used, encoded or not.
    for includes_unencoded in [false, true] {
        let mut offered = [Coding::Identity; 3];
        let mut count = 0;
        for coding in PREFERRED_CODINGS {
            let offer = match asset.encoded(coding) {
                Some(variant) => variant.is_some() && (includes_unencoded || asset.has_precompressed),
                None => includes_unencoded && asset.status == Status::OK,
            };
            if offer {
                offered[count] = coding;
                count += 1;
            }
        }
        match negotiation::choose_coding(accepted, &offered[..count]) {
            Coding::Identity => {}
            coding => return asset.encoded(coding).flatten().ok_or(coding),
        }
    }
    Ok(&asset.plain)
}

fn respond<'a>(response: Response) -> Choice<'a> {
    Choice::Respond(Box::new(response))
}

fn partial(asset: &Asset, variant: &Variant, part: ByteRange) -> Response {
    let mut fields = with_etag(asset, variant);
    fields.add(
        "Content-Range",
        text(ContentRange::new(part, variant.content.length()).as_bytes()),
    );
    let body = match slice(&variant.content, part) {
        Part::Bytes(bytes) => Body::Bytes(bytes),
        Part::File(part) => Body::File(part),
    };
    Response {
        status: Status::PARTIAL_CONTENT,
        fields,
        body,
        error_page: ErrorPage::IfEmpty,
        is_negotiated: true,
        upstream: None,
        cache_status: "",
        stored: None,
        is_no_offence: false,
        date: None,
    }
}

fn multipart(asset: &Asset, variant: &Variant, ranges: &[ByteRange]) -> Response {
    let content_type = Some(asset.content_type.as_bytes());
    let frame = MultipartRanges::new(ranges, variant.content.length(), content_type, random_boundary());
    let mut fields = with_etag(asset, variant);
    let mut value = Vec::new();
    frame.write_content_type(&mut value);
    fields.set("Content-Type", text(&value));
    let mut parts = Vec::with_capacity(ranges.len() * 2 + 1);
    for range in ranges {
        let mut head = Vec::new();
        frame.write_part_head(*range, &mut head);
        parts.push(Part::Bytes(Bytes::from(head)));
        parts.push(slice(&variant.content, *range));
    }
    let mut end = Vec::new();
    frame.write_end(&mut end);
    parts.push(Part::Bytes(Bytes::from(end)));
    Response {
        status: Status::PARTIAL_CONTENT,
        fields,
        body: Body::Parts(parts),
        error_page: ErrorPage::IfEmpty,
        is_negotiated: true,
        upstream: None,
        cache_status: "",
        stored: None,
        is_no_offence: false,
        date: None,
    }
}

/// Returns the complete plain variant as a response. It is used by callers that change the response before it is sent,
/// and in place of a preferred variant that cannot be encoded now.
pub fn plain_response(asset: &Asset) -> Response {
    response_of(asset, &asset.plain)
}

/// Returns the complete content of a variant as a response, for callers that change the response before it is sent.
pub fn response_of(asset: &Asset, variant: &Variant) -> Response {
    let mut fields = with_etag(asset, variant);
    if variant.coding != Coding::Identity {
        fields.add("Content-Encoding", variant.coding.name());
        // Ranges always apply to the plain variant.
        fields.remove("Accept-Ranges");
    }
    let body = match &variant.content {
        Content::Memory(bytes) => Body::Bytes(bytes.clone()),
        Content::File(file) => Body::File(FilePart {
            file: Arc::clone(file),
            offset: 0,
            length: file.length,
        }),
    };
    Response {
        status: asset.status,
        fields,
        body,
        error_page: ErrorPage::IfEmpty,
        is_negotiated: true,
        upstream: None,
        cache_status: "",
        stored: None,
        is_no_offence: false,
        date: None,
    }
}

fn with_etag(asset: &Asset, variant: &Variant) -> FieldList {
    let mut fields = asset.fields.clone();
    if let Some(etag) = &variant.etag {
        fields.add("ETag", text(etag.as_bytes()));
    }
    fields
}

fn slice(content: &Content, range: ByteRange) -> Part {
    match content {
        Content::Memory(bytes) => Part::Bytes(bytes.slice(range.first() as usize..=range.last() as usize)),
        Content::File(file) => Part::File(FilePart {
            file: Arc::clone(file),
            offset: range.first(),
            length: range.size(),
        }),
    }
}

/// Returns a random boundary. It cannot be guessed, so no file can contain it on purpose.
fn random_boundary() -> Boundary {
    let state = RandomState::new();
    let now = rocknet_handler::clock::uptime_ms();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&state.hash_one(now).to_ne_bytes());
    bytes[8..].copy_from_slice(&state.hash_one(!now).to_ne_bytes());
    Boundary::new(bytes)
}

/// Returns the method that applies if a file is sent in place of an application's response: HEAD for HEAD, else GET.
fn file_method(method: Method) -> Method {
    match method {
        Method::Head => Method::Head,
        _ => Method::Get,
    }
}
