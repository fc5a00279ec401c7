//! Checks sites: their names, listeners, settings and routes.

use crate::binding::{self, WrittenKey};
use crate::check::listen::SiteListener;
use crate::check::{
    access as client_access, alias, application, client_certificates, http3, listen, response_cache, rule, server,
    settings, tls,
};
use crate::context::Check;
use crate::file::{Entry, Node, Table, Value};
use crate::finding::Code;
use crate::keys::{self, Section};
use crate::model::{AccessLog, DisabledSite, HostPattern, Http3, Listen, Log, Mode, Route, Settings, Site, Tls};
use crate::source::Span;
use crate::value::host::{self, SiteName};
use crate::value::{path, pattern, settings as setting, typed};

/// Maximum number of aliases of one site, which bounds the time for comparing each alias with all others. Sites need
/// fewer: a certificate of Let's Encrypt has at most 100 names.
const MAX_ALIASES: usize = 1_000;

/// Site with the spans that the check for conflicts between sites needs.
pub(super) struct CheckedSite {
    pub site: Site,
    /// Host names; empty if the site serves every name.
    pub names: Vec<(HostPattern, Span)>,
    pub listen: Vec<SiteListener>,
    /// False if `tls` is invalid. It is then unknown whether the listeners use TLS.
    pub tls_is_known: bool,
    /// True if `tls` of the site does not set `hsts`.
    pub inherits_hsts: bool,
    /// Span of the site's name.
    pub header: Span,
}

/// Settings of the whole server that the check of a site needs.
pub(super) struct SiteContext<'c> {
    /// User that the server switches to if it was started as root.
    pub user: Option<&'c str>,
    pub mode: Mode,
    pub log: &'c Log,
    pub tls: &'c Tls,
    pub http3: &'c Http3,
}

/// Returns the enabled sites whose names are valid. Errors in names and settings are reported to `check`.
pub(super) fn build(check: &mut Check<'_>, root: &Table, context: &SiteContext<'_>) -> Vec<CheckedSite> {
    let Some(sites) = root.table("site") else {
        return Vec::new();
    };
    let base = base(check, root);
    let mut all = Vec::with_capacity(sites.entries.len());
    for (name, entry) in sites.in_order() {
        let Some(table) = entry.node.as_table().filter(|table| is_enabled(table)) else {
            continue;
        };
        match host::site_name(name) {
            Ok(kind) => {
                all.push(site(check, (name, &kind), (entry, table), &base, context));
            }
            Err((message, help)) => check.error(Code::BadValue, entry.key, message, help),
        }
    }
    all
}

/// Returns the sites that are not served, in the order of their names.
pub(super) fn disabled(check: &Check<'_>, root: &Table) -> Vec<DisabledSite> {
    let sites = root.table("site").into_iter().flat_map(|sites| &sites.entries);
    let disabled = sites.filter(|(_, entry)| entry.node.as_table().is_some_and(|table| !is_enabled(table)));
    disabled
        .map(|(name, entry)| DisabledSite {
            name: name.clone(),
            span: check.source_span(entry.key),
        })
        .collect()
}

fn is_enabled(site: &Table) -> bool {
    typed::boolean(Some(site), "enabled").unwrap_or(true)
}

/// Returns the settings that every site inherits: the limits, the types of `[server]`, and the spans of the inherited
/// keys. These are the keys of `[limits]` and `[tls]` that a site can also contain, `access` of `[log]`, and `types`
/// and `http3` of `[server]`.
fn base(check: &mut Check<'_>, root: &Table) -> Settings {
    let mut base = Settings::default();
    binding::read(check, Section::SiteLimits, root.table("limits"), &mut base);
    for (table, section) in [("limits", Section::SiteLimits), ("tls", Section::SiteTls)] {
        let Some(written) = root.table(table) else { continue };
        for (name, entry) in &written.entries {
            if keys::find(section, name).is_some() {
                base.key_spans
                    .insert(format!("{table}.{name}"), check.source_span(entry.key));
            }
        }
    }
    if let (Some(entry), Some(key)) = (
        root.table("server").and_then(|table| table.entries.get("types")),
        keys::find(Section::Server, "types"),
    ) {
        setting::types(check, &WrittenKey { kind: &key.kind, entry }, &mut base);
    }
    // Table, key of the table, and key of a site that inherits it.
    for (table, name, inherited) in [("log", "access", "log"), ("server", "http3", "http3")] {
        if let Some(entry) = root.table(table).and_then(|table| table.entries.get(name)) {
            base.key_spans
                .insert(inherited.to_owned(), check.source_span(entry.key));
        }
    }
    base
}

