//! Local HTTPS: certificates of a CA of this machine, made in a moment and kept young without anybody's doing.
//!
//! Leaves live in memory alone. They cost less to sign than to read, so there is nothing on the disk to protect, to lose
//! or to tidy away but the CA itself.

mod ca;
mod names;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

pub use ca::{CaError, Leaf, LocalCa, Reach, Root};
pub use names::is_private;

use super::storage::{FileStorage, Storage};
use super::{Authority, Certified, Issuer, KeySet, Shelf, Wanted};

/// The issuer for sites of this machine.
pub struct LocalIssuer {
    shared: Arc<Shared>,
    sites: HashMap<Vec<String>, Due>,
    /// Whether the shelf knows whom to ask for names below wildcards.
    listens: bool,
    /// A failure is told once, not every few seconds.
    told: bool,
}

/// When a certificate is to be replaced.
type Due = SystemTime;

struct Shared {
    storage: Arc<dyn Storage>,
    cas: Mutex<[Option<LocalCa>; Reach::ALL.len()]>,
    /// Names below the wildcards of sites, signed when a client came for them.
    single: Mutex<Single>,
}

#[derive(Default)]
struct Single {
    /// What follows `*.` in names of sites.
    below: Vec<String>,
    made: HashMap<String, Due>,
}

impl LocalIssuer {
    /// Touches nothing yet: the CA is made when a site wants it.
    pub fn open(state: &Path) -> io::Result<LocalIssuer> {
        Ok(LocalIssuer::with(Arc::new(FileStorage::new(state))))
    }

    pub fn with(storage: Arc<dyn Storage>) -> LocalIssuer {
        LocalIssuer {
            shared: Arc::new(Shared {
                storage,
                cas: Mutex::default(),
                single: Mutex::default(),
            }),
            sites: HashMap::new(),
            listens: false,
            told: false,
        }
    }

    /// Browsers take no wildcard directly below a top-level name, and those are just what local sites have:
    /// `*.localhost`, `*.test`. Names below one get a certificate of their own when a client comes for them.
    fn listen(&mut self, shelf: &Arc<Shelf>) {
        if !std::mem::replace(&mut self.listens, true) {
            let (shared, weak) = (Arc::clone(&self.shared), Arc::downgrade(shelf));
            shelf.on_missing(move |name| {
                if let Some(shelf) = weak.upgrade() {
                    shared.sign_single(name, SystemTime::now(), &shelf);
                }
            });
        }
    }

    /// Signs for all of `due`, and puts what was signed on the shelf in one go.
    fn renew(&mut self, due: Vec<Vec<String>>, now: SystemTime, shelf: &Shelf) {
        let mut made = Vec::with_capacity(due.len());
        for names in due {
            match self.shared.sign(&names, now) {
                Ok(set) => {
                    self.told = false;
                    made.push((names, set));
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.told, true) {
                        tracing::error!("no certificate for {}: {error}", names.join(", "));
                    }
                    // Tried again with the next tick.
                    self.sites.insert(names, now);
                }
            }
        }
        let shown: Vec<_> = made.iter().map(|(names, set)| (on_shelf(names), set.clone())).collect();
        shelf.put_all(shown.iter().map(|(names, set)| (&names[..], set.clone())));
        self.sites
            .extend(made.into_iter().map(|(names, _)| (names, now + RENEW_AFTER)));
    }
}

impl Issuer for LocalIssuer {
    fn authority(&self) -> Authority {
        Authority::Local
    }

    fn want(&mut self, wanted: &[Wanted], shelf: &Arc<Shelf>) {
        let wanted: Vec<&Vec<String>> = wanted
            .iter()
            .filter(|site| site.authority == Authority::Local)
            .map(|site| &site.names)
            .collect();
        self.sites.retain(|names, _| {
            let stays = wanted.contains(&names);
            if !stays {
                shelf.remove(names);
            }
            stays
        });
        self.shared.below(&wanted, shelf);
        if wanted
            .iter()
            .any(|names| names.iter().any(|name| name.starts_with("*.")))
        {
            self.listen(shelf);
        }
        let new = wanted.into_iter().filter(|names| !self.sites.contains_key(*names));
        self.renew(new.cloned().collect(), SystemTime::now(), shelf);
    }

