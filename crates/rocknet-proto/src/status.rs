//! Status codes and their reason phrases (RFC 9110 §15, IANA registry).

use std::fmt;

/// A three-digit status code from 100 to 999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

/// Generates the constant, the reason phrase and the status line from one row per registered code.
macro_rules! statuses {
    ($($code:literal $name:ident $reason:literal)*) => {
        impl Status {
            $(#[doc = concat!($code, " ", $reason)] pub const $name: Status = Status($code);)*

            /// Every registered code, except those that are temporary, unused or obsolete.
            #[cfg(test)]
            const REGISTERED: &'static [Status] = &[$(Status($code)),*];

            /// Returns the registered phrase, or `""` for an unregistered code. A reason phrase may be empty, because
            /// it carries no meaning (RFC 9112 §4).
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }

            /// Returns the whole status line of a registered code with its CRLF (RFC 9112 §4); `None` for an
            /// unregistered code.
            pub(crate) const fn line(self) -> Option<&'static str> {
                Some(match self.0 {
                    $($code => concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n"),)*
                    _ => return None,
                })
            }
        }
    };
}

statuses! {
    100 CONTINUE "Continue"
    101 SWITCHING_PROTOCOLS "Switching Protocols"
    102 PROCESSING "Processing"
    103 EARLY_HINTS "Early Hints"
    200 OK "OK"
    201 CREATED "Created"
    202 ACCEPTED "Accepted"
    203 NON_AUTHORITATIVE_INFORMATION "Non-Authoritative Information"
    204 NO_CONTENT "No Content"
    205 RESET_CONTENT "Reset Content"
    206 PARTIAL_CONTENT "Partial Content"
    207 MULTI_STATUS "Multi-Status"
    208 ALREADY_REPORTED "Already Reported"
    226 IM_USED "IM Used"
    300 MULTIPLE_CHOICES "Multiple Choices"
    301 MOVED_PERMANENTLY "Moved Permanently"
    302 FOUND "Found"
    303 SEE_OTHER "See Other"
    304 NOT_MODIFIED "Not Modified"
    305 USE_PROXY "Use Proxy"
    307 TEMPORARY_REDIRECT "Temporary Redirect"
    308 PERMANENT_REDIRECT "Permanent Redirect"
    400 BAD_REQUEST "Bad Request"
    401 UNAUTHORIZED "Unauthorized"
    402 PAYMENT_REQUIRED "Payment Required"
    403 FORBIDDEN "Forbidden"
    404 NOT_FOUND "Not Found"
    405 METHOD_NOT_ALLOWED "Method Not Allowed"
    406 NOT_ACCEPTABLE "Not Acceptable"
    407 PROXY_AUTHENTICATION_REQUIRED "Proxy Authentication Required"
    408 REQUEST_TIMEOUT "Request Timeout"
    409 CONFLICT "Conflict"
    410 GONE "Gone"
    411 LENGTH_REQUIRED "Length Required"
    412 PRECONDITION_FAILED "Precondition Failed"
    413 CONTENT_TOO_LARGE "Content Too Large"
    414 URI_TOO_LONG "URI Too Long"
    415 UNSUPPORTED_MEDIA_TYPE "Unsupported Media Type"
    416 RANGE_NOT_SATISFIABLE "Range Not Satisfiable"
    417 EXPECTATION_FAILED "Expectation Failed"
    421 MISDIRECTED_REQUEST "Misdirected Request"
    422 UNPROCESSABLE_CONTENT "Unprocessable Content"
    423 LOCKED "Locked"
    424 FAILED_DEPENDENCY "Failed Dependency"
    425 TOO_EARLY "Too Early"
    426 UPGRADE_REQUIRED "Upgrade Required"
    428 PRECONDITION_REQUIRED "Precondition Required"
    429 TOO_MANY_REQUESTS "Too Many Requests"
    431 REQUEST_HEADER_FIELDS_TOO_LARGE "Request Header Fields Too Large"
    451 UNAVAILABLE_FOR_LEGAL_REASONS "Unavailable For Legal Reasons"
    500 INTERNAL_SERVER_ERROR "Internal Server Error"
    501 NOT_IMPLEMENTED "Not Implemented"
    502 BAD_GATEWAY "Bad Gateway"
    503 SERVICE_UNAVAILABLE "Service Unavailable"
    504 GATEWAY_TIMEOUT "Gateway Timeout"
    505 HTTP_VERSION_NOT_SUPPORTED "HTTP Version Not Supported"
    506 VARIANT_ALSO_NEGOTIATES "Variant Also Negotiates"
    507 INSUFFICIENT_STORAGE "Insufficient Storage"
    508 LOOP_DETECTED "Loop Detected"
    511 NETWORK_AUTHENTICATION_REQUIRED "Network Authentication Required"
}

impl Status {
    /// Returns the status of a code from 100 to 999; `None` for other numbers. Codes above 599 belong to no class, but
    /// they are accepted, because an upstream may send such a code and the proxy forwards it.
    pub const fn new(code: u16) -> Option<Status> {
        if code >= 100 && code <= 999 {
            Some(Status(code))
        } else {
            None
        }
    }

    /// Returns the code as a number.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Returns the three ASCII digits of the code.
    pub const fn digits(self) -> [u8; 3] {
        [
            b'0' + (self.0 / 100) as u8,
            b'0' + (self.0 / 10 % 10) as u8,
            b'0' + (self.0 % 10) as u8,
        ]
    }

    /// Returns true for 1xx.
    pub const fn is_informational(self) -> bool {
        self.0 < 200
    }

    /// Returns true for 2xx.
    pub const fn is_success(self) -> bool {
        self.0 >= 200 && self.0 < 300
    }

    /// Returns true for 4xx and above.
    pub const fn is_error(self) -> bool {
        self.0 >= 400
    }

    /// Returns false for 1xx, 204 and 304: responses with these statuses end with their head (RFC 9112 §6.3). A 205
    /// response is framed like other responses, although its body is always empty (RFC 9110 §15.3.6).
    pub const fn allows_body(self) -> bool {
        !(self.0 < 200 || self.0 == 204 || self.0 == 304)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn only_three_digit_codes_are_statuses() {
        for (code, valid) in [
            (0, false),
            (99, false),
            (100, true),
            (599, true),
            (999, true),
            (1000, false),
        ] {
            assert_eq!(Status::new(code).is_some(), valid, "{code}");
        }
    }

    #[test]
    fn registered_codes_have_phrases_and_digits() {
        for status in Status::REGISTERED {
            assert!(!status.reason().is_empty(), "{status}");
            assert_eq!(status.digits().as_slice(), status.to_string().as_bytes());
            let line = format!("HTTP/1.1 {status} {}\r\n", status.reason());
            assert_eq!(status.line(), Some(&*line));
        }
        assert_eq!(Status::new(299).map(Status::reason), Some(""));
        assert_eq!(Status::new(299).map(Status::line), Some(None));
        assert_eq!(Status::NOT_FOUND.reason(), "Not Found");
    }

    #[test]
    fn a_body_is_allowed_unless_the_head_ends_the_response() {
        for (status, allowed) in [
            (Status::CONTINUE, false),
            (Status::SWITCHING_PROTOCOLS, false),
            (Status::EARLY_HINTS, false),
            (Status::OK, true),
            (Status::NO_CONTENT, false),
            (Status::RESET_CONTENT, true),
            (Status::NOT_MODIFIED, false),
            (Status::NOT_FOUND, true),
        ] {
            assert_eq!(status.allows_body(), allowed, "{status}");
        }
    }
}