/// Checks the user that runs the site's scripts. Without scripts, `user` has no effect, which is only a warning.
/// `name`: the name of the site. `node`: the value of its `user`. `server`: the user that the server itself runs as.
fn check_user(
    check: &mut Check<'_>,
    (name, node): (&str, &Node),
    site: &Settings,
    routes: &[Route],
    server: Option<&str>,
) {
    let Some(user) = &site.user else { return };
    let mut all = std::iter::once(site).chain(routes.iter().map(|route| &route.settings));
    if all.any(Settings::runs_programs) {
        if server == Some(user.as_str()) {
            server::refuse_server_account(check, node, user);
        }
    } else if !check.has_other_errors() {
        // With other errors there is no warning, because one of them may concern `php` or `cgi`.
        check.warning(
            Code::Useless,
            node.span,
            format!("`user` has no effect: RockNet starts no scripts for site \"{name}\""),
            "remove it, or write `php = \"auto\"` or `cgi`; a php-fpm with an address in `php` has its own user",
        );
    }
}

/// Checks one site. `name` and `kind`: the name as it is written, and parsed. `entry` and `table`: the entry of the
/// site in `[site]`, and its table. `base`: the inherited settings.
fn site(
    check: &mut Check<'_>,
    (name, kind): (&str, &SiteName),
    (entry, table): (&Entry, &Table),
    base: &Settings,
    context: &SiteContext<'_>,
) -> CheckedSite {
    let host = match kind {
        SiteName::Host(HostPattern::Exact(name) | HostPattern::Wildcard(name)) => Some(name.as_str()),
        _ => None,
    };
    let tls = tls::site(check, table.node("tls"), host, context.mode, context.tls);
    // With an invalid `tls`, it is unknown whether the ports use TLS, so no conflict about TLS is reported.
    let is_clear = |node: &Node| matches!(node.as_text(), Some("off"));
    let tls_is_known = tls.is_some() || table.node("tls").is_none_or(is_clear);
    let written = table.node("listen");
    let has_tls = tls.is_some() || !tls_is_known;
    let (listen, listen_given) = listen::build(check, kind, entry.key, written, context.mode, has_tls);
    let names = names(check, kind, entry.key, table.node("aliases"));
    if let Some(tls) = &tls {
        let names: Vec<_> = names.iter().map(|(name, _)| name.clone()).collect();
        tls::inspect(check, table.node("tls"), tls, name, &names);
    }
    let mut settings = settings::build(check, Section::Site, table, base);
    let user = table.node("user");
    settings.user = user.and_then(|node| server::user(check, "user", node));
    // A port in the name of the site takes the place of `listen`.
    if let SiteName::Port(..) = kind {
        settings
            .key_spans
            .insert("listen".to_owned(), check.source_span(entry.key));
    }
    let routes = routes(check, table, &settings);
    response_cache::check_site(check, table, &settings, &routes);
    if tls_is_known {
        client_certificates::check_site(check, (name, entry, table), tls.as_ref(), &settings, &routes);
    }
    if let Some(node) = user {
        check_user(check, (name, node), &settings, &routes, context.user);
    }
    let rules = rule::build(check, table);
    let serves = |settings: &Settings| {
        // `php` and `cgi` need a `root`, so they are not listed.
        let has_handler = settings.root.is_some()
            || settings.proxy.is_some()
            || settings.controller.is_some()
            || settings.application.is_some();
        has_handler || !settings.redirects.is_empty()
    };
    let serves_nothing = rules.is_empty() && !serves(&settings) && !routes.iter().any(|route| serves(&route.settings));
    // If there are other errors, one of them may be a misspelled `root`.
    if serves_nothing && !check.has_other_errors() {
        let help = "write root = \"/var/www\" below it, or proxy = \"http://127.0.0.1:3000\"";
        check.site_error(
            Code::Useless,
            entry.key,
            format!("site \"{name}\" serves nothing: it has no `root` and no other key that handles requests"),
            help,
        );
    }
    let listeners = |is_chosen: fn(&SiteListener) -> bool| -> Vec<Listen> {
        let chosen = listen.iter().filter(|listener| is_chosen(listener));
        chosen.map(|listener| listener.listen.clone()).collect()
    };
    let secure = listeners(|listener| listener.secure);
    let http3_node = table.node("http3");
    let http3 = http3::of_site(check, http3_node, context.http3, tls_is_known.then_some(&secure));
    let site = Site {
        name: name.to_owned(),
        names: names.iter().map(|(name, _)| name.clone()).collect(),
        listen: listeners(|_| true),
        secure,
        h2c: listeners(|listener| listener.h2c),
        tls,
        http3,
        listen_given,
        access: access(check, table.node("log"), &context.log.access),
        settings,
        routes,
        rules,
        span: check.source_span(entry.key),
    };
    CheckedSite {
        site,
        names,
        listen,
        tls_is_known,
        inherits_hsts: table
            .node("tls")
            .and_then(Node::as_table)
            .is_none_or(|tls| tls.node("hsts").is_none()),
        header: entry.key,
    }
}

