//! Malformed requests: the rules of HTTP that a field section or a body can break.

/// Malformed request (RFC 9113 §8.1.1). Nothing is repaired, because a forwarded message must mean the same to every
/// hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Malformed {
    /// A field name is not a token in lower case (RFC 9113 §8.2.1), or is an undefined pseudo-header field (§8.3).
    FieldName,
    /// A field value contains a control character, or starts or ends with white space (RFC 9113 §8.2.1).
    FieldValue,
    /// A connection-specific field of HTTP/1: framing that the next hop might trust (RFC 9113 §8.2.2).
    ConnectionField,
    /// TE has a value other than `trailers` (RFC 9113 §8.2.2).
    Te,
    /// A pseudo-header field follows another field (RFC 9113 §8.3).
    PseudoAfterFields,
    /// A pseudo-header field is repeated (RFC 9113 §8.3).
    PseudoRepeated,
    /// A request has a pseudo-header field of responses (RFC 9113 §8.3).
    PseudoOfResponse,
    /// Trailers contain a pseudo-header field (RFC 9113 §8.1).
    PseudoInTrailers,
    /// `:method`, `:scheme` or `:path` is missing (RFC 9113 §8.3.1).
    PseudoMissing,
    /// `:path` is empty (RFC 9113 §8.3.1).
    PathEmpty,
    /// The method is not a token (RFC 9110 §9.1).
    Method,
    /// CONNECT without `:protocol` lacks an authority, or has `:scheme` or `:path` (RFC 9113 §8.5).
    Connect,
    /// `:protocol` is used without CONNECT, or extended CONNECT is not enabled (RFC 8441 §4).
    Protocol,
    /// Content-Length is repeated, is not a number, or differs from the length of the body (RFC 9113 §8.1.1).
    ContentLength,
    /// A second field block does not end the stream (RFC 9113 §8.1).
    TrailersWithoutEnd,
    /// A trailer field must not be merged into the head, for example because it concerns framing, routing or
    /// authorization (RFC 9110 §6.5.1).
    ForbiddenTrailer,
    /// The trailers exceed the limit of bytes or fields.
    TrailersTooLarge,
}

impl Malformed {
    /// Returns a phrase for logs. It contains no bytes from the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::FieldName => "a field name that is not a lower-case token",
            Self::FieldValue => "a field value with a forbidden byte, or with white space around it",
            Self::ConnectionField => "a connection-specific field of HTTP/1",
            Self::Te => "TE with a value other than trailers",
            Self::PseudoAfterFields => "a pseudo-header field after other fields",
            Self::PseudoRepeated => "a repeated pseudo-header field",
            Self::PseudoOfResponse => "a pseudo-header field of responses",
            Self::PseudoInTrailers => "a pseudo-header field in trailers",
            Self::PseudoMissing => "a missing pseudo-header field",
            Self::PathEmpty => "an empty path",
            Self::Method => "a method that is not a token",
            Self::Connect => "CONNECT without an authority, or with a scheme or path",
            Self::Protocol => ":protocol without CONNECT, or extended CONNECT that is not enabled",
            Self::ContentLength => "a Content-Length that is invalid or differs from the request body",
            Self::TrailersWithoutEnd => "a second field block without END_STREAM",
            Self::ForbiddenTrailer => "a field that is forbidden in trailers",
            Self::TrailersTooLarge => "trailers above the limit of bytes or fields",
        }
    }
}