    fn tick(&mut self, now: SystemTime, shelf: &Arc<Shelf>) {
        let due = self.sites.iter().filter(|(_, due)| **due <= now);
        let due: Vec<_> = due.map(|(names, _)| names.clone()).collect();
        if !due.is_empty() {
            self.renew(due, now, shelf);
        }
        self.shared.forget_old(now, shelf);
    }
}

impl Shared {
    fn single(&self) -> MutexGuard<'_, Single> {
        self.single.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sign(&self, names: &[String], now: SystemTime) -> Result<KeySet, CaError> {
        let reach = if names.iter().all(|name| is_private(name)) {
            Reach::Private
        } else {
            Reach::AnyName
        };
        let mut cas = self.cas.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut cas[reach as usize];
        let usable = place
            .as_ref()
            .is_some_and(|ca| now + ca::LEAF_LIFE < ca.root().not_after);
        let ca = match place {
            Some(ca) if usable => ca,
            _ => place.insert(LocalCa::open_or_make(&*self.storage, reach, now)?),
        };
        let leaf = ca.sign(names, now)?;
        Certified::new(leaf.chain, &leaf.key)
            .map(KeySet::from)
            .map_err(CaError::Unusable)
    }

    fn below(&self, wanted: &[&Vec<String>], shelf: &Shelf) {
        let names = wanted.iter().flat_map(|names| names.iter());
        let below: Vec<String> = names
            .filter_map(|name| name.strip_prefix("*."))
            .map(str::to_owned)
            .collect();
        let mut single = self.single();
        single.below = below;
        let gone: Vec<String> = single
            .made
            .keys()
            .filter(|name| !single.covers(name))
            .cloned()
            .collect();
        single.drop_all(&gone, shelf);
    }

    fn sign_single(&self, name: &str, now: SystemTime, shelf: &Shelf) {
        {
            let mut single = self.single();
            if !single.covers(name) || single.made.contains_key(name) || single.made.len() >= MAX_SINGLE {
                return;
            }
            // Noted before it is made: clients that come at once must not make several.
            single.made.insert(name.to_owned(), now + RENEW_AFTER);
        }
        let names = [name.to_owned()];
        match self.sign(&names, now) {
            Ok(set) => shelf.put(&names, set),
            Err(error) => {
                tracing::error!("no certificate for {name}: {error}");
                let mut single = self.single();
                single.made.remove(name);
            }
        }
    }

    /// They are made anew when a client comes again.
    fn forget_old(&self, now: SystemTime, shelf: &Shelf) {
        let mut single = self.single();
        let old = single.made.iter().filter(|(_, due)| **due <= now);
        let old: Vec<String> = old.map(|(name, _)| name.clone()).collect();
        single.drop_all(&old, shelf);
    }
}

impl Single {
    fn covers(&self, name: &str) -> bool {
        self.below.iter().any(|below| {
            name.strip_suffix(below.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        })
    }

    fn drop_all(&mut self, names: &[String], shelf: &Shelf) {
        if !names.is_empty() {
            self.made.retain(|name, _| !names.contains(name));
            shelf.remove(names);
        }
    }
}

/// All but the wildcards that browsers would refuse.
fn on_shelf(names: &[String]) -> Vec<String> {
    let refused = |name: &&String| name.strip_prefix("*.").is_some_and(|below| !below.contains('.'));
    names.iter().filter(|name| !refused(name)).cloned().collect()
}

/// Two thirds of a leaf's life.
const RENEW_AFTER: Duration = Duration::from_secs(ca::LEAF_LIFE.as_secs() / 3 * 2);

/// Names below wildcards that are signed for: more than a developer has, and no client can fill the memory by asking.
const MAX_SINGLE: usize = 1_024;

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::storage::memory::MemoryStorage;
    use super::*;

