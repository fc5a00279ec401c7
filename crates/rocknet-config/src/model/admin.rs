//! Settings of the control API.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::password_hash::PasswordHash;
use super::tls::CertificateFiles;
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
        /// Address on which requests need a token or the password; `None`: no address. Other machines can reach it only
        /// if `password` and `certificates` are set.
        pub listen: Option<SocketAddr> = None,
        /// Hash of the password that admits every request; `None`: tokens only.
        pub password: Option<PasswordHash> = None,
        /// Certificates for TLS at `listen`; empty: without TLS.
        pub certificates: Vec<CertificateFiles> = Vec::new(),
        /// Names by which clients address the server at `listen`, in lower case, in addition to `localhost` and IP
        /// addresses.
        pub hosts: Vec<String> = Vec::new(),
    }
}
