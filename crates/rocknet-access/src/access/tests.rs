//! Tests of access control, from the header field to the decision.

use std::fs;
use std::path::Path;

use base64ct::{Base64, Encoding};
use rocknet_config::environment::MemoryEnvironment;
use rocknet_config::model::PasswordAuth;

use super::*;
use crate::attempts::WINDOW_MS;
use crate::state::MAX_PENDING;
use crate::verified;

/// Hash of `secret`, with the lowest cost of bcrypt.
const HASH: &str = "$2y$04$RwBnJOpDEQZiy2VKUT52Q.YEkrK.DMrhbaOu12VTXkM2GvfW0CUZW";

/// Returns the settings of a site with these keys.
fn settings(keys: &str) -> Settings {
    let machine = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    let text = format!("[site.\"a.test\"]\nroot = \"/w\"\n{keys}\n");
    let loaded = rocknet_config::parse(&text, Path::new("/r.toml"), &machine);
    loaded
        .unwrap_or_else(|report| panic!("{text}{report}"))
        .config
        .sites
        .remove(0)
        .settings
}

/// Returns the passwords of settings.
fn passwords(settings: &mut Settings) -> &mut PasswordAuth {
    match &mut settings.auth {
        Some(Auth::Passwords(passwords)) => passwords,
        _ => panic!("settings without passwords"),
    }
}

/// Returns the access control of a site with these keys.
fn access(keys: &str) -> Access {
    Access::new(&settings(keys), &State::new([1; 32])).unwrap().unwrap()
}

/// Returns the value of an `Authorization` field with these credentials.
fn basic(user: &str, password: &str) -> Vec<u8> {
    format!(
        "Basic {}",
        Base64::encode_string(format!("{user}:{password}").as_bytes())
    )
    .into_bytes()
}

fn client(last: u8) -> Client {
    Client::Ip([192, 0, 2, last].into())
}

/// Returns the decision about a request, and whether it required the blocking pool.
fn decide(access: &Access, now_ms: u64, client: Client, value: &[u8]) -> (Decision, bool) {
    match access.check(now_ms, client, Some(value)) {
        Check::Decided(decision) => (decision, false),
        Check::Verify(pending) => (pending.run(), true),
        Check::Authenticate => panic!("the route has no authenticator"),
    }
}

fn granted(user: &str) -> Decision {
    Decision::Granted {
        user: Some(user.into()),
    }
}

/// Returns the decision for missing or wrong credentials. The default realm is `restricted`.
fn challenge(realm: &str) -> Decision {
    Decision::Challenge {
        www_authenticate: format!("Basic realm=\"{realm}\", charset=\"UTF-8\"").into(),
        is_guess: false,
    }
}

/// Returns the decision for a wrong password that the client has not tried before.
fn guessed(realm: &str) -> Decision {
    match challenge(realm) {
        Decision::Challenge { www_authenticate, .. } => Decision::Challenge {
            www_authenticate,
            is_guess: true,
        },
        other => other,
    }
}

/// Returns the access control of a site with the user `bob`, whose password is `secret`.
fn bob() -> Access {
    access(&format!("auth = {{ bob = \"{HASH}\" }}"))
}

