//! Metrics of logins and sessions.

use super::lifetimes::SessionCookies;
use super::*;
use crate::metrics::value;

/// Returns the value of a sample of the default site.
fn sample(server: &Running, name: &str, label: &str, outcome: &str) -> f64 {
    let sample = format!("rocknet_oidc_{name}_total{{site=\"default\",{label}=\"{outcome}\"}}");
    value(server, &sample).unwrap_or_else(|| panic!("no sample {sample}"))
}

/// Returns the numbers of logins: begun, completed, failed and errors.
fn logins(server: &Running) -> [f64; 4] {
    ["begun", "completed", "failed", "error"].map(|outcome| sample(server, "logins", "outcome", outcome))
}

/// Returns the numbers of requests whose session was rejected: expired, invalid and forbidden.
fn rejected(server: &Running) -> [f64; 3] {
    ["expired", "invalid", "forbidden"].map(|reason| sample(server, "rejected_sessions", "reason", reason))
}

#[test]
fn logins_are_counted_by_outcome() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    assert_eq!(logins(&server), [0.0; 4]);
    // A program is not redirected, so no login begins.
    assert_eq!(server.fetch("GET /a.txt", &[]).status, 401);
    assert_eq!(logins(&server), [0.0; 4]);
    let mut browser = Browser::default();
    let callback = browser.begin(&server, &provider, "/");
    assert_eq!(logins(&server), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(Browser::default().open(&server, &callback).status, 400);
    assert_eq!(logins(&server), [1.0, 0.0, 1.0, 0.0]);
    let mut replayed = browser.clone();
    assert_eq!(browser.open(&server, &callback).status, 302);
    assert_eq!(logins(&server), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(replayed.open(&server, &callback).status, 400);
    assert_eq!(logins(&server), [1.0, 1.0, 2.0, 0.0]);
    // The user declines.
    let mut declining = Browser::default();
    let callback = declining.begin(&server, &provider, "/");
    let (path, query) = callback.split_once("?code=").expect("a code");
    let (_, state) = query.split_once('&').expect("a state");
    let declined = format!("{path}?error=access_denied&{state}");
    assert_eq!(declining.open(&server, &declined).status, 403);
    assert_eq!(logins(&server), [2.0, 1.0, 3.0, 0.0]);
    // The provider fails after the login began.
    let mut unlucky = Browser::default();
    let callback = unlucky.begin(&server, &provider, "/");
    provider.state().status = 500;
    assert_eq!(unlucky.open(&server, &callback).status, 502);
    assert_eq!(logins(&server), [3.0, 1.0, 3.0, 1.0]);
    assert_eq!(server.server().status().auth_errors, 1);
    // A request with a session is not a login.
    assert_eq!(browser.open(&server, "/a.txt").status, 200);
    assert_eq!((logins(&server), rejected(&server)), ([3.0, 1.0, 3.0, 1.0], [0.0; 3]));
    let closed = RefusingPort::new();
    let server = start_at(&format!("http://{}", closed.address()), "", "");
    assert_eq!(server.fetch("GET /a.txt", &[PAGE]).status, 502);
    assert_eq!(logins(&server), [0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn rejected_sessions_are_counted_by_reason() {
    let provider = Provider::start();
    let keys = "[site.default.route.\"/admin/*\"]\nauth = { oidc = true, groups = [\"admins\"] }";
    let server = start(&provider, ", lifetime = \"1h\", idle = \"30m\"", keys);
    let mut browser = Browser::default();
    browser.log_in(&server, &provider, "/");
    assert_eq!(rejected(&server), [0.0; 3]);
    assert_eq!(browser.open(&server, "/admin/x").status, 403);
    assert_eq!(rejected(&server), [0.0, 0.0, 1.0]);
    let cookies = SessionCookies::of(&server, &provider);
    for (created, seen) in [(3_700, 10), (2_000, 1_900)] {
        let cookie = cookies.browser(created, seen).field();
        assert_eq!(server.fetch("GET /a.txt", &[&cookie]).status, 401);
    }
    assert_eq!(rejected(&server), [2.0, 0.0, 1.0]);
    let falsified = browser.field().replace("=1.", "=1.A");
    for cookie in [falsified, browser.field().replace("=1.", "=x")] {
        assert_eq!(server.fetch("GET /a.txt", &[&cookie]).status, 401, "{cookie}");
    }
    assert_eq!(rejected(&server), [2.0, 2.0, 1.0]);
    // Other cookies are no session, and a logout does not use the session to admit the request.
    assert_eq!(server.fetch("GET /a.txt", &["Cookie: a=1"]).status, 401);
    let expired = cookies.browser(3_700, 10).field();
    let own = "Sec-Fetch-Site: same-origin";
    assert_eq!(server.fetch("POST /.rocknet/oidc/logout", &[own, &expired]).status, 200);
    assert_eq!(rejected(&server), [2.0, 2.0, 1.0]);
}
