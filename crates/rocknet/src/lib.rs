//! RockNet, the web server: sites, files and errors over HTTP, on workers that share nothing.
//!
//! It never speaks to the kernel itself; that is `rocknet-io`. It never parses a wire; that is `rocknet-proto`.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod address;
pub mod backend;
pub mod cache;
pub mod coding;
pub mod endpoint;
pub mod filter;
pub mod group;
pub mod handler;
pub mod handlers;
pub mod metrics;
pub mod open_folder;
pub mod php;
pub mod pipeline;
pub mod prepared;
pub mod protocol;
pub mod registries;
pub mod report;
pub mod server;
pub mod site;
pub mod snapshot;
pub mod transport;
pub mod turn;
pub mod worker;

pub use rocknet_blocking as blocking;
pub use rocknet_certificates as certificates;
pub use rocknet_certificates::trust;
pub use rocknet_handler::{
    agreement, background, clock, exchange, fixed, forwarded, gate, headers, interim, open_file, preload, response,
    route, services, spool, tunnel,
};
pub use rocknet_log as log;
pub use rocknet_pages as pages;
pub use rocknet_routing as routing;
