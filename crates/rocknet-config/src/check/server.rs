//! `[server]`, `[limits]`, `[log]` and `[cache]`, as meant.

use crate::check::{Check, network, path, value};
use crate::file::{Node, Table};
use crate::finding::Code;
use crate::model::{
    AccessFormat, AccessLog, Backend, Cache, Config, Events, Level, Limits, Log, LogTarget, Mode, Rotate, Server,
    Spool, TrustedField, Workers,
};
use crate::units;

pub(super) fn build(check: &mut Check<'_>, root: &Table) -> (Server, Limits, Log, Cache) {
    (
        server(check, root.table("server")),
        limits(check, root.table("limits")),
        log(check, root.table("log")),
        { cache(check, root.table("cache")) },
    )
}

/// The name of a user of the system.
pub(super) fn user(check: &mut Check<'_>, key: &str, node: &Node) -> Option<String> {
    let user = node.as_text()?;
    if user.is_empty() || user.contains([':', '/', ' ', '\0']) {
        check.error(
            Code::BadValue,
            node.span,
            format!("`{key}` takes the name of a user"),
            format!("write {key} = \"www-data\""),
        );
        return None;
    }
    Some(user.to_owned())
}

/// Scripts that run as the account of the server could read its keys.
pub(super) fn refuse_server_account(check: &mut Check<'_>, node: &Node, name: &str) {
    check.error(
        Code::Conflict,
        node.span,
        format!("RockNet itself runs as \"{name}\": its scripts could read the private keys"),
        "name another account here, or give RockNet one of its own: `useradd --system rocknet`, and user = \"rocknet\" below [server]",
    );
}

fn script_user(check: &mut Check<'_>, table: Option<&Table>, server: Option<&str>) -> Option<String> {
    let node = table?.node("script_user")?;
    let name = user(check, "script_user", node)?;
    if server == Some(name.as_str()) {
        refuse_server_account(check, node, &name);
    }
    Some(name)
}

fn server(check: &mut Check<'_>, table: Option<&Table>) -> Server {
    let base = Server::default();
    let events = table.and_then(|t| t.table("events"));
    let user = table
        .and_then(|table| table.node("user"))
        .and_then(|node| user(check, "user", node));
    let script_user = script_user(check, table, user.as_deref());
    let state = table.and_then(|t| t.node("state"));
    Server {
        state: state.and_then(|node| path::folder(check, "state", node)),
        mode: match value::text(table, "mode") {
            Some("dev") => Mode::Dev,
            _ => Mode::Prod,
        },
        workers: value::integer(table, "workers").map_or(base.workers, Workers::Count),
        backend: match value::text(table, "backend") {
            Some("epoll") => Backend::Epoll,
            Some("io_uring") => Backend::IoUring,
            _ => Backend::Auto,
        },
        h2c: value::boolean(table, "h2c").unwrap_or(base.h2c),
        h2c_upgrade: value::boolean(table, "h2c_upgrade").unwrap_or(base.h2c_upgrade),
        user,
        script_user,
        trusted_proxies: table
            .and_then(|t| t.node("trusted_proxies"))
            .map(|node| network::build(check, node))
            .unwrap_or_default(),
        trusted_field: match value::text(table, "trusted_field") {
            Some("forwarded") => TrustedField::Forwarded,
            _ => base.trusted_field,
        },
        proxy_protocol: table
            .and_then(|t| t.node("proxy_protocol"))
            .map(|node| network::build(check, node))
            .unwrap_or_default(),
        blocking_threads: value::integer(table, "blocking_threads").unwrap_or(base.blocking_threads),
        events: Events {
            batch: value::integer(events, "batch").unwrap_or(base.events.batch),
            wait: value::duration(events, "wait").unwrap_or(base.events.wait),
            connections: value::integer(events, "connections").unwrap_or(base.events.connections),
        },
        spool: spool(check, table.and_then(|table| table.table("spool"))),
    }
}

fn spool(check: &mut Check<'_>, table: Option<&Table>) -> Spool {
    let base = Spool::default();
    let folder = table.and_then(|table| table.node("folder"));
    Spool {
        folder: folder.and_then(|node| path::existing_folder(check, "folder", node)),
        memory: value::size(table, "memory").unwrap_or(base.memory),
        disk: value::size(table, "disk").unwrap_or(base.disk),
    }
}

