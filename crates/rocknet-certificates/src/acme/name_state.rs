//! State of one name: its certificate, its renewal window, and its failed orders.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::task;

use super::client::IssuanceError;
use super::persistence::{FailureRecord, StoredCertificate};
use super::random::random_fraction;
use super::schedule::{self, Validity};
use crate::storage::Storage;

/// State of one name's certificate.
pub struct NameState {
    pub(super) record: Option<StoredCertificate>,
    /// Time of the next order, unless failures delay it. Without a certificate it is 1970, which orders one at once.
    pub(super) renew_at: SystemTime,
    /// Renewal window that the CA suggests (RFC 9773), if it is known.
    pub(super) window: Option<(SystemTime, SystemTime)>,
    /// Time of the next query of the window.
    pub(super) query_window_at: SystemTime,
    pub(super) failures: FailureRecord,
    /// Task that processes this name, if any.
    pub(super) task: Option<task::Id>,
    /// Random fraction, drawn once for each certificate so that its renewal time does not change.
    jitter: f64,
}

impl NameState {
    /// Loads the state of a name. A corrupt certificate is discarded and ordered again.
    pub fn load(storage: &dyn Storage, name: &str, now: SystemTime) -> NameState {
        let record = StoredCertificate::load(storage, name).unwrap_or_else(|error| {
            tracing::warn!("the stored certificate for {name} is unusable and will be ordered again: {error}");
            None
        });
        let mut failures = FailureRecord::load(storage, name);
        // A long delay is shortened, because the operator has probably fixed something before starting the server.
        failures.next_try = failures.next_try.min(unix(now + MAX_DELAY_AT_START));
        let jitter = random_fraction();
        let mut entry = NameState {
            record: None,
            renew_at: UNIX_EPOCH,
            window: None,
            // The first queries are spread in time, so that many names or frequent restarts do not cause a burst.
            query_window_at: now + MIN_WINDOW_INTERVAL.mul_f64(jitter),
            failures,
            task: None,
            jitter,
        };
        if let Some(record) = record {
            entry.set_record(record);
        }
        entry
    }

    /// Returns the stored certificate, if there is one.
    pub fn record(&self) -> Option<&StoredCertificate> {
        self.record.as_ref()
    }

    /// Replaces the certificate of the name in this state, and computes the time of its renewal.
    pub(super) fn set_record(&mut self, record: StoredCertificate) {
        self.record = Some(record);
        self.window = None;
        self.jitter = random_fraction();
        self.plan();
    }

    /// Computes the time of the next order from the certificate and the renewal window.
    pub(super) fn plan(&mut self) {
        self.renew_at = self.validity().map_or(UNIX_EPOCH, |validity| {
            schedule::renew_at(validity, self.window, self.jitter)
        });
    }

    fn validity(&self) -> Option<Validity> {
        self.record.as_ref().map(|record| Validity {
            not_before: record.certificate.not_before(),
            not_after: record.certificate.not_after(),
        })
    }

    /// Records and logs a failed order, and sets the time of the next attempt.
    pub(super) fn fail(&mut self, storage: &dyn Storage, name: &str, failed: &IssuanceError, now: SystemTime) {
        // An attempt that contacted no CA is not another failure.
        if !failed.all_paused {
            self.failures.count = self.failures.count.saturating_add(1);
        }
        let pause = schedule::retry_delay(self.failures.count, failed.retry_after, random_fraction());
        self.failures.next_try = unix(now + pause);
        self.failures.last.clone_from(&failed.reason);
        self.failures.save(storage, name);
        let minutes = pause.as_secs().div_ceil(60);
        let remaining_days = self
            .validity()
            .map(|validity| validity.not_after.duration_since(now).unwrap_or_default().as_secs() / 86_400);
        match remaining_days {
            Some(days) if days > ERROR_DAYS => {
                tracing::warn!(
                    "renewing the certificate for {name} failed, next attempt in {minutes} min: {}",
                    failed.reason
                );
            }
            Some(days) => tracing::error!(
                "renewing the certificate for {name} failed with {days} days left, next attempt in {minutes} min: {}",
                failed.reason
            ),
            None => tracing::error!(
                "no certificate for {name}, next attempt in {minutes} min: {}",
                failed.reason
            ),
        }
    }
}

/// Converts a time to seconds since 1970.
pub(super) fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Maximum delay of the first order after a restart, regardless of the recorded failures.
const MAX_DELAY_AT_START: Duration = Duration::from_secs(300);

/// Bounds of the interval between queries of the renewal window. RFC 9773 §4.3.2 requires clients to set reasonable
/// limits, and suggests a day as the maximum. An hour is short enough, because a CA that has to revoke certificates
/// announces the revocation hours before.
pub(super) const MIN_WINDOW_INTERVAL: Duration = Duration::from_secs(3600);
pub(super) const MAX_WINDOW_INTERVAL: Duration = Duration::from_secs(86_400);

/// Number of remaining days up to which a failed renewal is logged as an error instead of a warning. Renewals are
/// planned before this last tenth of 90 days.
const ERROR_DAYS: u64 = 9;
