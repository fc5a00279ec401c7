//! The head of a request out of HPACK: decoded behind each other into one buffer, judged, and indexed like any other head.

use super::error::Malformed;
use super::hpack::{Name, Pseudo, Sink};
use super::priority::Priority;
use crate::bytes::{TARGET, all, is_token, target_stop_from};
use crate::fields::{Known, KnownSet, Span};
use crate::h1::authority;
use crate::h1::content::FORBIDDEN_TRAILERS;
use crate::h1::framing::digits;
use crate::h1::{FieldFault, Refusal};
use crate::limits::Limits;
use crate::method::Method;
use crate::request::{Request, RequestIndex, TargetForm, Version};

/// The buffer heads are decoded into, and the index of the last one. A worker has one for all its connections.
#[derive(Debug, Default)]
pub struct Head {
    bytes: Vec<u8>,
    index: RequestIndex,
    /// The cookie put together from its crumbs (RFC 9113 §8.2.3).
    cookie: Vec<u8>,
    parts: Parts,
}

/// What has been seen of the head under way.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    /// Where the values of pseudo fields stand, by number of `Pseudo`.
    pseudo: [Span; 6],
    /// A bit for each pseudo field seen.
    seen: u8,
    /// A field that is no pseudo field was seen: none may follow.
    regular: bool,
    has_cookie: bool,
    flaw: Option<Malformed>,
    excess: Option<Refusal>,
    size: usize,
    fields: usize,
}

/// What the connection has to know of a head besides its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    pub content_length: Option<u64>,
    pub priority: Option<Priority>,
    pub expects_continue: bool,
}

/// Why a head is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeadFault {
    /// The stream is reset.
    Malformed(Malformed),
    /// The request is answered with the status of the refusal.
    Refused(Refusal),
}

impl From<Malformed> for HeadFault {
    fn from(flaw: Malformed) -> Self {
        Self::Malformed(flaw)
    }
}

impl From<Refusal> for HeadFault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Keeps what an unusual head took no longer than to the next one.
const SPARE_MAX: usize = 64 * 1024;

/// Fields that a request without any of needs no second look.
const NOTABLE: KnownSet = CONNECTION_FIELDS.union(KnownSet::of(&[
    Known::ContentLength,
    Known::Expect,
    Known::Host,
    Known::Priority,
    Known::Te,
]));

/// Fields of a connection in HTTP/1, which have no meaning here and must not pass (RFC 9113 §8.2.2).
const CONNECTION_FIELDS: KnownSet = KnownSet::of(&[
    Known::Connection,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::TransferEncoding,
    Known::Upgrade,
]);

impl Head {
    /// The bytes that the index points into.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The index of the last request; after trailers have come, of them alone.
    #[inline]
    pub fn index(&self) -> &RequestIndex {
        &self.index
    }

    /// The request that the last event told of.
    #[inline]
    pub fn request(&self) -> Request<'_> {
        self.index.view(&self.bytes)
    }

    /// `http` or `https` as the client wrote it; empty for a plain CONNECT.
    pub fn scheme(&self) -> &[u8] {
        self.value(Pseudo::Scheme)
    }

    /// The protocol that extended CONNECT asks for (RFC 8441).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.parts.has(Pseudo::Protocol).then(|| self.value(Pseudo::Protocol))
    }

    fn value(&self, pseudo: Pseudo) -> &[u8] {
        self.parts.pseudo[pseudo as usize].of(&self.bytes)
    }

    /// Where the fields of the next request, or trailers, are put.
    #[inline]
    pub(crate) fn begin<'a>(&'a mut self, limits: &'a Limits, kind: Kind) -> HeadSink<'a> {
        self.bytes.clear();
        if self.bytes.capacity() > SPARE_MAX {
            self.bytes.shrink_to(limits.head_size);
        }
        self.index.clear();
        self.cookie.clear();
        self.parts = Parts::default();
        HeadSink {
            head: self,
            limits,
            kind,
        }
    }
}

impl Parts {
    #[inline]
    fn has(&self, pseudo: Pseudo) -> bool {
        self.seen & 1 << pseudo as u8 != 0
    }
}

/// What a field block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Request,
    Trailers,
    /// Nobody wants it; it is read for the table's sake.
    Nothing,
}

pub(crate) struct HeadSink<'a> {
    head: &'a mut Head,
    limits: &'a Limits,
    kind: Kind,
}

