//! URL that a load generator requests.

use std::path::Path;

/// URL, host name and request body of a load.
pub struct Target<'a> {
    pub url: &'a str,
    /// Host name of the request, if it is not the host of the URL.
    pub host: Option<&'a str>,
    /// Request body for POST; without one the method is GET.
    pub content: Option<&'a Path>,
    /// Expected length of the response bodies; only the load generator of HTTP/3 checks it.
    pub length: Option<u64>,
}
