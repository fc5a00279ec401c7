//! Tests of users from the configuration and from a changing file.

use std::collections::BTreeMap;
use std::fs;

use super::*;

/// Well-formed hash that no password matches.
const HASH: &str = "$apr1$salt$0123456789012345678901";

/// Returns the users of a route: users with the names `configured` and the hash [`HASH`], and the users of the file.
fn users(configured: &[&str], file: Option<PathBuf>) -> Users {
    let hash = PasswordHash::parse(HASH).unwrap();
    let auth = model::PasswordAuth {
        realm: "x".to_owned(),
        users: configured
            .iter()
            .map(|name| ((*name).to_owned(), hash.clone()))
            .collect::<BTreeMap<_, _>>(),
        file,
    };
    Users::new(&auth, &UserFiles::default())
}

#[test]
fn routes_and_configurations_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("htpasswd");
    fs::write(&path, format!("ann:{HASH}\n")).unwrap();
    let auth = model::PasswordAuth {
        realm: "x".to_owned(),
        users: BTreeMap::new(),
        file: Some(path.clone()),
    };
    let files = UserFiles::default();
    let before = Users::new(&auth, &files);
    // The empty line changes the size, because the time of modification may be the same.
    fs::write(&path, format!("cat:{HASH}\n\n")).unwrap();
    let after = Users::new(&auth, &files);
    assert!(Arc::ptr_eq(before.file.as_ref().unwrap(), after.file.as_ref().unwrap()));
    assert_eq!((lookup(&before, "cat"), lookup(&after, "cat")), ("user", "user"));
    // An invalid file at a reload locks out no user. `secret` is not a hash, so the file is invalid.
    fs::write(&path, "dan:secret\n").unwrap();
    assert_eq!(lookup(&Users::new(&auth, &files), "cat"), "user");
    // Without routes, the file is released.
    drop((before, after));
    fs::remove_file(&path).unwrap();
    assert_eq!(lookup(&Users::new(&auth, &files), "cat"), "unavailable");
    assert_eq!(files.0.lock().unwrap().len(), 1);
}

/// Returns the kind of the result of a lookup.
fn lookup(users: &Users, name: &str) -> &'static str {
    match users.find(name) {
        UserLookup::User(user) => {
            assert_eq!(&*user.name, name);
            "user"
        }
        UserLookup::Unknown(_) => "unknown",
        UserLookup::Unavailable => "unavailable",
    }
}

#[test]
fn a_file_is_read_again_when_it_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("htpasswd");
    fs::write(&path, format!("ann:{HASH}\n")).unwrap();
    let users = users(&["bob"], Some(path.clone()));
    assert_eq!(
        (lookup(&users, "ann"), lookup(&users, "bob"), lookup(&users, "cat")),
        ("user", "user", "unknown")
    );

    fs::write(&path, format!("cat:{HASH}\n\n")).unwrap();
    assert_eq!(lookup(&users, "cat"), "unknown");
    users.check_file();
    assert_eq!((lookup(&users, "ann"), lookup(&users, "cat")), ("unknown", "user"));

    // An invalid or missing file changes nothing.
    fs::write(&path, "dan:secret\n").unwrap();
    users.check_file();
    assert_eq!((lookup(&users, "cat"), lookup(&users, "dan")), ("user", "unknown"));
    fs::remove_file(&path).unwrap();
    users.check_file();
    assert_eq!(lookup(&users, "cat"), "user");

    // The file is replaced by a rename, and has the same size.
    let other = folder.path().join("new");
    fs::write(&other, format!("eve:{HASH}\n")).unwrap();
    fs::rename(&other, &path).unwrap();
    users.check_file();
    assert_eq!((lookup(&users, "cat"), lookup(&users, "eve")), ("unknown", "user"));
}

#[test]
fn an_unreadable_file_does_not_affect_the_users_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("htpasswd");
    let users = users(&["bob"], Some(path.clone()));
    assert_eq!((lookup(&users, "bob"), lookup(&users, "ann")), ("user", "unavailable"));
    fs::write(&path, format!("ann:{HASH}\n")).unwrap();
    users.check_file();
    assert_eq!((lookup(&users, "ann"), lookup(&users, "cat")), ("user", "unknown"));
}

#[test]
fn one_caller_per_second_checks_the_file() {
    let none = users(&["bob"], None);
    assert!(!none.claim_check(0) && !none.is_check_due(10_000));
    let some = users(&[], Some("/nowhere/htpasswd".into()));
    assert!(some.claim_check(5_000));
    assert!(!some.claim_check(5_000) && !some.is_check_due(5_999));
    assert!(some.claim_check(6_000));
    assert!(!some.claim_check(6_001));
}

#[test]
fn unknown_names_have_the_hash_of_another_user() {
    let UserLookup::Unknown(decoy) = users(&["ann", "bob"], None).find("cat") else {
        panic!("cat is no user");
    };
    assert_eq!(decoy.hash.text(), HASH);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("htpasswd");
    fs::write(&path, "").unwrap();
    let UserLookup::Unknown(decoy) = users(&[], Some(path)).find("cat") else {
        panic!("cat is no user");
    };
    assert!(decoy.hash.text().starts_with("$argon2id$"));
}
