//! Installs the local CA into trust stores, finds and removes it, and checks the messages for stores that cannot be
//! changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use rocknet::certificates::local::{CaKind, LocalCa};
use rocknet::certificates::storage::FileStorage;
use rocknet::trust::{Home, Nss, RootCertificate, System, Tools, TrustState, TrustStore, browser_stores};

/// Creates a local CA in a state folder below `folder` and returns its root.
fn root(folder: &Path) -> RootCertificate {
    let state = folder.join("state");
    let ca = LocalCa::open_or_make(&FileStorage::new(&state), CaKind::Private, SystemTime::now()).unwrap();
    RootCertificate::new(state.join(CaKind::Private.certificate_item()), ca.root().der.clone()).unwrap()
}

/// Returns the programs of this machine.
fn tools() -> Tools {
    let path = std::env::var_os("PATH").unwrap();
    Tools::within(std::env::split_paths(&path).collect())
}

/// Writes scripts to the folder `bin` below `folder`, and returns the programs of `bin`: these scripts and those of
/// earlier calls.
fn tools_with(folder: &Path, programs: &[(&str, &str)]) -> Tools {
    let path = folder.join("bin");
    fs::create_dir_all(&path).unwrap();
    for (name, script) in programs {
        let file = path.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    Tools::within(vec![path])
}

fn install_and_remove(store: &dyn TrustStore, root: &RootCertificate) {
    let reader = store.reader();
    assert_eq!(store.state(root), TrustState::NotTrusted, "{reader}");
    // Repeating the command changes nothing.
    for _ in 0..2 {
        store.install(root).unwrap();
        assert_eq!(store.state(root), TrustState::Trusted, "{reader}");
    }
    for _ in 0..2 {
        store.remove(root).unwrap();
        assert_eq!(store.state(root), TrustState::NotTrusted, "{reader}");
    }
}

#[test]
fn the_ca_is_installed_into_browser_stores_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let root = root(folder.path());
    let home = folder.path().join("home");
    let profile = home.join(".mozilla/firefox/abc.default");
    fs::create_dir_all(&profile).unwrap();
    let database = format!("sql:{}", profile.display());
    let made = Command::new("certutil")
        .args(["-N", "--empty-password", "-d", &database])
        .status();
    assert!(made.expect("certutil: `cargo xtask test` installs it").success());
    fs::create_dir_all(home.join(".mozilla/firefox/not-a-profile")).unwrap();
    // Chromium is installed but was never started, so it has no store yet.
    let bin = folder.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("chromium"), "").unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let tools = Tools::within(std::env::split_paths(&path).chain([bin]).collect());
    let found = Nss::find_all(&Home::at(&home), &tools);
    let readers: Vec<_> = found.iter().map(TrustStore::reader).collect();
    assert_eq!(readers, ["Chromium", "Firefox"]);
    for store in &found {
        install_and_remove(store, &root);
    }
    // A certificate that is stored without trust is not reported as trusted. Another certificate with the name of the
    // CA is not reported as trusted either.
    let firefox = &found[1];
    for other in [root.file.clone(), other_certificate(folder.path())] {
        // `,,` stores a certificate without trust. `C,,` makes it a trusted authority for servers.
        let add = [
            "-A",
            "-t",
            if other == root.file { ",," } else { "C,," },
            "-n",
            &root.name,
            "-d",
            &database,
            "-i",
        ];
        assert!(
            Command::new("certutil")
                .args(add)
                .arg(&other)
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(firefox.state(&root), TrustState::NotTrusted);
        install_over_other_states(firefox, &root);
    }
}

/// Installs the CA in a store that already has another entry with the name of the CA, and removes it again.
fn install_over_other_states(store: &dyn TrustStore, root: &RootCertificate) {
    store.install(root).unwrap();
    assert_eq!(store.state(root), TrustState::Trusted);
    store.remove(root).unwrap();
}

/// Writes a certificate that does not belong to the CA, and returns its path.
fn other_certificate(folder: &Path) -> PathBuf {
    let made = rcgen::generate_simple_self_signed(["other.test".to_owned()]).unwrap();
    let file = folder.join("other.pem");
    fs::write(&file, made.cert.pem()).unwrap();
    file
}

