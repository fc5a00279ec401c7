//! Trust stores of the system and of browsers, into which the local CA is installed.
//!
//! The reports of external tools are not relied on: after each change the store itself is read.

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

/// Returns the store of this system, if it has a known one.
pub fn system_store(tools: &Tools) -> Option<Box<dyn TrustStore>> {
    let system = System::find(Path::new("/"), tools)?;
    Some(Box::new(system))
}

/// Returns the stores of the user's browsers.
pub fn browser_stores(home: &Home, tools: &Tools) -> Vec<Box<dyn TrustStore>> {
    let all = Nss::find_all(home, tools).into_iter();
    all.map(|store| Box::new(store) as Box<dyn TrustStore>).collect()
}
