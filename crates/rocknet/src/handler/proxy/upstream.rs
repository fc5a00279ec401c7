//! A server that is asked, and what all workers know of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rocknet_config::model::{self, Host};

use super::names;
use crate::told::Told;

pub struct Upstream {
    /// Never used twice in a process.
    pub id: u32,
    /// As it is written.
    pub name: Box<str>,
    /// What it is called in requests that name nobody: HTTP/1.0 may.
    pub host: Box<str>,
    place: Place,
    /// Which of its addresses comes next.
    next: AtomicUsize,
    pub told: Told,
}

enum Place {
    Unix(Box<Path>),
    Address([SocketAddr; 1]),
    Name(Mutex<Looked>),
}

/// What is known of the addresses behind a name.
#[derive(Clone, Debug)]
pub enum Looked {
    /// Nobody has answered yet.
    Unknown,
    Found(Arc<[SocketAddr]>),
    Failed(Arc<str>),
}

/// Where to connect to.
pub enum Way<'u> {
    Unix(&'u Path),
    /// One after the other.
    Tcp(Vec<SocketAddr>),
    /// To be asked again in a moment.
    Unknown,
    /// The name leads nowhere.
    Nowhere(Arc<str>),
}

/// All that are in use by some snapshot.
static ALL: Mutex<BTreeMap<model::Upstream, Weak<Upstream>>> = Mutex::new(BTreeMap::new());

impl Upstream {
    /// The one there is for this place: scopes of one configuration and of the next share it.
    pub fn of(model: &model::Upstream) -> Arc<Upstream> {
        let mut all = lock(&ALL);
        if let Some(upstream) = all.get(model).and_then(Weak::upgrade) {
            return upstream;
        }
        all.retain(|_, upstream| upstream.strong_count() > 0);
        let upstream = Arc::new(Upstream::new(model));
        all.insert(model.clone(), Arc::downgrade(&upstream));
        drop(all);
        if let Host::Name(name, port) = &model.host {
            names::watch(&upstream, name, *port);
        }
        upstream
    }

    fn new(model: &model::Upstream) -> Upstream {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = model.to_string();
        let place = match &model.host {
            Host::Unix(path) => Place::Unix(path.clone().into()),
            Host::Address(ip, port) => Place::Address([SocketAddr::new(*ip, *port)]),
            Host::Name(..) => Place::Name(Mutex::new(Looked::Unknown)),
        };
        let host = match &model.host {
            Host::Unix(_) => "localhost",
            _ => name.strip_prefix("http://").unwrap_or("localhost"),
        };
        Upstream {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            host: host.into(),
            name: name.into(),
            place,
            next: AtomicUsize::new(0),
            told: Told::never(),
        }
    }

    /// Where to connect to now. Addresses take turns to be the first.
    pub fn way(&self) -> Way<'_> {
        let addresses = match &self.place {
            Place::Unix(path) => return Way::Unix(path),
            Place::Address(address) => return Way::Tcp(address.to_vec()),
            Place::Name(looked) => match &*lock(looked) {
                Looked::Unknown => return Way::Unknown,
                Looked::Failed(error) => return Way::Nowhere(Arc::clone(error)),
                Looked::Found(addresses) => Arc::clone(addresses),
            },
        };
        let mut addresses = addresses.to_vec();
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % addresses.len().max(1);
        addresses.rotate_left(turn);
        Way::Tcp(addresses)
    }

    /// What the name leads to now. Addresses that were known are not given up because nobody answers.
    pub fn looked_up(&self, found: Looked) {
        let Place::Name(looked) = &self.place else { return };
        let mut looked = lock(looked);
        if !matches!((&*looked, &found), (Looked::Found(_), Looked::Failed(_))) {
            *looked = found;
        }
    }
}

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named() -> Upstream {
        Upstream::new(&model::Upstream {
            host: Host::Name("app.test".to_owned(), 8080),
        })
    }

    fn first(upstream: &Upstream) -> String {
        match upstream.way() {
            Way::Tcp(addresses) => addresses[0].to_string(),
            Way::Unknown => "unknown".to_owned(),
            Way::Nowhere(error) => error.to_string(),
            Way::Unix(path) => path.display().to_string(),
        }
    }

    #[test]
    fn addresses_of_a_name_take_turns_and_stay_while_nobody_answers() {
        let upstream = named();
        assert_eq!(
            (&*upstream.host, first(&upstream)),
            ("app.test:8080", "unknown".to_owned())
        );
        upstream.looked_up(Looked::Failed("no such name".into()));
        assert_eq!(first(&upstream), "no such name");
        let addresses: [SocketAddr; 2] = [([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 80).into()];
        upstream.looked_up(Looked::Found(addresses.into()));
        let before = first(&upstream);
        assert_ne!(first(&upstream), before);
        assert_eq!(first(&upstream), before);
        upstream.looked_up(Looked::Failed("no such name".into()));
        assert_ne!(first(&upstream), before);
        upstream.looked_up(Looked::Found([addresses[1]].into()));
        assert_eq!(
            (first(&upstream), first(&upstream)),
            ("10.0.0.2:80".to_owned(), "10.0.0.2:80".to_owned())
        );
    }

    #[test]
    fn one_place_is_one_upstream() {
        let model = |port| model::Upstream {
            host: Host::Address([127, 0, 0, 1].into(), port),
        };
        let (one, same, other) = (
            Upstream::of(&model(1)),
            Upstream::of(&model(1)),
            Upstream::of(&model(2)),
        );
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other) && one.id != other.id);
    }
}
