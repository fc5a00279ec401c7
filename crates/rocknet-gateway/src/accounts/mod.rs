//! The system accounts that scripts run as, and the programs started as those accounts: CGI programs, and php-fpm,
//! which runs PHP scripts.
//!
//! ```text
//! php/pool.rs, cgi/process.rs ─▶ launch.rs: program, descriptors, account ─▶ process.rs: a running program
//!                                    └─ helper/: starts programs after the server has dropped root's rights
//! ```
//!
//! Private keys belong to the account of the server. If the server was started as root, scripts never run as that
//! account, unless the system has no other.

mod account;
mod helper;
mod launch;
mod plan;
mod process;
mod reach;
mod rights;

pub use self::account::Account;
pub use self::helper::{MAX_ACCOUNTS, run_if_helper};
pub use self::launch::{Launch, pipe};
pub use self::plan::{AccountPlan, Accounts, runs_scripts, server_account};
pub use self::process::Process;
pub use self::reach::reachable;
pub use self::rights::{
    OfferedHelper, adopt_helper, apply_default, can_switch_accounts, has_dropped_rights, inherit_dropped_rights,
    offer_helper, prepare, set_helper_program, warning,
};
