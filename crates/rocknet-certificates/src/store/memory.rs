//! A store in memory for tests, which can be told to fail.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Access, Lock, Store};

#[derive(Default)]
pub struct Memory {
    pieces: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The disk is full.
    pub full: AtomicBool,
}

impl Store for Memory {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.pieces.lock().unwrap().get(name).cloned())
    }

    fn write(&self, name: &str, bytes: &[u8], _: Access) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.pieces.lock().unwrap().insert(name.to_owned(), bytes.to_owned());
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.pieces.lock().unwrap().remove(name);
        Ok(())
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let below = format!("{folder}/");
        let pieces = self.pieces.lock().unwrap();
        Ok(pieces
            .keys()
            .filter_map(|name| name.strip_prefix(&below))
            .map(str::to_owned)
            .collect())
    }

    fn lock(&self, _: &str) -> io::Result<Option<Lock>> {
        Ok(Some(Lock::alone()))
    }
}
