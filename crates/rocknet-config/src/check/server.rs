//! Checks `[server]`, `[limits]`, `[log]` and `[cache]`.

use super::http3;
use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Node, Table};
use crate::finding::Code;
use crate::model::{AccessLog, Cache, Config, Events, Http3, Limits, Log, LogTarget, Mode, Server, Spool};
use crate::units;
use crate::value::path;
use crate::value::{access_log, network};

/// Returns the settings of `[server]`, `[limits]`, `[log]` and `[cache]`.
pub(super) fn build(check: &mut Check<'_>, root: &Table) -> (Server, Limits, Log, Cache) {
    let server = server(check, root.table("server"));
    let limits = limits(check, root.table("limits"));
    let log = log(check, root.table("log"), server.mode);
    (server, limits, log, cache(check, root.table("cache")))
}

/// Reads the name of a system user; `None` after an error.
pub(super) fn user(check: &mut Check<'_>, key: &str, node: &Node) -> Option<String> {
    let user = node.as_text()?;
    // No system user has one of these characters in its name. A NUL would also end the name in the C library.
    if user.is_empty() || user.contains([':', '/', ' ', '\0']) {
        check.error(
            Code::BadValue,
            node.span,
            format!("`{key}` takes the name of a system user"),
            format!("write {key} = \"www-data\""),
        );
        return None;
    }
    Some(user.to_owned())
}

/// Reports scripts that would run as `name`, the server's user, because they could read its private keys.
pub(super) fn refuse_server_account(check: &mut Check<'_>, node: &Node, name: &str) {
    check.error(
        Code::Conflict,
        node.span,
        format!("RockNet itself runs as \"{name}\", so scripts could read its private keys"),
        "name another user here, or create one for RockNet: `useradd --system rocknet`, and user = \"rocknet\" in [server]",
    );
}

/// Reads `script_user` of `[server]`. `server`: the user that the server itself runs as.
fn script_user(check: &mut Check<'_>, table: Option<&Table>, server: Option<&str>) -> Option<String> {
    let node = table?.node("script_user")?;
    let name = user(check, "script_user", node)?;
    if server == Some(name.as_str()) {
        refuse_server_account(check, node, &name);
    }
    Some(name)
}

fn server(check: &mut Check<'_>, table: Option<&Table>) -> Server {
    let mut events = Events::default();
    binding::read(
        check,
        Section::Events,
        table.and_then(|table| table.table("events")),
        &mut events,
    );
    let user = table
        .and_then(|table| table.node("user"))
        .and_then(|node| user(check, "user", node));
    let script_user = script_user(check, table, user.as_deref());
    let state = table.and_then(|table| table.node("state"));
    let qlog = table.and_then(|table| table.node("qlog"));
    let mut server = Server {
        qlog: qlog.and_then(|node| path::existing_folder(check, "qlog", node)),
        state: state.and_then(|node| path::folder(check, "state", node)),
        user,
        script_user,
        sandbox_write: table
            .and_then(|table| table.node("sandbox_write"))
            .map(|node| path::list(check, "sandbox_write", node))
            .unwrap_or_default(),
        trusted_proxies: table
            .and_then(|table| table.node("trusted_proxies"))
            .map(|node| network::build(check, node))
            .unwrap_or_default(),
        proxy_protocol: table
            .and_then(|table| table.node("proxy_protocol"))
            .map(|node| network::build(check, node))
            .unwrap_or_default(),
        events,
        http3: http3::build(check, table.and_then(|table| table.node("http3")), &Http3::default()),
        spool: spool(check, table.and_then(|table| table.table("spool"))),
        ..Server::default()
    };
    binding::read(check, Section::Server, table, &mut server);
    server
}

fn spool(check: &mut Check<'_>, table: Option<&Table>) -> Spool {
    let folder = table.and_then(|table| table.node("folder"));
    let mut spool = Spool {
        folder: folder.and_then(|node| path::existing_folder(check, "folder", node)),
        ..Spool::default()
    };
    binding::read(check, Section::Spool, table, &mut spool);
    spool
}

