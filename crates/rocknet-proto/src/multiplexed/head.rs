//! Request heads decoded from HPACK or QPACK: fields are appended to one buffer, validated, and indexed like an HTTP/1
//! head.

mod validation;

use super::malformed::Malformed;
use super::priority::Priority;
use crate::fields::{ByteSpan, KnownField};
use crate::h1::{FieldError, Refusal};
use crate::hpack::{FieldSink, NameClass, Pseudo};
use crate::limits::Limits;
use crate::request::{Request, RequestIndex};

/// Buffer for decoded request heads, with the index of the last head (RFC 9113 §8.3). One buffer per worker suffices
/// for all its connections.
#[derive(Debug, Default)]
pub struct DecodedHead {
    /// Names and values of the fields, one after the other.
    bytes: Vec<u8>,
    index: RequestIndex,
    /// Value of Cookie, joined from all Cookie fields of the head (RFC 9113 §8.2.3).
    cookie: Vec<u8>,
    parts: HeadParts,
}

/// Properties of the head found so far.
#[derive(Clone, Copy, Debug, Default)]
struct HeadParts {
    /// Spans of the pseudo-header values, indexed by [`Pseudo`].
    pseudo: [ByteSpan; 6],
    /// Bit set of the pseudo-header fields found.
    seen: u8,
    /// Set by the first regular field; no pseudo-header field may follow.
    has_regular: bool,
    /// Set by the first Cookie field.
    has_cookie: bool,
    /// First error that resets the stream. After it or a refusal, all fields are dropped.
    malformed: Option<Malformed>,
    /// First error for which the request gets a response.
    refusal: Option<Refusal>,
    /// Bytes of all names and values decoded so far.
    size: usize,
    /// Number of fields decoded so far, pseudo-header fields included.
    fields: usize,
}

/// Properties of a head that the connection needs in addition to its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct HeadInfo {
    /// Value of Content-Length; `None` without this field.
    pub content_length: Option<u64>,
    /// Value of Priority; `None` without this field.
    pub priority: Option<Priority>,
    /// True if the request has `Expect: 100-continue`.
    pub expects_continue: bool,
}

/// Reason why a request head is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestHeadError {
    /// The stream is reset.
    Malformed(Malformed),
    /// The request gets a response with the status of the refusal.
    Refused(Refusal),
}

impl From<Malformed> for RequestHeadError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Refusal> for RequestHeadError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Capacity in bytes that is kept between heads: four times the default of `Limits::head_size`. A buffer that has grown
/// larger shrinks to `Limits::head_size` when the next head starts.
const MAX_SPARE_CAPACITY: usize = 64 * 1024;

impl DecodedHead {
    /// Returns the bytes that the index refers to.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the index of the last request. After the trailers of a request, it contains only the trailers.
    #[inline]
    pub fn index(&self) -> &RequestIndex {
        &self.index
    }

    /// Returns the last request.
    #[inline]
    pub fn request(&self) -> Request<'_> {
        self.index.view(&self.bytes)
    }

    /// Returns true if the method of the last request is HEAD, even if the request was refused.
    #[inline]
    pub(crate) fn has_method_head(&self) -> bool {
        self.parts.has(Pseudo::Method) && self.value(Pseudo::Method) == b"HEAD"
    }

    /// Adds a field to the last request, such as `early-data: 1` (RFC 8470 §5.1), unless the request has a field of
    /// this name. `name` is in lower case.
    pub fn add_field(&mut self, name: &[u8], value: &[u8]) {
        if self.request().fields.by_name(name).next().is_some() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let (name, value) = (ByteSpan::new(start, middle), ByteSpan::new(middle, self.bytes.len()));
        self.index.fields.push_named(&self.bytes, name, value);
        self.index.head_size = self.bytes.len() as u32;
    }

    /// Returns the value of `:scheme` as the client sent it: `http` or `https`, in upper or lower case. Empty for a
    /// CONNECT without `:protocol` (RFC 9113 §8.5).
    pub fn scheme(&self) -> &[u8] {
        self.value(Pseudo::Scheme)
    }

    /// Returns the value of `:protocol` in an extended CONNECT (RFC 8441 §4), or `None` for any other request.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.parts.has(Pseudo::Protocol).then(|| self.value(Pseudo::Protocol))
    }

    /// Returns the value of a pseudo-header field; empty if the head does not have the field.
    fn value(&self, pseudo: Pseudo) -> &[u8] {
        self.parts.pseudo[pseudo as usize].of(&self.bytes)
    }

    /// Clears the buffer and returns the sink for the next field block.
    #[inline]
    pub(crate) fn begin<'a>(&'a mut self, limits: &'a Limits, kind: BlockKind) -> HeadSink<'a> {
        self.bytes.clear();
        if self.bytes.capacity() > MAX_SPARE_CAPACITY {
            self.bytes.shrink_to(limits.head_size);
        }
        self.index.clear();
        self.cookie.clear();
        self.parts = HeadParts::default();
        HeadSink {
            head: self,
            limits,
            kind,
        }
    }
}