/// Reads the host names of a site. The list is empty if the site is for every name.
fn names(check: &mut Check<'_>, kind: &SiteName, header: Span, aliases: Option<&Node>) -> Vec<(HostPattern, Span)> {
    let SiteName::Host(own) = kind else {
        if let Some(node) = aliases {
            let help = "remove `aliases`, or use one of them as the name of the site";
            check.error(
                Code::Conflict,
                node.span,
                "`aliases` has no effect: the site is for every name",
                help,
            );
        }
        return Vec::new();
    };
    let mut names = vec![(own.clone(), header)];
    let Some(node) = aliases else { return names };
    if typed::elements(node).len() > MAX_ALIASES {
        let help = "write \"*.example.com\" for all names below one";
        check.error(
            Code::BadValue,
            node.span,
            format!("more than {MAX_ALIASES} aliases"),
            help,
        );
        return names;
    }
    for (text, span) in typed::texts(node) {
        let alias = match host::host_pattern(&text.value) {
            Ok(alias) => alias,
            Err((message, help)) => {
                check.bad_text(text, span, message, help);
                continue;
            }
        };
        if names.iter().any(|(name, _)| *name == alias) {
            check.warning(Code::Useless, span, "the site already has this name", "remove it");
            continue;
        }
        names.push((alias, span));
    }
    names
}

/// Reads `log` of a site: a destination in the short form, or a table. Missing keys are inherited from `[log]`.
fn access(check: &mut Check<'_>, node: Option<&Node>, base: &AccessLog) -> AccessLog {
    match node.map(|node| (&node.value, node)) {
        Some((Value::Table(table), _)) => server::access(check, Some(table), base),
        Some((Value::Text(_), node)) => {
            let target = path::log_target(check, "log", node).unwrap_or_else(|| base.target.clone());
            AccessLog {
                target,
                format: base.format.clone(),
            }
        }
        _ => base.clone(),
    }
}

/// Returns the routes of a site, sorted by pattern. `table`: the table of the site. `base`: the settings of the site.
fn routes(check: &mut Check<'_>, table: &Table, base: &Settings) -> Vec<Route> {
    let Some(written) = table.table("route") else {
        return Vec::new();
    };
    let mut routes = Vec::with_capacity(written.entries.len());
    // Unrestricted routes without keys of access control.
    let mut open = Vec::new();
    for (name, entry) in written.in_order() {
        let Some(table) = entry.node.as_table() else { continue };
        let pattern = match pattern::parse(name) {
            Ok(pattern) => pattern,
            Err((message, help)) => {
                check.error(Code::BadValue, entry.key, message, help);
                continue;
            }
        };
        if table.entries.is_empty() {
            let help = "write its settings below it, or remove it";
            check.warning(Code::Useless, entry.key, format!("route \"{name}\" is empty"), help);
        }
        let mut settings = settings::build(check, Section::Route, table, base);
        application::mount(table, &pattern, &mut settings);
        alias::mount(check, table, &pattern, &mut settings);
        response_cache::check_route(check, table, &settings);
        if settings.is_open() && !client_access::has_access_key(table) {
            open.push((pattern.clone(), entry.key));
        }
        routes.push(Route {
            pattern,
            settings,
            span: check.source_span(entry.key),
        });
    }
    alias::add_folders(&mut routes);
    routes.sort_by(|a, b| a.pattern.cmp(&b.pattern));
    client_access::warn_open(check, &routes, &open);
    routes
}
