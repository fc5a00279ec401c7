//! One order at one CA, from its creation to the stored certificate. Resumes an order that an earlier process created.

use std::net::IpAddr;
use std::time::Duration;

use instant_acme::{
    AuthorizationStatus, CertificateIdentifier, ChallengeStatus, Error, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use rocknet_config::model::{Acme, Challenge};

use super::account::{CaSession, describe, is_rate_limited};
use super::challenge::{self, PresentedChallenge};
use super::persistence::{PendingOrder, StoredCertificate, StoredCertificateError};
use crate::CertificateStore;
use crate::storage::Storage;

/// The name that an order is for, and the resources that the order uses.
pub struct OrderContext<'a> {
    pub name: &'a str,
    /// Challenge types, most preferred first.
    pub kinds: &'a [Challenge],
    /// Directory URL of the CA.
    pub url: &'a str,
    pub ca: &'a CaSession,
    pub settings: &'a Acme,
    pub storage: &'a dyn Storage,
    pub store: &'a CertificateStore,
    /// The certificate to be replaced, if any. Some CAs exempt the order that replaces it from rate limits (RFC 9773
    /// §5).
    pub old: Option<&'a StoredCertificate>,
}

/// The reason why an order failed.
#[derive(Debug)]
pub enum OrderError {
    /// The CA refused the request or did not respond.
    Ca(Error),
    /// The CA could not validate the challenge. Contains the reason that the CA reports.
    ChallengeFailed(String),
    /// The response to the challenge could not be published.
    ChallengeNotPresented(String),
    /// The issued certificate cannot be used, or the certificate or the order could not be saved.
    Stored(StoredCertificateError),
    /// The key or the signing request could not be created.
    Crypto(rcgen::Error),
}

/// Creates or resumes an order, validates the name, and fetches and saves the certificate.
///
/// # Errors
/// Returns the reason of the failure. The order is kept for another attempt if the network or the disk failed, or the
/// challenge response could not be published.
pub async fn obtain(context: &OrderContext<'_>) -> Result<StoredCertificate, OrderError> {
    let (mut order, key_pem) = match resume(context).await {
        Some(order) => order,
        None => create(context).await?,
    };
    let result = complete(context, &mut order, &key_pem).await;
    let is_finished = match &result {
        Ok(_) | Err(OrderError::ChallengeFailed(_) | OrderError::Crypto(_) | OrderError::Ca(Error::Api(_))) => true,
        // The order itself is still usable, so the next attempt resumes it.
        Err(
            OrderError::Ca(_)
            | OrderError::ChallengeNotPresented(_)
            | OrderError::Stored(StoredCertificateError::Storage(_)),
        ) => false,
        // The certificate that the CA issued is unusable.
        Err(OrderError::Stored(_)) => true,
    };
    if is_finished {
        PendingOrder::remove(context.storage, context.name);
    }
    result
}

/// Returns the stored order for this name at this CA, with its key in PEM. Returns `None` without such an order, or if
/// the CA does not return it or reports it as invalid.
async fn resume(context: &OrderContext<'_>) -> Option<(Order, String)> {
    let pending = PendingOrder::load(context.storage, context.name).filter(|pending| pending.ca == context.url)?;
    let mut order = context.ca.account.order(pending.url).await.ok()?;
    if order.state().status == OrderStatus::Invalid {
        return None;
    }
    tracing::info!("resuming the certificate order for {}", context.name);
    Some((order, pending.key_pem))
}

/// Creates an order and a key, and saves the URL of the order with the key. Returns the order and its key in PEM.
async fn create(context: &OrderContext<'_>) -> Result<(Order, String), OrderError> {
    let identifiers = [match context.name.parse::<IpAddr>() {
        Ok(address) => Identifier::Ip(address),
        Err(_) => Identifier::Dns(context.name.to_owned()),
    }];
    let replaced = context
        .old
        .and_then(|old| CertificateIdentifier::try_from(&old.leaf).ok());
    let order = match replaced {
        // If the CA refuses the order, it may not know the replaced certificate, for example because another CA issued
        // it. The order is then created again without `replaces`.
        Some(replaced) => match context
            .ca
            .account
            .new_order(&NewOrder::new(&identifiers).replaces(replaced))
            .await
        {
            Ok(order) => Ok(order),
            Err(error) if !is_rate_limited(&error) => context.ca.account.new_order(&NewOrder::new(&identifiers)).await,
            result => result,
        },
        None => context.ca.account.new_order(&NewOrder::new(&identifiers)).await,
    }
    .map_err(OrderError::Ca)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(OrderError::Crypto)?;
    let pending = PendingOrder {
        ca: context.url.to_owned(),
        url: order.url().to_owned(),
        key_pem: key.serialize_pem(),
    };
    // Saved before the order is completed. Otherwise a crash between issuance and download would lose the key of the
    // certificate.
    pending
        .save(context.storage, context.name)
        .map_err(OrderError::Stored)?;
    Ok((order, pending.key_pem))
}

