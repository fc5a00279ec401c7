//! Runs cases, each on its own connection, and compares the reaction of the server.

use crate::actions::{FILE_CONTENT, PROBE, REQUEST, get, wait_for_end};
use crate::case::{Case, Expected};
use crate::error_code::ErrorCode;
use h3i::actions::h3::Action;
use h3i::client::connection_summary::{ConnectionSummary, StreamMap};
use h3i::client::sync_client;
use h3i::config::Config;
use h3i::frame::H3iFrame;
use h3i::quiche::ConnectionError;
use h3i::quiche::h3::frame::Frame;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Time in milliseconds after which a connection without packets ends, and its case fails: far longer than a busy
/// machine needs.
const IDLE_TIMEOUT: u64 = 20_000;

/// Client of one server.
pub struct Client {
    config: Config,
}

impl Client {
    pub fn new(port: u16) -> Client {
        // The site listens on IPv4 only.
        let config = Config::new()
            .with_host_port(format!("localhost:{port}"))
            .with_connect_to(format!("127.0.0.1:{port}"))
            .verify_peer(true)
            .with_idle_timeout(IDLE_TIMEOUT);
        Client { config }
    }

    /// Runs a case. An error states the reaction of the server.
    pub fn run(&self, case: &Case) -> Result<(), String> {
        let mut actions = case.actions.clone();
        if !matches!(case.expected, Expected::ConnectionError(_)) {
            // The connection must still serve requests afterwards.
            actions.extend([wait_for_end(REQUEST), get(PROBE), wait_for_end(PROBE), close()]);
        }
        // h3i panics if it cannot send, for example after the server has closed the connection too early.
        let connect = || sync_client::connect(self.config.clone(), actions, None);
        let connected = catch_unwind(AssertUnwindSafe(connect)).map_err(|_| "h3i panicked")?;
        let summary = connected.map_err(|error| format!("no connection: {error:?}"))?;
        judge(&summary, &case.expected)
    }
}

/// Closes the connection without an error.
fn close() -> Action {
    Action::ConnectionClose {
        error: ConnectionError {
            is_app: true,
            error_code: ErrorCode::NoError.number(),
            reason: Vec::new(),
        },
    }
}

fn judge(summary: &ConnectionSummary, expected: &Expected) -> Result<(), String> {
    let details = &summary.conn_close_details;
    let found = Reaction::of(&summary.stream_map, REQUEST);
    match (expected, details.peer_error()) {
        (Expected::ConnectionError(code), Some(error)) if error.is_app && error.error_code == code.number() => Ok(()),
        (_, Some(error)) => Err(format!(
            "the server closed the connection with {:#x} ({}), expected: {expected:?}",
            error.error_code,
            String::from_utf8_lossy(&error.reason)
        )),
        (_, None) if details.timed_out => Err(format!("timeout after {found:?}, expected: {expected:?}")),
        (Expected::ConnectionError(_), None) => Err(format!("not closed, expected: {expected:?}")),
        (_, None) => {
            if !found.is(expected) {
                return Err(format!("{found:?}, expected: {expected:?}"));
            }
            let probe = Reaction::of(&summary.stream_map, PROBE);
            if !probe.is(&Expected::body(FILE_CONTENT)) {
                return Err(format!("{probe:?} for the next request"));
            }
            Ok(())
        }
    }
}

/// Reaction to a request, which is complete.
#[derive(Debug, Default)]
struct Reaction {
    /// Status of the final response.
    status: Option<u16>,
    body: String,
    /// Error code of RESET_STREAM.
    reset: Option<u64>,
}

impl Reaction {
    fn of(streams: &StreamMap, stream: u64) -> Reaction {
        let mut reaction = Reaction::default();
        for frame in streams.stream(stream) {
            match frame {
                H3iFrame::Headers(headers) => {
                    let status = headers
                        .status_code()
                        .and_then(|status| String::from_utf8_lossy(status).parse().ok());
                    // Interim responses and trailers are left out.
                    reaction.status = reaction.status.or(status.filter(|status| *status >= 200));
                }
                H3iFrame::QuicheH3(Frame::Data { payload }) => {
                    reaction.body.push_str(&String::from_utf8_lossy(&payload));
                }
                H3iFrame::QuicheH3(_) => {}
                H3iFrame::ResetStream(reset) => reaction.reset = Some(reset.error_code),
            }
        }
        reaction
    }

    fn is(&self, expected: &Expected) -> bool {
        match expected {
            Expected::Response { status, body } => {
                let is_same = body.as_ref().is_none_or(|body| *body == self.body);
                self.reset.is_none() && self.status == Some(*status) && is_same
            }
            Expected::StreamError(code) => self.reset == Some(code.number()),
            Expected::ConnectionError(_) => false,
        }
    }
}
