//! Claims of a provider about a user, and what a session keeps of them.

use std::fmt;

use serde_json::{Map, Value};

use crate::session::LoginSession;

/// Maximum length of a value that a session keeps, in bytes: that of `sub` (OpenID Connect Core 1.0 §2).
const MAX_VALUE: usize = 255;

/// Maximum number of groups that a session keeps. More would hardly fit into its cookies.
const MAX_GROUPS: usize = 256;

/// Claims about a user: the members of an ID token, or of a response from the userinfo endpoint.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claims(Map<String, Value>);

/// Names of the claims that a session keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimNames {
    /// Claim with the name of the user.
    pub user: String,
    /// Claim with the groups of the user. A dot leads into an object, as in `realm_access.roles`.
    pub groups: String,
    /// True if an email address counts although the provider has not verified it.
    pub trusts_email: bool,
}

/// Reason why claims do not identify a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimError {
    /// The claim with the name of the user is missing, or cannot be a name.
    User(String),
    /// The claim with the name is an email address that the provider has not verified.
    UnverifiedEmail,
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimError::User(name) => write!(
                f,
                "the claim `{name}` is missing or is not a text of up to {MAX_VALUE} bytes; set `user_claim` or `scopes`"
            ),
            ClaimError::UnverifiedEmail => f.write_str(
                "`email_verified` is not true, so `email` may be the address of another user; `trust_email = true` \
                 accepts it",
            ),
        }
    }
}

impl Claims {
    /// Reads a JSON object; `None` for anything else.
    pub fn parse(json: &[u8]) -> Option<Claims> {
        serde_json::from_slice(json).ok().map(Claims)
    }

    /// Returns true if there is a claim with a name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns a claim that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Returns the texts of a claim that is a text or a list of texts; no text if it has another form.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        self.0.get(name).map(texts).unwrap_or_default()
    }

    /// Returns a claim that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Returns the identifier of the user at the provider.
    pub fn subject(&self) -> Option<&str> {
        self.text("sub").filter(|subject| is_value(subject))
    }

    /// Adds the claims of the userinfo endpoint that are not in the ID token. Returns false, and adds nothing, if they
    /// are about another user (OpenID Connect Core 1.0 §5.3.2).
    #[must_use]
    pub fn complete(&mut self, userinfo: Claims) -> bool {
        let is_same = userinfo.subject().is_some() && userinfo.subject() == self.subject();
        if is_same {
            // An address and its verification belong together.
            let has_email = self.has("email");
            for (name, value) in userinfo.0 {
                let is_known = self.has(&name) || has_email && name == "email_verified";
                if !is_known {
                    self.0.insert(name, value);
                }
            }
        }
        is_same
    }

    /// Returns a claim by its name, or by the path to a member of an object.
    fn at_path(&self, path: &str) -> Option<&Value> {
        self.0.get(path).or_else(|| {
            let (first, rest) = path.split_once('.')?;
            rest.split('.')
                .try_fold(self.0.get(first)?, |value, name| value.get(name))
        })
    }
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns true for a value that can be logged and passed on in header fields.
fn is_value(text: &str) -> bool {
    (1..=MAX_VALUE).contains(&text.len()) && !text.contains(char::is_control) && text.trim() == text
}

impl ClaimNames {
    /// Returns true if claims lack one that a session would keep, so that the userinfo endpoint has to be queried.
    pub fn is_incomplete(&self, claims: &Claims) -> bool {
        let names = [&*self.user, "email", "name"];
        names.iter().any(|name| !claims.has(name)) || claims.at_path(&self.groups).is_none()
    }

    /// Returns the session of a user with these claims.
    ///
    /// # Errors
    ///
    /// Fails if the claims do not have a valid name of the user.
    pub fn session(&self, claims: &Claims, now: u64) -> Result<LoginSession, ClaimError> {
        let is_verified = claims.0.get("email_verified").is_some_and(is_true) || self.trusts_email;
        if self.user == "email" && !is_verified {
            return Err(ClaimError::UnverifiedEmail);
        }
        let missing = || ClaimError::User(self.user.clone());
        let value = |name: &str| claims.text(name).filter(|text| is_value(text)).map(str::to_owned);
        let groups = claims.at_path(&self.groups).map(texts).unwrap_or_default();
        // The groups are passed on as a list with commas, so a group with a comma would become two.
        let groups = groups
            .into_iter()
            .filter(|group| is_value(group) && !group.contains(','));
        Ok(LoginSession {
            subject: claims.subject().map(str::to_owned).ok_or_else(missing)?,
            user: value(&self.user).ok_or_else(missing)?,
            name: value("name"),
            email: value("email").filter(|_| is_verified),
            groups: groups.take(MAX_GROUPS).map(str::to_owned).collect(),
            created: now,
            seen: now,
        })
    }
}

