//! Who a request is from, told to an upstream: `X-Forwarded-For`, `-Proto` and `-Host`.

use rocknet_config::model::Network;
use rocknet_proto::fields::{Fields, Known};

use crate::exchange::Client;

/// Values of the three fields.
pub struct Origin {
    pub client: Vec<u8>,
    pub proto: Vec<u8>,
    pub host: Vec<u8>,
}

impl Origin {
    /// What is told of a request: of one that a trusted proxy has passed on, what that says, with its own address added.
    pub fn new(fields: Fields<'_>, authority: &[u8], client: Client, is_secure: bool, trusted: &[Network]) -> Origin {
        let is_trusted = is_trusted(client, trusted);
        let told = |name| fields.get(name).filter(|value| is_trusted && !value.is_empty());
        let mut chain = Vec::new();
        if is_trusted {
            for value in fields.all(Known::XForwardedFor).filter(|value| !value.is_empty()) {
                chain.extend_from_slice(value);
                chain.extend_from_slice(b", ");
            }
        }
        match client {
            Client::Ip { address, .. } => chain.extend_from_slice(address.to_canonical().to_string().as_bytes()),
            // There is no address, and this machine is where it came from.
            Client::Local => chain.extend_from_slice(b"127.0.0.1"),
        }
        let proto: &[u8] = if is_secure { b"https" } else { b"http" };
        Origin {
            client: chain,
            proto: told(Known::XForwardedProto).unwrap_or(proto).to_vec(),
            host: told(Known::XForwardedHost).unwrap_or(authority).to_vec(),
        }
    }
}

/// Whether what this peer says of clients is believed.
pub fn is_trusted(client: Client, trusted: &[Network]) -> bool {
    client.is_in(trusted)
}
