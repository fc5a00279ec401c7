//! ACME challenges: publishes the response where the CA looks for it, and removes it afterwards.

use std::sync::Arc;

use instant_acme::{ChallengeHandle, ChallengeType, KeyAuthorization};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use rocknet_config::model::{Acme, Challenge};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivatePkcs8KeyDer;

use super::dns::{self, Action};
use crate::CertificateStore;

/// A published challenge response that has to be removed later.
pub enum PresentedChallenge {
    /// Token of an HTTP-01 challenge.
    Http(String),
    /// Name of a TLS-ALPN-01 challenge.
    TlsAlpn(String),
    /// TXT record of a DNS-01 challenge at `_acme-challenge.NAME`, with its text.
    Dns { name: String, value: String },
}

/// Returns the challenge types that are possible for a name, in order of preference. `failures`: number of failed
/// orders in a row, each of which moves the next type to the front.
pub fn kinds(settings: &Acme, name: &str, failures: u32) -> Vec<Challenge> {
    let is_wildcard = name.starts_with("*.");
    let possible = |kind: &Challenge| match kind {
        // A DNS record cannot prove control over an address (RFC 8738 §7).
        Challenge::Dns => settings.dns.is_some() && name.parse::<std::net::IpAddr>().is_err(),
        // A response by HTTP or TLS proves control over one host, not over all names that a wildcard covers.
        Challenge::Http | Challenge::TlsAlpn => !is_wildcard,
    };
    let mut kinds: Vec<Challenge> = settings.challenges.iter().copied().filter(possible).collect();
    if !kinds.is_empty() {
        let offset = failures as usize % kinds.len();
        kinds.rotate_left(offset);
    }
    kinds
}

/// Converts a configured challenge to its ACME type.
pub fn acme_type(kind: Challenge) -> ChallengeType {
    match kind {
        Challenge::Http => ChallengeType::Http01,
        Challenge::TlsAlpn => ChallengeType::TlsAlpn01,
        Challenge::Dns => ChallengeType::Dns01,
    }
}

/// Publishes the response to a challenge. `name` has no leading `*.`.
///
/// # Errors
/// Describes why the response cannot be published.
pub async fn present(
    kind: Challenge,
    challenge: &ChallengeHandle<'_>,
    name: &str,
    settings: &Acme,
    store: &CertificateStore,
) -> Result<PresentedChallenge, String> {
    let authorization = challenge.key_authorization();
    match kind {
        Challenge::Http => {
            store.insert_http_challenge(&challenge.token, authorization.as_str());
            Ok(PresentedChallenge::Http(challenge.token.clone()))
        }
        Challenge::TlsAlpn => {
            store.insert_tls_alpn_challenge(name, Arc::new(tls_alpn_certificate(name, &authorization)?));
            Ok(PresentedChallenge::TlsAlpn(name.to_owned()))
        }
        Challenge::Dns => {
            let value = authorization.dns_value();
            let settings = settings.dns.as_ref().ok_or("`dns` is not set in [tls]")?;
            dns::apply(settings, Action::Present, name, &value).await?;
            Ok(PresentedChallenge::Dns {
                name: name.to_owned(),
                value,
            })
        }
    }
}

/// Removes a published response. If a DNS record cannot be removed, the error is only logged, because the record does
/// no harm.
pub async fn clean_up(challenge: PresentedChallenge, settings: &Acme, store: &CertificateStore) {
    match challenge {
        PresentedChallenge::Http(token) => store.remove_http_challenge(&token),
        PresentedChallenge::TlsAlpn(name) => store.remove_tls_alpn_challenge(&name),
        PresentedChallenge::Dns { name, value } => {
            if let Some(dns) = &settings.dns
                && let Err(reason) = dns::apply(dns, Action::Cleanup, &name, &value).await
            {
                tracing::warn!("the TXT record _acme-challenge.{name} could not be removed: {reason}");
            }
        }
    }
}

/// Creates the challenge certificate (RFC 8737 §3).
fn tls_alpn_certificate(name: &str, authorization: &KeyAuthorization) -> Result<CertifiedKey, String> {
    let digest = authorization.digest();
    // `new_acme_identifier` panics unless the digest has 32 bytes.
    if digest.as_ref().len() != 32 {
        return Err("the digest of the key authorization is not 32 bytes long".to_owned());
    }
    let make = || {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new([name.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
        let certificate = params.self_signed(&key)?;
        Ok::<_, rcgen::Error>((certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der())))
    };
    let (der, key) = make().map_err(|error| error.to_string())?;
    // This certificate is not checked like the certificates of sites. That check would refuse the acmeIdentifier
    // extension, because the extension is critical and the check does not know it.
    let key = any_supported_type(&key.into()).map_err(|error| error.to_string())?;
    Ok(CertifiedKey::new(vec![der], key))
}
