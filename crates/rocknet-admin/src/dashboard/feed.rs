//! Sends the state of the server once a second, as server-sent events.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rocknet_control::Status;
use rocknet_control::api::{ApiError, Reply, Request};
use rocknet_control::samples::{LoadSample, SampleHistory};
use rocknet_handler::response::Stream;
use rocknet_handler::services::Services;
use rocknet_io::wheel::Deadline;
use serde::Serialize;
use tokio::sync::Mutex;

use super::session::Sessions;
use crate::Control;

/// Maximum number of streams. A page that is hidden closes its stream, so few are open at a time.
const MAX_STREAMS: usize = 16;

/// Maximum number of samples that are kept: two minutes of seconds.
const MAX_SAMPLES: usize = 120;

/// Interval between two events.
const INTERVAL: Duration = Duration::from_secs(1);

/// A state that is younger than this is sent again, so that all streams together query the server once a second. The
/// time is shorter than [`INTERVAL`], so a stream normally gets a new state with each event.
const FRESH: Duration = Duration::from_millis(800);

/// Samples that all streams share.
pub struct SharedSamples {
    /// Start of the time scale of the samples.
    began: Instant,
    /// Number of open streams.
    streams: Arc<AtomicUsize>,
    latest: Mutex<Latest>,
}

struct Latest {
    history: SampleHistory,
    /// Latest event; `None` before the first query of the server.
    event: Option<LoadEvent>,
    /// Time from [`SharedSamples::began`] to the latest event.
    at: Duration,
}

/// Event of the stream.
#[derive(Clone, Serialize)]
struct LoadEvent {
    status: Status,
    /// Load since the previous state; `None` for the first state, and after a pause.
    sample: Option<LoadSample>,
}

impl Default for SharedSamples {
    fn default() -> SharedSamples {
        SharedSamples {
            began: Instant::now(),
            streams: Arc::default(),
            latest: Mutex::new(Latest {
                history: SampleHistory::new(MAX_SAMPLES),
                event: None,
                at: Duration::ZERO,
            }),
        }
    }
}

impl SharedSamples {
    /// Returns the latest state with its sample, and all stored samples. Queries the server if the latest state is
    /// older than [`FRESH`].
    async fn latest(&self, control: &impl Control) -> Result<(LoadEvent, Vec<LoadSample>), ApiError> {
        let mut latest = self.latest.lock().await;
        let now = self.began.elapsed();
        if let Some(event) = &latest.event
            && now.saturating_sub(latest.at) < FRESH
        {
            return Ok((event.clone(), latest.history.all()));
        }
        let Reply::Status(status) = control.execute(Request::Status).await? else {
            return Err(ApiError::new(500, "the server sent a reply of the wrong kind"));
        };
        latest.at = self.began.elapsed();
        let at = latest.at;
        let sample = latest.history.push(at, (*status).clone());
        let event = LoadEvent {
            status: *status,
            sample,
        };
        latest.event = Some(event.clone());
        Ok((event, latest.history.all()))
    }
}

/// Place of a stream among the [`MAX_STREAMS`]. Dropping the place frees it.
struct StreamPlace(Arc<AtomicUsize>);

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Stream of the states of the server.
pub struct StatusFeed<C> {
    sessions: Arc<Sessions>,
    samples: Arc<SharedSamples>,
    control: C,
    /// Secret of the session. The stream ends with the session.
    secret: String,
    /// Deadline of the next event.
    deadline: Deadline,
    /// [`INTERVAL`] in ticks of the timer wheel.
    interval_ticks: u32,
    /// True until the first event is sent.
    is_first: bool,
    _place: StreamPlace,
}

impl<C: Control> StatusFeed<C> {
    /// Opens a stream for a session.
    ///
    /// # Errors
    ///
    /// Status 503 if there are too many streams.
    pub fn open(
        sessions: &Arc<Sessions>,
        samples: &Arc<SharedSamples>,
        control: &C,
        secret: &str,
        services: &Services,
    ) -> Result<StatusFeed<C>, ApiError> {
        let streams = &samples.streams;
        // If the stream is refused, dropping `place` decrements the counter again.
        let place = StreamPlace(Arc::clone(streams));
        if streams.fetch_add(1, Ordering::Relaxed) >= MAX_STREAMS {
            return Err(ApiError::new(
                503,
                "too many pages of the dashboard are open: close one",
            ));
        }
        Ok(StatusFeed {
            sessions: Arc::clone(sessions),
            samples: Arc::clone(samples),
            control: control.clone(),
            secret: secret.to_owned(),
            deadline: services.wheel.deadline(),
            // `ticks` adds one tick so that no deadline is early. Without this tick, the interval is at most 1 s.
            interval_ticks: services.wheel.ticks(INTERVAL).saturating_sub(1),
            is_first: true,
            _place: place,
        })
    }

    async fn next_event(&mut self) -> Option<io::Result<Bytes>> {
        let is_first = std::mem::take(&mut self.is_first);
        if !is_first {
            self.deadline.set(self.interval_ticks);
            self.deadline.past().await;
        }
        // The stream ends with the session. An open stream counts as use, so the session does not become idle.
        self.sessions.permission(&self.secret, Instant::now())?;
        // An error ends the stream, for example when the server is stopping. The page notices the end.
        let (event, history) = self.samples.latest(&self.control).await.ok()?;
        let mut text = String::new();
        if is_first {
            text = format!("event: history\ndata: {}\n\n", json(&history));
        }
        text.push_str(&format!("data: {}\n\n", json(&event)));
        Some(Ok(text.into()))
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl<C: Control> Stream for StatusFeed<C> {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(self.next_event())
    }
}
