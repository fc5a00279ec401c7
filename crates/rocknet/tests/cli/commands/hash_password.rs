//! The command `hash-password`, whose output the configuration accepts.

use crate::program::ProgramFolder;

#[test]
fn hash_password_prints_a_hash_that_the_configuration_accepts() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let hashed = |line: &str, input: &str| dir.run_with(&line.split_whitespace().collect::<Vec<_>>(), input);
    let output = hashed("hash-password", "correct horse\n");
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
    let hash = output.out.trim_end();
    assert!(
        hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !output.out.contains("horse"),
        "{output:?}"
    );
    assert_ne!(
        hashed("hash-password", "correct horse\n").out,
        output.out,
        "each hash must have a salt of its own"
    );
    let parsed = rocknet_config::model::PasswordHash::parse(hash).unwrap();
    assert!(rocknet_access::password::verify(&parsed, "correct horse"));
    assert!(!rocknet_access::password::verify(&parsed, "correct horse\n"));

    let json = hashed("hash-password --user bob --json", "correct horse").out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(
        json["user"] == "bob" && json["hash"].as_str().unwrap().starts_with("$argon2id$"),
        "{json}"
    );
    let line = hashed("hash-password --user bob", "correct horse");
    assert!(
        line.out.starts_with("bob:$argon2id$") && line.out.ends_with('\n'),
        "{line:?}"
    );
    let file = dir.write("htpasswd", &line.out);
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let site = "[site.\"127.0.0.1:8080\"]\nroot = \"www\"\n";
    dir.write(
        "rocknet.toml",
        &format!("{site}auth = {{ users = {{ ann = \"{hash}\" }}, file = \"htpasswd\" }}\n"),
    );
    let output = dir.run(&["check"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
    dir.write("htpasswd", "bob:correct horse\n");
    let output = dir.run(&["check"]);
    assert!(
        output.code == Some(78)
            && output
                .err
                .contains("htpasswd is invalid: line 1: the password is not a hash"),
        "{output:?}"
    );

    for (line, input, code, message) in [
        ("hash-password", "", 1, "is empty"),
        ("hash-password", "\n", 1, "is empty"),
        ("hash-password", "a\tb\n", 1, "control character"),
        ("hash-password", &"x".repeat(257), 1, "longer than 256 bytes"),
        ("hash-password --user a:b", "x", 2, "is not a valid user name"),
        ("hash-password secret", "x", 2, "unexpected argument"),
    ] {
        let output = hashed(line, input);
        assert!(
            output.code == Some(code) && output.err.contains(message) && output.out.is_empty(),
            "{line}: {output:?}"
        );
    }
}
