//! Checks that a site requests the client certificates that its `auth` requires.

use crate::context::Check;
use crate::file::{Entry, Table};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Auth, Route, Settings, SiteTls};

/// Reports rules for client certificates in a site that requests no certificates, and rules of single routes in a site
/// that refuses clients without a certificate everywhere. `name`, `entry` and `table`: the site as it is written.
/// `tls`: its TLS settings; `None` without TLS.
pub(super) fn check_site(
    check: &mut Check<'_>,
    (name, entry, table): (&str, &Entry, &Table),
    tls: Option<&SiteTls>,
    settings: &Settings,
    routes: &[Route],
) {
    let is_needed = |settings: &Settings| settings.auth.as_ref().is_some_and(Auth::needs_certificate);
    let of_route = routes.iter().any(|route| is_needed(&route.settings));
    if !is_needed(settings) && !of_route {
        return;
    }
    let written = table.node("tls");
    let span = written.map_or(entry.key, |node| node.span);
    let Some(client) = tls.and_then(|tls| tls.client.as_ref()) else {
        let message = format!(
            "site \"{}\" requires client certificates by `auth`, but its `tls` names no authority that issues them",
            short(name)
        );
        let help = "write tls = { client_ca = \"/etc/rocknet/clients.pem\", client = \"optional\" }";
        return check.error(Code::Missing, span, message, help);
    };
    let is_chosen = written
        .and_then(|node| node.as_table())
        .is_some_and(|tls| tls.node("client").is_some());
    if client.required && !is_chosen && !is_needed(settings) {
        let message = "clients without a certificate are refused on all routes of this site, not only on those whose `auth` \
                       requires one";
        let help = "write client = \"optional\" in `tls` to open the other routes, or client = \"required\" to keep it";
        check.warning(Code::Useless, span, message, help);
    }
}
