//! Tests of password files, valid and invalid.

use proptest::prelude::*;

use super::*;

/// Hash of a valid form. No test verifies a password with it.
const HASH: &str = "$apr1$salt$0123456789012345678901";

/// Returns the sorted names of the users of a valid text.
fn names(text: &str) -> Vec<String> {
    let users = parse(text.as_bytes()).unwrap_or_else(|errors| panic!("{text:?}: {errors:?}"));
    let mut names: Vec<String> = users.keys().map(ToString::to_string).collect();
    names.sort();
    names
}

#[test]
fn parses_users_and_skips_blank_lines_and_comments() {
    assert_eq!(names(""), [""; 0]);
    assert_eq!(names("\n\r\n  \n# bob:x\n"), [""; 0]);
    assert_eq!(names(&format!("bob:{HASH}")), ["bob"]);
    assert_eq!(
        names(&format!("bob:{HASH}\r\nann b:{HASH} \n\n#c\nölaf:{HASH}:a comment\n")),
        ["ann b", "bob", "ölaf"]
    );
    let users = parse(format!("bob:{HASH}:x").as_bytes()).unwrap();
    assert_eq!(users["bob"].text(), HASH);
}

#[test]
fn errors_name_their_lines() {
    // (text, displayed errors); the word HASH in a text is replaced by the constant.
    let rows: &[(&str, &[&str])] = &[
        ("bob", &["line 1: no colon"]),
        ("# x\n\nbob:", &["line 3: the password is empty"]),
        (
            "bob:swordfish",
            &["line 1: the password is not a hash: it may be the password itself"],
        ),
        (
            "bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
            &["line 1: the password is a hash of plain SHA-1, which is not accepted"],
        ),
        (
            "bob:$2y$31$01234567890123456789012345678901234567890123456789012",
            &["line 1: the password would need too much time or memory to verify: the cost must be at most 14"],
        ),
        (
            ":HASH\na\tb:HASH",
            &[
                "line 1: the user name is empty, too long or has a control character",
                "line 2: the user name is empty, too long or has a control character",
            ],
        ),
        ("bob:HASH\nann:HASH\nbob:HASH", &["line 3: the same user as on line 1"]),
        // Only the first `MAX_LINE_ERRORS` errors are reported.
        (
            "1\n2\n3\n4\n5\n6\n7",
            &[
                "line 1: no colon",
                "line 2: no colon",
                "line 3: no colon",
                "line 4: no colon",
                "line 5: no colon",
            ],
        ),
    ];
    for (text, expected) in rows {
        let errors = parse(text.replace("HASH", HASH).as_bytes()).unwrap_err();
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(shown, *expected, "{text:?}");
        assert!(!shown.concat().contains("swordfish"));
    }
    assert_eq!(
        parse(b"b\xff:x").unwrap_err(),
        [LineError {
            line: 1,
            kind: LineErrorKind::NotUtf8
        }]
    );
}

#[test]
fn users_are_bounded() {
    let text = |count: usize| {
        (0..count)
            .map(|number| format!("u{number}:{HASH}\n"))
            .collect::<String>()
    };
    assert_eq!(parse(text(MAX_USERS).as_bytes()).unwrap().len(), MAX_USERS);
    let errors = parse(text(MAX_USERS + 1).as_bytes()).unwrap_err();
    assert_eq!(
        (errors[0].line, &errors[0].kind),
        (MAX_USERS + 1, &LineErrorKind::TooManyUsers)
    );
}

#[cfg(unix)]
#[test]
fn files_are_checked_for_type_size_and_permissions() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("htpasswd");
    // Writes the file, and returns its first finding.
    let first_finding = |text: &[u8], mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        inspect(&path)
            .first()
            .map(|error| (error.severity, error.message.clone()))
    };
    let good = format!("bob:{HASH}\n");
    assert_eq!(first_finding(good.as_bytes(), 0o640), None);
    let check = |found: Option<(Severity, String)>, severity: Severity, part: &str| {
        assert!(
            found
                .as_ref()
                .is_some_and(|found| found.0 == severity && found.1.contains(part)),
            "{part}: {found:?}"
        );
    };
    check(
        first_finding(good.as_bytes(), 0o644),
        Severity::Warning,
        "is readable by every user",
    );
    check(
        first_finding(good.as_bytes(), 0o642),
        Severity::Error,
        "is writable by every user",
    );
    check(first_finding(b"", 0o640), Severity::Warning, "has no users");
    check(
        first_finding(b"bob", 0o640),
        Severity::Error,
        "htpasswd is invalid: line 1: no colon",
    );
    check(
        first_finding(&vec![b'\n'; MAX_FILE_BYTES + 1], 0o640),
        Severity::Error,
        "larger than 4 MiB",
    );
    std::fs::remove_file(&path).unwrap();
    let missing = inspect(&path);
    assert!(missing[0].message.contains("cannot be read"), "{missing:?}");
    std::fs::create_dir(&path).unwrap();
    assert!(inspect(&path)[0].message.contains("not a regular file"));
}

#[test]
fn seeds_of_the_fuzz_target_pass() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/htpasswd");
    let mut seen = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        crate::fuzzing::htpasswd(&std::fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    // A smaller number would mean that seeds were lost.
    assert!(seen >= 6, "{seen} seeds");
}

proptest! {
    #[test]
    fn arbitrary_bytes_uphold_the_invariants(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        crate::fuzzing::htpasswd(&bytes);
    }

    #[test]
    fn arbitrary_lines_uphold_the_invariants(
        lines in prop::collection::vec(("[a-c#:\\PC]{0,4}", prop::sample::select(vec![":", "", "\r", "::"]),
            prop::sample::select(vec![HASH, "", "x", "$2y$05$", "$argon2id$v=19$m=8,t=1,p=1$"])), 0..6),
    ) {
        let text: String = lines.iter().map(|(name, separator, hash)| format!("{name}{separator}{hash}\n")).collect();
        crate::fuzzing::htpasswd(text.as_bytes());
    }
}

#[cfg(unix)]
#[test]
fn a_file_without_content_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (fifo, socket) = (folder.path().join("fifo"), folder.path().join("socket"));
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [fifo, socket] {
        // Opening the FIFO to read it would otherwise wait for a program that writes to it.
        let (sender, receiver) = std::sync::mpsc::channel();
        let read = path.clone();
        std::thread::spawn(move || sender.send(super::read(&read).map(|_| ())));
        let result = receiver.recv_timeout(std::time::Duration::from_secs(20));
        assert!(
            matches!(result, Ok(Err(PasswordFileError::NotRegular))),
            "{}: {result:?}",
            path.display()
        );
    }
}
