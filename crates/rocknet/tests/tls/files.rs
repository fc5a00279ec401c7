//! Certificate files: order of their contents, key formats, errors, and changes on disk.

use rocknet::certificates::Certificate;
use rocknet::certificates::files::{FileSet, Reload};
use rocknet_config::model::CertificateFiles;
use std::time::SystemTime;

use super::certs::{Authority, Kind, set_mode, write_key};
use super::client::{TlsClient, tool};
use super::support::{Folder, Running};

fn set(folder: &Folder, cert: &str, key: &str) -> FileSet {
    FileSet::new(vec![CertificateFiles {
        cert: folder.path(cert),
        key: folder.path(key),
        ocsp: None,
    }])
}

/// Loads a pair of files. Asserts the names of the certificate, or a part of the error message.
#[track_caller]
fn check(what: &str, cert: &str, key: &str, expected: Result<&[&str], &str>) {
    let folder = Folder::with(&[("x.pem", cert)]);
    write_key(&folder, "x.key", key);
    let set = set(&folder, "x.pem", "x.key");
    match (set.certificate_set(), expected) {
        (Some(found), Ok(names)) => {
            let found = found.certificates().first().map(Certificate::names).unwrap_or_default();
            assert_eq!(found, names, "{what}");
            assert_eq!(set.error(), None, "{what}");
        }
        (None, Err(part)) => {
            let error = set.error().unwrap_or_default();
            assert!(error.contains(part), "{what}: {error}");
            let path = folder.path("x.").display().to_string();
            assert!(error.contains(&path), "{what}: no file is named in {error}");
        }
        (found, _) => panic!("{what}: {found:?}, {:?}", set.error()),
    }
}

#[test]
fn common_file_orders_load_and_others_are_reported() {
    let authority = Authority::new("root");
    let (leaf, other) = (
        authority.leaf(Kind::Ecdsa, &["a.test", "127.0.0.1"]),
        authority.leaf(Kind::Rsa, &["b.test"]),
    );
    let names: Result<&[&str], &str> = Ok(&["a.test", "127.0.0.1"]);
    let (root, cert, key) = (&authority.pem, &leaf.cert, &leaf.key);
    check("alone", cert, key, names);
    check("with its chain", &format!("{cert}{root}"), key, names);
    check("the root first", &format!("{root}{cert}"), key, names);
    check(
        "text before and after it",
        &format!("Bag Attributes\n  a: b\n{cert}\n\n# end"),
        key,
        names,
    );
    check(
        "with CRLF line ends",
        &cert.replace('\n', "\r\n"),
        &key.replace('\n', "\r\n"),
        names,
    );
    check("key after a certificate", cert, &format!("{cert}{key}"), names);
    check(
        "key and certificate in both",
        &format!("{key}{cert}"),
        &format!("{key}{cert}"),
        names,
    );
    check("an RSA key", &other.cert, &other.key, Ok(&["b.test"]));
    check(
        "the key of another certificate",
        cert,
        &other.key,
        Err("the key belongs to another certificate"),
    );
    check("no certificate", "", key, Err("there is no certificate"));
    check("no key", cert, "", Err("contains no private key"));
    check("key for certificate", key, key, Err("there is no certificate"));
    check("half a file", &cert[..cert.len() / 2], key, Err("cannot be read"));
    // The Base64 of a certificate begins with `M`, so another letter there makes the certificate invalid.
    check(
        "an invalid certificate",
        &cert.replacen('M', "A", 1),
        key,
        Err("cannot be read"),
    );
    let locked = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    check("an encrypted key", cert, &locked, Err("encrypted"));
}

#[test]
fn older_key_formats_are_read() {
    let authority = Authority::new("root");
    for (kind, form, label) in [
        (Kind::Ecdsa, &["ec"][..], "EC PRIVATE KEY"),
        (Kind::Rsa, &["rsa", "-traditional"], "RSA PRIVATE KEY"),
    ] {
        let leaf = authority.leaf(kind, &["a.test"]);
        let old = tool("openssl", form, &leaf.key);
        let start = old.find("-----BEGIN").unwrap_or_default();
        assert!(old.contains(label), "{old}");
        check(label, &leaf.cert, &old[start..], Ok(&["a.test"]));
    }
}

