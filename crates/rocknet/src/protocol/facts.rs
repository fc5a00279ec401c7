//! What is kept of a request for the log, while its answer is under way.

use std::net::IpAddr;
use std::rc::Rc;

use rocknet_proto::request::OwnedRequest;

use crate::log::SinkId;
use crate::worker::View;

/// What the access log will want to know.
#[derive(Default)]
pub struct Facts {
    /// The log of the site that was asked, which a reload in between does not change.
    pub access: Option<SinkId>,
    /// The site, by its number in the configuration that was current then.
    pub site: Option<u32>,
    /// Kept only where there is a log; nothing where what came was no request.
    pub request: Option<Rc<OwnedRequest>>,
}

impl Facts {
    /// What is known of bytes that are no request: who will want to hear of them.
    pub fn of_nothing(view: &View, local: Option<IpAddr>) -> Facts {
        Facts {
            access: access(view, view.stand_in(local)),
            site: None,
            request: None,
        }
    }

    pub fn new(view: &View, site: Option<u32>, owned: impl FnOnce() -> Rc<OwnedRequest>) -> Facts {
        let access = access(view, site);
        Facts {
            access,
            site,
            request: access.map(|_| owned()),
        }
    }
}

/// The log that a site's answers go to.
#[inline]
pub fn access(view: &View, site: Option<u32>) -> Option<SinkId> {
    view.snapshot.sites.get(site? as usize)?.access
}