/// A database with a password is skipped, without a prompt.
#[test]
fn a_browser_store_with_a_password_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let root = root(folder.path());
    let database = folder.path().join("home/.pki/nssdb");
    fs::create_dir_all(&database).unwrap();
    let password = folder.path().join("password");
    fs::write(&password, "secret\n").unwrap();
    let made = Command::new("certutil")
        .arg("-N")
        .arg("-f")
        .arg(&password)
        .arg("-d")
        .arg(&database)
        .status()
        .unwrap();
    assert!(made.success());
    let found = Nss::find_all(&Home::at(folder.path().join("home")), &tools());
    let store = found.iter().find(|store| store.path() == database).unwrap();
    let trouble = store.install(&root).unwrap_err().to_string();
    assert!(trouble.contains("certutil failed"), "{trouble}");
    assert_ne!(store.state(&root), TrustState::Trusted);
}

#[test]
fn without_certutil_the_message_names_the_package() {
    let folder = tempfile::tempdir().unwrap();
    let root = root(folder.path());
    let database = folder.path().join("home/.pki/nssdb");
    fs::create_dir_all(&database).unwrap();
    fs::write(database.join("cert9.db"), "").unwrap();
    let home = Home::at(folder.path().join("home"));
    let all = browser_stores(&home, &tools_with(folder.path(), &[]));
    let store = all.iter().find(|store| store.path() == database).unwrap();
    assert!(store.install(&root).unwrap_err().to_string().contains("libnss3-tools"));
    assert!(matches!(store.state(&root), TrustState::Unknown(why) if why.contains("libnss3-tools")));
}

/// Covers each family of systems. A script replaces the command with which the system collects its roots.
#[test]
fn the_ca_is_installed_into_system_stores_and_removed() {
    // A row has the folder for additional roots, the command that collects all roots, and the file with all roots.
    for (anchors, command, bundle) in [
        (
            "usr/local/share/ca-certificates",
            "update-ca-certificates",
            "etc/ssl/certs/ca-certificates.crt",
        ),
        (
            "etc/pki/ca-trust/source/anchors",
            "update-ca-trust",
            "etc/pki/tls/certs/ca-bundle.crt",
        ),
        (
            "etc/ca-certificates/trust-source/anchors",
            "trust",
            "etc/ssl/certs/ca-certificates.crt",
        ),
        (
            "etc/pki/trust/anchors",
            "update-ca-certificates",
            "etc/ssl/ca-bundle.pem",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let (anchors, bundle) = (base.join(anchors), base.join(bundle));
        fs::create_dir_all(&anchors).unwrap();
        fs::create_dir_all(bundle.parent().unwrap()).unwrap();
        let other = fs::read_to_string(other_certificate(folder.path())).unwrap();
        fs::write(&bundle, &other).unwrap();
        let gather = format!(
            "cat {} {}/* > {} 2>/dev/null || true",
            folder.path().join("other.pem").display(),
            anchors.display(),
            bundle.display()
        );
        let tools = tools_with(
            folder.path(),
            &[
                (command, &gather),
                ("install", "exec /usr/bin/install \"$@\""),
                ("rm", "exec /bin/rm \"$@\""),
            ],
        );
        let system = System::find(&base, &tools).unwrap();
        let root = root(folder.path());
        install_and_remove(&system, &root);
        assert_eq!(fs::read_dir(&anchors).unwrap().count(), 0);
        // A command that reports success and does nothing is detected.
        let tools = tools_with(folder.path(), &[(command, "exit 0")]);
        let system = System::find(&base, &tools).unwrap();
        system.install(&root).unwrap();
        assert_eq!(system.state(&root), TrustState::NotTrusted, "{command}");
        let tools = tools_with(folder.path(), &[(command, "echo no room >&2; exit 1")]);
        let system = System::find(&base, &tools).unwrap();
        assert_eq!(
            system.install(&root).unwrap_err().to_string(),
            format!("{command} failed: no room")
        );
    }
    let nothing = tempfile::tempdir().unwrap();
    assert!(System::find(nothing.path(), &tools_with(nothing.path(), &[])).is_none());
}
