//! One attempt at a certificate: the CAs are asked in their order until one signs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use instant_acme::CertificateIdentifier;
use rocknet_config::model::{Acme, AcmeCa};

use super::account::{Accounts, is_unknown_account};
use super::challenge;
use super::clock::Clock;
use super::order::{self, Job, OrderError};
use super::record::Record;
use crate::Shelf;
use crate::storage::Storage;

/// What all attempts of one configuration share.
pub struct Office {
    pub settings: Acme,
    pub storage: Arc<dyn Storage>,
    pub shelf: Arc<Shelf>,
    pub clock: Clock,
    pub accounts: Accounts,
    /// CAs that want to be left alone, and until when.
    pub rests: Arc<Mutex<HashMap<String, SystemTime>>>,
}

/// Why no CA signed.
#[derive(Debug)]
pub struct Failed {
    /// By CA, in one line.
    pub why: String,
    /// No CA may be asked before.
    pub rest: Option<Duration>,
    /// No CA was asked at all.
    pub idle: bool,
}

impl Office {
    pub async fn obtain(&self, name: &str, failures: u32, old: Option<&Record>) -> Result<Record, Failed> {
        let kinds = challenge::kinds(&self.settings, name, failures);
        let mut reasons = Vec::new();
        let mut idle = true;
        for ca in &self.settings.cas {
            if let Some(left) = self.rest_of(ca) {
                reasons.push(format!(
                    "{} wants to be left alone for {} s",
                    host(&ca.url),
                    left.as_secs()
                ));
                continue;
            }
            idle = false;
            let ready = match self.accounts.at(ca).await {
                Ok(ready) => ready,
                Err(refused) => {
                    self.note_rest(ca, refused.said);
                    reasons.push(format!("{}: {}", host(&ca.url), refused.why));
                    continue;
                }
            };
            let job = Job {
                name,
                kinds: &kinds,
                url: &ca.url,
                ca: &ready,
                settings: &self.settings,
                storage: &*self.storage,
                shelf: &self.shelf,
                old,
            };
            match order::obtain(&job).await {
                Ok(record) => return Ok(record),
                Err(error) => {
                    if let OrderError::Ca(error) = &error
                        && is_unknown_account(error)
                    {
                        self.accounts.forget(ca).await;
                    }
                    self.note_rest(ca, ready.http.take_said());
                    reasons.push(format!("{}: {error}", host(&ca.url)));
                }
            }
        }
        let rests: Vec<_> = self.settings.cas.iter().map(|ca| self.rest_of(ca)).collect();
        Err(Failed {
            why: reasons.join("; "),
            rest: rests
                .into_iter()
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.into_iter().min()),
            idle,
        })
    }

    /// When the CA would like a certificate to be renewed, and when to ask again (RFC 9773).
    pub async fn window(&self, record: &Record) -> Option<((SystemTime, SystemTime), Duration)> {
        let id = CertificateIdentifier::try_from(&record.leaf).ok()?;
        for ca in self.settings.cas.iter().filter(|ca| self.rest_of(ca).is_none()) {
            let Ok(ready) = self.accounts.at(ca).await else {
                continue;
            };
            if let Ok((info, again)) = ready.account.renewal_info(&id).await {
                let window = info.suggested_window;
                let time = |unix: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(unix).unwrap_or(0));
                let (start, end) = (window.start.unix_timestamp(), window.end.unix_timestamp());
                return Some(((time(start), time(end)), again));
            }
        }
        None
    }

    fn rest_of(&self, ca: &AcmeCa) -> Option<Duration> {
        let rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        let left = rests.get(&ca.url)?.duration_since(self.clock.now()).ok()?;
        Some(left).filter(|left| !left.is_zero())
    }

    fn note_rest(&self, ca: &AcmeCa, said: Option<Duration>) {
        if let Some(said) = said {
            let until = self.clock.now() + said.min(LONGEST_REST);
            self.rests
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
const LONGEST_REST: Duration = Duration::from_secs(8 * 86_400);
