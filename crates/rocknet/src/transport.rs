//! From an accepted socket to a connection that speaks a protocol.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rocknet_io::socket::{Peer, local_address};
use rocknet_io::stream::Stream;

use crate::exchange::Client;
use crate::protocol::h1;
use crate::worker::Worker;

pub fn connection(worker: &Rc<Worker>, socket: OwnedFd, peer: Peer) -> io::Result<h1::Connection<Stream>> {
    let client = match peer {
        Peer::Ip(address) => Client::Ip {
            address: address.ip(),
            port: address.port(),
        },
        Peer::Unix => Client::Local,
    };
    let local = if worker.view().has_addresses() {
        local_address(&socket)?.map(|address| address.ip())
    } else {
        None
    };
    Ok(h1::Connection::new(worker, Stream::new(socket)?, client, local))
}
