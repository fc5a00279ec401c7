//! Names of the cookies of one client registration at a provider, and the contexts in which their values are sealed.

use aws_lc_rs::digest;

use crate::cookies;

/// Number of hash bytes in a cookie name. Few are sufficient to distinguish the registrations of one host, because the
/// value is sealed in the context of the whole hash.
const NAME_BYTES: usize = 4;

/// Beginning of the purpose (see [`cookies::name`]) in the name of a session cookie.
const SESSION: &str = "session-";

/// Beginning of the purpose in the name of a login cookie.
const LOGIN: &str = "login-";

/// Cookies of one client registration at one site. The cookies of other registrations have other names, and their
/// values cannot be opened in the context of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieKind {
    /// SHA-256 of all settings that identify the registration, in hexadecimal digits.
    hash: String,
}

impl CookieKind {
    /// Returns the cookies of a client registration with these settings.
    pub fn of(settings: &[&str]) -> CookieKind {
        let mut context = digest::Context::new(&digest::SHA256);
        for setting in settings {
            // The lengths separate the settings unambiguously.
            context.update(&(setting.len() as u64).to_le_bytes());
            context.update(setting.as_bytes());
        }
        let hash = context.finish();
        CookieKind {
            hash: hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Returns the name of the cookie with the session. `is_secure`: true if the cookie is sent only over TLS.
    pub fn session_name(&self, is_secure: bool) -> String {
        cookies::name(&format!("{SESSION}{}", self.short()), is_secure)
    }

    /// Returns the name of the cookie of a login. `label`: see [`PendingLogin::label`](crate::PendingLogin::label).
    pub fn login_name(&self, label: &str, is_secure: bool) -> String {
        cookies::name(&format!("{LOGIN}{}-{label}", self.short()), is_secure)
    }

    /// Returns true if a cookie with this name has a login, or a part of a session, of this registration.
    pub fn has_name(&self, name: &[u8]) -> bool {
        let kind = cookies::kind(name).unwrap_or_default();
        let mut rests = [SESSION, LOGIN].into_iter().filter_map(|purpose| {
            kind.strip_prefix(purpose.as_bytes())?
                .strip_prefix(self.short().as_bytes())
        });
        rests.any(|rest| rest.is_empty() || rest.starts_with(b"-"))
    }

    /// Returns the context in which the value of a cookie is sealed; see [`KeyRing::seal`](crate::KeyRing::seal).
    pub fn context(&self, name: &str) -> String {
        format!("{name} {}", self.hash)
    }

    fn short(&self) -> &str {
        &self.hash[..2 * NAME_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_and_purposes_differ() {
        let kinds = [&["ab", "c"][..], &["a", "bc"], &["abc"], &["ab", "c", ""]].map(CookieKind::of);
        for (at, kind) in kinds.iter().enumerate() {
            assert_eq!(kinds.iter().filter(|other| *other == kind).count(), 1, "{at}");
            let name = kind.session_name(true);
            assert!(
                name.starts_with("__Host-rocknet-session-") && cookies::is_own(name.as_bytes()),
                "{name}"
            );
            let names = [
                name,
                kind.session_name(false),
                kind.login_name("a", true),
                kind.login_name("b", true),
            ];
            let contexts: std::collections::BTreeSet<_> = names.iter().map(|name| kind.context(name)).collect();
            assert_eq!(contexts.len(), names.len());
        }
    }

    #[test]
    fn cookies_are_known_by_their_names() {
        let (own, other) = (CookieKind::of(&["a"]), CookieKind::of(&["b"]));
        let session = own.session_name(false);
        for name in [
            &session,
            &format!("{session}-1"),
            &own.session_name(true),
            &own.login_name("a", true),
        ] {
            let found = [&own, &other].map(|kind| kind.has_name(name.as_bytes()));
            assert_eq!(found, [true, false], "{name}");
        }
        for name in [
            "",
            "session",
            "rocknet-",
            "rocknet-session-",
            &format!("{session}x"),
            &format!("x{session}"),
            &session["rocknet-".len()..],
            &session.to_uppercase(),
        ] {
            assert!(!own.has_name(name.as_bytes()), "{name}");
        }
    }
}
