//! Tests of the validation of tokens, with keys of each accepted kind.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RsaKeyPair,
};

use super::*;
use crate::encoding::encode;

const NOW: u64 = 1_800_000_000;

const EXPECTED: ExpectedToken<'_> = ExpectedToken {
    issuer: "https://id.test/",
    client_id: "app",
    nonce: "the nonce",
    now: NOW,
};

/// Private keys of a provider.
struct Provider {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

impl Provider {
    fn new() -> Provider {
        Provider {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).expect("a key"),
            p256: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"),
            p384: EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).expect("a key"),
            ed: Ed25519KeyPair::generate().expect("a key"),
        }
    }

    /// Returns the modulus of the RSA key.
    fn modulus(&self) -> Vec<u8> {
        let public = self.rsa.public_key();
        public.modulus().big_endian_without_leading_zero().to_vec()
    }

    fn keys(&self) -> SigningKeys {
        let public = self.rsa.public_key();
        let (n, e) = (
            encode(&self.modulus()),
            encode(public.exponent().big_endian_without_leading_zero()),
        );
        let point = |key: &EcdsaKeyPair, size: usize| {
            let point = key.public_key().as_ref()[1..].to_vec();
            (encode(&point[..size]), encode(&point[size..]))
        };
        let ((x, y), (x3, y3)) = (point(&self.p256, 32), point(&self.p384, 48));
        let ed = encode(self.ed.public_key().as_ref());
        let json = format!(
            "{{\"keys\": [\
             {{\"kty\": \"oct\", \"kid\": \"hs\", \"k\": \"AAAA\"}},\
             {{\"kty\": \"RSA\", \"kid\": \"enc\", \"use\": \"enc\", \"n\": \"{n}\", \"e\": \"{e}\"}},\
             {{\"kty\": \"RSA\", \"kid\": \"rs\", \"use\": \"sig\", \"n\": \"{n}\", \"e\": \"{e}\"}},\
             {{\"kty\": \"RSA\", \"kid\": \"ps\", \"alg\": \"PS256\", \"n\": \"{n}\", \"e\": \"{e}\"}},\
             {{\"kty\": \"EC\", \"kid\": \"es\", \"crv\": \"P-256\", \"x\": \"{x}\", \"y\": \"{y}\"}},\
             {{\"kty\": \"EC\", \"kid\": \"es3\", \"crv\": \"P-384\", \"x\": \"{x3}\", \"y\": \"{y3}\"}},\
             {{\"kty\": \"OKP\", \"kid\": \"ed\", \"crv\": \"Ed25519\", \"x\": \"{ed}\"}}, 7]}}"
        );
        SigningKeys::parse(json.as_bytes()).expect("keys")
    }

    fn token(&self, algorithm: &str, header: &str, payload: &str) -> String {
        let message = format!("{}.{}", encode(header.as_bytes()), encode(payload.as_bytes()));
        let bytes = message.as_bytes();
        let random = SystemRandom::new();
        let rsa = |padding: &'static dyn signature::RsaEncoding| {
            let mut signed = vec![0; self.rsa.public_modulus_len()];
            self.rsa
                .sign(padding, &random, bytes, &mut signed)
                .expect("a signature");
            signed
        };
        let signed = match algorithm {
            "RS256" => rsa(&signature::RSA_PKCS1_SHA256),
            "RS512" => rsa(&signature::RSA_PKCS1_SHA512),
            "PS256" => rsa(&signature::RSA_PSS_SHA256),
            "ES256" => self.p256.sign(&random, bytes).expect("a signature").as_ref().to_vec(),
            "ES384" => self.p384.sign(&random, bytes).expect("a signature").as_ref().to_vec(),
            "EdDSA" => self.ed.sign(bytes).as_ref().to_vec(),
            "HS256" => {
                // The attack: the public key as the shared secret.
                let key = hmac::Key::new(hmac::HMAC_SHA256, &self.modulus());
                hmac::sign(&key, bytes).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{message}.{}", encode(&signed))
    }
}

/// Returns the claims of a valid token, with one of them replaced or added. An empty value removes the claim.
fn payload(name: &str, value: &str) -> String {
    let mut claims = vec![
        ("iss", "\"https://id.test/\"".to_owned()),
        ("aud", "\"app\"".to_owned()),
        ("sub", "\"1\"".to_owned()),
        ("nonce", "\"the nonce\"".to_owned()),
        ("exp", (NOW + 300).to_string()),
        ("iat", NOW.to_string()),
    ];
    claims.retain(|(own, _)| *own != name);
    if !value.is_empty() {
        claims.push((name, value.to_owned()));
    }
    let members: Vec<_> = claims
        .iter()
        .map(|(name, value)| format!("\"{name}\": {value}"))
        .collect();
    format!("{{{}}}", members.join(", "))
}

fn header(algorithm: &str, id: &str) -> String {
    format!("{{\"alg\": \"{algorithm}\", \"kid\": \"{id}\"}}")
}

