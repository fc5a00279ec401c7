//! Notifications to the service manager that started the server: ready, reloading, stopping, alive.

use std::ffi::OsString;
use std::time::Duration;

use rocknet::server::Server;
use rocknet_io::service_manager::{MonotonicMicroseconds, NotifySocket};
use tokio::sync::mpsc::Sender;
use tokio::time;

use super::event::Event;

/// Sends notifications, if a service manager expects them.
#[derive(Debug, Default)]
pub struct Notifier {
    /// Socket of the service manager; `None` if no service manager expects notifications.
    socket: Option<NotifySocket>,
    /// Maximum time between two signs of life; `None` if none are expected.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Creates the notifier. Without a socket no signs of life are sent, even if `watchdog` is set.
    pub fn new(socket: Option<NotifySocket>, watchdog: Option<Duration>) -> Notifier {
        let watchdog = watchdog.filter(|_| socket.is_some());
        Notifier { socket, watchdog }
    }

    /// Reports that the server serves requests. `detail` is shown as the status of the service.
    pub fn ready(&self, detail: &str) {
        // A status is one line.
        let detail = detail.lines().next().unwrap_or_default();
        self.send(&format!("READY=1\nSTATUS={detail}"));
    }

    /// Reports that a reload begins. [`Notifier::ready`] reports its end.
    pub fn reloading(&self) {
        let now = MonotonicMicroseconds::now();
        self.send(&format!(
            "RELOADING=1\nMONOTONIC_USEC={now}\nSTATUS=loading the configuration"
        ));
    }

    /// Reports that the process with the ID `process` serves in place of this one. This process sends no further
    /// notification.
    pub fn handed_over(&self, process: u32) {
        self.send(&format!(
            "MAINPID={process}\nREADY=1\nSTATUS=serving by the new process"
        ));
    }

    /// Returns the environment variables with which a new process notifies the same service manager.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let socket = self.socket.as_ref();
        socket.map_or_else(Vec::new, |socket| socket.variables(self.watchdog))
    }

    /// Reports that the server stops after the responses in progress.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping after the responses in progress");
    }

    /// Sends a sign of life if all workers of the server run. Otherwise sends none, and the service manager restarts
    /// the service.
    pub fn check_workers(&self, server: &Server) {
        let hung = server.hung_workers();
        if hung.is_empty() {
            return self.send("WATCHDOG=1");
        }
        for address in hung {
            tracing::error!(%address, "a worker hangs, so the service manager is sent no sign of life");
        }
    }

    /// Sends an event whenever the workers are to be checked. Returns at once if no signs of life are expected.
    pub async fn schedule_checks(watchdog: Option<Duration>, events: Sender<Event>) {
        let Some(watchdog) = watchdog else { return };
        let mut interval = time::interval(watchdog / CHECKS_PER_WATCHDOG);
        // Missed checks are not repeated, because one check is enough after a long reload.
        interval.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            if events.send(Event::CheckWorkers).await.is_err() {
                return;
            }
        }
    }

    /// Returns the maximum time between two signs of life, if any are expected.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Sends lines of the form `NAME=VALUE` (`sd_notify(3)`), if a service manager expects them.
    fn send(&self, assignments: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(assignments) {
            tracing::warn!("the service manager cannot be notified: {error}");
        }
    }
}

/// Number of checks of the workers in the time that the watchdog allows, so that a delay of one check is harmless.
const CHECKS_PER_WATCHDOG: u32 = 3;
