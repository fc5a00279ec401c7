//! The return from the provider, and logins in progress.

use super::*;

#[test]
fn callbacks_are_accepted_once_from_their_own_browser() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let mut browser = Browser::default();
    let callback = browser.begin(&server, &provider, "/");
    let (before, state) = callback.split_once("state=").expect("a state");
    // Another browser, another state, none, a repeated one, and a state of another login of the same browser.
    let mut other = browser.clone();
    let second = other.begin(&server, &provider, "/");
    let (_, second) = second.split_once("state=").expect("a state");
    let mixed = format!("{before}state={}{}", &state[..8], &second[8..]);
    for (mut from, target) in [
        (Browser::default(), callback.clone()),
        (browser.clone(), format!("{before}state=other-state-of-someone")),
        (browser.clone(), format!("{before}state=")),
        (browser.clone(), before.trim_end_matches('&').to_owned()),
        (browser.clone(), format!("{callback}&state={state}")),
        (other.clone(), mixed),
    ] {
        let response = from.open(&server, &target);
        assert_eq!(response.status, 400, "{target}");
        assert_eq!(from.open(&server, "/a.txt").status, 302, "{target}");
    }
    assert_eq!(provider.requests("/token"), 0);
    let mut replayed = browser.clone();
    assert_eq!(browser.open(&server, &callback).status, 302);
    assert_eq!(browser.open(&server, "/a.txt").status, 200);
    // The callback again: without the cookie of the login, and with a copy of it.
    assert_eq!(browser.open(&server, &callback).status, 400);
    assert_eq!(replayed.open(&server, &callback).status, 400);
    assert_eq!(provider.requests("/token"), 1);
    // The provider refuses a code.
    let mut third = Browser::default();
    let callback = third
        .begin(&server, &provider, "/")
        .replace("code=code-", "code=other-");
    assert_eq!(third.open(&server, &callback).status, 400);
    assert_eq!(server.server().registries().bans.worst_clients().len(), 1);
    // The user declines.
    let mut third = Browser::default();
    let callback = third.begin(&server, &provider, "/");
    let (path, query) = callback.split_once("?code=").expect("a code");
    let (_, state) = query.split_once('&').expect("a state");
    assert_eq!(
        third
            .open(&server, &format!("{path}?error=access_denied&{state}"))
            .status,
        403
    );
    assert_eq!(server.fetch(&format!("POST {path}"), &[]).status, 405);
}

#[test]
fn redirects_stay_at_the_site() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    for target in ["//evil.test/", "/\\evil.test", "/a?//evil.test", "/%2Fevil.test"] {
        let mut browser = Browser::default();
        let response = browser.log_in(&server, &provider, target);
        let expected = format!("http://localhost{target}");
        assert_eq!(
            (response.status, response.field("Location")),
            (302, Some(&*expected)),
            "{target}"
        );
    }
    let long = format!("/{}", "x".repeat(2_000));
    let response = Browser::default().log_in(&server, &provider, &long);
    assert_eq!(response.field("Location"), Some("http://localhost/"));
}

#[test]
fn logins_in_several_windows_are_bounded() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let mut browser = Browser::default();
    let callbacks: Vec<_> = (0..4).map(|_| browser.begin(&server, &provider, "/")).collect();
    assert_eq!(browser.0.len(), 4);
    // Further ones replace some of these, also if they begin at the same time.
    let mut many = browser.clone();
    many.begin(&server, &provider, "/");
    assert_eq!(many.0.len(), 4);
    let mut many = Browser::default();
    for _ in 0..20 {
        let mut parallel = Browser::default();
        parallel.begin(&server, &provider, "/");
        many.0.retain(|(name, _)| *name != parallel.0[0].0);
        many.0.append(&mut parallel.0);
    }
    assert!(many.0.len() <= 4, "{} cookies", many.0.len());
    for callback in callbacks {
        assert_eq!(browser.open(&server, &callback).status, 302);
    }
    assert_eq!(browser.0.len(), 1);
}
