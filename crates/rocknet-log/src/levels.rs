//! Levels of the error log: a general one, and those of single modules.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use rocknet_config::model::Level;

/// Maximum number of modules with a level of their own. Each message is compared with all of them.
const MAX_MODULES: usize = 16;

/// Levels up to which messages are written. The atomics hold levels as numbers: 0 is `error`, and 4 is `trace`, the
/// most verbose level.
pub(super) struct Levels {
    general: AtomicU8,
    /// General level of the last [`Levels::reset`]. [`Levels::set_general`] does not change it.
    configured: AtomicU8,
    /// False if no module has a level of its own, so that messages take no lock then.
    has_modules: AtomicBool,
    /// Levels by the path of the module.
    modules: RwLock<BTreeMap<String, Level>>,
}

impl Levels {
    pub(super) fn new(general: Level) -> Levels {
        Levels {
            general: AtomicU8::new(general as u8),
            configured: AtomicU8::new(general as u8),
            has_modules: AtomicBool::new(false),
            modules: RwLock::default(),
        }
    }

    /// Returns the level of messages from modules without a level of their own.
    pub(super) fn general(&self) -> Level {
        by_rank(self.general.load(Ordering::Relaxed))
    }

    /// Returns the general level of the last [`Levels::reset`].
    pub(super) fn configured(&self) -> Level {
        by_rank(self.configured.load(Ordering::Relaxed))
    }

    /// Sets the general level, and removes the levels of modules.
    pub(super) fn reset(&self, general: Level) {
        self.general.store(general as u8, Ordering::Relaxed);
        self.configured.store(general as u8, Ordering::Relaxed);
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        modules.clear();
        self.has_modules.store(false, Ordering::Release);
    }

    /// Sets the general level. Modules keep their own.
    pub(super) fn set_general(&self, level: Level) {
        self.general.store(level as u8, Ordering::Relaxed);
    }

    /// Sets the level of a module and of the modules in it. Returns false if too many modules have a level.
    pub(super) fn set_module(&self, module: &str, level: Level) -> bool {
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        if modules.len() >= MAX_MODULES && !modules.contains_key(module) {
            return false;
        }
        modules.insert(module.to_owned(), level);
        self.has_modules.store(true, Ordering::Release);
        true
    }

    /// Removes the level of a module. Returns false if it has none.
    pub(super) fn remove_module(&self, module: &str) -> bool {
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        let is_removed = modules.remove(module).is_some();
        self.has_modules.store(!modules.is_empty(), Ordering::Release);
        is_removed
    }

    /// Returns the modules with a level of their own.
    pub(super) fn modules(&self) -> BTreeMap<String, Level> {
        self.read().clone()
    }

    /// Returns true if a message of this level from a module is written.
    pub(super) fn admits(&self, level: Level, module: &str) -> bool {
        level as u8 <= self.of(module) as u8
    }

    /// Returns the most verbose of all levels.
    pub(super) fn most_verbose(&self) -> Level {
        let modules = self.read();
        let ranks = modules.values().map(|level| *level as u8).chain([self.general() as u8]);
        by_rank(ranks.max().unwrap_or_default())
    }

    /// Returns the level of a module: that of the longest path which contains it, or the general one.
    fn of(&self, module: &str) -> Level {
        if !self.has_modules.load(Ordering::Acquire) {
            return self.general();
        }
        let modules = self.read();
        let own = modules.iter().filter(|(path, _)| contains(path, module));
        own.max_by_key(|(path, _)| path.len())
            .map_or_else(|| self.general(), |(_, level)| *level)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Level>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if `module` is the module at `path` or below it.
fn contains(path: &str, module: &str) -> bool {
    module
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Returns the level with this number.
fn by_rank(rank: u8) -> Level {
    const BY_RANK: [Level; 5] = [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];
    BY_RANK.get(usize::from(rank)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_decides() {
        let levels = Levels::new(Level::Info);
        assert!(levels.set_module("a::b", Level::Debug) && levels.set_module("a", Level::Error));
        for (module, level) in [
            ("a", Level::Error),
            ("a::c", Level::Error),
            ("a::b", Level::Debug),
            ("a::b::c", Level::Debug),
            ("a::bc", Level::Error),
            ("ab", Level::Info),
            ("b", Level::Info),
        ] {
            assert_eq!(levels.of(module), level, "{module}");
        }
        assert!(levels.admits(Level::Warn, "b") && !levels.admits(Level::Warn, "a"));
        assert_eq!(levels.most_verbose(), Level::Debug);
        levels.set_general(Level::Trace);
        assert_eq!((levels.most_verbose(), levels.of("a")), (Level::Trace, Level::Error));
        assert_eq!(levels.configured(), Level::Info);
        levels.reset(Level::Warn);
        assert_eq!((levels.of("a"), levels.most_verbose()), (Level::Warn, Level::Warn));
        assert_eq!(levels.configured(), Level::Warn);
    }

    #[test]
    fn the_number_of_modules_is_limited() {
        let levels = Levels::new(Level::Info);
        for number in 0..MAX_MODULES {
            assert!(levels.set_module(&format!("m{number}"), Level::Debug));
        }
        assert!(!levels.set_module("more", Level::Debug));
        assert!(levels.set_module("m0", Level::Error));
        assert_eq!(levels.modules().len(), MAX_MODULES);
        assert!(levels.remove_module("m0") && !levels.remove_module("m0"));
        assert!(levels.set_module("more", Level::Debug));
        levels
            .modules()
            .keys()
            .for_each(|module| assert!(levels.remove_module(module)));
        assert!(!levels.has_modules.load(Ordering::Acquire));
    }
}
