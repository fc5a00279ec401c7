//! Listening sockets of a running server, for programs that compare them with a configuration.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Listening socket of a server: a TCP port or a socket file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ListeningSocket {
    /// Socket file; `None` for a TCP port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// IP address in the configuration; `None` for all addresses of the machine, and for a socket file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpAddr>,
    /// Port in the configuration; 0 if the kernel has chosen the port, and for a socket file.
    pub configured_port: u16,
    /// Port in use; 0 for a socket file.
    pub port: u16,
    /// True if the server also serves HTTP/3 at the UDP port with the same address and number.
    pub http3: bool,
}
