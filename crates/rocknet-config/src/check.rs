//! Check of a configuration. It turns the syntax tree into the model and reports every finding in one pass.

mod access;
mod acme;
mod admin;
mod alias;
mod application;
mod client_certificates;
mod conflict;
pub(crate) mod foreign;
mod host_folders;
mod http3;
mod keys;
mod listen;
mod passwords;
mod response_cache;
mod rule;
mod server;
mod settings;
mod site;
mod tls;
mod tracing;
mod unknown;

use crate::context::Check;
use crate::file::Table;
use crate::finding::{Code, Finding, Severity};
use crate::model::Config;
use crate::value::ban;

/// Checks a whole configuration, and reports its errors to `check`. A value with an error has its default in the
/// returned model, or is missing.
pub(crate) fn check(root: &Table, check: &mut Check<'_>) -> Config {
    // Reports unknown keys and values of the wrong type. The functions below skip such values without another finding.
    keys::check(check, root);
    let (server, limits, log, cache) = server::build(check, root);
    let admin = admin::build(check, root.table("admin"));
    let tracing = tracing::build(check, root.table("tracing"));
    let ban = ban::build(check, root);
    let tls = tls::build(check, root.table("tls"));
    let context = site::SiteContext {
        user: server.user.as_deref(),
        mode: server.mode,
        log: &log,
        tls: &tls,
        http3: &server.http3,
    };
    let mut sites = site::build(check, root, &context);
    let host_folders = host_folders::expand(check, root, &mut sites, &context);
    let mut config = Config {
        server,
        limits,
        log,
        cache,
        admin,
        tracing,
        ban,
        tls,
        sites: Vec::new(),
        host_folders,
        disabled_sites: site::disabled(check, root),
        files: check.sources.paths(),
    };
    if sites.is_empty() && check.report.errors() == 0 {
        let (message, help) = match config.disabled_sites[..] {
            [] => (
                "no site is configured, so nothing is served",
                "write [site.\"example.com\"] and below it root = \"/var/www\"",
            ),
            _ => (
                "every site is disabled, so nothing is served",
                "remove `enabled = false` from a site",
            ),
        };
        check.report.push(Finding {
            severity: Severity::Warning,
            code: Code::Useless,
            message: message.to_owned(),
            help: Some(help.to_owned()),
            location: None,
            related: Vec::new(),
        });
    }
    passwords::warn_without_tls(check, &config.server, &sites);
    let http3 = root.table("server").and_then(|table| table.node("http3"));
    // If `tls` of a site is invalid, its TLS listeners are unknown, so the exceptions of `http3` are not checked.
    if sites.iter().all(|site| site.tls_is_known) {
        let secure: Vec<_> = sites.iter().flat_map(|site| site.site.secure.clone()).collect();
        http3::check_server(check, http3, &config.server.http3, &secure);
    }
    conflict::check(check, &sites);
    config.sites = sites.into_iter().map(|checked| checked.site).collect();
    config.sites.sort_by(|a, b| a.name.cmp(&b.name));
    // The sites must be complete here, because the spool must hold the largest request body that any site accepts.
    server::fit_spool_disk(check, root, &mut config);
    config
}