#[test]
fn world_readable_keys_are_refused() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "x");
    for (mode, works) in [
        (0o644, false),
        (0o604, false),
        (0o600, true),
        (0o640, true),
        (0o400, true),
    ] {
        set_mode(&folder, "x.key", mode);
        let set = set(&folder, "x.pem", "x.key");
        assert_eq!(set.certificate_set().is_some(), works, "{mode:o}");
        assert_eq!(
            set.error().is_none_or(|error| !error.contains("chmod 600")),
            works,
            "{mode:o}"
        );
        set_mode(&folder, "x.key", 0o600);
        set.reload_if_changed(SystemTime::now());
        assert!(set.certificate_set().is_some(), "{mode:o}: {:?}", set.error());
    }
}

#[test]
fn each_change_is_loaded_once_and_a_broken_file_keeps_the_old_pair() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "x");
    let set = set(&folder, "x.pem", "x.key");
    let now = SystemTime::now();
    assert_eq!(set.reload_if_changed(now), None);
    folder.write("x.pem", "nothing");
    assert_eq!(set.reload_if_changed(now), Some(Reload::Kept));
    assert_eq!(set.reload_if_changed(now), None);
    assert!(set.certificate_set().is_some() && set.error().is_some());
    authority.leaf(Kind::Rsa, &["a.test"]).write(&folder, "x");
    assert_eq!(set.reload_if_changed(now), Some(Reload::Replaced));
    assert_eq!((set.reload_if_changed(now), set.error()), (None, None));
    // At this time, 2,500 years after 1970, the certificate has expired, because it is valid only until the year 4096.
    // The expiry is logged once, and the certificate is still presented.
    let later = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(100 * 366 * 24 * 3600 * 25);
    assert_eq!(set.reload_if_changed(later), Some(Reload::Expired));
    let faults = set.findings_for(&[]);
    assert!(
        faults
            .iter()
            .any(|error| error.message.contains("certificate expired on")),
        "{faults:?}"
    );
    assert_eq!((set.reload_if_changed(later), set.error()), (None, None));
    assert!(set.certificate_set().is_some());
}

#[test]
fn folders_fifos_and_missing_files_are_errors() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("folder/x", "")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "x");
    let fifo = std::process::Command::new("mkfifo").arg(folder.path("fifo")).status();
    assert!(fifo.is_ok_and(|status| status.success()));
    for name in ["folder", "fifo", "missing"] {
        for (cert, key) in [(name, "x.key"), ("x.pem", name)] {
            let set = set(&folder, cert, key);
            assert!(set.certificate_set().is_none(), "{cert} {key}");
            assert!(
                set.error().is_some_and(|error| error.contains(name)),
                "{cert} {key}: {:?}",
                set.error()
            );
        }
    }
}

