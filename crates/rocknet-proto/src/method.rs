//! Request methods by name (RFC 9110 §9).

/// A request method. The received token is in [`Request::method_name`](crate::Request::method_name).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Method {
    /// GET (RFC 9110 §9.3.1)
    #[default]
    Get,
    /// HEAD (§9.3.2)
    Head,
    /// POST (§9.3.3)
    Post,
    /// PUT (§9.3.4)
    Put,
    /// DELETE (§9.3.5)
    Delete,
    /// CONNECT (§9.3.6)
    Connect,
    /// OPTIONS (§9.3.7)
    Options,
    /// TRACE (§9.3.8)
    Trace,
    /// PATCH (RFC 5789)
    Patch,
    /// Any other token.
    Other,
}

impl Method {
    /// Returns the method of a name. Names are case-sensitive: `get` is not GET (RFC 9110 §9.1).
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

    /// Returns the name on the wire; `None` for `Other`, because only the request stores the received token.
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

    /// Returns true if the method is safe: a request with this method does not ask for a change of state on the server
    /// (RFC 9110 §9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// Returns true if the method is idempotent, so that a request may be sent again after a connection failure (RFC
    /// 9110 §9.2.2).
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn names_map_to_methods_and_back() {
        // Method, its name, true if it is safe, and true if it is idempotent.
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
