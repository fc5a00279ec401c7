//! Converts request heads to the types of the `h2` library, and response fields from them to the types of RockNet.

use http::header::{CONTENT_LENGTH, DATE, HeaderMap, HeaderName, HeaderValue, TE};
use http::{Method, Request, Uri};
use rocknet_proto::fields::{Field, is_framing};
use rocknet_proto::h1::{EncodeError, Length, RequestLine};
use rocknet_proto::semantics::date;

use crate::request::HeadWriter;
use rocknet_handler::response::FieldList;

/// Request head under construction.
pub struct H2RequestHead {
    /// True if the scheme is `https`.
    pub is_secure: bool,
    /// True if the client accepts trailers.
    pub wants_trailers: bool,
    pub request: Request<()>,
}

impl HeadWriter for &mut H2RequestHead {
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
            append(map, field.name, field.value)?;
        }
        Ok(())
    }
}

/// Converts trailer fields. Fields that cannot be sent are dropped.
pub fn to_header_map(fields: &FieldList) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields.bytes() {
        let _ = append(&mut map, name, value);
    }
    map
}

fn append(map: &mut HeaderMap, name: &[u8], value: &[u8]) -> Result<(), EncodeError> {
    let name = HeaderName::from_bytes(name).map_err(|_| EncodeError::FieldName)?;
    let value = HeaderValue::from_bytes(value).map_err(|_| EncodeError::FieldValue)?;
    // Fails only if the map has reached its maximum size.
    map.try_append(name, value).map_err(|_| EncodeError::FieldName)?;
    Ok(())
}

/// Returns the fields of a response, except connection fields and fields that RockNet sets itself.
pub fn response_fields(map: &HeaderMap) -> FieldList {
    let is_own = |name: &str| name == "date" || name == "server" || is_framing(name.as_bytes());
    let lines = map.iter().filter(|(name, _)| !is_own(name.as_str()));
    FieldList::from_fields(lines.map(|(name, value)| Field::new(name.as_str().as_bytes(), value.as_bytes())))
}

/// Returns the value of `Date` in seconds since 1970; `None` without a valid one.
pub fn date(map: &HeaderMap) -> Option<u64> {
    date::parse(map.get(DATE)?.as_bytes())
}

/// Returns the value of `Content-Length`; `None` without the field. The library ensures that repeated fields are equal
/// and that the body has this length.
pub fn content_length(map: &HeaderMap) -> Option<u64> {
    map.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
