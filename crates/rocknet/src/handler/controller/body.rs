//! The body that a controller gives bit by bit, asked for more whenever there is room for it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use super::loaded::Controller;
use super::talk::Talk;
use super::trouble::Trouble;
use crate::response::Stream;
use crate::route::Route;
use crate::services::Services;

pub struct Body {
    services: Rc<Services>,
    route: Arc<Route>,
    controller: Arc<Controller>,
    /// What was written before it begins.
    written: Vec<u8>,
    /// Gone once it has given all, or failed.
    talk: Option<Box<Talk>>,
}

impl Body {
    pub fn new(
        services: Rc<Services>,
        route: Arc<Route>,
        controller: Arc<Controller>,
        written: Vec<u8>,
        talk: Box<Talk>,
    ) -> Body {
        Body {
            services,
            route,
            controller,
            written,
            talk: Some(talk),
        }
    }

    async fn more(&mut self) -> Option<Result<Bytes, Trouble>> {
        if !self.written.is_empty() {
            return Some(Ok(std::mem::take(&mut self.written).into()));
        }
        let talk = self.talk.take()?;
        let given = self.controller.on(&self.services, &self.route, talk, Talk::give).await;
        match given {
            Ok((_, Ok(given))) if given.is_empty() => None,
            Ok((talk, Ok(given))) => {
                self.talk = Some(talk);
                Some(Ok(given.into()))
            }
            Ok((_, Err(failed))) => Some(Err(Trouble::Failed(failed))),
            Err(trouble) => Some(Err(trouble)),
        }
    }
}

impl Stream for Body {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async move {
            let more = self.more().await;
            more.map(|more| more.map_err(|trouble| io::Error::other(format!("{}: {trouble}", self.controller.name))))
        })
    }
}
