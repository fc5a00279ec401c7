//! The parts of a request that logins depend on: its origin, its cookies, and the time.

use rocknet_config::model::Server;
use rocknet_handler::guard::GuardContext;
use rocknet_proto::fields::KnownField;

use crate::forwarded;

/// The parts of a request that logins depend on.
pub(super) struct RequestScope<'a> {
    /// True if the browser uses TLS.
    pub is_secure: bool,
    /// Origin of the site as the browser sees it, such as `https://example.com`.
    pub origin: String,
    /// Lines of `Cookie`.
    pub cookies: Vec<&'a [u8]>,
    /// Unix time in seconds.
    pub now: u64,
}

impl<'a> RequestScope<'a> {
    /// Returns the parts of a request; `None` if its host cannot be part of a URL.
    pub fn of(context: &GuardContext<'a>, server: &Server) -> Option<RequestScope<'a>> {
        let request = context.request;
        let reported = forwarded::is_trusted(server, context.peer)
            .then(|| forwarded::resolve(server, context.peer, request.fields));
        let scheme = reported.as_ref().and_then(|info| info.proto.as_deref());
        let is_secure = match scheme {
            Some(scheme) => scheme.eq_ignore_ascii_case(b"https"),
            None => context.tls.is_some(),
        };
        let host = reported.as_ref().and_then(|info| info.host.as_deref());
        let host = std::str::from_utf8(host.unwrap_or(request.authority)).ok()?;
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            return None;
        }
        let scheme = if is_secure { "https" } else { "http" };
        Some(RequestScope {
            is_secure,
            origin: format!("{scheme}://{}", host.to_ascii_lowercase()),
            cookies: request.fields.get_all(KnownField::Cookie).collect(),
            now: context.services.clock.unix_ms() / 1000,
        })
    }
}
