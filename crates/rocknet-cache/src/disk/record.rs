//! Records of the log: responses and changes, each with checksums and its own position.
//!
//! ```text
//! header, 48 bytes   kind, position, lengths, hash of the key, tag of the variant, checksums
//! head               of a response: key, variant, times, status, fields, tags; of a purge: its selection; of a
//!                    trim: the site and a position; of a change of a URL: the site
//! body               of a response
//! ```
//! A record is used only if all checksums and its position agree. So a torn or misplaced write, and a flipped bit, are
//! never sent as a response.

use std::sync::Arc;

use bytes::Bytes;
use flate2::Crc;
use rocknet_handler::response::{ErrorPage, FieldList};
use rocknet_proto::fields::Field;
use rocknet_proto::status::Status;

use super::format::{Reader, Writer};
use super::position::Position;
use crate::key::MAX_KEY;
use crate::policy::{Moment, PersistentTerms, Terms};
use crate::purge::{Purge, Selection};
use crate::stored::StoredResponse;
use crate::vary::Variation;

/// Size of a header in bytes.
pub(super) const HEADER: usize = 48;

/// First bytes of a record: format and version.
const MAGIC: u32 = u32::from_le_bytes(*b"RNr1");

/// Maximum size of the head of a record in bytes.
pub(super) const MAX_HEAD: u32 = 1 << 20;

/// Maximum number of fields of one list, which bounds the memory that a damaged record can request.
const MAX_FIELDS: u32 = 4096;

/// Maximum of a time in milliseconds, far in the future, so that sums of times do not overflow.
const MAX_TIME_MS: u64 = 1 << 50;

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A response.
    Response = 1,
    /// All earlier responses with the hash are dropped.
    Removal = 2,
    /// All earlier responses that the purge selects are dropped.
    Purge = 3,
    /// The responses of a site before a position are dropped, because it has exceeded its quota.
    Trim = 4,
    /// Earlier responses of a site to a URL are dropped if their keys were formed by a template of the configuration,
    /// such as `{host}?page={query.page}`. A removal would need these keys, which the URL does not reveal.
    UrlChange = 5,
}

/// Header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    pub position: Position,
    /// Length of the head in bytes.
    pub head: u32,
    /// Length of the body in bytes.
    pub body: u32,
    /// Hash of the key, or of the URL of a change; 0 for a purge or trim.
    pub hash: u64,
    /// Tag of the variant; 0 unless the record is a response.
    pub variant: u32,
    pub head_crc: u32,
    pub body_crc: u32,
}

/// Returns the checksum of some bytes.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

impl Header {
    /// Returns the header of a record whose position and checksums are not known yet; `None` if the record is too long.
    pub fn new(kind: Kind, hash: u64, variant: u32, head: usize, body: usize) -> Option<Header> {
        let head = u32::try_from(head).ok().filter(|head| *head <= MAX_HEAD)?;
        Some(Header {
            kind,
            position: Position::default(),
            head,
            body: u32::try_from(body).ok()?,
            hash,
            variant,
            head_crc: 0,
            body_crc: 0,
        })
    }

    /// Returns the length of the record in bytes.
    pub fn length(&self) -> u64 {
        HEADER as u64 + u64::from(self.head) + u64::from(self.body)
    }

    /// Returns the position after the record.
    pub fn end(&self) -> Position {
        Position {
            segment: self.position.segment,
            offset: u32::try_from(u64::from(self.position.offset) + self.length()).unwrap_or(u32::MAX),
        }
    }

    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = Writer(Vec::with_capacity(HEADER));
        out.u32(MAGIC);
        out.u32(self.kind as u32);
        out.u32(self.position.segment);
        out.u32(self.position.offset);
        out.u32(self.head);
        out.u32(self.body);
        out.u64(self.hash);
        out.u32(self.variant);
        out.u32(self.head_crc);
        out.u32(self.body_crc);
        out.u32(crc(&out.0));
        let mut header = [0; HEADER];
        header.copy_from_slice(&out.0);
        header
    }

    /// Returns the header at the beginning of some bytes; `None` if it is damaged, or if they are no header.
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER)?;
        let mut input = Reader(bytes);
        if input.u32()? != MAGIC {
            return None;
        }
        let kind = match input.u32()? {
            1 => Kind::Response,
            2 => Kind::Removal,
            3 => Kind::Purge,
            4 => Kind::Trim,
            5 => Kind::UrlChange,
            _ => return None,
        };
        let header = Header {
            kind,
            position: Position {
                segment: input.u32()?,
                offset: input.u32()?,
            },
            head: input.u32()?,
            body: input.u32()?,
            hash: input.u64()?,
            variant: input.u32()?,
            head_crc: input.u32()?,
            body_crc: input.u32()?,
        };
        let is_intact = input.u32()? == crc(&bytes[..HEADER - 4]);
        (is_intact && header.head <= MAX_HEAD).then_some(header)
    }
}

