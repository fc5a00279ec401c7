//! The RockNet web server as a library: serves the sites of a configuration on worker threads, over HTTP/1.1, HTTP/2
//! and HTTP/3.
//!
//! System calls on sockets are made by `rocknet-io`, and wire formats are parsed by `rocknet-proto`.
#![forbid(unsafe_code)]

pub mod accept_loop;
pub mod backend;
pub mod bans;
pub mod bind;
pub mod capacity;
pub mod endpoint;
pub mod exposition;
pub mod filter;
pub mod guard;
pub mod handler;
pub mod handlers;
pub mod handshake;
mod heartbeat;
pub mod inventory;
pub mod lifecycle;
pub mod limit_transfer;
pub mod limits;
pub mod listener;
pub mod metrics;
pub mod oidc;
pub mod pipeline;
pub mod protocol;
pub mod qlog;
mod ready_responses;
pub mod registries;
pub mod report;
mod restart_delay;
pub mod secure_fields;
pub mod server;
pub mod signed_url;
pub mod site;
pub mod site_table;
pub mod snapshot;
pub mod takeover;
pub mod traces;
pub mod transport;
pub mod url_keys;
pub mod worker;

pub use rocknet_blocking as blocking;
pub use rocknet_certificates as certificates;
pub use rocknet_certificates::trust;
pub use rocknet_files as files;
pub use rocknet_gateway as gateway;
pub use rocknet_handler::{
    address, background, clock, exchange, fixed, forwarded, headers, interim, open_file, outcomes, preload, response,
    route, services, spool, start_limiter, tunnel, upgrade, values,
};
pub use rocknet_log as log;
pub use rocknet_pages as pages;
pub use rocknet_proxy as proxy;
pub use rocknet_routing as routing;