#[test]
fn a_changed_file_is_loaded_and_a_broken_one_is_not() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("www/index.html", "hello")]);
    let first = authority.leaf(Kind::Ecdsa, &["a.test"]);
    first.write(&folder, "x");
    let server = Running::start(
        folder,
        "[site.\"a.test\"]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\ntls = { cert = \"x.pem\", key = \"x.key\" }",
    );
    let certificates = std::sync::Arc::clone(server.server().certificates());
    let peer_certificate = || {
        TlsClient::new(authority.roots(), "a.test")
            .open(server.address())
            .expect("a handshake")
            .peer_certificate()
    };
    assert_eq!(peer_certificate(), first.der);
    // A connection that was opened before the change is still served.
    let mut old = TlsClient::new(authority.roots(), "a.test").client(server.address());
    old.get("/").expect("before", 200, &[]);

    let second = authority.leaf(Kind::Rsa, &["a.test"]);
    second.write(&server.folder, "x");
    certificates.maintain();
    assert_eq!(peer_certificate(), second.der);
    old.get("/").expect("meanwhile", 200, &[]);

    for broken in [
        "",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        &first.cert,
    ] {
        server.folder.write("x.pem", broken);
        certificates.maintain();
        assert_eq!(peer_certificate(), second.der, "{broken:?}");
        let refused = server.server().reload(server.server().snapshot().config.clone());
        let why = refused.expect_err("broken files").to_string();
        assert!(
            why.starts_with("site a.test: ") && why.contains("x."),
            "{broken:?}: {why}"
        );
        assert_eq!(peer_certificate(), second.der, "{broken:?}");
        let snapshot = server.server().snapshot();
        assert_eq!(snapshot.certificate_errors().count(), 1, "{broken:?}");
    }
    server.folder.remove("x.pem");
    certificates.maintain();
    assert_eq!(peer_certificate(), second.der);
    first.write(&server.folder, "x");
    certificates.maintain();
    assert_eq!(peer_certificate(), first.der);
    assert_eq!(server.server().snapshot().certificate_errors().count(), 0);
}

#[test]
fn ocsp_responses_are_sent_with_their_certificates_and_follow_their_files() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("ecdsa.der", "first of ecdsa"), ("rsa.der", "first of rsa")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "ecdsa");
    authority.leaf(Kind::Rsa, &["a.test"]).write(&folder, "rsa");
    let server = Running::start(
        folder,
        "[site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\n\
         tls = { cert = [\"rsa.pem\", \"ecdsa.pem\"], key = [\"rsa.key\", \"ecdsa.key\"], ocsp = [\"rsa.der\", \"ecdsa.der\"] }",
    );
    let place = server.address().to_string();
    let check = |expected: [&str; 2]| {
        for version in ["-tls1_2", "-tls1_3"] {
            for (scheme, expected) in ["ecdsa_secp256r1_sha256", "rsa_pss_rsae_sha256"].iter().zip(expected) {
                let client = ["s_client", "-connect", &place, "-servername", "a.test", "-status"];
                let output = tool("openssl", &[&client[..], &[version, "-sigalgs", scheme]].concat(), "");
                // OpenSSL prints a response that it cannot parse as a dump with sixteen bytes per line. The contents
                // are shorter than one line.
                assert!(output.contains(expected), "{version} {scheme}: {output}");
            }
        }
        let output = tool(
            "openssl",
            &["s_client", "-connect", &place, "-servername", "a.test"],
            "",
        );
        assert!(
            !output.contains("OCSP"),
            "an OCSP response was sent although none was requested: {output}"
        );
    };
    check(["first of ecdsa", "first of rsa"]);
    server.folder.write("ecdsa.der", "then of ecdsa");
    server.server().certificates().maintain();
    check(["then of ecdsa", "first of rsa"]);
    // If a file cannot be read, the current responses are kept.
    server.folder.remove("rsa.der");
    server.server().certificates().maintain();
    check(["then of ecdsa", "first of rsa"]);
    let snapshot = server.server().snapshot();
    let faults: Vec<_> = snapshot.certificate_errors().map(|(_, error)| error).collect();
    assert!(matches!(&faults[..], [one] if one.contains("rsa.der")), "{faults:?}");
}

#[test]
fn fuzz_seeds_are_parsed_without_a_panic() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/pem");
    let mut whole = 0;
    for entry in std::fs::read_dir(folder).expect("the seeds") {
        let bytes = std::fs::read(entry.expect("a seed").path()).expect("a seed");
        whole += usize::from(rocknet::certificates::files::read_any(&bytes));
        // A truncated file must be an error or a smaller pair, and not cause a panic.
        for at in (0..bytes.len()).step_by(37) {
            rocknet::certificates::files::read_any(&bytes[..at]);
        }
    }
    assert_eq!(whole, 4, "number of seeds with a complete pair");
}
