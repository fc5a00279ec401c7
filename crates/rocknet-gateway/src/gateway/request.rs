//! A request prepared for a back end: with its body received, and with the context of its variables.

use rocknet_proto::method::Method;

use super::error::BackendError;
use super::variables::RequestContext;
use rocknet_handler::exchange::{Exchange, RequestBody};
use rocknet_handler::spool::SpoolWriter;

/// A request whose body has been received.
pub struct BackendRequest {
    /// The exchange without its request body.
    pub exchange: Exchange,
    /// Length of the body in bytes; `None` if there is no body.
    pub body_length: Option<u64>,
    body: RequestBody,
}

impl BackendRequest {
    /// Receives the whole request body, so that a slow client never occupies a process of an application. The length of
    /// the body is then known before its first byte is sent, as CGI and SCGI require.
    ///
    /// # Errors
    ///
    /// Returns an error if the client does not send the whole body, or if the body cannot be stored.
    pub async fn receive(mut exchange: Exchange) -> Result<BackendRequest, BackendError> {
        let mut body = std::mem::replace(&mut exchange.body, RequestBody::empty());
        let mut body_length = None;
        if !body.is_empty() {
            let route = &exchange.route;
            let bounds = route.server.spool.clone();
            let spool = SpoolWriter::new(&exchange.services.spool, bounds, route.body_memory, route.priority);
            // Boxed, because most requests have no body and their futures would be larger otherwise.
            body_length = Some(Box::pin(body.spool(spool)).await.map_err(BackendError::RequestBody)?);
        }
        Ok(BackendRequest {
            exchange,
            body_length,
            body,
        })
    }

    /// Takes the request body out of the request.
    pub fn take_body(&mut self) -> RequestBody {
        std::mem::replace(&mut self.body, RequestBody::empty())
    }

    /// Returns the data for the variables that is not in the request head.
    pub fn context(&self) -> RequestContext<'_> {
        let Exchange {
            services,
            route,
            client,
            tls,
            user,
            is_identified,
            ..
        } = &self.exchange;
        RequestContext {
            site: &route.label.site,
            address: &services.address,
            client: *client,
            secure: tls.as_deref(),
            user: user.as_deref(),
            // Applications do not get a password that the server has verified itself. If an authorization service, a
            // login provider or a client certificate identifies the client (`is_identified`), they get `Authorization`
            // as with nginx and Caddy, because it may contain a token for the application.
            has_verified_password: user.is_some() && !is_identified,
        }
    }

    /// Returns true if the request may be sent again if its connection is lost before the response begins. In that case
    /// it is unknown whether the back end has processed the request.
    pub fn is_repeatable(&self) -> bool {
        let method = self.exchange.request.view().method;
        matches!(method, Method::Get | Method::Head) && self.body_length.is_none()
    }

    /// Returns the number of ticks within which the response must begin: `answer_timeout` less one tick. The handler
    /// then reports the cause before the timeout of the client's connection, which responds with 503 and names no
    /// cause. A handler may first wait for a connection or a free process. It adds the limit of that wait to its
    /// `Handler::timeout_ticks`, which sets the timeout of the client's connection.
    pub fn response_ticks(&self) -> u32 {
        let Exchange { services, route, .. } = &self.exchange;
        services.wheel.ticks(route.answer_timeout).saturating_sub(1)
    }
}
