//! Proofs that a name is ours: shown where the CA looks, taken away when it has.

use std::sync::Arc;

use instant_acme::{ChallengeHandle, ChallengeType, KeyAuthorization};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use rocknet_config::model::{Acme, Challenge};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivatePkcs8KeyDer;

use super::dns::{self, Action};
use crate::CertificateStore;

/// What is up, to be taken down again.
pub enum PresentedChallenge {
    Http(String),
    TlsAlpn(String),
    Dns { name: String, value: String },
}

/// The kinds to be tried for a name, the first one first: with each failure the next one has its turn.
pub fn kinds(settings: &Acme, name: &str, failures: u32) -> Vec<Challenge> {
    let is_wildcard = name.starts_with("*.");
    let possible = |kind: &Challenge| match kind {
        Challenge::Dns => settings.dns.is_some() && name.parse::<std::net::IpAddr>().is_err(),
        // NoCertificate can show anything at all names below one.
        Challenge::Http | Challenge::TlsAlpn => !is_wildcard,
    };
    let mut kinds: Vec<Challenge> = settings.challenges.iter().copied().filter(possible).collect();
    if !kinds.is_empty() {
        let offset = failures as usize % kinds.len();
        kinds.rotate_left(offset);
    }
    kinds
}

pub fn acme_type(kind: Challenge) -> ChallengeType {
    match kind {
        Challenge::Http => ChallengeType::Http01,
        Challenge::TlsAlpn => ChallengeType::TlsAlpn01,
        Challenge::Dns => ChallengeType::Dns01,
    }
}

/// Shows the proof for a challenge of this kind. `name` is without `*.`.
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
            let settings = settings.dns.as_ref().ok_or("no way to change the DNS is configured")?;
            dns::apply(settings, Action::Present, name, &value).await?;
            Ok(PresentedChallenge::Dns {
                name: name.to_owned(),
                value,
            })
        }
    }
}

/// Takes a proof away. A record that stays harms nobody, and is told.
pub async fn clean_up(challenge: PresentedChallenge, settings: &Acme, store: &CertificateStore) {
    match challenge {
        PresentedChallenge::Http(token) => store.remove_http_challenge(&token),
        PresentedChallenge::TlsAlpn(name) => store.remove_tls_alpn_challenge(&name),
        PresentedChallenge::Dns { name, value } => {
            if let Some(dns) = &settings.dns
                && let Err(reason) = dns::apply(dns, Action::Cleanup, &name, &value).await
            {
                tracing::warn!("the record _acme-challenge.{name} stays: {reason}");
            }
        }
    }
}

/// The certificate that says no more than the proof (RFC 8737 §3).
fn tls_alpn_certificate(name: &str, authorization: &KeyAuthorization) -> Result<CertifiedKey, String> {
    let digest = authorization.digest();
    // The extension's maker takes 32 bytes and nothing else.
    if digest.as_ref().len() != 32 {
        return Err("the digest of the proof has an odd length".to_owned());
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
    // Not looked at as certificates of sites are: the proof stands in an extension that clients have to refuse.
    let key = any_supported_type(&key.into()).map_err(|error| error.to_string())?;
    Ok(CertifiedKey::new(vec![der], key))
}
