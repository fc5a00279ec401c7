//! Client of a connection, and the record of each of its exchanges in the metrics, the traces and the access log.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use rocknet_config::template::NoValues;
use rocknet_proto::fields::KnownField;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use super::offences;
use crate::clock::microseconds;
use crate::exchange::{Client, RequestId};
use crate::forwarded;
use crate::handshake::Handshake;
use crate::log::{Record, SinkId};
use crate::metrics::CountedResponse;
use crate::pipeline::{RequestContext, access_log};
use crate::traces::{TracedResponse, WorkerTracer};
use crate::values::{RequestValues, origin_form};
use crate::worker::{Worker, WorkerConfig};

/// Client of a connection, its TLS handshake, and its local address.
pub struct ConnectionInfo {
    /// Other end of the connection: the client, or a proxy that forwards requests of several clients.
    pub client: Client,
    /// False while a QUIC connection has only early data, whose address may be forged. Offences are then not counted.
    pub is_validated: bool,
    /// `None` for a connection in clear text.
    pub secure: Option<Rc<Handshake>>,
    /// Local address of the connection, set only if sites are selected by it. Boxed, like the next field, because each
    /// idle connection pays for every byte here.
    local: Option<Box<IpAddr>>,
    /// Client address as text, once it has been logged.
    text: Option<Box<str>>,
}

/// Data of an access-log line that the request does not contain.
struct AccessLogContext<'a> {
    status: Status,
    /// Bytes of the response body, or bytes sent through the tunnel.
    sent: u64,
    /// `None` if the request could not be parsed.
    duration_us: Option<u64>,
    /// Number of the site in the configuration; `None` if the request is to no site.
    site: Option<u32>,
    /// `None` for a response that was sent from the worker cache at once.
    context: Option<&'a RequestContext>,
    /// Outcome of the request in the response cache; empty without a cache.
    cache_status: &'static str,
}

impl ConnectionInfo {
    /// Creates the info of a connection in clear text. `local`: local address of the connection, given only if sites
    /// differ by it.
    pub fn new(client: Client, local: Option<Box<IpAddr>>) -> ConnectionInfo {
        ConnectionInfo {
            client,
            is_validated: true,
            secure: None,
            local,
            text: None,
        }
    }

    /// Creates the info of a QUIC connection whose handshake is in progress. `local`: see [`ConnectionInfo::new`].
    pub fn of_handshake(client: Client, local: Option<Box<IpAddr>>) -> ConnectionInfo {
        ConnectionInfo {
            is_validated: false,
            ..ConnectionInfo::new(client, local)
        }
    }

    /// Returns the local address of the connection, if sites are selected by it.
    #[inline]
    pub fn local(&self) -> Option<IpAddr> {
        self.local.as_deref().copied()
    }