impl HeadParts {
    /// Returns true if the pseudo-header field was found.
    #[inline]
    fn has(&self, pseudo: Pseudo) -> bool {
        self.seen & 1 << pseudo as u8 != 0
    }
}

/// Use of a field block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockKind {
    /// Head of a request.
    Request,
    /// Trailers of a request.
    Trailers,
    /// Decoded only to keep the dynamic table in sync.
    Discarded,
}

/// Receives the fields of one block from the decoder.
pub(crate) struct HeadSink<'a> {
    head: &'a mut DecodedHead,
    limits: &'a Limits,
    kind: BlockKind,
}

impl FieldSink for HeadSink<'_> {
    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.head.bytes
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.head.parts.malformed.is_some() || self.head.parts.refusal.is_some() || self.kind == BlockKind::Discarded
    }

    #[inline]
    fn field(&mut self, class: NameClass, value_valid: bool, name_start: usize, value_start: usize) {
        if self.is_full() {
            self.head.bytes.truncate(name_start);
            return;
        }
        let end = self.head.bytes.len();
        let parts = &mut self.head.parts;
        parts.size += end - name_start;
        parts.fields += 1;
        let size_max = match self.kind {
            BlockKind::Trailers => self.limits.max_trailer_size(),
            BlockKind::Request | BlockKind::Discarded => self.limits.max_head_size(),
        };
        let is_large = parts.size > size_max || parts.fields > self.limits.fields;
        if !value_valid || is_large {
            return self.reject(class, value_valid, name_start, end - value_start);
        }
        let (name, value) = (ByteSpan::new(name_start, value_start), ByteSpan::new(value_start, end));
        match class {
            NameClass::Pseudo(pseudo) => self.pseudo(pseudo, value),
            NameClass::Known(KnownField::Cookie) if self.kind == BlockKind::Request => {
                parts.has_regular = true;
                if parts.has_cookie {
                    self.head.cookie.extend_from_slice(b"; ");
                }
                parts.has_cookie = true;
                self.head.cookie.extend_from_slice(value.of(&self.head.bytes));
                self.head.bytes.truncate(name_start);
            }
            NameClass::Known(known) => {
                parts.has_regular = true;
                self.push(name, Some(known), value);
            }
            NameClass::Other => {
                parts.has_regular = true;
                self.push(name, None, value);
            }
            NameClass::Invalid => parts.malformed = Some(Malformed::FieldName),
        }
    }
}

impl HeadSink<'_> {
    /// Adds a field to the part of the index that the kind of the block selects.
    #[inline]
    fn push(&mut self, name: ByteSpan, known: Option<KnownField>, value: ByteSpan) {
        match self.kind {
            BlockKind::Request => self.head.index.fields.push(name, known, value),
            BlockKind::Trailers => self.head.index.trailers.push(name, known, value),
            BlockKind::Discarded => {}
        }
    }

    /// Records the error of a field with an invalid value, or of the first field above a limit, and drops the field.
    #[cold]
    fn reject(&mut self, class: NameClass, value_valid: bool, start: usize, value_length: usize) {
        let parts = &mut self.head.parts;
        if !value_valid {
            parts.malformed = Some(Malformed::FieldValue);
        } else if class == NameClass::Pseudo(Pseudo::Path) && value_length > self.limits.target_size {
            parts.refusal = Some(Refusal::TargetTooLong);
        } else if parts.fields > self.limits.fields {
            parts.refusal = Some(Refusal::Field(FieldError::TooMany));
        } else {
            parts.refusal = Some(Refusal::Field(FieldError::TooLarge));
        }
        self.head.bytes.truncate(start);
    }

    /// Records a pseudo-header field, or the error if it is not allowed at this point.
    #[inline]
    fn pseudo(&mut self, pseudo: Pseudo, value: ByteSpan) {
        let parts = &mut self.head.parts;
        if self.kind == BlockKind::Trailers || pseudo == Pseudo::Status || parts.has_regular || parts.has(pseudo) {
            parts.malformed = Some(match self.kind {
                BlockKind::Trailers => Malformed::PseudoInTrailers,
                _ if pseudo == Pseudo::Status => Malformed::PseudoOfResponse,
                _ if parts.has_regular => Malformed::PseudoAfterFields,
                _ => Malformed::PseudoRepeated,
            });
            return;
        }
        parts.seen |= 1 << pseudo as u8;
        parts.pseudo[pseudo as usize] = value;
    }
}
