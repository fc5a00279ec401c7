//! The server as clients meet it: real sockets, real files, one noun a file.

mod access_log;
mod announced;
mod applications;
mod applications_real;
mod browse;
mod cache;
mod cache_bounds;
mod cgi;
mod conditions;
mod content;
mod controllers;
mod encoding;
mod files;
mod framing;
mod h2c_upgrade;
mod http2;
mod interim;
mod limits;
mod named_files;
mod paths;
mod php;
mod php_fpm;
mod php_own;
mod proxy;
mod proxy_announced;
mod proxy_balance;
mod proxy_buffers;
mod proxy_hostile;
mod proxy_mirror;
mod proxy_pages;
mod proxy_peers;
mod push;
mod ranges;
mod reload;
mod route_limits;
mod routes;
mod rules;
mod sites;
mod stop;
mod support;
mod tunnels;
mod websocket;
#[allow(dead_code)] // shared with tests that use more of it
#[path = "../wire/mod.rs"]
mod wire;
mod workers;