#[test]
fn an_allowed_address_or_a_password_satisfies_any() {
    let any = |lists: &str| access(&format!("{lists}\nauth = {{ bob = \"{HASH}\" }}\nsatisfy = \"any\""));
    let (inside, outside) = (client(1), client(2));
    let right = basic("bob", "secret");
    let without_user = Decision::Granted { user: None };
    for lists in [
        "allow = \"192.0.2.1\"",
        "allow = \"192.0.2.0/24\"\ndeny = \"192.0.2.2\"",
    ] {
        let access = any(lists);
        assert_eq!(
            decide(&access, 0, inside, b""),
            (without_user.clone(), false),
            "{lists}"
        );
        assert_eq!(access.granted(0, inside, None), Some(None), "{lists}");
        assert_eq!(access.granted(0, outside, None), None, "{lists}");
        assert_eq!(
            decide(&access, 0, outside, b""),
            (challenge("restricted"), false),
            "{lists}"
        );
        assert_eq!(decide(&access, 0, outside, &right), (granted("bob"), true), "{lists}");
        assert_eq!(
            decide(&access, 0, outside, &basic("bob", "wrong")).0,
            guessed("restricted")
        );
    }
    // Without a list that names clients, each client needs a password, and a denied one is refused.
    for lists in ["", "allow = \"all\"", "deny = \"192.0.2.2\""] {
        assert_eq!(
            decide(&any(lists), 0, inside, b""),
            (challenge("restricted"), false),
            "{lists}"
        );
    }
    let denied = any("deny = \"192.0.2.2\"");
    assert_eq!(decide(&denied, 0, outside, &right).0, Decision::Forbidden);
    // Without passwords, the lists decide alone.
    let lists_alone = access("allow = \"192.0.2.1\"\nsatisfy = \"any\"");
    assert_eq!(decide(&lists_alone, 0, outside, &right).0, Decision::Forbidden);
    // By default both are required.
    let both = access(&format!("allow = \"192.0.2.1\"\nauth = {{ bob = \"{HASH}\" }}"));
    assert_eq!(decide(&both, 0, inside, b"").0, challenge("restricted"));
    assert_eq!(decide(&both, 0, outside, &right).0, Decision::Forbidden);
}

#[test]
fn an_open_route_has_no_access_control() {
    let state = State::new([1; 32]);
    assert!(Access::new(&settings(""), &state).unwrap().is_none());
    assert!(
        Access::new(&settings("allow = \"all\"\ndeny = []\nauth = false"), &state)
            .unwrap()
            .is_none()
    );
    let mut without_users = settings(&format!("auth = {{ bob = \"{HASH}\" }}"));
    passwords(&mut without_users).users.clear();
    assert_eq!(Access::new(&without_users, &state).err(), Some(AccessError::NoUsers));
}

#[test]
fn addresses_are_checked_before_passwords() {
    let access = access(&format!("deny = \"192.0.2.1\"\nauth = {{ bob = \"{HASH}\" }}"));
    assert_eq!(
        decide(&access, 0, client(1), &basic("bob", "secret")),
        (Decision::Forbidden, false)
    );
    assert_eq!(
        decide(&access, 0, client(2), &basic("bob", "secret")),
        (granted("bob"), true)
    );
    let addresses = self::access("allow = \"private\"");
    assert!(!addresses.needs_password() && access.needs_password());
    let granted = Decision::Granted { user: None };
    assert_eq!(
        decide(&addresses, 0, Client::Ip([10, 0, 0, 1].into()), b"x"),
        (granted, false)
    );
}

#[test]
fn a_password_is_verified_once_within_five_minutes() {
    let access = bob();
    let (right, wrong) = (basic("bob", "secret"), basic("bob", "Secret"));
    assert_eq!(decide(&access, 0, client(1), &right), (granted("bob"), true));
    assert_eq!(decide(&access, 1, client(1), &right), (granted("bob"), false));
    assert_eq!(decide(&access, 1, client(2), &right), (granted("bob"), false));
    assert_eq!(decide(&access, 1, client(2), &wrong), (guessed("restricted"), true));
    assert_eq!(
        decide(&access, verified::MAX_AGE_MS, client(1), &right),
        (granted("bob"), true)
    );
}

#[test]
fn granted_changes_no_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("htpasswd");
    fs::write(&path, format!("bob:{HASH}\n")).unwrap();
    let access = access(&format!(
        "deny = \"192.0.2.9\"\nauth = {{ file = \"{}\" }}",
        path.display()
    ));
    let (right, wrong) = (basic("bob", "secret"), basic("bob", "wrong"));
    // Nothing is verified yet, and the call does not claim the check of the file.
    assert_eq!(access.granted(5_000, client(1), Some(&right)), None);
    assert_eq!(decide(&access, 5_000, client(1), &right), (granted("bob"), true));
    for (now_ms, client, value, expected) in [
        (5_000, client(1), Some(&right), Some(Some("bob".into()))),
        (5_000, client(2), Some(&right), Some(Some("bob".into()))),
        (5_000, client(9), Some(&right), None),
        (5_000, client(1), Some(&wrong), None),
        (5_000, client(1), None, None),
        // The file must be checked first.
        (6_000, client(1), Some(&right), None),
        (6_000, client(1), Some(&right), None),
    ] {
        let value = value.map(Vec::as_slice);
        assert_eq!(access.granted(now_ms, client, value), expected, "{now_ms} {client}");
    }
    let Check::Verify(pending) = access.check(6_000, client(1), Some(&right)) else {
        panic!("the file was not checked");
    };
    assert_eq!(pending.run(), granted("bob"));
    assert!(access.granted(6_000, client(1), Some(&right)).is_some());
    // A throttled client does not learn which of its guesses is right.
    for number in 0..MAX_GUESSES {
        decide(&access, 6_000, client(1), &basic("bob", &number.to_string()));
    }
    assert_eq!(access.granted(6_000, client(1), Some(&right)), None);
    assert!(access.granted(6_000, client(2), Some(&right)).is_some());
}

