//! Request methods by name (RFC 9110 §9).

/// A registered method, or `Other` for any further token; the token itself stands in `Request::method_name`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    Patch,
    Other,
}

impl Method {
    /// Names are case-sensitive: `get` is not GET (RFC 9110 §9.1).
    #[inline]
    pub fn from_bytes(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"CONNECT" => Self::Connect,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }

    /// The name on the wire; `None` for `Other`, whose name only the request knows.
    pub fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Patch => "PATCH",
            Self::Other => return None,
        })
    }

    /// Asks for nothing to be changed (RFC 9110 §9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// May be sent again when the first answer was lost (RFC 9110 §9.2.2).
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn names_map_to_methods_and_back() {
        let rows = [
            (Method::Get, "GET", true, true),
            (Method::Head, "HEAD", true, true),
            (Method::Post, "POST", false, false),
            (Method::Put, "PUT", false, true),
            (Method::Delete, "DELETE", false, true),
            (Method::Connect, "CONNECT", false, false),
            (Method::Options, "OPTIONS", true, true),
            (Method::Trace, "TRACE", true, true),
            (Method::Patch, "PATCH", false, false),
        ];
        for (method, name, safe, idempotent) in rows {
            assert_eq!(Method::from_bytes(name.as_bytes()), method);
            assert_eq!(method.as_str(), Some(name));
            assert_eq!((method.is_safe(), method.is_idempotent()), (safe, idempotent), "{name}");
            assert_eq!(Method::from_bytes(name.to_lowercase().as_bytes()), Method::Other);
        }
        assert_eq!(Method::from_bytes(b""), Method::Other);
        assert_eq!(Method::Other.as_str(), None);
    }
}
