//! Checks for passwords that clients send without TLS.

use crate::check::site::CheckedSite;
use crate::context::Check;
use crate::finding::Code;
use crate::model::{Auth, Listen, Mode, Server};

/// Warns of sites that receive passwords without TLS, because others in the network can read the passwords. With
/// `forward` and `oidc`, clients send a password or the cookie of a session, which admits others as well. A site that
/// uses TLS with `redirect` is not reported. Passwords over loopback or a Unix socket do not leave the machine.
pub(super) fn warn_without_tls(check: &mut Check<'_>, server: &Server, sites: &[CheckedSite]) {
    // In `dev` mode the server is not public. A trusted proxy is assumed to terminate TLS, in a network that the
    // operator controls.
    if server.mode == Mode::Dev || !server.trusted_proxies.is_empty() {
        return;
    }
    for CheckedSite { site, header, .. } in sites {
        let mut settings = std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings));
        let redirects = site.tls.as_ref().is_some_and(|tls| tls.redirect);
        let is_read_by_others = |listen: &Listen| match listen {
            Listen::Tcp { address, .. } => !site.secure.contains(listen) && address.is_none_or(|ip| !ip.is_loopback()),
            Listen::Unix(_) => false,
        };
        if !redirects
            && settings.any(|settings| settings.auth.as_ref().is_some_and(Auth::receives_passwords))
            && site.listen.iter().any(is_read_by_others)
        {
            let message = "this site receives passwords for `auth` without TLS";
            let help = "use TLS, or name the proxy that terminates TLS in `trusted_proxies` of [server]";
            check.warning(Code::Dangerous, *header, message, help);
        }
    }
}