#[test]
fn a_reload_verifies_no_password_again() {
    let state = State::new([1; 32]);
    let keys = format!("auth = {{ bob = \"{HASH}\" }}");
    let (first, second) = (
        Access::new(&settings(&keys), &state),
        Access::new(&settings(&keys), &state),
    );
    let (first, second) = (first.unwrap().unwrap(), second.unwrap().unwrap());
    let right = basic("bob", "secret");
    assert_eq!(decide(&first, 0, client(1), &right), (granted("bob"), true));
    assert_eq!(decide(&second, 0, client(1), &right), (granted("bob"), false));
}

#[test]
fn missing_malformed_and_unknown_credentials_are_challenged() {
    let access = access(&format!(
        "auth = {{ realm = 'a \"b\" \\', users = {{ bob = \"{HASH}\" }} }}"
    ));
    let expected = challenge("a \\\"b\\\" \\\\");
    assert!(matches!(access.check(0, client(1), None), Check::Decided(decision) if decision == expected));
    for value in [&b"Bearer x"[..], b"Basic !", b""] {
        assert_eq!(decide(&access, 0, client(1), value), (expected.clone(), false));
    }
    // An unknown name is verified like a known one.
    assert_eq!(
        decide(&access, 0, client(1), &basic("eve", "secret")),
        (guessed("a \\\"b\\\" \\\\"), true)
    );
    assert_eq!(
        decide(&access, 0, client(1), &basic("eve", "secret")),
        (expected, false)
    );
}

#[test]
fn a_guessing_client_is_throttled() {
    let access = bob();
    let right = basic("bob", "secret");
    assert_eq!(decide(&access, 0, client(1), &right), (granted("bob"), true));
    for number in 0..MAX_GUESSES {
        let wrong = basic(if number % 2 == 0 { "bob" } else { "eve" }, &number.to_string());
        assert_eq!(
            decide(&access, 0, client(1), &wrong),
            (guessed("restricted"), true),
            "{number}"
        );
        // A repeated guess is neither verified nor counted.
        if number + 1 < MAX_GUESSES {
            assert_eq!(
                decide(&access, 0, client(1), &wrong),
                (challenge("restricted"), false),
                "{number}"
            );
        }
    }
    // From now on right and wrong passwords get the same response, even if the right one was verified before.
    let throttled = Decision::Throttled { retry_after_s: 60 };
    assert_eq!(decide(&access, 0, client(1), &right), (throttled.clone(), false));
    assert_eq!(decide(&access, 0, client(1), &basic("bob", "x")), (throttled, false));
    assert!(matches!(
        access.check(0, client(1), None),
        Check::Decided(Decision::Challenge { .. })
    ));
    assert_eq!(decide(&access, 0, client(2), &right), (granted("bob"), false));
    assert_eq!(decide(&access, WINDOW_MS, client(1), &right), (granted("bob"), false));
}

