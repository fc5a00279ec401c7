//! Trust stores of the system and of browsers, into which the local CA is installed.
//!
//! RockNet does not rely on the success that external tools report. After each change it reads the store again.

mod command;
mod home;
mod nss;
mod store;
mod system;

use std::path::Path;

pub use command::Tools;
pub use home::Home;
pub use nss::Nss;
pub use store::{RootCertificate, TrustError, TrustState, TrustStore};
pub use system::System;

/// Returns the trust store of this system; `None` if the system has no known store.
pub fn system_store(tools: &Tools) -> Option<Box<dyn TrustStore>> {
    let system = System::find(Path::new("/"), tools)?;
    Some(Box::new(system))
}

/// Returns the trust stores of the user's browsers.
pub fn browser_stores(home: &Home, tools: &Tools) -> Vec<Box<dyn TrustStore>> {
    let all = Nss::find_all(home, tools).into_iter();
    all.map(|store| Box::new(store) as Box<dyn TrustStore>).collect()
}
