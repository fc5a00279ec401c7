//! Validation of ID tokens (OpenID Connect Core 1.0 §3.1.3.7).

use std::fmt;

use serde::Deserialize;

use crate::claims::Claims;
use crate::encoding::{decode, is_same_secret};
use crate::signing_keys::{SignatureCheck, SigningKeys, algorithm};

/// Maximum length of a token in bytes. Usual tokens have a few KiB.
const MAX_TOKEN: usize = 64 * 1024;

/// Maximum difference between the clocks of the provider and of this server, in seconds.
const CLOCK_SKEW_S: f64 = 60.0;

/// Values with which the claims of a token are compared.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedToken<'a> {
    /// Issuer.
    pub issuer: &'a str,
    /// Identifier of this server at the provider.
    pub client_id: &'a str,
    /// Value that the login began with.
    pub nonce: &'a str,
    /// Current Unix time in seconds.
    pub now: u64,
}

/// Reason why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdTokenError {
    /// The text is not a signed token.
    Malformed,
    /// Its algorithm is not accepted.
    Algorithm(String),
    /// The provider has no key with its identifier. The key may be new.
    UnknownKey,
    /// Its signature is wrong.
    Signature,
    /// The issuer is another provider.
    Issuer,
    /// The token is for another client.
    Audience,
    /// The token is for another login.
    Nonce,
    /// The token has expired, or its time of issue is missing or in the future.
    Time,
    /// It names no user.
    Subject,
}

impl fmt::Display for IdTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdTokenError::Malformed => "it is not a signed token",
            IdTokenError::Algorithm(name) => return write!(f, "its algorithm {name:?} is not accepted"),
            IdTokenError::UnknownKey => "the provider has no key with its `kid`",
            IdTokenError::Signature => "its signature is wrong",
            IdTokenError::Issuer => "its `iss` is another issuer",
            IdTokenError::Audience => "its `aud` or `azp` is another client",
            IdTokenError::Nonce => "its `nonce` is that of another login",
            IdTokenError::Time => "it has expired, or the clocks of provider and server differ",
            IdTokenError::Subject => "its `sub` is missing or longer than 255 bytes",
        })
    }
}

/// Header of a signed token (RFC 7515 §4.1).
#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    /// Extensions that a receiver has to understand. This receiver understands no extension.
    crit: Option<serde_json::Value>,
}

/// Returns the claims of a token whose signature and contents are valid.
///
/// # Errors
///
/// Returns the reason why the token is refused.
pub fn verify(token: &str, keys: &SigningKeys, expected: &ExpectedToken<'_>) -> Result<Claims, IdTokenError> {
    let (message, signature) = token.rsplit_once('.').ok_or(IdTokenError::Malformed)?;
    let (header, payload) = message.split_once('.').ok_or(IdTokenError::Malformed)?;
    if token.len() > MAX_TOKEN {
        return Err(IdTokenError::Malformed);
    }
    let header = decode(header).ok_or(IdTokenError::Malformed)?;
    let header: TokenHeader = serde_json::from_slice(&header).map_err(|_| IdTokenError::Malformed)?;
    if header.crit.is_some() {
        return Err(IdTokenError::Malformed);
    }
    if algorithm(&header.alg).is_none() {
        return Err(IdTokenError::Algorithm(header.alg.chars().take(16).collect()));
    }
    match keys.check(&header.alg, header.kid.as_deref(), message, signature) {
        SignatureCheck::Valid => {}
        SignatureCheck::Invalid => return Err(IdTokenError::Signature),
        SignatureCheck::UnknownKey => return Err(IdTokenError::UnknownKey),
    }
    let payload = decode(payload).ok_or(IdTokenError::Malformed)?;
    let claims = Claims::parse(&payload).ok_or(IdTokenError::Malformed)?;
    check(&claims, expected)?;
    Ok(claims)
}

/// Checks the claims of a token whose signature is valid.
fn check(claims: &Claims, expected: &ExpectedToken<'_>) -> Result<(), IdTokenError> {
    if claims.text("iss") != Some(expected.issuer) {
        return Err(IdTokenError::Issuer);
    }
    let audience = claims.texts("aud");
    let party = claims.text("azp");
    let is_for_us = audience.contains(&expected.client_id)
        && (audience.len() == 1 || party.is_some())
        && (!claims.has("azp") || party == Some(expected.client_id));
    if !is_for_us {
        return Err(IdTokenError::Audience);
    }
    let now = expected.now as f64;
    let is_valid_now = claims.number("exp").is_some_and(|end| now < end + CLOCK_SKEW_S)
        && claims.number("iat").is_some_and(|issued| issued <= now + CLOCK_SKEW_S)
        && (!claims.has("nbf") || claims.number("nbf").is_some_and(|start| start <= now + CLOCK_SKEW_S));
    if !is_valid_now {
        return Err(IdTokenError::Time);
    }
    if !claims
        .text("nonce")
        .is_some_and(|nonce| is_same_secret(nonce, expected.nonce))
    {
        return Err(IdTokenError::Nonce);
    }
    if claims.subject().is_none() {
        return Err(IdTokenError::Subject);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
