//! Tunnel between a client and an upstream that switched to another protocol.

use std::io;
use std::task::{Context, Poll};

use rocknet_io::link::Link;

use crate::h1_exchange::H1Exchange;
use crate::transport::Transport;
use crate::write_timeout::WriteTimeout;
use rocknet_handler::tunnel::{Scratch, Splice, Tunnel};

/// Upstream end of a tunnel.
pub struct UpgradedTunnel {
    splice: Splice<WriteTimeout<Transport>>,
    /// Exchange that led to the tunnel. It holds the permit of the request.
    _exchange: H1Exchange,
}

impl UpgradedTunnel {
    /// Takes the connection out of the exchange and makes it the upstream end of a tunnel. Returns `None` if the
    /// exchange has no connection any more.
    pub fn new(mut exchange: H1Exchange) -> Option<UpgradedTunnel> {
        let connection = exchange.take_connection()?;
        let services = exchange.services();
        let link = WriteTimeout::new(connection.link, &services.wheel, exchange.times().send_stall);
        Some(UpgradedTunnel {
            splice: Splice::new(link, connection.unread),
            _exchange: exchange,
        })
    }
}

impl Tunnel for UpgradedTunnel {
    fn poll(&mut self, context: &mut Context<'_>, client: &mut dyn Link, scratch: Scratch<'_>) -> Poll<io::Result<()>> {
        self.splice.poll(context, client, scratch)
    }
}
