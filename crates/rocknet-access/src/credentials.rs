//! Credentials of HTTP Basic authentication (RFC 7617).

use base64ct::{Base64, Encoding};
use rocknet_config::model::{MAX_USER_BYTES, is_user_name};
use zeroize::Zeroizing;

/// Maximum length of a password in bytes. The cost of SHA-crypt and apr1 grows with the length, which the client
/// chooses.
pub const MAX_PASSWORD_BYTES: usize = 256;

/// Maximum length of a name, a colon and a password in base64. Base64 encodes three bytes as four characters.
const MAX_ENCODED_BYTES: usize = (MAX_USER_BYTES + 1 + MAX_PASSWORD_BYTES).div_ceil(3) * 4;

/// User name and password from an `Authorization` header field (RFC 7617 §2). The memory is zeroed on drop.
#[derive(Clone)]
pub struct Credentials {
    /// `USER:PASSWORD`
    text: Zeroizing<String>,
    /// Index of the colon.
    colon: usize,
}

impl Credentials {
    /// Parses the value of an `Authorization` header field. Returns `None` for another scheme, for a malformed
    /// value, and for credentials that no user can have.
    pub fn parse(value: &[u8]) -> Option<Credentials> {
        let (scheme, rest) = value.split_at_checked(BASIC.len())?;
        if !scheme.eq_ignore_ascii_case(BASIC) || !rest.starts_with(b" ") {
            return None;
        }
        let encoded = rest.trim_ascii();
        if encoded.len() > MAX_ENCODED_BYTES {
            return None;
        }
        let mut buffer = Zeroizing::new([0; MAX_ENCODED_BYTES / 4 * 3]);
        let decoded = Base64::decode(encoded, buffer.as_mut_slice()).ok()?;
        let text = Zeroizing::new(std::str::from_utf8(decoded).ok()?.to_owned());
        let (user, password) = text.split_once(':')?;
        if !is_user_name(user) || password.len() > MAX_PASSWORD_BYTES || password.contains(|c: char| c.is_control()) {
            return None;
        }
        let colon = user.len();
        Some(Credentials { text, colon })
    }

    /// Returns the user name.
    pub fn user(&self) -> &str {
        &self.text[..self.colon]
    }

    /// Returns the password.
    pub fn password(&self) -> &str {
        &self.text[self.colon + 1..]
    }
}

const BASIC: &[u8] = b"Basic";

/// Prints only the user name, so that no log contains the password.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the value of an `Authorization` field with this text in base64.
    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut buffer = vec![0; text.len().div_ceil(3) * 4];
        let encoded = Base64::encode(text, &mut buffer).unwrap();
        format!("Basic {encoded}").into_bytes()
    }

    /// Returns the user name and password of a value.
    fn parts(value: &[u8]) -> Option<(String, String)> {
        let credentials = Credentials::parse(value)?;
        Some((credentials.user().to_owned(), credentials.password().to_owned()))
    }

    #[test]
    fn fields_are_parsed() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        // The examples of RFC 7617 §2 and §2.1.
        assert_eq!(
            parts(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            pair("Aladdin", "open sesame")
        );
        assert_eq!(parts(b"Basic dGVzdDoxMjPCow=="), pair("test", "123£"));
        assert_eq!(parts(b"bASIC   dGVzdDoxMjPCow==  "), pair("test", "123£"));
        assert_eq!(parts(&encoded(b"a:")), pair("a", ""));
        assert_eq!(parts(&encoded(b"a:b:c")), pair("a", "b:c"));
        // Values that are malformed or have another scheme.
        for bad in [
            &b""[..],
            b"Basic",
            b"Basic ",
            b"BasicdGVzdDoxMjPCow==",
            b"Basic\tdGVzdDoxMjPCow==",
            b"Bearer dGVzdDoxMjPCow==",
            b"Basic dGVzdDoxMjPCow",
            b"Basic dGVzdDoxMjPCow=",
            b"Basic dGVzdDoxMjPCox==",
            b"Basic dGVzd DoxMjPCow==",
            b"Basic dGVzdDoxMjPCow==\x00",
            b"Basic \xff\xff\xff\xff",
        ] {
            assert_eq!(parts(bad), None, "{}", String::from_utf8_lossy(bad));
        }
        // Texts that are not a valid name and password.
        for bad in [
            &b":secret"[..],
            b"bob",
            b"",
            b"bo\nb:x",
            b"bob:x\x00",
            b"b\xffb:x",
            "bob:\u{85}".as_bytes(),
        ] {
            assert_eq!(parts(&encoded(bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn name_and_password_have_a_maximum_length() {
        let value =
            |user: usize, password: usize| encoded(format!("{}:{}", "u".repeat(user), "p".repeat(password)).as_bytes());
        assert!(parts(&value(MAX_USER_BYTES, MAX_PASSWORD_BYTES)).is_some());
        assert_eq!(parts(&value(MAX_USER_BYTES + 1, 1)), None);
        assert_eq!(parts(&value(1, MAX_PASSWORD_BYTES + 1)), None);
        assert_eq!(parts(&value(1, 100_000)), None);
    }

    #[test]
    fn debug_output_does_not_contain_the_password() {
        let credentials = Credentials::parse(&encoded(b"bob:swordfish")).unwrap();
        assert!(!format!("{credentials:?}").contains("swordfish"));
    }

    #[test]
    fn seeds_of_the_fuzz_target_pass() {
        let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/basic_credentials");
        let mut seen = 0;
        for entry in std::fs::read_dir(seeds).unwrap() {
            crate::fuzzing::credentials(&std::fs::read(entry.unwrap().path()).unwrap());
            seen += 1;
        }
        // The folder has at least six seeds, so an empty folder is noticed.
        assert!(seen >= 6, "{seen} seeds");
    }

    proptest! {
        #[test]
        fn encoded_credentials_are_parsed(user in "[^:\\p{Cc}]{1,60}", password in "\\PC{0,60}") {
            prop_assert_eq!(parts(&encoded(format!("{user}:{password}").as_bytes())), Some((user, password)));
        }

        #[test]
        fn parsing_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            Credentials::parse(&bytes);
            Credentials::parse(&encoded(&bytes));
        }
    }
}