#[test]
fn pending_work_is_bounded_and_released() {
    let state = State::new([1; 32]);
    let access = Access::new(&settings(&format!("auth = {{ bob = \"{HASH}\" }}")), &state)
        .unwrap()
        .unwrap();
    let right = basic("bob", "secret");
    let mut waiting = Vec::new();
    for _ in 0..MAX_PENDING {
        match access.check(0, client(1), Some(&right)) {
            Check::Verify(pending) => waiting.push(pending),
            Check::Decided(decision) => panic!("{decision:?}"),
            Check::Authenticate => panic!("the route has no authenticator"),
        }
    }
    assert_eq!(state.pending(), MAX_PENDING);
    assert_eq!(decide(&access, 0, client(2), &right), (BUSY, false));
    // The first attempt verifies the password, and the others find the result.
    assert_eq!(waiting.pop().unwrap().run(), granted("bob"));
    assert_eq!(waiting.pop().unwrap().run(), granted("bob"));
    drop(waiting);
    assert_eq!(state.pending(), 0);
}

#[test]
fn dropped_work_counts_no_guess() {
    let access = bob();
    for number in 0..3 * MAX_GUESSES {
        let check = access.check(0, client(1), Some(&basic("bob", &number.to_string())));
        assert!(matches!(check, Check::Verify(_)), "{number}");
    }
}

#[test]
fn concurrent_guesses_are_bounded() {
    let access = bob();
    let mut waiting = Vec::new();
    for number in 0..MAX_GUESSES {
        match access.check(0, client(1), Some(&basic("bob", &number.to_string()))) {
            Check::Verify(pending) => waiting.push(pending),
            Check::Decided(decision) => panic!("{decision:?}"),
            Check::Authenticate => panic!("the route has no authenticator"),
        }
    }
    let throttled = Decision::Throttled { retry_after_s: 1 };
    assert_eq!(
        decide(&access, 0, client(1), &basic("bob", "secret")),
        (throttled, false)
    );
    waiting
        .into_iter()
        .for_each(|pending| assert_eq!(pending.run(), guessed("restricted")));
    let throttled = Decision::Throttled { retry_after_s: 60 };
    assert_eq!(
        decide(&access, 0, client(1), &basic("bob", "secret")),
        (throttled, false)
    );
}

#[test]
fn a_user_removed_from_the_file_is_refused_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("htpasswd");
    fs::write(&path, format!("ann:{HASH}\nbob:{HASH}\n")).unwrap();
    let mut settings = settings("auth = { file = \"x\" }");
    passwords(&mut settings).file = Some(path.clone());
    let access = Access::new(&settings, &State::new([1; 32])).unwrap().unwrap();
    let (ann, bob) = (basic("ann", "secret"), basic("bob", "secret"));
    // The first request in each second checks the file.
    assert_eq!(decide(&access, 0, client(1), &ann), (granted("ann"), true));
    assert_eq!(decide(&access, 1, client(1), &bob), (granted("bob"), true));
    assert_eq!(decide(&access, 2, client(1), &bob), (granted("bob"), false));
    fs::write(&path, format!("ann:{HASH}\n")).unwrap();
    assert_eq!(decide(&access, 999, client(1), &bob), (granted("bob"), false));
    assert_eq!(decide(&access, 1_000, client(1), &bob), (guessed("restricted"), true));
    assert_eq!(decide(&access, 1_001, client(1), &ann), (granted("ann"), false));
    // A new password needs a new verification.
    let hash_of_other_password = "$2y$04$R824y.S3Zs4v8v92dJwo2.jISAhiDep.BcUmDMJUggnYdJpeVglvS";
    fs::write(&path, format!("ann:{hash_of_other_password}\n")).unwrap();
    assert_eq!(decide(&access, 2_000, client(1), &ann), (guessed("restricted"), true));
    assert_eq!(
        decide(&access, 2_001, client(1), &basic("ann", "password")),
        (granted("ann"), true)
    );
}

#[test]
fn an_unreadable_file_makes_access_unavailable() {
    let mut settings = settings("auth = { file = \"x\" }");
    passwords(&mut settings).file = Some("/nowhere/htpasswd".into());
    let access = Access::new(&settings, &State::new([1; 32])).unwrap().unwrap();
    assert_eq!(
        decide(&access, 0, client(1), &basic("ann", "secret")),
        (UNREADABLE, true)
    );
    assert_eq!(
        decide(&access, 1, client(1), &basic("ann", "secret")),
        (UNREADABLE, false)
    );
}

#[test]
fn types_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send + 'static>() {}
    shared::<Access>();
    shared::<State>();
    sent::<Pending>();
}
