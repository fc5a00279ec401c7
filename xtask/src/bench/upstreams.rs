//! The servers behind a proxy that is measured: floors on the core of the load, which cost as little as a server can.

use super::LOAD_CORE;
use super::content::{self, Site};
use super::lane::{FLOOR, FLOOR_FILE, FLOOR_SLOW, FLOOR_TUNNEL, Lane, Variant};
use super::peers::Setting;
use super::row::Page;
use super::server::{Server, free_port};
use crate::Failure;

/// They end when this is dropped.
pub struct Upstreams {
    pub ports: Vec<u16>,
    _servers: Vec<Server>,
}

impl Upstreams {
    /// Starts those that a variant needs, which answer with a page, and waits until each does.
    pub fn start(site: &Site, variant: Variant, page: Page) -> Result<Self, Failure> {
        let lane: Lane = match (variant, page) {
            (Variant::Tunnels, _) => FLOOR_TUNNEL,
            (Variant::Queued { .. }, _) => FLOOR_SLOW,
            (_, Page::Hello) => FLOOR,
            _ => FLOOR_FILE,
        };
        let (mut ports, mut servers) = (Vec::new(), Vec::new());
        for number in 0..variant.upstreams() {
            let scratch = site.scratch(&format!("upstream-{number}"))?;
            let port = free_port()?;
            let setting = Setting {
                port,
                site,
                scratch: &scratch,
                page,
                variant: lane.variant,
                scheme: lane.scheme,
                version: lane.version,
                upstreams: &[],
            };
            let launch = lane.peer.configure(&setting)?;
            let mut server = Server::start_on(LOAD_CORE, &lane, &launch, &[], &scratch)?;
            server.first_answer(&lane, port, &format!("/{}", content::name(page)), &scratch)?;
            ports.push(port);
            servers.push(server);
        }
        Ok(Self {
            ports,
            _servers: servers,
        })
    }
}
