//! Keys of signed URLs: files, and the key that the server generates and keeps in its state folder.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use aws_lc_rs::{hmac, rand};
use rocknet_config::url_keys::{self, UrlKey};

use crate::certificates::storage::{Access, FileStorage, Storage};
use crate::signed_url::SigningKeys;

/// Path of the file with the generated key in the state folder.
const ITEM: &str = "urls/key";

/// Identifier of the generated key.
const ID: &str = "main";

/// Number of random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// Key of signed URLs that a server generates when the first route needs it. Each site has a key derived from it, so
/// that a URL of one site is not valid for another one, even if only their ports differ.
#[derive(Default)]
pub struct UrlKeyStore {
    state_folder: OnceLock<PathBuf>,
    /// Keys in the file, normally one. Empty before the first use, or if the file cannot be used.
    generated: Mutex<Vec<UrlKey>>,
}

impl UrlKeyStore {
    /// Keeps the key in a state folder from now on. Without this call, the key lasts as long as the process.
    pub fn open(&self, state_folder: &Path) {
        // Called once, when the server starts.
        let _ = self.state_folder.set(state_folder.to_owned());
    }

    /// Returns the key of a site. The first call reads or creates the key that it is derived from. If that fails, there
    /// is no key, and the next call tries again.
    pub fn of_site(&self, site: &str) -> SigningKeys {
        let mut generated = self.generated.lock().unwrap_or_else(PoisonError::into_inner);
        if generated.is_empty() {
            *generated = load(self.state_folder.get().map(PathBuf::as_path));
        }
        derived(&generated, site)
    }
}

/// Returns the keys of a site, derived from those that the server has generated.
fn derived(generated: &[UrlKey], site: &str) -> SigningKeys {
    let derive = |key: &UrlKey| {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, key.secret.as_bytes());
        UrlKey {
            id: key.id.clone(),
            secret: hex(hmac::sign(&secret, site.as_bytes()).as_ref()).into(),
        }
    };
    SigningKeys::new(&generated.iter().map(derive).collect::<Vec<_>>())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the key that the server has generated, and returns that of a site.
///
/// # Errors
///
/// The error names the file.
pub fn read_generated(state_folder: &Path, site: &str) -> Result<SigningKeys, String> {
    let path = generated_key_file(state_folder);
    let keys = url_keys::read(&path).map_err(|error| format!("{} {error}", path.display()))?;
    Ok(derived(&keys, site))
}

/// Returns the path of the file with the generated key.
pub fn generated_key_file(state_folder: &Path) -> PathBuf {
    state_folder.join(ITEM)
}

/// Reads a file of keys.
///
/// # Errors
///
/// The error names the file.
pub fn read(path: &Path) -> Result<SigningKeys, String> {
    let keys = url_keys::read(path).map_err(|error| format!("{} {error}", path.display()))?;
    Ok(SigningKeys::new(&keys))
}

/// Returns a line of a key file with a new key.
///
/// # Panics
///
/// Never: the system's random number generator does not fail after boot.
pub fn new_key(id: &str) -> String {
    let mut secret = [0; SECRET_BYTES];
    rand::fill(&mut secret).expect("the system provides random numbers");
    format!("{id}:{}\n", hex(&secret))
}

/// Reads or creates the key in a state folder. A file that cannot be used is not replaced, because URLs may depend on
/// it. Without keys, requests with signed URLs are refused.
fn load(state_folder: Option<&Path>) -> Vec<UrlKey> {
    let line = new_key(ID);
    let create = || url_keys::parse(line.as_bytes()).unwrap_or_default();
    let Some(folder) = state_folder else {
        return create();
    };
    let storage = FileStorage::new(folder);
    match storage.read(ITEM) {
        Ok(Some(text)) => url_keys::parse(&text).unwrap_or_else(|error| {
            tracing::error!("signed URLs are refused: {ITEM} in the state folder {error}");
            Vec::new()
        }),
        Ok(None) => match storage.write(ITEM, line.as_bytes(), Access::Owner) {
            Ok(()) => create(),
            Err(error) => {
                tracing::error!("signed URLs are refused: {ITEM} in the state folder cannot be written: {error}");
                Vec::new()
            }
        },
        Err(error) => {
            tracing::error!("signed URLs are refused: {ITEM} in the state folder cannot be read: {error}");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed_url::{PARAMETER, SignedRequest, Terms, Verdict};

    #[test]
    fn the_key_is_created_once_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = UrlKeyStore::default();
        store.open(folder.path());
        let file = generated_key_file(folder.path());
        assert!(!file.exists());
        assert!(!store.of_site("a").is_empty() && !store.of_site("a").is_empty());
        let text = std::fs::read(&file).unwrap();
        assert!(text.starts_with(b"main:") && text.len() == 5 + 64 + 1);
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let again = UrlKeyStore::default();
        again.open(folder.path());
        assert!(!again.of_site("a").is_empty());
        assert_eq!(std::fs::read(&file).unwrap(), text);
        // A damaged file is not replaced.
        std::fs::write(&file, "main:short\n").unwrap();
        let damaged = UrlKeyStore::default();
        damaged.open(folder.path());
        assert!(damaged.of_site("a").is_empty());
        assert_eq!(std::fs::read(&file).unwrap(), b"main:short\n");
    }

    #[test]
    fn sites_have_different_keys() {
        let folder = tempfile::tempdir().unwrap();
        let store = UrlKeyStore::default();
        store.open(folder.path());
        let request = SignedRequest {
            method: b"GET",
            authority: b"localhost:8080",
            target: b"/a",
            client: None,
        };
        let terms = Terms {
            expires: 100,
            is_for_client: false,
            folder_depth: None,
        };
        let value = store.of_site(":8080").sign(&request, &terms, None).unwrap();
        let target = format!("/a?{PARAMETER}{value}");
        let signed = SignedRequest {
            target: target.as_bytes(),
            ..request
        };
        let verdict = |keys: SigningKeys| keys.verify(&signed, std::iter::empty(), 99);
        let by_command = |site| read_generated(folder.path(), site).unwrap();
        for (site, expected) in [(":8080", Verdict::Valid), (":8081", Verdict::Invalid)] {
            assert_eq!(verdict(store.of_site(site)), expected);
            assert_eq!(verdict(by_command(site)), expected);
        }
    }
}
