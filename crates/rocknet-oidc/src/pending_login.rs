//! A login that has begun: the request to the provider, and the values that its callback is compared with.

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::encoding::{encode, random_text};

/// Time in seconds in which a user has to log in at the provider.
pub const LOGIN_TIME_S: u64 = 10 * 60;

/// Maximum length of [`PendingLogin::target`] in bytes, because a cookie keeps it. A longer target becomes `/`.
const MAX_TARGET: usize = 768;

/// Labels of the logins that one browser can have in progress. The label of a login is the first character of its state
/// and the end of the name of its cookie. A fifth login replaces an earlier one, so that the cookies of all logins fit
/// into the head of the next request.
const LABELS: [&str; 4] = ["0", "1", "2", "3"];

/// A login that has begun. It is kept in an encrypted cookie, so that no other browser can complete it. Its members
/// have short names there, because the size of a cookie is limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingLogin {
    /// Value that the callback has to contain (RFC 6749 §10.12).
    #[serde(rename = "s")]
    pub state: String,
    /// Value that the ID token has to contain.
    #[serde(rename = "n")]
    pub nonce: String,
    /// Secret whose hash the provider gets when the login begins (RFC 7636).
    #[serde(rename = "v")]
    pub verifier: String,
    /// Address of the callback.
    #[serde(rename = "r")]
    pub redirect_uri: String,
    /// Path and query to which the browser is sent after the login.
    #[serde(rename = "t")]
    pub target: String,
    /// Unix time of the beginning in seconds.
    #[serde(rename = "c")]
    pub created: u64,
}

/// Constant parts of a request to the authorization endpoint of a provider.
#[derive(Debug, Clone, Copy)]
pub struct AuthorizationRequest<'a> {
    /// URL of the endpoint.
    pub endpoint: &'a str,
    /// Identifier of this server at the provider.
    pub client_id: &'a str,
    /// Scopes, separated by spaces.
    pub scope: &'a str,
}

impl PendingLogin {
    /// Begins a login. `target`: path and query of the request that needs it. `is_taken`: true for the label of another
    /// login of the browser, which is replaced only if all labels are taken. `None` if the system has no random
    /// numbers.
    pub fn begin(
        redirect_uri: String,
        target: &[u8],
        is_taken: impl Fn(&str) -> bool,
        now: u64,
    ) -> Option<PendingLogin> {
        // 18 bytes, so that state and nonce cannot be guessed. 32 bytes of the verifier: RFC 7636 §4.1.
        let random = random_text::<18>()?;
        let free: Vec<&str> = LABELS.into_iter().filter(|label| !is_taken(label)).collect();
        let labels = if free.is_empty() { &LABELS[..] } else { &free };
        // Logins that begin at the same time, such as those of windows that a browser restores, get different labels.
        let label = labels.get(usize::from(*random.as_bytes().first()?) % labels.len())?;
        Some(PendingLogin {
            state: format!("{label}{random}"),
            nonce: random_text::<18>()?,
            verifier: random_text::<32>()?,
            redirect_uri,
            target: own_target(target).to_owned(),
            created: now,
        })
    }

    /// Returns the label of the login with this state, from which the name of its cookie is made. `None` if the state
    /// does not begin with a label, as in a forged callback.
    pub fn label(state: &str) -> Option<&str> {
        state.get(..1).filter(|label| LABELS.contains(label))
    }

    /// Reads a login as [`PendingLogin::to_bytes`] has written it.
    pub fn parse(bytes: &[u8]) -> Option<PendingLogin> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the login in the form in which a cookie keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns true if the login began less than [`LOGIN_TIME_S`] ago. It may have begun up to 60 seconds in the
    /// future, because clocks are adjusted.
    pub fn is_current(&self, now: u64) -> bool {
        now < self.created.saturating_add(LOGIN_TIME_S) && self.created <= now.saturating_add(60)
    }

    /// Returns the URL to which the browser is redirected.
    pub fn url(&self, request: &AuthorizationRequest<'_>) -> String {
        let challenge = encode(digest::digest(&digest::SHA256, self.verifier.as_bytes()).as_ref());
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("response_type", "code")
            .append_pair("client_id", request.client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("scope", request.scope)
            .append_pair("state", &self.state)
            .append_pair("nonce", &self.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .finish();
        let separator = if request.endpoint.contains('?') { '&' } else { '?' };
        format!("{}{separator}{query}", request.endpoint)
    }
}

/// Returns a target that can be appended to the origin of the site: a path with query, in characters of a URL. Any
/// other target becomes `/`.
fn own_target(target: &[u8]) -> &str {
    let text = std::str::from_utf8(target).unwrap_or_default();
    let is_target =
        text.starts_with('/') && text.len() <= MAX_TARGET && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_target { text } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending() -> PendingLogin {
        PendingLogin {
            state: "state-1234".to_owned(),
            nonce: "nonce".to_owned(),
            // RFC 7636 appendix B.
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
            redirect_uri: "https://a.test/cb".to_owned(),
            target: "/".to_owned(),
            created: 1000,
        }
    }

    #[test]
    fn the_url_has_every_parameter() {
        let url = pending().url(&AuthorizationRequest {
            endpoint: "https://id.test/auth?realm=a",
            client_id: "a b",
            scope: "openid email",
        });
        assert_eq!(
            url,
            "https://id.test/auth?realm=a&response_type=code&client_id=a+b&redirect_uri=https%3A%2F%2Fa.test%2Fcb\
             &scope=openid+email&state=state-1234&nonce=nonce\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
        );
    }

    #[test]
    fn logins_differ_and_expire() {
        let [one, two] =
            [0, 1].map(|_| PendingLogin::begin(String::new(), b"/", |_| false, 1000).expect("random numbers"));
        assert!(one.state != two.state && one.nonce != two.nonce && one.verifier != two.verifier);
        assert!(one.verifier.len() >= 43 && one.state.len() >= 22);
        assert_eq!(PendingLogin::label(&one.state), Some(&one.state[..1]));
        for state in ["", "4", "a=b; c=d", "ääääääää", "\u{0}bcdefgh"] {
            assert_eq!(PendingLogin::label(state), None, "{state}");
        }
        // A free label is taken first. If all are taken, an earlier login is replaced.
        for _ in 0..20 {
            let begun = |is_taken: fn(&str) -> bool| {
                let begun = PendingLogin::begin(String::new(), b"/", is_taken, 0).expect("random numbers");
                PendingLogin::label(&begun.state).expect("a label").to_owned()
            };
            assert_eq!(begun(|label| label != "2"), "2");
            assert!(LABELS.contains(&&*begun(|_| true)));
        }
        assert!(one.is_current(1000) && one.is_current(1599) && one.is_current(950));
        assert!(!one.is_current(1600) && !one.is_current(900));
    }

    #[test]
    fn targets_are_paths_of_the_site() {
        let long = format!("/{}", "x".repeat(MAX_TARGET));
        for (target, expected) in [
            ("/a?b=c", "/a?b=c"),
            // It is appended to the origin, so it stays at the site.
            ("//evil.test/", "//evil.test/"),
            ("https://evil.test/", "/"),
            ("", "/"),
            ("*", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
            ("/ä", "/"),
            (&long, "/"),
        ] {
            let begun = PendingLogin::begin(String::new(), target.as_bytes(), |_| false, 0).expect("random numbers");
            assert_eq!(begun.target, expected, "{target}");
        }
    }
}
