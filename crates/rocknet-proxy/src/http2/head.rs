//! Heads in the forms of the HTTP/2 library: a request as it is sent, an answer as it is passed on.

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TE};
use http::{Method, Request, Uri};
use rocknet_proto::fields::{Field, is_framing};
use rocknet_proto::h1::{EncodeError, Length, RequestLine};

use crate::request::Form;
use rocknet_handler::response::FieldList;

/// Where a request is written.
pub struct Head {
    pub is_secure: bool,
    /// The client wants trailers.
    pub wants_trailers: bool,
    pub request: Request<()>,
}

impl Form for &mut Head {
    fn write<'a>(self, line: &RequestLine<'_>, fields: impl Iterator<Item = Field<'a>>) -> Result<(), EncodeError> {
        let uri = Uri::builder()
            .scheme(if self.is_secure { "https" } else { "http" })
            .authority(line.host)
            .path_and_query(line.target)
            .build();
        *self.request.uri_mut() = uri.map_err(|_| EncodeError::RequestLine)?;
        *self.request.method_mut() = Method::from_bytes(line.method).map_err(|_| EncodeError::RequestLine)?;
        let map = self.request.headers_mut();
        if let Length::Exact(length) = line.length {
            map.insert(CONTENT_LENGTH, length.into());
        }
        if self.wants_trailers {
            map.insert(TE, HeaderValue::from_static("trailers"));
        }
        for field in fields {
            put(map, field.name, field.value)?;
        }
        Ok(())
    }
}

/// Trailers as they are sent; what cannot be is left out.
pub fn map(fields: &FieldList) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields.bytes() {
        let _ = put(&mut map, name, value);
    }
    map
}

fn put(map: &mut HeaderMap, name: &[u8], value: &[u8]) -> Result<(), EncodeError> {
    let name = HeaderName::from_bytes(name).map_err(|_| EncodeError::FieldName)?;
    let value = HeaderValue::from_bytes(value).map_err(|_| EncodeError::FieldValue)?;
    map.try_append(name, value).map_err(|_| EncodeError::FieldName)?;
    Ok(())
}

/// Fields of an answer, without those that rule its connection or that this server says of itself.
pub fn passed(map: &HeaderMap) -> FieldList {
    let is_own = |name: &str| name == "date" || name == "server" || is_framing(name.as_bytes());
    let lines = map.iter().filter(|(name, _)| !is_own(name.as_str()));
    FieldList::from_fields(lines.map(|(name, value)| Field::new(name.as_str().as_bytes(), value.as_bytes())))
}

/// The length that an answer tells; the library sees to it that there is one at most, and that it holds.
pub fn length(map: &HeaderMap) -> Option<u64> {
    map.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
