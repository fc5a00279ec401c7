//! The tunnel that joins a client with an upstream that has gone over to another protocol.

use std::io;
use std::task::{Context, Poll};

use rocknet_io::link::Link;

use crate::conversation::Conversation;
use crate::stall::Watched;
use crate::wire::Wire;
use rocknet_handler::tunnel::{Scratch, Splice, Tunnel};

/// The upstream's end of a tunnel.
pub struct Joined {
    splice: Splice<Watched<Wire>>,
    /// What was held for the request is held for the tunnel.
    _conversation: Conversation,
}

impl Joined {
    /// `None`: the connection has gone meanwhile.
    pub fn new(mut conversation: Conversation) -> Option<Joined> {
        let connection = conversation.take_connection()?;
        let services = conversation.services();
        let link = Watched::new(connection.link, &services.wheel, conversation.times().send_stall);
        Some(Joined {
            splice: Splice::new(link, connection.unread),
            _conversation: conversation,
        })
    }
}

impl Tunnel for Joined {
    fn poll(&mut self, context: &mut Context<'_>, client: &mut dyn Link, scratch: Scratch<'_>) -> Poll<io::Result<()>> {
        self.splice.poll(context, client, scratch)
    }
}
