//! RockNet, the web server: sites, files and errors over HTTP, on workers that share nothing.
//!
//! It never speaks to the kernel itself; that is `rocknet-io`. It never parses a wire; that is `rocknet-proto`.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod address;
pub mod backend;
mod background;
pub mod cache;
pub mod clock;
pub mod coding;
pub mod exchange;
pub mod filter;
pub mod forwarded;
pub mod group;
pub mod handler;
pub mod interim;
pub mod metrics;
pub mod open_file;
pub mod open_folder;
pub mod php;
pub mod pipeline;
pub mod preload;
pub mod prepared;
pub mod protocol;
pub mod report;
pub mod response;
pub mod scope;
pub mod server;
pub mod services;
pub mod site;
pub mod snapshot;
pub mod spool;
pub mod transport;
pub mod tunnel;
pub mod turn;
pub mod worker;

pub use rocknet_blocking as blocking;
pub use rocknet_certificates as certificates;
pub use rocknet_certificates::trust;
pub use rocknet_log as log;
pub use rocknet_pages as pages;
pub use rocknet_routing as routing;
