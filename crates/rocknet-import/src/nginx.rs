//! Translates configurations of nginx: a whole `nginx.conf`, or a file with `server` blocks.

mod action;
mod area;
mod cache;
mod clients;
mod conditional;
mod effective_access;
mod forward_auth;
mod includes;
mod limit;
mod location;
mod log_format;
mod mirror;
mod named_access;
mod nested;
mod param_users;
mod params;
mod php;
mod place;
mod precedence;
mod reader;
mod response;
mod restriction;
mod rewriting;
mod scope;
mod server;
mod test;
mod tls;
mod try_files;
mod upstream;

pub(crate) use includes::NginxIncludes;
pub(crate) use reader::read;

use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::hosts;
use crate::source::SourceMap;
use scope::{ConfigLevel, Scope};
use upstream::Upstreams;

/// Differences between the defaults of nginx and RockNet, written at the top of the result.
const REMARKS: [&str; 3] = [
    "Defaults that differ from nginx: request bodies up to 100 MiB (nginx: 1 MiB), compression on, access log off.",
    "Names that begin with a dot are never served, except /.well-known.",
    "Of the locations that match a path, the most specific pattern takes effect; nginx prefers regular expressions.",
];

/// Translates a configuration of nginx.
pub(crate) fn translate(tree: &[Directive], sources: &SourceMap) -> Document {
    let mut document = Document::new(&REMARKS, sources);
    // Each `access_log` gets the line of its format, and each `limit_req` or `limit_conn` the key and rate of its zone.
    let tree = limit::resolve(log_format::resolve(tree));
    // Directives of `http` that apply to every server.
    let mut shared = Scope::new(ConfigLevel::Http);
    let mut upstreams = Upstreams::new();
    let mut servers = Vec::new();
    let mut http_tls = Vec::new();
    // In a file with `server` blocks alone, the top level has the meaning of `http`.
    let http = tree.iter().filter(|directive| directive.is("http"));
    let directives: Vec<&Directive> = tree.iter().chain(http.flat_map(Directive::children)).collect();
    for directive in directives {
        match (directive.name.as_str(), directive.arguments.len()) {
            ("http", _) => {}
            ("server", 0) if directive.block.is_some() => servers.push(directive),
            ("upstream", 1) => {
                let group = upstream::group(directive, &mut document);
                upstreams.insert(directive.argument(0).to_owned(), group);
            }
            ("user", _) => {
                let message = "RockNet has an account of its own, `rocknet`, which must be able to read the files; scripts run \
                     as `server.script_user`: docs/php.md";
                document.differs(directive, message);
            }
            ("events" | "pid" | "worker_processes" | "worker_rlimit_nofile" | "daemon" | "load_module", _) => {
                document.unneeded(directive, "RockNet selects this itself");
            }
            // No setting corresponds to these. `skip_unknown` adds the advice for variables.
            ("map" | "geo" | "split_clients", _) => {
                document.skip_unknown(directive);
            }
            ("proxy_cache_path" | "fastcgi_cache_path" | "uwsgi_cache_path" | "scgi_cache_path", _) => {
                document.unneeded(
                    directive,
                    "responses are stored in memory, which `cache.responses` limits",
                );
            }
            // A zone is part of each limit that names it.
            ("limit_req_zone" | "limit_conn_zone", _) => {}
            // The format is part of the `access_log` that names it.
            ("log_format", _) => {}
            _ if tls::is_tls(directive) => http_tls.push(directive),
            _ => shared.read(directive, &upstreams),
        }
    }
    // `http` inherits from no other level.
    shared.finish(None);
    let caches = shared.caches.clone();
    cache::translate(&[], &caches, &mut shared.settings, &mut shared.notes);
    move_http_settings(&mut document, &mut shared);
    shared.move_globals(&mut document);
    param_users::note(&shared.params, None, &servers, &upstreams, &mut document);
    let mut hosts = Vec::new();
    for block in servers {
        hosts.push(server::translate(block, &shared, &http_tls, &upstreams, &mut document));
    }
    hosts::assemble(&mut document, hosts);
    document
}

/// Moves the notes of `http` to the document, and the settings below to their keys in global tables. The other settings
/// stay, and each server inherits them.
fn move_http_settings(document: &mut Document, shared: &mut Scope<'_>) {
    document.notes.append(&mut shared.notes);
    let settings = &mut shared.settings;
    for (key, table, name) in [
        ("limits.body_size", "limits", "body_size"),
        ("log", "log", "access"),
        ("log_format", "log", "format"),
        ("error_log", "log", "errors"),
        ("error_level", "log", "level"),
    ] {
        if let Some(setting) = settings.remove(key) {
            document.table(table).set(name, setting.value, setting.line);
        }
    }
}
