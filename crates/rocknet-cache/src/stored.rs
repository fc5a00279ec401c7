//! A stored response.

use std::sync::Arc;

use bytes::Bytes;
use rocknet_handler::response::{ErrorPage, FieldList, Response};
use rocknet_handler::stored::{CodedForms, MAX_CODED, Stored};
use rocknet_proto::fields::KnownField;
use rocknet_proto::semantics::conditional::Validators;
use rocknet_proto::semantics::date;
use rocknet_proto::semantics::media_type::is_compressible;
use rocknet_proto::status::Status;

use crate::litespeed;
use crate::policy::Terms;
use crate::tags;
use crate::vary::Variation;

/// A complete response to GET, as the handler has returned it. It never changes; a validation replaces it.
#[derive(Debug)]
pub struct StoredResponse {
    /// Status.
    pub status: Status,
    /// Header fields without `Age`.
    pub fields: FieldList,
    /// Fields of the handler that concern only this server. They are not sent. A validation evaluates them again.
    pub server_fields: FieldList,
    /// Body.
    pub body: Bytes,
    /// Coded forms of the body.
    pub coded: Arc<CodedForms>,
    /// Condition for the error page of the route.
    pub error_page: ErrorPage,
    /// True if content negotiation is complete, so that no content coding is applied.
    pub is_negotiated: bool,
    /// Freshness.
    pub terms: Terms,
    /// Request fields that select the response.
    pub variation: Variation,
    /// Tags by which the response can be purged.
    pub tags: Arc<[Box<str>]>,
    /// Host and path of its request if a template has made its key.
    pub url: Option<Box<[u8]>>,
    /// Number of purges and invalidations when it was requested.
    pub changes: u64,
}

/// Properties of a response that may be stored.
#[derive(Debug)]
pub(crate) struct Storable {
    /// Freshness.
    pub terms: Terms,
    /// Request fields that select the response.
    pub variation: Variation,
    /// Tags by which the response can be purged.
    pub tags: Arc<[Box<str>]>,
    /// Fields that concern only this server.
    pub server_fields: FieldList,
    /// Host and path of the request if a template makes the key.
    pub url: Option<Box<[u8]>>,
    /// Number of purges and invalidations when the response was requested.
    pub changes: u64,
}

/// Memory of a stored response besides its fields and body, in bytes: structures, counters and allocator overhead.
const OVERHEAD: usize = 480;

impl StoredResponse {
    /// Returns a copy of the head of a response, with the complete body.
    pub(crate) fn new(response: &Response, body: Bytes, storable: Storable) -> StoredResponse {
        let mut fields = response.fields.clone();
        fields.remove("Age");
        StoredResponse {
            status: response.status,
            coded: Self::coded_forms_for(&fields, response.is_negotiated, body.len()),
            fields,
            server_fields: storable.server_fields,
            body,
            error_page: response.error_page,
            is_negotiated: response.is_negotiated,
            terms: storable.terms,
            variation: storable.variation,
            tags: storable.tags,
            url: storable.url,
            changes: storable.changes,
        }
    }

    /// Returns an empty set of coded forms for a body of this length.
    pub(crate) fn coded_forms_for(fields: &FieldList, is_negotiated: bool, length: usize) -> Arc<CodedForms> {
        Arc::new(CodedForms::new(coded_size(fields, is_negotiated, length)))
    }

