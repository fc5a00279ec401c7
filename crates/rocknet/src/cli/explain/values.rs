//! Values of an explained URL for placeholders.

use std::borrow::Cow;

use rocknet_config::template::{Placeholder, Values};

use super::url::Url;

/// Port of HTTPS URLs.
const HTTPS_PORT: u16 = 443;

/// Values of a GET request for a URL. All other values, such as those of the client, are empty. Redirects take `{path}`
/// and `{query}` from the request target instead.
pub(super) struct ExplainedValues<'u>(pub(super) &'u Url<'u>);

impl Values for ExplainedValues<'_> {
    fn value(&self, placeholder: &Placeholder) -> Cow<'_, [u8]> {
        let url = self.0;
        match placeholder {
            Placeholder::Host => Cow::Borrowed(url.host.as_bytes()),
            Placeholder::Authority => match url.port {
                Some(port) if port != 80 && port != HTTPS_PORT => {
                    Cow::Owned(format!("{}:{port}", url.host).into_bytes())
                }
                _ => Cow::Borrowed(url.host.as_bytes()),
            },
            Placeholder::Scheme if url.is_https => Cow::Borrowed(b"https"),
            Placeholder::Scheme => Cow::Borrowed(b"http"),
            Placeholder::Method => Cow::Borrowed(b"GET"),
            Placeholder::Target => match url.query {
                Some(query) => Cow::Owned(format!("{}?{query}", url.path).into_bytes()),
                None => Cow::Borrowed(url.path.as_bytes()),
            },
            Placeholder::QueryParameter(name) => {
                let mut parameters = url.query.unwrap_or_default().split('&');
                let value = parameters.find_map(|parameter| parameter.strip_prefix(&**name)?.strip_prefix('='));
                Cow::Borrowed(value.unwrap_or_default().as_bytes())
            }
            _ => Cow::Borrowed(b""),
        }
    }
}
