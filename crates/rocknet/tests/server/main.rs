//! Tests of the server over real sockets and files. Each file covers one subject.

/// Runs the listed tests of a file over HTTP/3 too, because they depend on no version of HTTP. Tests that are not
/// listed write bytes of HTTP/1.1 or frames of HTTP/2, switch protocols, depend on TCP connections, or test processes
/// behind a handler and take long.
macro_rules! over_http3 {
    ($($case:ident,)*) => {
        mod over_http3 {
            $(
                #[test]
                fn $case() {
                    crate::support::version::over_http3(super::$case);
                }
            )*
        }
    };
}

mod accel_redirect;
mod access;
mod access_log;
mod access_log_json;
mod alias;
mod applications;
mod applications_real;
mod archives;
mod bans;
mod browse;
mod cache;
mod cache_bounds;
mod cache_lookups;
mod cgi;
mod conditions;
mod content;
mod controllers;
mod cors;
mod encoding;
mod files;
mod forward_auth;
mod framing;
mod h2c_upgrade;
mod http2;
mod imported_nginx;
mod interim;
mod late_priority;
mod limits;
mod metrics;
mod oidc;
mod paths;
mod phases;
mod php;
mod php_disconnects;
mod php_fpm;
mod php_labels;
mod php_managed;
mod php_settings;
mod placeholders;
mod proxy;
mod proxy_backup;
mod proxy_balance;
mod proxy_bodies;
mod proxy_buffers;
mod proxy_checks;
mod proxy_disconnects;
mod proxy_drained;
mod proxy_fanout;
mod proxy_forwarded;
mod proxy_hostile;
mod proxy_http2;
mod proxy_http2_hostile;
mod proxy_mirror;
mod proxy_pages;
mod proxy_peers;
mod proxy_protocol;
mod proxy_protocol_upstreams;
mod proxy_redirects;
mod proxy_sticky;
mod proxy_streams;
mod push;
mod ranges;
mod rate_limits;
mod reload;
mod response_cache;
mod route_limits;
mod routes;
mod rules;
mod signed_urls;
mod sites;
mod spool;
#[cfg(target_os = "linux")]
mod stalled;
mod stop;
mod subfolders;
mod support;
mod traces;
mod tunnels;
mod two_servers;
mod websocket;
#[allow(dead_code)] // other test programs use the rest of this shared module
#[path = "../wire/mod.rs"]
mod wire;
mod workers;
