//! Outage of a log, from the first failure until its end has been reported.

/// Current state of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// Lines are written.
    Healthy,
    /// The reader is slow, which is reported only when lines are lost.
    Slow,
    /// Lines cannot be written, which is reported once.
    Failing,
}

/// Failure of a log, and the lines lost during it.
pub(super) struct Outage {
    /// Time of the first failure, in milliseconds since 1970.
    since_ms: u64,
    /// Reason of the first failure, or of the latest loss of lines.
    reason: String,
    /// Number of lines lost since the first failure.
    lost: u64,
    /// Number of lost lines that the last report included.
    reported_lost: u64,
    /// True once the outage has been reported, for whatever reason.
    was_reported: bool,
}

impl Outage {
    pub(super) fn new(reason: &str, now_ms: u64) -> Outage {
        Outage {
            since_ms: now_ms,
            reason: reason.to_owned(),
            lost: 0,
            reported_lost: 0,
            was_reported: false,
        }
    }

    /// Counts lost lines. `reason` replaces the reason of the outage.
    pub(super) fn count_lost(&mut self, lines: u64, reason: &str) {
        self.lost += lines;
        reason.clone_into(&mut self.reason);
    }

    /// Returns whether the outage ended without anything to report.
    pub(super) fn is_void(&self, health: Health) -> bool {
        health == Health::Healthy && self.lost == 0 && !self.was_reported
    }

    /// Returns true if a failure, its end, or the loss of lines has not been reported.
    pub(super) fn has_report(&self, health: Health) -> bool {
        let state_is_unreported = match health {
            Health::Healthy => self.was_reported,
            Health::Slow => false,
            Health::Failing => !self.was_reported,
        };
        state_is_unreported || self.lost > self.reported_lost
    }

    /// Returns the pending report, with `true` if it reports a failure or lost lines. To be called only if
    /// `has_report` has returned true. `time` formats a Unix time in milliseconds.
    pub(super) fn take_report(&mut self, health: Health, time: impl Fn(u64) -> String) -> (bool, String) {
        let (lost, since) = (lines(self.lost), time(self.since_ms));
        let report = if self.lost > self.reported_lost {
            (true, format!("{lost} lost since {since}: {}", self.reason))
        } else if health == Health::Healthy {
            (false, format!("recovered, {lost} lost since {since}"))
        } else {
            (
                true,
                format!(
                    "cannot be written, and its lines have been held since {since}: {}",
                    self.reason
                ),
            )
        };
        self.was_reported = true;
        self.reported_lost = self.lost;
        report
    }
}

fn lines(count: u64) -> String {
    if count == 1 {
        "1 line".to_owned()
    } else {
        format!("{count} lines")
    }
}
