//! Sessions of browsers that are signed in, and the links that sign them in.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::rand;
use rocknet_control::api::Permission;
use subtle::ConstantTimeEq;

use super::notice::Notice;

/// Name of the cookie with the secret of a session.
const COOKIE: &str = "rocknet_session";

/// Number of random bytes in a secret. Each byte is written as two hexadecimal digits.
const SECRET_BYTES: usize = 32;

/// Maximum number of sessions. If one more begins, the session that has been idle longest ends. The number bounds the
/// memory, because each session can keep a report of 48 KiB.
const MAX_SESSIONS: usize = 32;

/// Idle time after which a session ends.
const IDLE: Duration = Duration::from_secs(12 * 3600);

/// Maximum duration of a session, even in constant use.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Maximum number of unused links. If one more is created, the oldest link is no longer valid. Few are needed, because
/// each is used within minutes.
const MAX_LINKS: usize = 8;

/// Time after which a link expires. A user has to copy the link from a terminal to a browser within this time.
pub const LINK_LIFETIME: Duration = Duration::from_secs(300);

/// All sessions and links of a server. They are in memory only, so they end with the server.
#[derive(Default)]
pub struct Sessions(Mutex<SessionTable>);

#[derive(Default)]
struct SessionTable {
    sessions: Vec<Session>,
    links: Vec<Link>,
}

struct Session {
    secret: String,
    permission: Permission,
    began: Instant,
    used: Instant,
    /// Number of the report about the last instruction, and the report; 0 and `None` before the first report.
    notice: (u64, Option<Notice>),
}

struct Link {
    code: String,
    created: Instant,
}

impl Sessions {
    /// Begins a session and returns its secret, or `None` if the system provides no random numbers.
    pub fn begin(&self, permission: Permission, now: Instant) -> Option<String> {
        let secret = secret()?;
        let mut table = self.lock(now);
        if table.sessions.len() >= MAX_SESSIONS
            && let Some((oldest, _)) = table
                .sessions
                .iter()
                .enumerate()
                .min_by_key(|(_, session)| session.used)
        {
            table.sessions.swap_remove(oldest);
        }
        table.sessions.push(Session {
            secret: secret.clone(),
            permission,
            began: now,
            used: now,
            notice: (0, None),
        });
        Some(secret)
    }

    /// Returns the permission of a session, and records its use. Returns `None` if no session has the secret.
    pub fn permission(&self, secret: &str, now: Instant) -> Option<Permission> {
        let mut table = self.lock(now);
        let session = table
            .sessions
            .iter_mut()
            .find(|session| is_same(&session.secret, secret))?;
        session.used = now;
        Some(session.permission)
    }

    /// Stores a report for the next page of a session, in place of an earlier report. Returns the number of the
    /// report; `None` if no session has the secret.
    pub fn leave_notice(&self, secret: &str, notice: Notice, now: Instant) -> Option<u64> {
        let mut table = self.lock(now);
        let mut sessions = table.sessions.iter_mut();
        let session = sessions.find(|session| is_same(&session.secret, secret))?;
        session.notice = (session.notice.0 + 1, Some(notice));
        Some(session.notice.0)
    }

    /// Returns the report with this number; `None` if a later report has replaced it.
    pub fn notice(&self, secret: &str, number: u64, now: Instant) -> Option<Notice> {
        let table = self.lock(now);
        let mut sessions = table.sessions.iter();
        let session = sessions.find(|session| is_same(&session.secret, secret))?;
        session.notice.1.clone().filter(|_| session.notice.0 == number)
    }

    /// Ends a session.
    pub fn end(&self, secret: &str, now: Instant) {
        self.lock(now)
            .sessions
            .retain(|session| !is_same(&session.secret, secret));
    }

    /// Creates the code of a link, or returns `None` if the system provides no random numbers.
    pub fn create_link(&self, now: Instant) -> Option<String> {
        let code = secret()?;
        let mut table = self.lock(now);
        if table.links.len() >= MAX_LINKS {
            table.links.remove(0);
        }
        table.links.push(Link {
            code: code.clone(),
            created: now,
        });
        Some(code)
    }

    /// Uses up the code of a link. Returns true if the code is valid; a code is valid once.
    pub fn use_link(&self, code: &str, now: Instant) -> bool {
        let mut table = self.lock(now);
        let found = table.links.iter().position(|link| is_same(&link.code, code));
        found.map(|index| table.links.remove(index)).is_some()
    }

    /// Locks the table and removes everything that has expired.
    fn lock(&self, now: Instant) -> MutexGuard<'_, SessionTable> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.sessions.retain(|session| {
            now.saturating_duration_since(session.used) < IDLE
                && now.saturating_duration_since(session.began) < LIFETIME
        });
        table
            .links
            .retain(|link| now.saturating_duration_since(link.created) < LINK_LIFETIME);
        table
    }
}

/// Compares two secrets in a time that does not depend on the position of a difference.
fn is_same(known: &str, given: &str) -> bool {
    known.as_bytes().ct_eq(given.as_bytes()).into()
}

