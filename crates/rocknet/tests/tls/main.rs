//! HTTPS over real sockets: handshakes, names, certificate files, and hostile clients.

#[path = "../server/support/mod.rs"]
#[allow(dead_code, reason = "tests/server uses the rest of this shared module")]
mod support;

#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../wire/mod.rs"]
mod wire;

#[path = "../child/mod.rs"]
mod child;

mod abuse;
mod client_certificates;
mod client_hellos;
mod controllers;
mod files;
mod handshakes;
mod hosts;
mod http3;
mod http3_early_data;
mod http3_early_hints;
mod http3_hq;
mod http3_qlog;
mod http3_reload;
mod http3_restart;
mod http3_switch;
mod http3_tunnels;
mod http3_upgrade;
mod key_log;
mod log;
mod php;
mod response_cache;
#[cfg(target_os = "linux")]
mod stalled;
mod transfer;
mod upgrade_resumption;
mod upstreams;

use support::{certs, http3 as http3_client, tls_client as client};