impl Sink for HeadSink<'_> {
    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.head.bytes
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.head.parts.flaw.is_some() || self.head.parts.excess.is_some() || self.kind == Kind::Nothing
    }

    #[inline]
    fn field(&mut self, class: Name, clean: bool, start: usize, value: usize) {
        if self.is_full() {
            self.head.bytes.truncate(start);
            return;
        }
        let end = self.head.bytes.len();
        let parts = &mut self.head.parts;
        parts.size += end - start;
        parts.fields += 1;
        let size_max = match self.kind {
            Kind::Trailers => self.limits.trailer_ceiling(),
            Kind::Request | Kind::Nothing => self.limits.head_ceiling(),
        };
        let is_large = parts.size > size_max || parts.fields > self.limits.fields;
        if !clean || is_large {
            return self.reject(class, clean, start, end - value);
        }
        let (name, value) = (Span::new(start, value), Span::new(value, end));
        match class {
            Name::Pseudo(pseudo) => self.pseudo(pseudo, value),
            Name::Known(Known::Cookie) if self.kind == Kind::Request => {
                parts.regular = true;
                if parts.has_cookie {
                    self.head.cookie.extend_from_slice(b"; ");
                }
                parts.has_cookie = true;
                self.head.cookie.extend_from_slice(value.of(&self.head.bytes));
                self.head.bytes.truncate(start);
            }
            Name::Known(known) => {
                parts.regular = true;
                self.push(name, Some(known), value);
            }
            Name::Stranger => {
                parts.regular = true;
                self.push(name, None, value);
            }
            Name::Invalid => parts.flaw = Some(Malformed::FieldName),
        }
    }
}

impl HeadSink<'_> {
    #[inline]
    fn push(&mut self, name: Span, known: Option<Known>, value: Span) {
        match self.kind {
            Kind::Request => self.head.index.fields.push(name, known, value),
            Kind::Trailers => self.head.index.trailers.push(name, known, value),
            Kind::Nothing => {}
        }
    }

    #[cold]
    fn reject(&mut self, class: Name, clean: bool, start: usize, value_length: usize) {
        let parts = &mut self.head.parts;
        if !clean {
            parts.flaw = Some(Malformed::FieldValue);
        } else if class == Name::Pseudo(Pseudo::Path) && value_length > self.limits.target_size {
            parts.excess = Some(Refusal::TargetTooLong);
        } else if parts.fields > self.limits.fields {
            parts.excess = Some(Refusal::Field(FieldFault::TooMany));
        } else {
            parts.excess = Some(Refusal::Field(FieldFault::TooLarge));
        }
        self.head.bytes.truncate(start);
    }

    #[inline]
    fn pseudo(&mut self, pseudo: Pseudo, value: Span) {
        let parts = &mut self.head.parts;
        if self.kind == Kind::Trailers || pseudo == Pseudo::Status || parts.regular || parts.has(pseudo) {
            parts.flaw = Some(match self.kind {
                Kind::Trailers => Malformed::PseudoInTrailers,
                _ if pseudo == Pseudo::Status => Malformed::PseudoOfResponse,
                _ if parts.regular => Malformed::PseudoBehindFields,
                _ => Malformed::PseudoRepeated,
            });
            return;
        }
        parts.seen |= 1 << pseudo as u8;
        parts.pseudo[pseudo as usize] = value;
    }

    /// Judges the whole head and completes its index.
    #[inline]
    pub(crate) fn finish_request(self) -> Result<Facts, HeadFault> {
        let Head {
            bytes,
            index,
            cookie,
            parts,
        } = self.head;
        if let Some(flaw) = parts.flaw {
            return Err(flaw.into());
        }
        index.version = Version::Http2;
        if let Some(refusal) = parts.excess {
            (index.method_name, index.target) = (Span::default(), Span::default());
            return Err(refusal.into());
        }
        if parts.has_cookie {
            let start = bytes.len();
            bytes.extend_from_slice(b"cookie");
            let value = bytes.len();
            bytes.extend_from_slice(cookie);
            let (name, value) = (Span::new(start, value), Span::new(value, bytes.len()));
            index.fields.push(name, Some(Known::Cookie), value);
        }
        index.head_size = bytes.len() as u32;
        if !parts.has(Pseudo::Method) {
            return Err(Malformed::PseudoMissing.into());
        }
        index.method_name = parts.pseudo[Pseudo::Method as usize];
        let method = index.method_name.of(bytes);
        if method != b"GET" {
            if !is_token(method) {
                return Err(Malformed::Method.into());
            }
            index.method = Method::from_bytes(method);
        }
        index.authority = parts.pseudo[Pseudo::Authority as usize];
        if index.method == Method::Connect && !parts.has(Pseudo::Protocol) {
            read_connect(bytes, index, parts)?;
        } else {
            read_target(bytes, index, parts, self.limits)?;
        }
        let mut facts = Facts::default();
        if index.fields.any(NOTABLE) {
            facts = read_notable(bytes, index, parts)?;
        }
        let host = index.authority.of(bytes);
        if host.is_empty() {
            return Err(Refusal::HostMissing.into());
        }
        if !authority::is_valid(host) {
            return Err(Refusal::HostInvalid.into());
        }
        Ok(facts)
    }

    /// Judges trailers; they are left in the index.
    pub(crate) fn finish_trailers(self) -> Result<(), Malformed> {
        let parts = &self.head.parts;
        if let Some(flaw) = parts.flaw {
            return Err(flaw);
        }
        if parts.excess.is_some() {
            return Err(Malformed::TrailersTooLarge);
        }
        let trailers = &self.head.index.trailers;
        if trailers.any(FORBIDDEN_TRAILERS) || trailers.any(CONNECTION_FIELDS) {
            return Err(Malformed::ForbiddenTrailer);
        }
        Ok(())
    }
}

