//! Body shared by the fuzz target and the test that replays its seeds.

use crate::id_token::{ExpectedToken, verify};
use crate::{Claims, KeyRing, LoginSession, PendingLogin, ProviderMetadata, SigningKeys, TokenResponse, cookies};

/// Parses any bytes as each message that a browser or a provider sends. None of them is accepted as signed or sealed.
pub fn messages(data: &[u8]) {
    let ring = KeyRing::random(1_000).expect("the system provides random numbers");
    for name in ["rocknet-a", "a"] {
        if let Some(sealed) = cookies::read(&[data], name) {
            assert_eq!(ring.open("a", &sealed, 1_000), None);
        }
    }
    let _ = (LoginSession::parse(data), KeyRing::parse(data), Claims::parse(data));
    let _ = ProviderMetadata::parse("https://id.test/", data);
    let _ = (TokenResponse::parse(data), TokenResponse::error(data));
    let keys = SigningKeys::parse(data).unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = PendingLogin::label(text);
        let expected = ExpectedToken {
            issuer: "https://id.test/",
            client_id: "app",
            nonce: "nonce",
            now: 1_000,
        };
        assert!(verify(text, &keys, &expected).is_err());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_of_the_fuzz_target_pass() {
        let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/oidc_messages");
        let mut seen = 0;
        for entry in std::fs::read_dir(seeds).expect("a folder") {
            super::messages(&std::fs::read(entry.expect("an entry").path()).expect("a seed"));
            seen += 1;
        }
        // An empty folder would be noticed.
        assert!(seen >= 8, "{seen} seeds");
    }
}
