//! One attempt at a certificate: the CAs are asked in their order until one signs.

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

/// What all attempts of one configuration share.
pub struct AcmeClient {
    pub settings: Acme,
    pub storage: Arc<dyn Storage>,
    pub store: Arc<CertificateStore>,
    pub clock: Clock,
    pub accounts: Accounts,
    /// CAs that want to be left alone, and until when.
    pub paused_until: Arc<Mutex<HashMap<String, SystemTime>>>,
}

/// Why no CA signed.
#[derive(Debug)]
pub struct IssuanceError {
    /// By CA, in one line.
    pub reason: String,
    /// No CA may be asked before.
    pub retry_after: Option<Duration>,
    /// No CA was asked at all.
    pub all_paused: bool,
}

impl AcmeClient {
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
            if let Some(left) = self.remaining_pause(ca) {
                reasons.push(format!(
                    "{} wants to be left alone for {} s",
                    host(&ca.url),
                    left.as_secs()
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

    /// When the CA would like a certificate to be renewed, and when to ask again (RFC 9773).
    pub async fn renewal_window(&self, record: &StoredCertificate) -> Option<((SystemTime, SystemTime), Duration)> {
        let id = CertificateIdentifier::try_from(&record.leaf).ok()?;
        for ca in self.settings.cas.iter().filter(|ca| self.remaining_pause(ca).is_none()) {
            let Ok(session) = self.accounts.session(ca).await else {
                continue;
            };
            if let Ok((info, again)) = session.account.renewal_info(&id).await {
                let window = info.suggested_window;
                let time = |unix: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(unix).unwrap_or(0));
                let (start, end) = (window.start.unix_timestamp(), window.end.unix_timestamp());
                return Some(((time(start), time(end)), again));
            }
        }
        None
    }

    fn remaining_pause(&self, ca: &AcmeCa) -> Option<Duration> {
        let paused_until = self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        let left = paused_until.get(&ca.url)?.duration_since(self.clock.now()).ok()?;
        Some(left).filter(|left| !left.is_zero())
    }

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

/// What people call a CA.
pub fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Rate limits are counted in weeks at most.
const MAX_PAUSE: Duration = Duration::from_secs(8 * 86_400);