/// CONNECT names an authority with a port and nothing else (RFC 9113 §8.5).
#[cold]
fn read_connect(bytes: &[u8], index: &mut RequestIndex, parts: &Parts) -> Result<(), HeadFault> {
    if parts.has(Pseudo::Scheme) || parts.has(Pseudo::Path) || !parts.has(Pseudo::Authority) {
        return Err(Malformed::Connect.into());
    }
    index.form = TargetForm::Authority;
    index.target = index.authority;
    let target = index.target.of(bytes);
    let has_port = target.last().is_some_and(u8::is_ascii_digit)
        && target
            .iter()
            .rposition(|&byte| byte == b':' || byte == b']')
            .is_some_and(|at| target[at] == b':');
    if has_port && authority::is_valid(target) {
        Ok(())
    } else {
        Err(Refusal::TargetForm.into())
    }
}

#[inline]
fn read_target(bytes: &[u8], index: &mut RequestIndex, parts: &Parts, limits: &Limits) -> Result<(), HeadFault> {
    if !parts.has(Pseudo::Scheme) || !parts.has(Pseudo::Path) {
        return Err(Malformed::PseudoMissing.into());
    }
    if parts.has(Pseudo::Protocol) && index.method != Method::Connect {
        return Err(Malformed::Protocol.into());
    }
    let scheme = parts.pseudo[Pseudo::Scheme as usize].of(bytes);
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return Err(Refusal::TargetScheme.into());
    }
    let place = parts.pseudo[Pseudo::Path as usize];
    let target = place.of(bytes);
    if target.len() > limits.target_size {
        return Err(Refusal::TargetTooLong.into());
    }
    index.target = place;
    if target.first() != Some(&b'/') {
        return match target {
            b"" => Err(Malformed::PathEmpty.into()),
            b"*" if index.method == Method::Options => {
                (index.form, index.path) = (TargetForm::Asterisk, place);
                Ok(())
            }
            _ => Err(Refusal::TargetForm.into()),
        };
    }
    let mut stop = target_stop_from(target, 0);
    let mut query = None;
    while let Some(b'?') = target.get(stop) {
        query.get_or_insert(stop);
        stop = target_stop_from(target, stop + 1);
    }
    if stop != target.len() {
        let fragment = target[stop] == b'#' && all(&target[stop..], TARGET);
        let refusal = if fragment {
            Refusal::TargetFragment
        } else {
            Refusal::TargetByte
        };
        return Err(refusal.into());
    }
    let start = place.start as usize;
    index.path = Span::new(start, query.map_or(place.end as usize, |mark| start + mark));
    index.query = query.map(|mark| Span::new(start + mark + 1, place.end as usize));
    Ok(())
}

/// Fields of the connection, Host beside `:authority`, and what Content-Length, Expect, Priority and TE say.
fn read_notable(bytes: &[u8], index: &mut RequestIndex, parts: &Parts) -> Result<Facts, HeadFault> {
    let fields = index.fields.view(bytes);
    if fields.any(CONNECTION_FIELDS) {
        return Err(Malformed::ConnectionField.into());
    }
    if !fields.all(Known::Te).all(|te| te.eq_ignore_ascii_case(b"trailers")) {
        return Err(Malformed::Te.into());
    }
    let mut facts = Facts::default();
    if let Some(length) = fields.get(Known::ContentLength) {
        let length = digits(length).filter(|_| !fields.is_repeated(Known::ContentLength));
        facts.content_length = Some(length.ok_or(Malformed::ContentLength)?);
    }
    for expectation in fields.all(Known::Expect) {
        if !expectation.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal::Expectation.into());
        }
        facts.expects_continue = true;
    }
    facts.priority = fields.get(Known::Priority).map(Priority::parse);
    if let Some(host) = index.fields.place(Known::Host) {
        if index.fields.is_repeated(Known::Host) {
            return Err(Refusal::HostRepeated.into());
        }
        if !parts.has(Pseudo::Authority) {
            index.authority = host;
        } else {
            let scheme = parts.pseudo[Pseudo::Scheme as usize].of(bytes);
            let port: &[u8] = if scheme.eq_ignore_ascii_case(b"https") {
                b"443"
            } else {
                b"80"
            };
            // RFC 9113 §8.3.1: a client that names two hosts wants something of us.
            if !authority::same(index.authority.of(bytes), host.of(bytes), port) {
                return Err(Refusal::HostMismatch.into());
            }
        }
    }
    Ok(facts)
}
