//! Requests to the token endpoint, and its responses (RFC 6749 §4.1.3, §5).

use std::fmt;

use base64ct::{Base64, Encoding};
use serde::Deserialize;

use crate::provider_metadata::SecretMethod;

/// Exchange of a code for tokens.
#[derive(Clone, Copy)]
pub struct TokenRequest<'a> {
    /// Identifier of this server at the provider.
    pub client_id: &'a str,
    /// Secret that the provider has given to this server; `None` for a public client.
    pub client_secret: Option<&'a str>,
    /// Way in which the secret is sent.
    pub secret_method: SecretMethod,
    /// Code of the callback.
    pub code: &'a str,
    /// Address of the callback, as in the authorization request.
    pub redirect_uri: &'a str,
    /// Secret of which the provider has the hash (RFC 7636).
    pub verifier: &'a str,
}

impl TokenRequest<'_> {
    /// Returns the body of the request, a form.
    pub fn body(&self) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", self.code)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("code_verifier", self.verifier);
        match (self.client_secret, self.secret_method) {
            (Some(_), SecretMethod::Basic) => {}
            (Some(secret), SecretMethod::Post) => {
                form.append_pair("client_id", self.client_id)
                    .append_pair("client_secret", secret);
            }
            (None, _) => {
                form.append_pair("client_id", self.client_id);
            }
        }
        form.finish()
    }

    /// Returns the value of `Authorization`; `None` if the body has the secret, or if the client has no secret. Both
    /// parts are encoded as in a form (RFC 6749 §2.3.1).
    pub fn authorization(&self) -> Option<String> {
        let secret = self
            .client_secret
            .filter(|_| self.secret_method == SecretMethod::Basic)?;
        let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encode(self.client_id), encode(secret));
        Some(format!("Basic {}", Base64::encode_string(pair.as_bytes())))
    }
}

/// Response of the token endpoint.
#[derive(Deserialize)]
pub struct TokenResponse {
    /// Signed claims about the user.
    pub id_token: String,
    /// Token for the userinfo endpoint.
    pub access_token: Option<String>,
}

/// Refusal of the token endpoint. In its text, “it” is the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenError {
    /// Error code, such as `invalid_grant`.
    pub code: String,
}

impl TokenError {
    /// Returns true if the code of the callback is unknown, was used before, or has expired.
    pub fn is_invalid_code(&self) -> bool {
        self.code == "invalid_grant"
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it refuses the code of the login with the error {:?}", self.code)
    }
}

#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

impl TokenResponse {
    /// Reads a response with status 200; `None` if it has no ID token.
    pub fn parse(json: &[u8]) -> Option<TokenResponse> {
        serde_json::from_slice(json).ok()
    }

    /// Reads a response with another status.
    pub fn error(json: &[u8]) -> Option<TokenError> {
        let body: ErrorBody = serde_json::from_slice(json).ok()?;
        Some(TokenError {
            code: body.error.chars().take(64).collect(),
        })
    }

    /// Returns the access token, if it can be sent in `Authorization`.
    pub fn bearer(&self) -> Option<&str> {
        let token = self.access_token.as_deref()?;
        (!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())).then_some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_sent_as_the_provider_wants_it() {
        let request = |secret, method| TokenRequest {
            client_id: "app:1",
            client_secret: secret,
            secret_method: method,
            code: "c&d",
            redirect_uri: "https://a.test/cb",
            verifier: "v",
        };
        let form = "grant_type=authorization_code&code=c%26d&redirect_uri=https%3A%2F%2Fa.test%2Fcb&code_verifier=v";
        let basic = request(Some("s ä"), SecretMethod::Basic);
        assert_eq!(basic.body(), form);
        // "app%3A1:s+%C3%A4".
        assert_eq!(basic.authorization().as_deref(), Some("Basic YXBwJTNBMTpzKyVDMyVBNA=="));
        let post = request(Some("s"), SecretMethod::Post);
        assert_eq!(
            (post.body(), post.authorization()),
            (format!("{form}&client_id=app%3A1&client_secret=s"), None)
        );
        let public = request(None, SecretMethod::Basic);
        assert_eq!(
            (public.body(), public.authorization()),
            (format!("{form}&client_id=app%3A1"), None)
        );
    }

    #[test]
    fn responses_are_read() {
        let found = TokenResponse::parse(b"{\"id_token\": \"a.b.c\", \"access_token\": \"t\\n\"}").expect("tokens");
        assert_eq!((&*found.id_token, found.bearer()), ("a.b.c", None));
        assert!(TokenResponse::parse(b"{\"access_token\": \"t\"}").is_none());
        let error = TokenResponse::error(b"{\"error\": \"invalid_grant\"}").expect("an error");
        assert!(error.is_invalid_code());
        assert_eq!(TokenResponse::error(b"oops"), None);
    }
}
