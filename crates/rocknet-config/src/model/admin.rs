//! Settings of the control API.

use std::path::PathBuf;

use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// Unix socket of the control API.
    pub enum ControlSocket {
        Auto = "auto", "`control.sock` in the state folder";
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
        /// Socket.
        pub socket: ControlSocket = ControlSocket::default(),
    }
}
