//! Storage in memory for tests, which can simulate a full disk.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Access, Lock, Storage};

/// Storage that keeps its items in memory.
#[derive(Default)]
pub struct MemoryStorage {
    items: Mutex<BTreeMap<String, Vec<u8>>>,
    /// If true, every write fails as on a full disk.
    pub full: AtomicBool,
}

impl Storage for MemoryStorage {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.items.lock().unwrap().get(name).cloned())
    }

    fn write(&self, name: &str, bytes: &[u8], _: Access) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.items.lock().unwrap().insert(name.to_owned(), bytes.to_owned());
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.items.lock().unwrap().remove(name);
        Ok(())
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let below = format!("{folder}/");
        let items = self.items.lock().unwrap();
        Ok(items
            .keys()
            .filter_map(|name| name.strip_prefix(&below))
            .map(str::to_owned)
            .collect())
    }

    fn lock(&self, _: &str) -> io::Result<Option<Lock>> {
        Ok(Some(Lock::unshared()))
    }
}
