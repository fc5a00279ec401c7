//! Keys that sign the tokens of a provider (RFC 7517).

use jsonwebtoken::crypto;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;

/// Maximum number of keys of a provider that are used. Providers have two or three.
const MAX_KEYS: usize = 64;

/// Algorithms that are accepted, all with a public key (RFC 7518 §3.1, RFC 8037). `none` and algorithms with a shared
/// secret are not among them: anyone could sign tokens with them, because the keys of a provider are public.
const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// Returns the algorithm with a name; `None` for one that is not accepted.
pub(crate) fn algorithm(name: &str) -> Option<Algorithm> {
    let found = ALGORITHMS.iter().find(|(own, _)| *own == name);
    found.map(|(_, algorithm)| *algorithm)
}

/// Public keys of a provider.
#[derive(Debug, Default)]
pub struct SigningKeys(Vec<SigningKey>);

#[derive(Debug)]
struct SigningKey {
    id: Option<String>,
    /// Algorithm that the key is for; `None` if the key does not name one.
    algorithm: Option<String>,
    key: DecodingKey,
}

/// Result of [`SigningKeys::check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureCheck {
    Valid,
    Invalid,
    /// No key has the wanted identifier.
    UnknownKey,
}

#[derive(Deserialize)]
struct KeyFile {
    keys: Vec<serde_json::Value>,
}

/// Members of a key that are used.
#[derive(Deserialize)]
struct PublicKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl PublicKey {
    /// Returns the key; `None` if it is for another purpose, of another kind, or damaged.
    fn to_key(&self) -> Option<DecodingKey> {
        if self.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let key = match (&*self.kty, self.crv.as_deref()) {
            ("RSA", _) => DecodingKey::from_rsa_components(self.n.as_ref()?, self.e.as_ref()?),
            ("EC", Some("P-256" | "P-384")) => DecodingKey::from_ec_components(self.x.as_ref()?, self.y.as_ref()?),
            ("OKP", Some("Ed25519")) => DecodingKey::from_ed_components(self.x.as_ref()?),
            _ => return None,
        };
        key.ok()
    }
}

impl SigningKeys {
    /// Reads the keys of a provider. Keys that cannot be used are left out. `None` if the text has another form.
    pub fn parse(json: &[u8]) -> Option<SigningKeys> {
        let file: KeyFile = serde_json::from_slice(json).ok()?;
        let keys = file.keys.into_iter().filter_map(|value| {
            let own: PublicKey = serde_json::from_value(value).ok()?;
            Some(SigningKey {
                key: own.to_key()?,
                id: own.kid,
                algorithm: own.alg,
            })
        });
        Some(SigningKeys(keys.take(MAX_KEYS).collect()))
    }

    /// Returns true if there is no usable key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the signature of a message. `id`: identifier of the key. Without it, each key for the algorithm is tried.
    /// `signature`: encoded as base64url.
    pub(crate) fn check(&self, algorithm: &str, id: Option<&str>, message: &str, signature: &str) -> SignatureCheck {
        let named = self.0.iter().filter(|key| id.is_none() || key.id.as_deref() == id);
        let mut candidates = named.peekable();
        if candidates.peek().is_none() {
            return SignatureCheck::UnknownKey;
        }
        let Some(own) = self::algorithm(algorithm) else {
            return SignatureCheck::Invalid;
        };
        let is_valid = candidates
            .filter(|key| key.algorithm.as_deref().is_none_or(|other| other == algorithm))
            .any(|key| crypto::verify(signature, message.as_bytes(), &key.key, own).unwrap_or(false));
        match (is_valid, id) {
            (true, _) => SignatureCheck::Valid,
            (false, Some(_)) => SignatureCheck::Invalid,
            // Without an identifier, a new key cannot be distinguished from a wrong signature.
            (false, None) => SignatureCheck::UnknownKey,
        }
    }
}