/// Returns true for `true`. Some providers write the text `"true"`.
fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true) || value.as_str() == Some("true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(user: &str, groups: &str) -> ClaimNames {
        ClaimNames {
            user: user.to_owned(),
            groups: groups.to_owned(),
            trusts_email: false,
        }
    }

    fn claims(json: &str) -> Claims {
        Claims::parse(json.as_bytes()).expect("an object")
    }

    #[test]
    fn groups_are_found_by_name_and_by_path() {
        let found = claims(
            "{\"sub\": \"1\", \"groups\": [\"a\", 2, \"b,c\", \"d\\n\", \" e\", \"f g\"], \"role\": \"one\", \
             \"realm_access\": {\"roles\": [\"x\"]}, \"https://a.test/roles\": [\"y\"]}",
        );
        for (name, expected) in [
            ("groups", &["a", "f g"][..]),
            ("role", &["one"]),
            ("realm_access.roles", &["x"]),
            ("https://a.test/roles", &["y"]),
            ("realm_access", &[]),
            ("realm_access.none", &[]),
            ("none", &[]),
        ] {
            let session = names("sub", name).session(&found, 5).expect("a session");
            assert_eq!(session.groups, expected, "{name}");
        }
    }

    #[test]
    fn unverified_addresses_do_not_count() {
        for (verified, counts) in [
            ("true", true),
            ("\"true\"", true),
            ("false", false),
            ("\"x\"", false),
            ("1", false),
        ] {
            let found = claims(&format!(
                "{{\"sub\": \"1\", \"email\": \"a@b.test\", \"email_verified\": {verified}}}"
            ));
            let session = names("sub", "groups").session(&found, 5).expect("a session");
            assert_eq!(session.email.is_some(), counts, "{verified}");
            assert_eq!(
                names("email", "groups").session(&found, 5).is_ok(),
                counts,
                "{verified}"
            );
        }
        let found = claims("{\"sub\": \"1\", \"email\": \"a@b.test\"}");
        assert_eq!(
            names("email", "groups").session(&found, 5),
            Err(ClaimError::UnverifiedEmail)
        );
        let trusting = ClaimNames {
            trusts_email: true,
            ..names("email", "groups")
        };
        assert_eq!(trusting.session(&found, 5).expect("a session").user, "a@b.test");
    }

    #[test]
    fn names_of_users_are_checked() {
        for user in [
            "\"\"",
            "1",
            "\"a\\r\\nb\"",
            "[\"a\"]",
            "\" a\"",
            &format!("\"{}\"", "x".repeat(256)),
        ] {
            let found = claims(&format!("{{\"sub\": \"1\", \"name\": {user}}}"));
            let refused = names("name", "groups").session(&found, 5);
            assert_eq!(refused, Err(ClaimError::User("name".to_owned())), "{user}");
        }
    }

    #[test]
    fn userinfo_adds_claims_of_the_same_user_alone() {
        let own = claims("{\"sub\": \"1\", \"email\": \"a@b.test\"}");
        assert!(names("sub", "groups").is_incomplete(&own));
        let mut completed = own.clone();
        assert!(!completed.complete(claims("{\"sub\": \"2\", \"groups\": [\"admins\"]}")));
        assert!(!completed.complete(claims("{\"groups\": [\"admins\"]}")));
        assert_eq!(completed, own);
        let more =
            "{\"sub\": \"1\", \"email\": \"c@d.test\", \"email_verified\": true, \"groups\": \"g\", \"name\": \"A\"}";
        assert!(completed.complete(claims(more)));
        assert_eq!(
            (completed.text("email"), completed.has("email_verified")),
            (Some("a@b.test"), false)
        );
        assert_eq!(completed.texts("groups"), ["g"]);
        assert!(!names("sub", "groups").is_incomplete(&completed));
    }
}
