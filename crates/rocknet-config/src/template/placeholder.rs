//! Placeholders, and the scopes that have their values.

/// A value of a request, of its connection or of its response.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Placeholder {
    /// `{client.ip}`: address of the client: that of the peer, or the one that a trusted proxy reports.
    ClientIp,
    /// `{client.port}`: port of the client; empty if it is unknown.
    ClientPort,
    /// `{peer.ip}`: address of the other end of the connection.
    PeerIp,
    /// `{host}`: requested host in lower case, without port; empty if the request names no valid host.
    Host,
    /// `{authority}`: requested host with port, as sent; empty if it is invalid.
    Authority,
    /// `{scheme}`: `http` or `https`.
    Scheme,
    /// `{protocol}`: protocol version, such as `HTTP/1.1` or `HTTP/2.0`.
    Protocol,
    /// `{method}`: request method.
    Method,
    /// `{path}`: decoded path, after rewrites.
    Path,
    /// `{query}`: query after rewrites, as sent, without `?`.
    Query,
    /// `{query.NAME}`: value of the first query parameter with this name, as sent.
    QueryParameter(Box<str>),
    /// `{target}`: request target as received: path and query.
    Target,
    /// `{request.header.NAME}`: first value of a header field.
    RequestHeader(Box<str>),
    /// `{request.cookie.NAME}`: value of the first cookie with this name.
    RequestCookie(Box<str>),
    /// `{request.id}`: identifier of the request, 32 hexadecimal digits, or the one that a trusted proxy sent in
    /// `X-Request-Id`.
    RequestId,
    /// `{tls.version}`: TLS version, such as `TLSv1.3`.
    TlsVersion,
    /// `{tls.cipher}`: cipher suite by its IANA name.
    TlsCipher,
    /// `{tls.server_name}`: name that the client requested in the handshake (SNI).
    TlsServerName,
    /// `{tls.client.subject}`: subject of the client's certificate.
    TlsClientSubject,
    /// `{tls.client.verify}`: `SUCCESS` or `NONE`; empty without TLS.
    TlsClientVerify,
    /// `{tls.client.issuer}`: issuer of the client's certificate.
    TlsClientIssuer,
    /// `{tls.client.serial}`: serial number of the client's certificate.
    TlsClientSerial,
    /// `{tls.client.fingerprint}`: SHA-256 of the client's certificate.
    TlsClientFingerprint,
    /// `{tls.client.certificate}`: the client's certificate as a byte sequence of RFC 9440.
    TlsClientCertificate,
    /// `{tls.client.pem}`: the client's certificate in PEM, percent-encoded.
    TlsClientPem,
    /// `{user}`: authenticated user.
    User,
    /// `{site}`: name of the site in the configuration.
    Site,
    /// `{time.unix}`: seconds since 1970, with milliseconds.
    UnixTime,
    /// `{status}`: status code of the response.
    Status,
    /// `{upstream}`: address of the upstream that sent the response.
    Upstream,
    /// `{upstream.duration}`: seconds until the head of the upstream's response, with microseconds.
    UpstreamDuration,
    /// `{cache.status}`: outcome of the request in the response cache, such as `HIT`; empty without a cache.
    CacheStatus,
    /// `{time}`: local time in the format of RFC 3339.
    Time,
    /// `{time.clf}`: local time as in the Common Log Format, with brackets.
    ClfTime,
    /// `{bytes.sent}`: bytes of the response body.
    BytesSent,
    /// `{bytes.received}`: bytes of the request body.
    BytesReceived,
    /// `{duration}`: seconds from the request to the end of its response, with microseconds.
    Duration,
}

/// The place where a template is used. A scope has the values of all smaller scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Values of the request and its connection.
    Request,
    /// Also values of the response head.
    Response,
    /// Also values of the sent response: access-log formats.
    Log,
}

impl Placeholder {
    /// Returns true if the value is a number without sign and exponent, or empty.
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Placeholder::ClientPort
                | Placeholder::UnixTime
                | Placeholder::Status
                | Placeholder::UpstreamDuration
                | Placeholder::BytesSent
                | Placeholder::BytesReceived
                | Placeholder::Duration
        )
    }
}