/// Returns a random secret; `None` if the system provides no random numbers.
fn secret() -> Option<String> {
    let mut bytes = [0; SECRET_BYTES];
    rand::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the secret of a session in the values of `Cookie` fields (RFC 6265 §4.2), if there is one.
pub fn secret_in<'v>(mut cookies: impl Iterator<Item = &'v [u8]>) -> Option<&'v str> {
    cookies.find_map(|value| {
        std::str::from_utf8(value).ok()?.split(';').find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == COOKIE).then_some(value)
        })
    })
}

/// Returns the value of `Set-Cookie` that begins a session in a browser. The cookie ends with the browser.
///
/// `is_secure`: true if the dashboard is served over TLS, so that the browser sends the cookie over TLS only. Without
/// TLS, the dashboard listens only at loopback addresses, so the cookie does not leave the machine.
pub fn set_cookie(secret: &str, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// Returns the value of `Set-Cookie` that removes the cookie.
pub fn clear_cookie() -> String {
    format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_end_after_disuse_and_after_their_lifetime() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let secret = sessions.begin(Permission::Read, start).unwrap();
        assert_eq!(secret.len(), 2 * SECRET_BYTES);
        assert_eq!(sessions.permission(&secret, start + IDLE / 2), Some(Permission::Read));
        assert_eq!(sessions.permission(&secret, start + IDLE), Some(Permission::Read));
        assert_eq!(sessions.permission(&secret, start + 2 * IDLE), None);

        let secret = sessions.begin(Permission::Full, start).unwrap();
        let mut now = start;
        while now + IDLE / 2 < start + LIFETIME {
            now += IDLE / 2;
            assert_eq!(sessions.permission(&secret, now), Some(Permission::Full));
        }
        assert_eq!(sessions.permission(&secret, start + LIFETIME), None);
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let at = |second: usize| start + Duration::from_secs(second as u64);
        let all: Vec<_> = (0..MAX_SESSIONS)
            .map(|number| sessions.begin(Permission::Full, at(number)).unwrap())
            .collect();
        // The first session is used, so the second one is the oldest.
        assert!(sessions.permission(&all[0], at(MAX_SESSIONS)).is_some());
        sessions.begin(Permission::Full, at(MAX_SESSIONS + 1)).unwrap();
        let is_known = |secret| sessions.permission(secret, at(MAX_SESSIONS + 2)).is_some();
        assert!(is_known(&all[0]) && !is_known(&all[1]) && is_known(&all[2]));
        sessions.end(&all[2], at(MAX_SESSIONS + 2));
        assert!(!is_known(&all[2]));
    }

    #[test]
    fn reports_belong_to_their_session() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [one, other] = [(); 2].map(|()| sessions.begin(Permission::Full, now).unwrap());
        let first = sessions.leave_notice(&one, Notice::good("first"), now).unwrap();
        assert_eq!(sessions.notice(&one, first, now), Some(Notice::good("first")));
        // Reloading a page shows its report again.
        assert_eq!(sessions.notice(&one, first, now), Some(Notice::good("first")));
        assert_eq!(sessions.notice(&other, first, now), None);
        let second = sessions.leave_notice(&one, Notice::good("second"), now).unwrap();
        assert_eq!(sessions.notice(&one, first, now), None);
        assert_eq!(sessions.notice(&one, second, now), Some(Notice::good("second")));
        assert_eq!(sessions.leave_notice("none", Notice::good("third"), now), None);
    }

    #[test]
    fn links_are_valid_once_and_for_a_short_time() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let code = sessions.create_link(start).unwrap();
        assert!(!sessions.use_link("", start) && !sessions.use_link(&code[1..], start));
        assert!(sessions.use_link(&code, start));
        assert!(!sessions.use_link(&code, start));
        let late = sessions.create_link(start).unwrap();
        assert!(!sessions.use_link(&late, start + LINK_LIFETIME));
        let first = sessions.create_link(start).unwrap();
        let others: Vec<_> = (0..MAX_LINKS).map(|_| sessions.create_link(start).unwrap()).collect();
        assert!(!sessions.use_link(&first, start));
        assert!(others.iter().all(|code| sessions.use_link(code, start)));
    }

    #[test]
    fn the_secret_is_found_among_other_cookies() {
        let found = |fields: &[&'static str]| secret_in(fields.iter().map(|field| field.as_bytes()));
        assert_eq!(found(&["a=b; rocknet_session=xyz"]), Some("xyz"));
        assert_eq!(found(&["a=b", "rocknet_session=xyz;c=d"]), Some("xyz"));
        assert_eq!(found(&["xrocknet_session=xyz", "rocknet_session"]), None);
        assert_eq!(found(&[]), None);
        for value in [set_cookie("x", false), set_cookie("x", true), clear_cookie()] {
            assert!(value.contains("; HttpOnly; SameSite=Strict"), "{value}");
        }
    }
}
