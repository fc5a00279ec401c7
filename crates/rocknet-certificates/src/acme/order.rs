//! One order at one CA, from placing it to the certificate on the disk; picked up where a killed process left it.

use std::net::IpAddr;
use std::time::Duration;

use instant_acme::{
    AuthorizationStatus, CertificateIdentifier, ChallengeStatus, Error, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use rocknet_config::model::{Acme, Challenge};

use super::account::{Ca, is_rate_limited, told};
use super::challenge::{self, Proof};
use super::record::{Pending, Record, RecordError};
use crate::Shelf;
use crate::storage::Storage;

/// What an order is about, and what it works with.
pub struct Job<'a> {
    pub name: &'a str,
    /// The kinds of proof, the most promising first.
    pub kinds: &'a [Challenge],
    /// The directory of the CA.
    pub url: &'a str,
    pub ca: &'a Ca,
    pub settings: &'a Acme,
    pub storage: &'a dyn Storage,
    pub shelf: &'a Shelf,
    /// The certificate that is to be replaced, for CAs that want to know.
    pub old: Option<&'a Record>,
}

/// Why an order came to nothing.
#[derive(Debug)]
pub enum OrderError {
    /// The CA refused or did not answer.
    Ca(Error),
    /// The CA looked for the proof and was not content, in its words.
    NotProven(String),
    /// The proof could not be shown.
    NotShown(String),
    Record(RecordError),
    Crypto(rcgen::Error),
}

/// Places the order, proves the name, fetches the certificate, and keeps it.
pub async fn obtain(job: &Job<'_>) -> Result<Record, OrderError> {
    let (mut order, key_pem) = match resume(job).await {
        Some(order) => order,
        None => place(job).await?,
    };
    let done = carry_out(job, &mut order, &key_pem).await;
    let lost = match &done {
        Ok(_) | Err(OrderError::NotProven(_) | OrderError::Crypto(_) | OrderError::Ca(Error::Api(_))) => true,
        // A network that fails, a disk that is full: the order is good for another try.
        Err(OrderError::Ca(_) | OrderError::NotShown(_) | OrderError::Record(RecordError::Storage(_))) => false,
        Err(OrderError::Record(_)) => true,
    };
    if lost {
        Pending::forget(job.storage, job.name);
    }
    done
}

/// The order that an earlier process placed here, if the CA still has it and it is good for something.
async fn resume(job: &Job<'_>) -> Option<(Order, String)> {
    let pending = Pending::load(job.storage, job.name).filter(|pending| pending.ca == job.url)?;
    let mut order = job.ca.account.order(pending.url).await.ok()?;
    if order.state().status == OrderStatus::Invalid {
        return None;
    }
    tracing::info!("going on with the order for {}", job.name);
    Some((order, pending.key_pem))
}

async fn place(job: &Job<'_>) -> Result<(Order, String), OrderError> {
    let identifiers = [match job.name.parse::<IpAddr>() {
        Ok(address) => Identifier::Ip(address),
        Err(_) => Identifier::Dns(job.name.to_owned()),
    }];
    let replaced = job.old.and_then(|old| CertificateIdentifier::try_from(&old.leaf).ok());
    let order = match replaced {
        // A CA may not know the certificate, as when another one signed it.
        Some(replaced) => match job
            .ca
            .account
            .new_order(&NewOrder::new(&identifiers).replaces(replaced))
            .await
        {
            Ok(order) => Ok(order),
            Err(error) if !is_rate_limited(&error) => job.ca.account.new_order(&NewOrder::new(&identifiers)).await,
            done => done,
        },
        None => job.ca.account.new_order(&NewOrder::new(&identifiers)).await,
    }
    .map_err(OrderError::Ca)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(OrderError::Crypto)?;
    let pending = Pending {
        ca: job.url.to_owned(),
        url: order.url().to_owned(),
        key_pem: key.serialize_pem(),
    };
    // Before anything is spent on it: the key of a certificate that was signed and never fetched would be lost.
    pending.keep(job.storage, job.name).map_err(OrderError::Record)?;
    Ok((order, pending.key_pem))
}

