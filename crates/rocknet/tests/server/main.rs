//! The server as clients meet it: real sockets, real files, one noun a file.

mod access_log;
mod browse;
mod cache;
mod cache_bounds;
mod conditions;
mod content;
mod encoding;
mod files;
mod framing;
mod http2;
mod limits;
mod paths;
mod php;
mod php_fpm;
mod push;
mod ranges;
mod reload;
mod route_limits;
mod routes;
mod rules;
mod sites;
mod stop;
mod support;
mod workers;
