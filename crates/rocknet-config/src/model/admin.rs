//! Settings of the control API.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// Unix socket of the control API.
    pub enum ControlSocket {
        Auto = "auto", "`admin/control.sock` in the state folder";
        Off = "off", "no socket: the server is controlled by signals only";
    }
    with {
        /// Path of the socket.
        File(PathBuf),
    }
    default Auto
}

with_defaults! {
    /// Settings of `[admin]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Admin {
        /// Unix socket.
        pub socket: ControlSocket = ControlSocket::default(),
        /// Loopback address at which the control API is also served, to requests with a token; `None`: only the Unix
        /// socket serves it.
        pub listen: Option<SocketAddr> = None,
    }
}