async fn carry_out(job: &Job<'_>, order: &mut Order, key_pem: &str) -> Result<Record, OrderError> {
    if order.state().status == OrderStatus::Pending {
        let mut proofs = Vec::new();
        let proven = prove(job, order, &mut proofs).await;
        for proof in proofs {
            challenge::hide(proof, job.settings, job.shelf).await;
        }
        proven?;
    }
    if order.state().status == OrderStatus::Ready {
        let csr = || {
            let key = KeyPair::from_pem(key_pem)?;
            let mut params = CertificateParams::new([job.name.to_owned()])?;
            params.distinguished_name = DistinguishedName::new();
            params.serialize_request(&key)
        };
        let csr = csr().map_err(OrderError::Crypto)?;
        order.finalize_csr(csr.der()).await.map_err(OrderError::Ca)?;
    }
    let policy = RetryPolicy::new().timeout(PATIENCE);
    let chain = order.poll_certificate(&policy).await.map_err(OrderError::Ca)?;
    Record::keep(job.storage, job.name, key_pem, &chain).map_err(OrderError::Record)
}

/// Shows what the CA wants to see, and waits until it has looked.
async fn prove(job: &Job<'_>, order: &mut Order, proofs: &mut Vec<Proof>) -> Result<(), OrderError> {
    let mut all = order.authorizations();
    while let Some(authorization) = all.next().await {
        let mut authorization = authorization.map_err(OrderError::Ca)?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            other => return Err(OrderError::NotProven(format!("the authorization is {other:?}"))),
        }
        let offered = |kind: &&Challenge| {
            let wanted = challenge::acme_kind(**kind);
            authorization
                .challenges
                .iter()
                .any(|challenge| challenge.r#type == wanted)
        };
        let Some(&kind) = job.kinds.iter().find(offered) else {
            let why = "the CA offers no challenge that is configured; wildcards need dns-01".to_owned();
            return Err(OrderError::NotShown(why));
        };
        let Some(mut chosen) = authorization.challenge(challenge::acme_kind(kind)) else {
            continue;
        };
        let name = job.name.strip_prefix("*.").unwrap_or(job.name);
        let shown = challenge::show(kind, &chosen, name, job.settings, job.shelf).await;
        proofs.push(shown.map_err(OrderError::NotShown)?);
        chosen.set_ready().await.map_err(OrderError::Ca)?;
    }
    let policy = RetryPolicy::new().timeout(PATIENCE);
    match order.poll_ready(&policy).await {
        Ok(OrderStatus::Invalid) => Err(OrderError::NotProven(reasons(order).await)),
        Ok(_) => Ok(()),
        Err(error @ Error::Api(_)) => {
            let why = reasons(order).await;
            Err(if why.is_empty() {
                OrderError::Ca(error)
            } else {
                OrderError::NotProven(why)
            })
        }
        Err(error) => Err(OrderError::Ca(error)),
    }
}

/// What the CA found where it looked.
async fn reasons(order: &mut Order) -> String {
    let mut reasons = Vec::new();
    let mut all = order.authorizations();
    while let Some(Ok(mut authorization)) = all.next().await {
        let Ok(state) = authorization.refresh().await else {
            continue;
        };
        let failed = state
            .challenges
            .iter()
            .filter(|challenge| challenge.status == ChallengeStatus::Invalid);
        for challenge in failed {
            if let Some(problem) = &challenge.error {
                reasons.push(format!(
                    "{:?}: {}",
                    challenge.r#type,
                    told(&Error::Api(problem.clone()))
                ));
            }
        }
    }
    reasons.join("; ")
}

/// A CA looks from several places and signs within seconds; some queue for a minute.
const PATIENCE: Duration = Duration::from_secs(120);

impl std::fmt::Display for OrderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OrderError::Ca(error) => f.write_str(&told(error)),
            OrderError::NotProven(why) => write!(f, "the CA could not see that the name is ours: {why}"),
            OrderError::NotShown(why) => write!(f, "the proof could not be shown: {why}"),
            OrderError::Record(error) => error.fmt(f),
            OrderError::Crypto(error) => write!(f, "no key or request could be made: {error}"),
        }
    }
}

impl std::error::Error for OrderError {}
