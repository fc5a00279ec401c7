//! The ACME client: tries the configured CAs in order until one issues the certificate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use instant_acme::CertificateIdentifier;
use rocknet_config::model::{Acme, AcmeCa};

use super::account::{Accounts, is_unknown_account};
use super::challenge;
use super::clock::Clock;
use super::order::{self, OrderContext, OrderError};
use super::persistence::StoredCertificate;
use crate::CertificateStore;
use crate::storage::Storage;

/// State shared by all orders of one configuration.
pub struct AcmeClient {
    pub settings: Acme,
    pub storage: Arc<dyn Storage>,
    pub store: Arc<CertificateStore>,
    pub clock: Clock,
    pub accounts: Accounts,
    /// CAs that sent `Retry-After`, by directory URL, with the end of the pause.
    pub paused_until: Arc<Mutex<HashMap<String, SystemTime>>>,
}

/// The reason why no CA issued a certificate.
#[derive(Debug)]
pub struct IssuanceError {
    /// Reasons by CA, in one line.
    pub reason: String,
    /// Shortest remaining pause; `None` unless all CAs are paused after the attempt.
    pub retry_after: Option<Duration>,
    /// True if all CAs were paused before the attempt, so that no CA was contacted.
    pub all_paused: bool,
}

impl AcmeClient {
    /// Obtains a certificate for `name` from the first CA that issues one. `failures` is the number of consecutive
    /// failures so far, which selects the challenge. `old` is the certificate to be replaced.
    ///
    /// # Errors
    /// Returns the reasons of all CAs.
    pub async fn obtain(
        &self,
        name: &str,
        failures: u32,
        old: Option<&StoredCertificate>,
    ) -> Result<StoredCertificate, IssuanceError> {
        let kinds = challenge::kinds(&self.settings, name, failures);
        let mut reasons = Vec::new();
        let mut all_paused = true;
        for ca in &self.settings.cas {
            if let Some(remaining) = self.remaining_pause(ca) {
                reasons.push(format!(
                    "{} is paused for {} s by Retry-After",
                    host(&ca.url),
                    remaining.as_secs()
                ));
                continue;
            }
            all_paused = false;
            let session = match self.accounts.session(ca).await {
                Ok(session) => session,
                Err(error) => {
                    self.pause(ca, error.retry_after);
                    reasons.push(format!("{}: {}", host(&ca.url), error.reason));
                    continue;
                }
            };
            let context = OrderContext {
                name,
                kinds: &kinds,
                url: &ca.url,
                ca: &session,
                settings: &self.settings,
                storage: &*self.storage,
                store: &self.store,
                old,
            };
            match order::obtain(&context).await {
                Ok(record) => return Ok(record),
                Err(error) => {
                    if let OrderError::Ca(error) = &error
                        && is_unknown_account(error)
                    {
                        self.accounts.forget(ca).await;
                    }
                    self.pause(ca, session.http.take_retry_after());
                    reasons.push(format!("{}: {error}", host(&ca.url)));
                }
            }
        }
        let pauses: Vec<_> = self.settings.cas.iter().map(|ca| self.remaining_pause(ca)).collect();
        Err(IssuanceError {
            reason: reasons.join("; "),
            retry_after: pauses
                .into_iter()
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.into_iter().min()),
            all_paused,
        })
    }

    /// Queries the first CA that knows the certificate for its renewal window (ARI, RFC 9773). Returns start and end of
    /// the window, and the delay before the next query. Returns `None` if no CA that responds knows the certificate, or
    /// if the certificate lacks the authority key identifier, which the query requires.
    pub async fn renewal_window(&self, record: &StoredCertificate) -> Option<((SystemTime, SystemTime), Duration)> {
        let id = CertificateIdentifier::try_from(&record.leaf).ok()?;
        for ca in self.settings.cas.iter().filter(|ca| self.remaining_pause(ca).is_none()) {
            let Ok(session) = self.accounts.session(ca).await else {
                continue;
            };
            if let Ok((info, delay)) = session.account.renewal_info(&id).await {
                let window = info.suggested_window;
                let time = |unix: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(unix).unwrap_or(0));
                let (start, end) = (window.start.unix_timestamp(), window.end.unix_timestamp());
                return Some(((time(start), time(end)), delay));
            }
        }
        None
    }

    /// Returns the time until a CA may be contacted again; `None` if it is not paused.
    fn remaining_pause(&self, ca: &AcmeCa) -> Option<Duration> {
        let paused_until = self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        let remaining = paused_until.get(&ca.url)?.duration_since(self.clock.now()).ok()?;
        Some(remaining).filter(|remaining| !remaining.is_zero())
    }

    /// Pauses a CA for the duration that it has requested, if any.
    fn pause(&self, ca: &AcmeCa, retry_after: Option<Duration>) {
        if let Some(retry_after) = retry_after {
            let until = self.clock.now() + retry_after.min(MAX_PAUSE);
            self.paused_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(ca.url.clone(), until);
        }
    }
}

/// Returns the host of a CA's directory URL, with its port if there is one, for messages.
pub fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Maximum pause: eight days, because the longest rate limits of public CAs apply to a week.
const MAX_PAUSE: Duration = Duration::from_secs(8 * 86_400);