/// The head of a response on disk.
#[derive(Debug)]
pub(super) struct ResponseHead<'b> {
    pub key: &'b [u8],
    pub variation: Variation,
    pub terms: PersistentTerms,
    status: Status,
    error_page: ErrorPage,
    is_negotiated: bool,
    /// True if the response can be validated, so that it is useful after its lifetime.
    pub has_validator: bool,
    fields: FieldList,
    server_fields: FieldList,
    pub tags: Arc<[Box<str>]>,
    /// Host and path of the request if a template has formed the key.
    pub url: Option<&'b [u8]>,
}

/// Returns the head of a response; `None` if it cannot be encoded, for instance because of an invalid field.
pub(super) fn encode_response(key: &[u8], stored: &StoredResponse, now: Moment) -> Option<Vec<u8>> {
    let mut out = Writer(Vec::with_capacity(512));
    out.bytes(key);
    out.u8(u8::try_from(stored.variation.selectors().len()).ok()?);
    for (name, value) in stored.variation.selectors() {
        out.bytes(name);
        out.optional(value.as_deref());
    }
    let terms = stored.terms.to_persistent(now);
    out.u64(terms.received_unix_ms);
    terms.times_ms.iter().for_each(|time| out.u64(*time));
    terms.flags.iter().for_each(|flag| out.u8(u8::from(*flag)));
    out.u16(stored.status.code());
    out.u8(match stored.error_page {
        ErrorPage::IfEmpty => 0,
        ErrorPage::Always => 1,
        ErrorPage::Never => 2,
    });
    out.u8(u8::from(stored.is_negotiated));
    out.u8(u8::from(stored.has_validator()));
    for fields in [&stored.fields, &stored.server_fields] {
        out.u32(u32::try_from(fields.bytes().count()).ok()?);
        for (name, value) in fields.bytes() {
            if !Field::new(name, value).is_sendable() {
                return None;
            }
            out.bytes(name);
            out.bytes(value);
        }
    }
    out.u16(u16::try_from(stored.tags.len()).ok()?);
    stored.tags.iter().for_each(|tag| out.bytes(tag.as_bytes()));
    out.optional(stored.url.as_deref());
    Some(out.0)
}

/// Parses the head of a response; `None` if it is damaged.
pub(super) fn decode_response(head: &[u8]) -> Option<ResponseHead<'_>> {
    let mut input = Reader(head);
    let key = input.bytes().filter(|key| key.len() <= MAX_KEY)?;
    let mut selectors = Vec::new();
    for _ in 0..input.u8()? {
        let name = Box::from(input.bytes()?);
        selectors.push((name, input.optional()?.map(<[u8]>::to_vec)));
    }
    let terms = PersistentTerms {
        received_unix_ms: input.u64()?,
        times_ms: [input.u64()?, input.u64()?, input.u64()?, input.u64()?],
        flags: [input.bool()?, input.bool()?, input.bool()?],
    };
    if terms
        .times_ms
        .iter()
        .chain([&terms.received_unix_ms])
        .any(|time| *time > MAX_TIME_MS)
    {
        return None;
    }
    let status = Status::new(input.u16()?)?;
    let error_page = match input.u8()? {
        0 => ErrorPage::IfEmpty,
        1 => ErrorPage::Always,
        2 => ErrorPage::Never,
        _ => return None,
    };
    let (is_negotiated, has_validator) = (input.bool()?, input.bool()?);
    let (fields, server_fields) = (field_list(&mut input)?, field_list(&mut input)?);
    let mut tags = Vec::new();
    for _ in 0..input.u16()? {
        tags.push(Box::from(input.text()?));
    }
    let url = input.optional()?;
    input.0.is_empty().then_some(ResponseHead {
        key,
        variation: Variation::from_selectors(selectors),
        terms,
        status,
        error_page,
        is_negotiated,
        has_validator,
        fields,
        server_fields,
        tags: tags.into(),
        url,
    })
}