#[test]
fn signatures_are_accepted_by_their_own_key_alone() {
    let (provider, other) = (Provider::new(), Provider::new());
    let (keys, others) = (provider.keys(), other.keys());
    let good = payload("", "");
    for (algorithm, id) in [
        ("RS256", "rs"),
        ("RS512", "rs"),
        ("PS256", "ps"),
        ("ES256", "es"),
        ("ES384", "es3"),
        ("EdDSA", "ed"),
    ] {
        let token = provider.token(algorithm, &header(algorithm, id), &good);
        assert_eq!(
            verify(&token, &keys, &EXPECTED).expect("claims").subject(),
            Some("1"),
            "{algorithm}"
        );
        assert_eq!(
            verify(&token, &others, &EXPECTED),
            Err(IdTokenError::Signature),
            "{algorithm}"
        );
        // A changed payload, a cut signature, and a signature of another key of the provider.
        let forged = format!("{}{}", encode(header(algorithm, id).as_bytes()), ".e30.");
        let forged = forged + token.rsplit('.').next().unwrap_or_default();
        assert_eq!(
            verify(&forged, &keys, &EXPECTED),
            Err(IdTokenError::Signature),
            "{algorithm}"
        );
        assert_eq!(
            verify(&token[..token.len() - 4], &keys, &EXPECTED),
            Err(IdTokenError::Signature),
            "{algorithm}"
        );
        let wrong = provider.token(
            algorithm,
            &header(algorithm, if id == "es" { "rs" } else { "es" }),
            &good,
        );
        assert_eq!(
            verify(&wrong, &keys, &EXPECTED),
            Err(IdTokenError::Signature),
            "{algorithm}"
        );
        // Without an identifier, every key is tried.
        let nameless = format!("{{\"alg\": \"{algorithm}\"}}");
        let nameless = provider.token(algorithm, &nameless, &good);
        assert!(verify(&nameless, &keys, &EXPECTED).is_ok(), "{algorithm}");
        assert_eq!(
            verify(&nameless, &others, &EXPECTED),
            Err(IdTokenError::UnknownKey),
            "{algorithm}"
        );
        assert_eq!(
            verify(&token, &SigningKeys::default(), &EXPECTED),
            Err(IdTokenError::UnknownKey)
        );
    }
    let token = provider.token("RS256", &header("RS256", "new"), &good);
    assert_eq!(verify(&token, &keys, &EXPECTED), Err(IdTokenError::UnknownKey));
    // A key for another algorithm, and one for encryption.
    let token = provider.token("RS256", &header("RS256", "ps"), &good);
    assert_eq!(verify(&token, &keys, &EXPECTED), Err(IdTokenError::Signature));
    let token = provider.token("RS256", &header("RS256", "enc"), &good);
    assert_eq!(verify(&token, &keys, &EXPECTED), Err(IdTokenError::UnknownKey));
}

#[test]
fn no_token_is_accepted_without_a_public_key() {
    let provider = Provider::new();
    let (keys, good) = (provider.keys(), payload("", ""));
    for (algorithm, id) in [
        ("none", "rs"),
        ("None", "rs"),
        ("NONE", "rs"),
        ("HS256", "rs"),
        ("HS256", "hs"),
        ("", "rs"),
    ] {
        let token = provider.token(algorithm, &header(algorithm, id), &good);
        assert_eq!(
            verify(&token, &keys, &EXPECTED),
            Err(IdTokenError::Algorithm(algorithm.to_owned())),
            "{algorithm}"
        );
        let cut = token.rsplit_once('.').expect("a signature").0;
        assert!(verify(&format!("{cut}."), &keys, &EXPECTED).is_err() && verify(cut, &keys, &EXPECTED).is_err());
    }
    let critical = "{\"alg\": \"RS256\", \"kid\": \"rs\", \"crit\": [\"b64\"], \"b64\": false}";
    let token = provider.token("RS256", critical, &good);
    assert_eq!(verify(&token, &keys, &EXPECTED), Err(IdTokenError::Malformed));
    for junk in ["", ".", "..", "...", "a.b.c", "a.b.c.d", "{}"] {
        assert!(verify(junk, &keys, &EXPECTED).is_err(), "{junk}");
    }
}

#[test]
fn every_claim_is_checked() {
    let provider = Provider::new();
    let keys = provider.keys();
    let check = |name: &str, value: &str| {
        let token = provider.token("ES256", &header("ES256", "es"), &payload(name, value));
        verify(&token, &keys, &EXPECTED).err()
    };
    let (past, soon) = ((NOW - 61).to_string(), (NOW + 61).to_string());
    let recent = (NOW - 59).to_string();
    for (name, value, expected) in [
        ("iss", "\"https://id.test\"", Some(IdTokenError::Issuer)),
        ("iss", "", Some(IdTokenError::Issuer)),
        ("aud", "\"other\"", Some(IdTokenError::Audience)),
        ("aud", "[]", Some(IdTokenError::Audience)),
        ("aud", "", Some(IdTokenError::Audience)),
        ("aud", "[\"app\"]", None),
        ("aud", "[\"app\", \"other\"]", Some(IdTokenError::Audience)),
        ("azp", "\"app\"", None),
        ("azp", "\"other\"", Some(IdTokenError::Audience)),
        ("azp", "1", Some(IdTokenError::Audience)),
        ("exp", &past, Some(IdTokenError::Time)),
        ("exp", &recent, None),
        ("exp", "\"1800000300\"", Some(IdTokenError::Time)),
        ("exp", "", Some(IdTokenError::Time)),
        ("iat", &soon, Some(IdTokenError::Time)),
        ("iat", "", Some(IdTokenError::Time)),
        ("nbf", &soon, Some(IdTokenError::Time)),
        ("nbf", "null", Some(IdTokenError::Time)),
        ("nonce", "\"other\"", Some(IdTokenError::Nonce)),
        ("nonce", "", Some(IdTokenError::Nonce)),
        ("sub", "\"\"", Some(IdTokenError::Subject)),
        ("sub", "", Some(IdTokenError::Subject)),
    ] {
        assert_eq!(check(name, value), expected, "{name} {value}");
    }
    let several = payload("aud", "[\"app\", \"other\"], \"azp\": \"app\"");
    let token = provider.token("ES256", &header("ES256", "es"), &several);
    assert!(verify(&token, &keys, &EXPECTED).is_ok());
}