/// The disk has room for the largest body that any place takes: as the default, and as a demand on what is written.
pub(super) fn spool_disk(check: &mut Check<'_>, root: &Table, config: &mut Config) {
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
                "`disk` is less than the largest `body_size` ({}), so that no body of that size can be kept",
                units::show_size(largest)
            );
            let help = "make it larger, or `body_size` smaller";
            check.error(Code::Conflict, node.span, message, help);
        }
    }
}

fn limits(check: &mut Check<'_>, table: Option<&Table>) -> Limits {
    let base = Limits::default();
    let bytes = |key: &str, default: usize| {
        value::size(table, key)
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(default)
    };
    let header_size = bytes("header_size", base.header_size);
    // Whoever makes the header section small means the target too.
    let target_size = bytes("target_size", base.target_size.min(header_size));
    if target_size > header_size
        && let Some(node) = table.and_then(|t| t.node("target_size"))
    {
        let message = format!(
            "`target_size` is larger than `header_size` ({}), which holds the target too",
            units::show_size(header_size as u64)
        );
        check.error(
            Code::Conflict,
            node.span,
            message,
            "make it smaller, or `header_size` larger",
        );
    }
    let time = |key: &str, default| value::duration(table, key).unwrap_or(default);
    Limits {
        header_timeout: time("header_timeout", base.header_timeout),
        header_size,
        header_fields: value::integer(table, "header_fields").unwrap_or(base.header_fields),
        target_size,
        body_size: value::size(table, "body_size").unwrap_or(base.body_size),
        body_memory: value::size(table, "body_memory").unwrap_or(base.body_memory),
        body_idle: time("body_idle", base.body_idle),
        body_rate: value::rate(table, "body_rate").unwrap_or(base.body_rate),
        send_stall: time("send_stall", base.send_stall),
        answer_timeout: time("answer_timeout", base.answer_timeout),
        keep_alive: time("keep_alive", base.keep_alive),
        connection_age: time("connection_age", base.connection_age),
        connections: value::integer(table, "connections"),
        shutdown: time("shutdown", base.shutdown),
    }
}

fn log(check: &mut Check<'_>, table: Option<&Table>) -> Log {
    let base = Log::default();
    Log {
        level: match value::text(table, "level") {
            Some("error") => Level::Error,
            Some("warn") => Level::Warn,
            Some("debug") => Level::Debug,
            Some("trace") => Level::Trace,
            _ => Level::Info,
        },
        errors: target(check, table, "errors").unwrap_or(base.errors),
        access: access(check, table, &base.access),
        rotate: rotate(table.and_then(|t| t.table("rotate")), &base.rotate),
    }
}

/// `access` and `format` of a table, over what holds without it.
pub(super) fn access(check: &mut Check<'_>, table: Option<&Table>, base: &AccessLog) -> AccessLog {
    AccessLog {
        target: target(check, table, "access").unwrap_or_else(|| base.target.clone()),
        format: match value::text(table, "format") {
            Some("common") => AccessFormat::Common,
            Some("combined") => AccessFormat::Combined,
            Some("json") => AccessFormat::Json,
            _ => base.format,
        },
    }
}

fn target(check: &mut Check<'_>, table: Option<&Table>, key: &str) -> Option<LogTarget> {
    path::log_target(check, key, table?.node(key)?)
}

fn rotate(table: Option<&Table>, base: &Rotate) -> Rotate {
    let off = |key: &str| value::text(table, key) == Some("off");
    Rotate {
        size: if off("size") {
            None
        } else {
            value::size(table, "size").or(base.size)
        },
        age: if off("age") {
            None
        } else {
            value::duration(table, "age").or(base.age)
        },
        keep: value::integer(table, "keep").unwrap_or(base.keep),
    }
}

fn cache(check: &mut Check<'_>, table: Option<&Table>) -> Cache {
    let base = Cache::default();
    let memory = value::size(table, "memory").unwrap_or(base.memory);
    let written = value::size(table, "max_file");
    let max_file = written.unwrap_or(base.max_file.min(memory));
    if memory > 0
        && max_file > memory
        && let Some(node) = table.and_then(|t| t.node("max_file"))
    {
        let message = format!(
            "`max_file` is larger than the whole cache ({})",
            units::show_size(memory)
        );
        check.error(
            Code::Conflict,
            node.span,
            message,
            "make it smaller, or `memory` larger",
        );
    }
    Cache { max_file, memory }
}