    /// Returns the fields after a validation, including those for this server: those of the 304 replace stored ones
    /// (RFC 9111 §3.2).
    pub fn updated_fields(&self, confirmed: &FieldList) -> FieldList {
        let mut fields = self.fields.clone();
        for (name, value) in self.server_fields.iter() {
            fields.add(name, value);
        }
        let is_updated = |name: &str| !KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(name));
        for (name, _) in confirmed.iter().filter(|(name, _)| is_updated(name)) {
            fields.remove(name);
        }
        for (name, value) in confirmed.iter().filter(|(name, _)| is_updated(name)) {
            fields.add(name, value);
        }
        // The age of the 304 is a part of the new terms.
        if let Some(age) = confirmed.value("Age") {
            fields.add("Age", age);
        }
        fields
    }

    /// Returns true if a 304 names another entity tag than that of this response, so that it does not confirm the
    /// response (RFC 9111 §4.3.4). The prefix of weak tags does not count, because a filter of the origin may add it.
    pub fn is_other_than(&self, confirmed: &FieldList) -> bool {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let tags = self.fields.value("ETag").zip(confirmed.value("ETag"));
        tags.is_some_and(|(stored, named)| opaque(stored) != opaque(named))
    }

    /// Returns the response with the fields and terms after a validation. `litespeed`: some fields concern only this
    /// server.
    pub fn validated(&self, mut fields: FieldList, terms: Terms, litespeed: bool) -> StoredResponse {
        let tags = tags::of_response(&fields);
        let server_fields = match litespeed {
            true => litespeed::split_off(&mut fields),
            false => FieldList::default(),
        };
        fields.remove("Age");
        StoredResponse {
            status: self.status,
            fields,
            server_fields,
            body: self.body.clone(),
            coded: Arc::clone(&self.coded),
            error_page: self.error_page,
            is_negotiated: self.is_negotiated,
            terms,
            variation: self.variation.clone(),
            tags,
            url: self.url.clone(),
            changes: self.changes,
        }
    }

    /// Returns true if the response may be sent in response to a request with `Authorization` (RFC 9111 §3.5).
    pub fn is_for_authorization(&self) -> bool {
        self.terms.is_shared()
    }

    /// Returns true if the response can be validated.
    pub(crate) fn has_validator(&self) -> bool {
        self.fields.contains(KnownField::Etag) || self.fields.contains(KnownField::LastModified)
    }

    /// Returns the validators.
    pub fn validators(&self) -> Validators<'_> {
        let fields = &self.fields;
        // `FieldList::contains` counts only valid fields, and `value` also returns the value of an invalid one.
        let last_modified = fields
            .value("Last-Modified")
            .filter(|_| fields.contains(KnownField::LastModified));
        Validators {
            etag: match fields.contains(KnownField::Etag) {
                true => fields.value("ETag").unwrap_or_default().as_bytes(),
                false => b"",
            },
            last_modified: last_modified.and_then(|date| date::parse(date.as_bytes())),
        }
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        let tags: usize = self.tags.iter().map(|tag| tag.len() + size_of::<Box<str>>()).sum();
        OVERHEAD
            + self.fields.memory_size()
            + self.server_fields.memory_size()
            + self.body.len()
            + coded_size(&self.fields, self.is_negotiated, self.body.len())
            + self.variation.memory_size()
            + self.url.as_ref().map_or(0, |url| url.len())
            + tags
    }
}

/// Returns the memory for coded forms of a body, in bytes: 3/4 of the body, which is room for three forms of a quarter
/// each, or for one longer form. It is reserved when the response is stored, because the store determines the size of
/// a response only then.
fn coded_size(fields: &FieldList, is_negotiated: bool, size: usize) -> usize {
    let is_compressible = |value: &str| is_compressible(value.as_bytes());
    let is_coded = !is_negotiated
        && size <= MAX_CODED
        && !fields.contains(KnownField::ContentEncoding)
        && fields.value("Content-Type").is_some_and(is_compressible);
    if is_coded { size - size / 4 } else { 0 }
}

impl Stored for StoredResponse {
    fn coded_forms(&self) -> &CodedForms {
        &self.coded
    }

    fn body(&self) -> &Bytes {
        &self.body
    }
}

/// Fields of a 304 that do not replace stored ones: they describe the stored body, or the 304 itself. `Vary` is one of
/// them, because a validation keeps the variation.
const KEPT: [&str; 8] = [
    "Age",
    "Content-Digest",
    "Content-Encoding",
    "Content-Length",
    "Content-MD5",
    "Content-Range",
    "Set-Cookie",
    "Vary",
];