fn field_list(input: &mut Reader<'_>) -> Option<FieldList> {
    let mut fields = FieldList::default();
    let count = input.u32().filter(|count| *count <= MAX_FIELDS)?;
    for _ in 0..count {
        let (name, value) = (input.bytes()?, input.bytes()?);
        if !fields.add_field(Field::new(name, value)) {
            return None;
        }
    }
    Some(fields)
}

impl ResponseHead<'_> {
    /// Returns the response; `None` if its age is not known.
    pub fn into_stored(self, body: Bytes, now: Moment) -> Option<StoredResponse> {
        Some(StoredResponse {
            status: self.status,
            coded: StoredResponse::coded_forms_for(&self.fields, self.is_negotiated, body.len()),
            fields: self.fields,
            server_fields: self.server_fields,
            body,
            error_page: self.error_page,
            is_negotiated: self.is_negotiated,
            terms: Terms::from_persistent(&self.terms, now)?,
            variation: self.variation,
            tags: self.tags,
            url: self.url.map(Box::from),
            // Set by the caller, which knows the number of changes.
            changes: 0,
        })
    }

    /// Returns the time in seconds since 1970 after which the response has no use.
    pub fn expires(&self) -> u32 {
        match self.has_validator {
            true => u32::MAX,
            false => u32::try_from(self.terms.useful_until()).unwrap_or(u32::MAX),
        }
    }
}

/// Returns the head of a purge.
pub(super) fn encode_purge(purge: &Purge) -> Vec<u8> {
    let mut out = Writer::default();
    out.optional(purge.site.as_deref().map(str::as_bytes));
    match &purge.selection {
        Selection::Everything => out.u8(0),
        Selection::Url {
            authority,
            target,
            is_prefix,
        } => {
            out.u8(if *is_prefix { 2 } else { 1 });
            out.bytes(authority.as_bytes());
            out.bytes(target.as_bytes());
        }
        Selection::Tag(tag) => {
            out.u8(3);
            out.bytes(tag.as_bytes());
        }
    }
    out.0
}

/// Parses the head of a purge; `None` if it is damaged.
pub(super) fn decode_purge(head: &[u8]) -> Option<Purge> {
    let mut input = Reader(head);
    let site = match input.optional()? {
        Some(site) => Some(std::str::from_utf8(site).ok()?.to_owned()),
        None => None,
    };
    let selection = match input.u8()? {
        0 => Selection::Everything,
        kind @ (1 | 2) => Selection::Url {
            authority: input.text()?.to_owned(),
            target: input.text()?.to_owned(),
            is_prefix: kind == 2,
        },
        3 => Selection::Tag(input.text()?.to_owned()),
        _ => return None,
    };
    input.0.is_empty().then_some(Purge { site, selection })
}

/// Returns the head of a trim. `before`: position before which the responses of the site are dropped.
pub(super) fn encode_trim(site: &[u8], before: Position) -> Vec<u8> {
    let mut out = Writer::default();
    out.bytes(site);
    out.u32(before.segment);
    out.u32(before.offset);
    out.0
}

/// Parses the head of a trim; `None` if it is damaged.
pub(super) fn decode_trim(head: &[u8]) -> Option<(&[u8], Position)> {
    let mut input = Reader(head);
    let site = input.bytes()?;
    let before = Position {
        segment: input.u32()?,
        offset: input.u32()?,
    };
    input.0.is_empty().then_some((site, before))
}

/// Parses any bytes as parts of a record, for the fuzz target. Accepted headers, purges and trims are written in the
/// same form, and responses in a form that is accepted.
pub(crate) fn decode_any(bytes: &[u8]) {
    if let Some(header) = Header::decode(bytes) {
        assert_eq!(header.encode(), bytes[..HEADER], "a header has one form");
    }
    if let Some(purge) = decode_purge(bytes) {
        assert_eq!(encode_purge(&purge), bytes, "a purge has one form");
    }
    if let Some((site, before)) = decode_trim(bytes) {
        assert_eq!(encode_trim(site, before), bytes, "a trim has one form");
    }
    let now = Moment {
        uptime_ms: 1_000,
        unix_ms: MAX_TIME_MS,
    };
    if let Some(head) = decode_response(bytes) {
        let key = head.key.to_vec();
        if let Some(stored) = head.into_stored(Bytes::new(), now) {
            let written = encode_response(&key, &stored, now).expect("all fields were checked");
            assert!(decode_response(&written).is_some(), "what is written can be read");
        }
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