/// Checks that `disk` of the spool is at least the largest `body_size` of any site or route. Without `disk`, its
/// default is raised to that size.
pub(super) fn fit_spool_disk(check: &mut Check<'_>, root: &Table, config: &mut Config) {
    let largest = config.sites.iter().flat_map(|site| {
        let routes = site.routes.iter().map(|route| &route.settings);
        routes.chain([&site.settings]).map(|settings| settings.body_size)
    });
    let largest = largest.max().unwrap_or_default();
    let disk = &mut config.server.spool.disk;
    if *disk >= largest {
        return;
    }
    let table = root.table("server").and_then(|server| server.table("spool"));
    match table.and_then(|table| table.node("disk")) {
        None => *disk = largest,
        Some(node) => {
            let message = format!(
                "`disk` is less than the largest `body_size` ({}), so bodies of that size cannot be stored",
                units::format_size(largest)
            );
            let help = "increase it, or reduce `body_size`";
            check.error(Code::Conflict, node.span, message, help);
        }
    }
}

fn limits(check: &mut Check<'_>, table: Option<&Table>) -> Limits {
    let mut limits = Limits::default();
    binding::read(check, Section::Limits, table, &mut limits);
    match table.and_then(|table| table.node("target_size")) {
        // The target is part of the head, so the default of `target_size` cannot be larger than `header_size`.
        None => limits.target_size = limits.target_size.min(limits.header_size),
        Some(node) if limits.target_size > limits.header_size => {
            let message = format!(
                "`target_size` is larger than `header_size` ({}), which includes the target",
                units::format_size(limits.header_size as u64)
            );
            check.error(
                Code::Conflict,
                node.span,
                message,
                "reduce it, or increase `header_size`",
            );
        }
        Some(_) => {}
    }
    limits
}

fn log(check: &mut Check<'_>, table: Option<&Table>, mode: Mode) -> Log {
    let mut log = Log::default();
    if mode == Mode::Dev {
        log.access = AccessLog::for_terminal();
    }
    if let Some(errors) = target(check, table, "errors") {
        log.errors = errors;
    }
    log.access = access(check, table, &log.access);
    binding::read(check, Section::Log, table, &mut log);
    binding::read(
        check,
        Section::Rotate,
        table.and_then(|table| table.table("rotate")),
        &mut log.rotate,
    );
    log
}

/// Reads `access` and `format` of a table. A missing key keeps its inherited value, which is in `base`.
pub(super) fn access(check: &mut Check<'_>, table: Option<&Table>, base: &AccessLog) -> AccessLog {
    let mut log = base.clone();
    if let Some(target) = target(check, table, "access") {
        log.target = target;
    }
    if let Some(format) = table.and_then(|table| access_log::format(check, table.node("format")?)) {
        log.format = format;
    }
    binding::read(check, Section::SiteLog, table, &mut log);
    log
}

fn target(check: &mut Check<'_>, table: Option<&Table>, key: &str) -> Option<LogTarget> {
    path::log_target(check, key, table?.node(key)?)
}

fn cache(check: &mut Check<'_>, table: Option<&Table>) -> Cache {
    let folder = table.and_then(|table| table.node("responses_folder"));
    let mut cache = Cache {
        responses_folder: folder.and_then(|node| path::existing_folder(check, "responses_folder", node)),
        ..Cache::default()
    };
    binding::read(check, Section::Cache, table, &mut cache);
    // With a `memory` of 0, no file content is cached, so `max_file` has no effect and is not checked.
    match table.and_then(|table| table.node("max_file")) {
        None => cache.max_file = cache.max_file.min(cache.memory),
        Some(node) if cache.memory > 0 && cache.max_file > cache.memory => {
            let message = format!(
                "`max_file` is larger than the whole cache ({})",
                units::format_size(cache.memory)
            );
            check.error(Code::Conflict, node.span, message, "reduce it, or increase `memory`");
        }
        Some(_) => {}
    }
    cache
}
