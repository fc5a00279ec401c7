//! Tests of the transfer between the registries of two servers.

use std::io::Write;

use super::*;
use crate::limits::LimitSecrets;

fn registries(secrets: &LimitSecrets) -> Registries {
    let secrets = LimitSecrets::decode(&secrets.encode()).unwrap();
    Registries::new(std::sync::Arc::default(), secrets)
}

/// Returns registries with this number of wrong passwords.
fn with_guesses(secrets: &LimitSecrets, guesses: u64) -> Registries {
    let registries = registries(secrets);
    for number in 0..guesses {
        let guess = WrongGuess {
            client: (0x2001_0db8 << 96) | u128::from(number / 3) << 64,
            left_ms: 30_000,
            tag: number,
        };
        registries.access.adopt_wrong_guess(guess, registries.time.uptime_ms());
    }
    registries
}

/// Returns the clients and tags of wrong passwords, sorted.
fn guesses(registries: &Registries) -> Vec<(u128, u64)> {
    let guesses = registries.access.wrong_guesses(registries.time.uptime_ms());
    for guess in &guesses {
        assert!((20_000..=30_000).contains(&guess.left_ms), "{guess:?}");
    }
    let mut guesses: Vec<_> = guesses.iter().map(|guess| (guess.client, guess.tag)).collect();
    guesses.sort_unstable();
    guesses
}

#[test]
fn wrong_passwords_are_adopted() {
    let secrets = LimitSecrets::random();
    let old = with_guesses(&secrets, 100);
    let new = registries(&secrets);
    let file = write(&old).unwrap();
    // The position in the file does not matter.
    (&file).read_exact(&mut [0; 8]).unwrap();
    adopt(&new, Some(file));
    assert_eq!(guesses(&new).len(), 100);
    assert_eq!(guesses(&new), guesses(&old));
}

#[test]
fn a_damaged_transfer_changes_nothing() {
    let secrets = LimitSecrets::random();
    let old = with_guesses(&secrets, 100);
    let mut whole = Vec::new();
    write(&old).unwrap().read_to_end(&mut whole).unwrap();
    let new = registries(&secrets);
    for damaged in [
        &b""[..],
        b"other bytes, which are no transfer at all",
        &whole[..whole.len() - 1],
        &[&whole[..], b"x"].concat(),
    ] {
        adopt(&new, Some(sealed_file::create(damaged).unwrap()));
        assert_eq!(guesses(&new), []);
    }
    adopt(&new, None);
    // A file that is too large is read in part only.
    let mut large = tempfile::tempfile().unwrap();
    large.write_all(&whole).unwrap();
    large.set_len(1 << 40).unwrap();
    adopt(&new, Some(large));
    assert_eq!(guesses(&new), []);
    // A predecessor that has other secrets has hashed other keys.
    let other = registries(&LimitSecrets::random());
    adopt(&other, Some(write(&old).unwrap()));
    assert_eq!(guesses(&other), []);
    adopt(&new, Some(sealed_file::create(&whole).unwrap()));
    assert_eq!(guesses(&new).len(), 100);
}