    /// Records a response from the worker cache: counts it, and writes its access-log line if the site has a log.
    /// `site` and `route`: numbers of the site in `config`, and of the route in the metrics. `cache_status`: outcome of
    /// the request in the response cache. `sent`: bytes of the response body. `duration_us`: time from the request to
    /// the response. Only a sample of the requests is timed, because reading the clock costs too much. The other
    /// responses get the duration of the last sample.
    #[inline]
    pub fn record_ready(
        &mut self,
        worker: &Worker,
        config: &WorkerConfig,
        (site, route): (u32, u32),
        request: &Request<'_>,
        (status, cache_status): (Status, &'static str),
        sent: u64,
        duration_us: u64,
    ) {
        let counted = CountedResponse {
            status,
            sent_bytes: sent,
            received_bytes: 0,
            duration_us: Some(duration_us),
        };
        worker.metrics.count(route, counted);
        if status.is_error() && self.is_validated {
            offences::note(worker, self.client, None, Some(request), None, status);
        }
        if let Some(tracer) = &config.tracer {
            self.trace_ready(worker, tracer, request, &counted, route);
        }
        if let Some(sink) = access_log(config, Some(site)) {
            let log_context = AccessLogContext {
                status,
                sent,
                duration_us: Some(duration_us),
                site: Some(site),
                context: None,
                cache_status,
            };
            self.log(worker, sink, Some(request), &log_context);
        }
    }

    /// Records a response of a request with a context; [`ConnectionInfo::record_ready`] records responses without
    /// one. The log line of a request that could not be parsed has no data of the request. `sent`: bytes of the
    /// response body or tunnel. `is_tunnel`: true for a tunnel, whose duration is not counted in the histogram of the
    /// route.
    pub fn record(&mut self, worker: &Worker, context: &RequestContext, status: Status, sent: u64, is_tunnel: bool) {
        let duration_us = microseconds(context.started.elapsed());
        let counted = CountedResponse {
            status,
            sent_bytes: sent,
            received_bytes: context.received.get(),
            duration_us: (!is_tunnel).then_some(duration_us),
        };
        worker.metrics.count(context.route_number, counted);
        self.note_offence(worker, context, status);
        if let Some(upstream) = context.upstream.get()
            && let Some(duration) = upstream.head
        {
            worker.metrics.count_upstream(&upstream.address, duration);
        }
        if let Some(tracer) = &context.config.tracer {
            self.trace(worker, tracer, context, status);
        }
        if let Some(sink) = context.access_log {
            let request = context.logged_request().map(|request| request.view());
            let log_context = AccessLogContext {
                status,
                sent,
                duration_us: request.as_ref().map(|_| duration_us),
                site: context.site,
                context: Some(context),
                cache_status: context.cache_status.get(),
            };
            self.log(worker, sink, request.as_ref(), &log_context);
        }
    }

    /// Counts the offence that the status of a response shows, once for each request.
    #[inline]
    pub fn note_offence(&self, worker: &Worker, context: &RequestContext, status: Status) {
        if !context.is_status_noted.replace(true)
            && self.is_validated
            // A failed login can have any status, such as 200 for the page with the form.
            && (status.is_error() || context.login.is_some() || worker.shared.registries.bans.has_login_paths())
        {
            let request = context.logged_request().map(|request| request.view());
            let (client, login) = (context.client, context.login.as_deref());
            offences::note(worker, self.client, client, request.as_ref(), login, status);
        }
    }

    /// Writes an access-log line. `request`: `None` if the request could not be parsed.
    fn log(
        &mut self,
        worker: &Worker,
        sink: SinkId,
        request: Option<&Request<'_>>,
        log_context: &AccessLogContext<'_>,
    ) {
        let forwarded = match request {
            Some(request) if worker.trusts_proxies.get() => self.forwarded(worker, request),
            _ => None,
        };
        let client = match &forwarded {
            Some(text) => text,
            None => &**self.text.get_or_insert_with(|| self.client.to_string().into()),
        };
        let context = log_context.context;
        let upstream = context.and_then(|context| context.upstream.get());
        let record = Record {
            client,
            user: context.and_then(|context| context.user()).map(|user| user.as_bytes()),
            method: request.map_or(b"", |request| request.method_name),
            target: request.map_or(b"", |request| request.target),
            version: request.map_or("", |request| request.version.as_str()),
            tls: self.secure.as_ref().and_then(|secure| secure.tls_info().protocol()),
            status: log_context.status.code(),
            received_bytes: context.map_or(0, |context| context.received.get()),
            sent_bytes: log_context.sent,
            referer: request.and_then(|request| request.fields.get(KnownField::Referer)),
            user_agent: request.and_then(|request| request.fields.get(KnownField::UserAgent)),
            host: request.map_or(b"", |request| request.authority),
            upstream: upstream.map(|upstream| &*upstream.address),
            upstream_us: upstream.and_then(|upstream| upstream.head).map(microseconds),
            cache_status: log_context.cache_status,
            duration_us: log_context.duration_us,
        };
        let mut log = worker.log.borrow_mut();
        let Some(request) = request.filter(|_| sink.needs_values()) else {
            return log.record(sink, &record, &NoValues);
        };
        let config = context.map_or_else(|| worker.config(), |context| Rc::clone(&context.config));
        let site = log_context
            .site
            .and_then(|site| config.snapshot.sites.get(site as usize));
        // A line describes the request as received: some responses are recorded without their rewritten request.
        let received = request.with_lookup_target(origin_form(request));
        let (server, new_id) = (&config.snapshot.config.server, RequestId::default());
        let values = RequestValues {
            services: worker,
            server,
            request: &received,
            client: None,
            peer: self.client,
            tls: self.secure.as_ref().map(|secure| &**secure.tls_info()),
            // The log writes the user of `record`.
            user: None,
            site: site.map_or("", |site| &site.name),
            // A response from the worker cache has no context, so the line gets a new identifier, which appears nowhere
            // else.
            id: context.map_or(&new_id, |context| &context.id),
            status: Some(log_context.status),
            upstream,
        };
        log.record(sink, &record, &values);
    }

    /// Records the span of a response from the worker cache.
    #[cold]
    fn trace_ready(
        &self,
        worker: &Worker,
        tracer: &WorkerTracer,
        request: &Request<'_>,
        counted: &CountedResponse,
        route: u32,
    ) {
        let response = TracedResponse {
            route,
            status: counted.status,
            client: self.client_text(worker, request),
            is_secure: self.secure.is_some(),
            duration: Duration::from_micros(counted.duration_us.unwrap_or_default()),
            upstream: None,
        };
        let trace = tracer.begin(request);
        tracer.record(&trace, &worker.shared.registries.routes, request, &response);
    }

    /// Records the spans of a response of a request with a context. A request that could not be parsed has no span.
    #[cold]
    fn trace(&self, worker: &Worker, tracer: &WorkerTracer, context: &RequestContext, status: Status) {
        let Some(request) = context.logged_request().map(|request| request.view()) else {
            return;
        };
        let response = TracedResponse {
            route: context.route_number,
            status,
            client: self.client_text(worker, &request),
            is_secure: context.is_secure,
            duration: context.started.elapsed(),
            upstream: context.upstream.get().zip(context.upstream_responded.get()),
        };
        let begun = || Box::new(tracer.begin(&request));
        let trace = context.trace.get_or_init(begun);
        tracer.record(trace, &worker.shared.registries.routes, &request, &response);
    }

    /// Returns the client of a request as text: the peer, or the client that a trusted proxy names.
    fn client_text(&self, worker: &Worker, request: &Request<'_>) -> String {
        let forwarded = match worker.trusts_proxies.get() {
            true => self.forwarded(worker, request),
            false => None,
        };
        forwarded.unwrap_or_else(|| self.client.to_string())
    }

    /// Returns the client that a trusted proxy names, as text; `None` if the client is the peer itself.
    #[cold]
    fn forwarded(&self, worker: &Worker, request: &Request<'_>) -> Option<String> {
        let client = forwarded::client(&worker.config().snapshot.config.server, self.client, request.fields);
        (client != self.client).then(|| client.to_string())
    }
}