    fn wanted(sites: &[&[&str]]) -> Vec<Wanted> {
        let site = |names: &&[&str]| Wanted {
            site: names[0].to_owned(),
            authority: Authority::Local,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        sites.iter().map(site).collect()
    }

    fn serial(shelf: &Shelf, name: &str) -> Option<Vec<u8>> {
        let set = shelf.find(name)?;
        Some(set.certificates()[0].key().cert[0].to_vec())
    }

    #[test]
    fn sites_get_certificates_at_once_and_lose_them_when_they_go() {
        let shelf = Arc::new(Shelf::default());
        let mut local = LocalIssuer::with(Arc::new(MemoryStorage::default()));
        local.want(&wanted(&[&["localhost", "127.0.0.1"], &["a.test", "*.a.test"]]), &shelf);
        for (name, found) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("x.a.test", true),
            ("b.test", false),
        ] {
            assert_eq!(shelf.find(name).is_some(), found, "{name}");
        }
        let before = serial(&shelf, "a.test");
        local.want(&wanted(&[&["a.test", "*.a.test"], &["b.test"]]), &shelf);
        assert_eq!(serial(&shelf, "a.test"), before, "what stays is not made anew");
        assert!(shelf.find("b.test").is_some() && shelf.find("localhost").is_none());
    }

    #[test]
    fn leaves_are_renewed_before_their_end() {
        let shelf = Arc::new(Shelf::default());
        let mut local = LocalIssuer::with(Arc::new(MemoryStorage::default()));
        let start = SystemTime::now();
        local.want(&wanted(&[&["a.test"]]), &shelf);
        let first = serial(&shelf, "a.test");
        local.tick(start + RENEW_AFTER - Duration::from_secs(60), &shelf);
        assert_eq!(serial(&shelf, "a.test"), first);
        let later = start + RENEW_AFTER + Duration::from_secs(60);
        local.tick(later, &shelf);
        assert_ne!(serial(&shelf, "a.test"), first);
        let set = shelf.find("a.test").unwrap();
        assert!(set.certificates()[0].not_after() > later + RENEW_AFTER);
        // Years on, the CA itself is replaced.
        let years = start + Duration::from_secs(3640 * 86_400);
        local.tick(years, &shelf);
        let set = shelf.find("a.test").unwrap();
        assert!(set.certificates()[0].not_after() > years);
    }

    #[test]
    fn names_below_a_wildcard_get_their_own_within_bounds() {
        let shelf = Arc::new(Shelf::default());
        let mut local = LocalIssuer::with(Arc::new(MemoryStorage::default()));
        local.want(&wanted(&[&["*.test"]]), &shelf);
        let start = SystemTime::now();
        assert!(shelf.find("a.test").is_none());
        for name in ["a.test", "b.c.test", "test", ".test", "a.testing", "example.com"] {
            shelf.is_missing(name);
        }
        for (name, found) in [
            ("a.test", true),
            ("b.c.test", true),
            ("test", false),
            ("example.com", false),
        ] {
            assert_eq!(shelf.find(name).is_some(), found, "{name}");
        }
        let first = serial(&shelf, "a.test");
        shelf.is_missing("a.test");
        assert_eq!(serial(&shelf, "a.test"), first);
        for number in 0..MAX_SINGLE {
            local.shared.single().made.insert(format!("{number}.test"), start);
        }
        shelf.is_missing("z.test");
        assert!(shelf.find("z.test").is_none(), "no more than {MAX_SINGLE}");
        // Old ones make room, and a site that goes takes all of its own along.
        local.tick(start + Duration::from_secs(60), &shelf);
        shelf.is_missing("z.test");
        assert!(shelf.find("z.test").is_some() && shelf.find("a.test").is_some());
        local.want(&wanted(&[]), &shelf);
        assert!(shelf.find("z.test").is_none() && shelf.find("a.test").is_none());
    }

    #[test]
    fn a_state_folder_that_takes_nothing_leaves_sites_without_until_it_does() {
        let (shelf, storage) = (Arc::new(Shelf::default()), Arc::new(MemoryStorage::default()));
        let mut local = LocalIssuer::with(Arc::clone(&storage) as Arc<dyn Storage>);
        storage.full.store(true, Ordering::Relaxed);
        local.want(&wanted(&[&["a.test"]]), &shelf);
        assert!(shelf.find("a.test").is_none());
        storage.full.store(false, Ordering::Relaxed);
        local.tick(SystemTime::now(), &shelf);
        assert!(shelf.find("a.test").is_some());
    }
}