/// Performs the remaining steps of an order, depending on its status: validates the name, requests the certificate, and
/// fetches and saves it.
async fn complete(
    context: &OrderContext<'_>,
    order: &mut Order,
    key_pem: &str,
) -> Result<StoredCertificate, OrderError> {
    if order.state().status == OrderStatus::Pending {
        let mut presented = Vec::new();
        let result = solve_challenges(context, order, &mut presented).await;
        for challenge in presented {
            challenge::clean_up(challenge, context.settings, context.store).await;
        }
        result?;
    }
    if order.state().status == OrderStatus::Ready {
        let csr = || {
            let key = KeyPair::from_pem(key_pem)?;
            let mut params = CertificateParams::new([context.name.to_owned()])?;
            params.distinguished_name = DistinguishedName::new();
            params.serialize_request(&key)
        };
        let csr = csr().map_err(OrderError::Crypto)?;
        order.finalize_csr(csr.der()).await.map_err(OrderError::Ca)?;
    }
    let policy = RetryPolicy::new().timeout(TIMEOUT);
    let chain = order.poll_certificate(&policy).await.map_err(OrderError::Ca)?;
    StoredCertificate::save(context.storage, context.name, key_pem, &chain).map_err(OrderError::Stored)
}

/// Publishes a challenge response for each pending authorization, of the first type in `context.kinds` that the CA
/// offers. Then waits until the CA has validated all of them. Adds the published responses to `presented`, also before
/// an error.
async fn solve_challenges(
    context: &OrderContext<'_>,
    order: &mut Order,
    presented: &mut Vec<PresentedChallenge>,
) -> Result<(), OrderError> {
    let mut all = order.authorizations();
    while let Some(authorization) = all.next().await {
        let mut authorization = authorization.map_err(OrderError::Ca)?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            other => return Err(OrderError::ChallengeFailed(format!("the authorization is {other:?}"))),
        }
        let offered = |kind: &&Challenge| {
            let acme_type = challenge::acme_type(**kind);
            authorization
                .challenges
                .iter()
                .any(|challenge| challenge.r#type == acme_type)
        };
        let Some(&kind) = context.kinds.iter().find(offered) else {
            let reason = "the CA offers no challenge that is configured; wildcards need dns-01".to_owned();
            return Err(OrderError::ChallengeNotPresented(reason));
        };
        // Always found, because `kind` is offered.
        let Some(mut chosen) = authorization.challenge(challenge::acme_type(kind)) else {
            continue;
        };
        let name = context.name.strip_prefix("*.").unwrap_or(context.name);
        let result = challenge::present(kind, &chosen, name, context.settings, context.store).await;
        presented.push(result.map_err(OrderError::ChallengeNotPresented)?);
        chosen.set_ready().await.map_err(OrderError::Ca)?;
    }
    let policy = RetryPolicy::new().timeout(TIMEOUT);
    match order.poll_ready(&policy).await {
        Ok(OrderStatus::Invalid) => Err(OrderError::ChallengeFailed(failure_reasons(order).await)),
        Ok(_) => Ok(()),
        // If the CA reports why the order is invalid, the library returns this error in place of the status.
        Err(error @ Error::Api(_)) => {
            let reason = failure_reasons(order).await;
            Err(if reason.is_empty() {
                OrderError::Ca(error)
            } else {
                OrderError::ChallengeFailed(reason)
            })
        }
        Err(error) => Err(OrderError::Ca(error)),
    }
}

/// Returns the errors that the CA reports for its validation attempts.
async fn failure_reasons(order: &mut Order) -> String {
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
                    describe(&Error::Api(problem.clone()))
                ));
            }
        }
    }
    reasons.join("; ")
}

/// Timeout of validation and of issuance. A CA validates from several places and signs within seconds, but some CAs
/// queue orders for a minute.
const TIMEOUT: Duration = Duration::from_secs(120);

impl std::fmt::Display for OrderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OrderError::Ca(error) => f.write_str(&describe(error)),
            OrderError::ChallengeFailed(reason) => write!(f, "the CA could not validate the challenge: {reason}"),
            OrderError::ChallengeNotPresented(reason) => {
                write!(f, "the challenge response could not be published: {reason}")
            }
            OrderError::Stored(error) => error.fmt(f),
            OrderError::Crypto(error) => write!(f, "the key or the signing request could not be created: {error}"),
        }
    }
}

impl std::error::Error for OrderError {}
