//! Times after which sessions end, and the renewal of their cookies.
//!
//! The tests seal sessions of the past with the keys of the server, so that none has to wait.

use rocknet_oidc::cookies::{self, CookieScope};
use rocknet_oidc::{CookieKind, KeyRing, LoginSession};

use super::*;

/// The cookies of sessions at a server.
pub(super) struct SessionCookies {
    ring: KeyRing,
    kind: CookieKind,
}

impl SessionCookies {
    pub(super) fn of(server: &Running, provider: &Provider) -> SessionCookies {
        let stored = std::fs::read(server.folder.path("state/oidc/keys")).expect("keys in the state folder");
        let (issuer, scopes) = (provider.issuer(), "openid profile email");
        SessionCookies {
            ring: KeyRing::parse(&stored).expect("keys"),
            kind: CookieKind::of(&["default", &issuer, CLIENT.0, scopes, "sub", "groups", "verified"]),
        }
    }

    /// Returns a browser with a session whose login was `created` seconds ago, and whose cookie was renewed `seen`
    /// seconds ago.
    pub(super) fn browser(&self, created: u64, seen: u64) -> Browser {
        let now = unix_s();
        let session = LoginSession {
            subject: "user-1".to_owned(),
            user: "user-1".to_owned(),
            name: None,
            email: None,
            groups: Vec::new(),
            created: now - created,
            seen: now - seen,
        };
        let name = self.kind.session_name(false);
        let sealed = self.ring.seal(&self.kind.context(&name), &session.to_bytes());
        let scope = CookieScope {
            is_secure: false,
            max_age: 60,
        };
        let lines = cookies::write(&name, &sealed.expect("a value"), scope, &[]).expect("cookies");
        let fields: Vec<_> = lines.into_iter().map(|line| ("Set-Cookie".to_owned(), line)).collect();
        let mut browser = Browser::default();
        browser.store(&fields);
        browser
    }

    /// Returns the session of a browser.
    fn session(&self, browser: &Browser) -> LoginSession {
        let name = self.kind.session_name(false);
        let field = browser.field();
        let (_, cookie) = field.split_once(": ").expect("a value");
        let sealed = cookies::read(&[cookie.as_bytes()], &name).expect("a cookie");
        let opened = self.ring.open(&self.kind.context(&name), &sealed, unix_s());
        LoginSession::parse(&opened.expect("a sealed value")).expect("a session")
    }
}

fn unix_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a time").as_secs()
}

/// Returns the `Max-Age` of the cookie that a response sets, if it sets one.
fn max_age(response: &AnyResponse) -> Option<u64> {
    let (_, rest) = response.field("Set-Cookie")?.split_once("Max-Age=")?;
    let seconds = rest.split(';').next()?;
    Some(seconds.parse().expect("a number"))
}

#[test]
fn sessions_end_after_their_lifetime_and_when_they_are_idle() {
    let provider = Provider::start();
    let keys = "[site.default.route.\"/short/*\"]\nauth = { oidc = true, lifetime = \"5m\" }";
    let server = start(&provider, ", lifetime = \"1h\", idle = \"30m\"", keys);
    let cookies = SessionCookies::of(&server, &provider);
    // The times are a few seconds beside the limits, because the server reads the clock later.
    for (created, seen, target, status) in [
        (0, 0, "/a.txt", 200),
        (3_580, 0, "/a.txt", 200),
        (3_602, 0, "/a.txt", 302),
        (1_780, 1_780, "/a.txt", 200),
        (1_802, 1_802, "/a.txt", 302),
        (280, 0, "/short/x", 404),
        (302, 0, "/short/x", 302),
        (302, 0, "/a.txt", 200),
    ] {
        let mut browser = cookies.browser(created, seen);
        assert_eq!(
            browser.open(&server, target).status,
            status,
            "{created} {seen} {target}"
        );
    }
}

#[test]
fn cookies_are_kept_until_the_session_ends() {
    let provider = Provider::start();
    for (more, expected) in [
        (", lifetime = \"1h\", idle = \"30m\"", 1_800),
        (", lifetime = \"10m\", idle = \"30m\"", 600),
    ] {
        let server = start(&provider, more, "");
        let response = Browser::default().log_in(&server, &provider, "/");
        assert_eq!(max_age(&response), Some(expected), "{more}");
    }
    let server = start(&provider, ", lifetime = \"1h\", idle = \"30m\"", "");
    let cookies = SessionCookies::of(&server, &provider);
    // A renewal extends the time without a request, and not the time since the login.
    for (created, seen, expected) in [
        (100, 100, None),
        (1_000, 200, Some(1_800)),
        (3_000, 1_000, Some(600)),
        (3_500, 1_000, Some(100)),
    ] {
        let mut browser = cookies.browser(created, seen);
        let before = cookies.session(&browser);
        let found = max_age(&browser.open(&server, "/a.txt"));
        let is_close = match (found, expected) {
            (Some(found), Some(expected)) => (expected - 20..=expected).contains(&found),
            (found, expected) => found == expected,
        };
        assert!(is_close, "{created} {seen}: {found:?}");
        let after = cookies.session(&browser);
        assert_eq!(after.created, before.created);
        assert_eq!(after.seen > before.seen, expected.is_some(), "{created} {seen}");
    }
}

#[test]
fn renewed_sessions_are_kept_out_of_shared_caches() {
    let (provider, upstream) = (
        Provider::start(),
        Upstream::responding_with(
            "HTTP/1.1 200 OK\r\nCache-Control: public, s-maxage=60\r\nCDN-Cache-Control: max-age=9\r\nContent-Length: 1\r\n\r\nx",
        ),
    );
    let keys = format!(
        "headers = {{ Cache-Control = \"public, max-age=60\" }}\n[site.default.route.\"/app/*\"]\n{}\nheaders = {{ }}",
        upstream.key()
    );
    let server = start(&provider, "", &keys);
    let known = SessionCookies::of(&server, &provider).browser(1_000, 1_000);
    for (target, status) in [("/a.txt", 200), ("/app/x", 200), ("/missing", 404)] {
        let mut browser = known.clone();
        let response = browser.open(&server, target);
        assert_eq!(response.status, status, "{target}");
        assert!(response.field("Set-Cookie").is_some(), "{target}");
        assert_eq!(response.field("Cache-Control"), Some("private, no-cache"), "{target}");
        assert_eq!(response.field("CDN-Cache-Control"), None, "{target}");
        let again = browser.open(&server, target);
        assert_eq!(again.field("Set-Cookie"), None, "{target}");
        assert_ne!(again.field("Cache-Control"), Some("private, no-cache"), "{target}");
    }
}
