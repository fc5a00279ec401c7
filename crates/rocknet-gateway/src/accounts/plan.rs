//! Accounts that a configuration needs: the account of the server and the accounts of its scripts. Scripts are CGI
//! programs, and PHP scripts in a php-fpm that RockNet starts itself.

use std::io;

use rocknet_config::Config;
use rocknet_config::model::Settings;
use rocknet_io::privileges::{self, User};

use super::account::{USUAL_SCRIPT_ACCOUNTS, root_error, root_group_error, server_account_error};

/// Accounts of scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    /// All accounts. The index of an account is its number.
    pub all: Vec<User>,
    /// Number of the account for scripts whose site names no account. If it is `None`, such scripts do not run, because
    /// they must not run as the account of another site.
    pub default: Option<u8>,
}

/// Name of the account that packages create for the server.
const SERVER: &str = "rocknet";

/// Settings of a configuration that decide the accounts of its scripts.
#[derive(Debug, Clone, Default)]
pub struct AccountPlan {
    /// `server.script_user`, if it is set.
    default: Option<String>,
    /// Accounts that sites and routes with scripts name, sorted and without duplicates.
    named: Vec<String>,
    /// True if a site or route has scripts.
    has_scripts: bool,
    /// True if a site or route with scripts names no account.
    pub needs_default: bool,
}

impl AccountPlan {
    /// Collects the settings from a configuration.
    pub fn from_config(config: &Config) -> AccountPlan {
        let with_programs = || settings(config).filter(|settings| settings.runs_programs());
        let mut named: Vec<String> = with_programs().filter_map(|settings| settings.user.clone()).collect();
        named.sort_unstable();
        named.dedup();
        AccountPlan {
            default: config.server.script_user.clone(),
            named,
            has_scripts: runs_scripts(config),
            needs_default: with_programs().any(|settings| settings.user.is_none()),
        }
    }

    /// Returns whether programs may have to be started as other accounts. `server.script_user` also counts without
    /// scripts, because it prepares for a reload that adds scripts.
    pub fn needs_helper(&self) -> bool {
        self.has_scripts || self.default.is_some() || !self.named.is_empty()
    }

    /// Returns the accounts of scripts for a server that runs as `server`; the default account comes first. The list is
    /// empty if the configuration names no account and the system has no usual one.
    ///
    /// # Errors
    ///
    /// Returns an error if a named account does not exist, is root, has root's group as its primary group, or is the
    /// account of the server.
    pub fn accounts(&self, server: &User) -> io::Result<Accounts> {
        self.accounts_with(server, &USUAL_SCRIPT_ACCOUNTS)
    }

    /// Like [`AccountPlan::accounts`], with `usual` as the usual accounts for scripts.
    fn accounts_with(&self, server: &User, usual: &[&str]) -> io::Result<Accounts> {
        let find = |key: &str, name: &str| -> io::Result<User> {
            let in_key = |error: &dyn std::fmt::Display| io::Error::other(format!("{key} = \"{name}\": {error}"));
            let user = User::find(name).map_err(|error| in_key(&error))?;
            check(&user, server).map_err(|error| in_key(&error))?;
            Ok(user)
        };
        let mut all = Vec::new();
        match &self.default {
            Some(name) => all.push(find("script_user", name)?),
            None => {
                let is_permitted = |user: &User| user.uid != server.uid && user.uid != 0 && user.gid != 0;
                let mut existing = usual.iter().filter_map(|name| User::find(name).ok());
                all.extend(existing.find(is_permitted));
            }
        }
        let default = (!all.is_empty()).then_some(0);
        for name in &self.named {
            let user = find("user", name)?;
            if !all.contains(&user) {
                all.push(user);
            }
        }
        Ok(Accounts { all, default })
    }
}

/// Checks that scripts may run as an account.
///
/// # Errors
///
/// Returns an error for root, for the account of the server, and for an account whose primary group is root's group.
fn check(user: &User, server: &User) -> io::Result<()> {
    if user.uid == 0 {
        return Err(root_error());
    }
    if user.gid == 0 {
        return Err(root_group_error(&user.name));
    }
    if user.uid == server.uid {
        return Err(server_account_error(&user.name));
    }
    Ok(())
}

impl Accounts {
    /// Returns the default account and its number.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if there is no default account.
    pub fn default_account(&self) -> io::Result<(u8, &User)> {
        let found = self.default.and_then(|at| Some((at, self.all.get(usize::from(at))?)));
        found.ok_or_else(|| {
            io::Error::other(
                "this system has no account for scripts whose site names none: set script_user = \"NAME\" below \
                 [server], or `user` for each site with scripts, and restart RockNet",
            )
        })
    }
}

/// Returns the account to which the server switches: the configured account, or, for a server that was started as root,
/// the account that a package created. `None` if the server keeps its account.
pub fn server_account(config: &Config) -> Option<String> {
    let found = || User::find(SERVER).ok().filter(|user| user.uid != 0 && user.gid != 0);
    chosen(config.server.user.as_deref(), privileges::is_root(), || {
        found().is_some()
    })
}

/// Chooses as [`server_account`] does. `written`: the configured account. `has_package`: returns true if the account
/// that packages create exists.
fn chosen(written: Option<&str>, is_root: bool, has_package: impl Fn() -> bool) -> Option<String> {
    match written {
        Some(name) => Some(name.to_owned()),
        None => (is_root && has_package()).then(|| SERVER.to_owned()),
    }
}

/// Returns a warning if scripts run as `nobody` by default. This account is used only if no better one exists.
pub fn unusual_default(user: &User) -> Option<String> {
    (user.name == "nobody").then(|| {
        "scripts run as `nobody`, because the usual account for scripts is missing or is RockNet's own: give RockNet \
         an account of its own (useradd --system rocknet, user = \"rocknet\" below [server]), or set script_user = \
         \"NAME\""
            .to_owned()
    })
}

/// Returns whether RockNet starts programs that handle requests.
pub fn runs_scripts(config: &Config) -> bool {
    settings(config).any(Settings::runs_programs)
}

/// Returns the settings of all sites and routes.
fn settings(config: &Config) -> impl Iterator<Item = &Settings> {
    config.sites.iter().flat_map(|site| {
        let routes = site.routes.iter().map(|route| &route.settings);
        std::iter::once(&site.settings).chain(routes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an account with the name `server` and this user ID, which is also its group ID.
    fn user(uid: u32) -> User {
        User {
            name: "server".into(),
            uid,
            gid: uid,
            groups: vec![uid],
            home: None,
        }
    }

    #[test]
    fn scripts_never_run_as_the_account_of_the_server() {
        let uid = |name: &str| User::find(name).map(|user| user.uid).unwrap_or_default();
        let plan = |default: Option<&str>, named: &[&str]| AccountPlan {
            default: default.map(str::to_owned),
            named: named.iter().map(|name| (*name).to_owned()).collect(),
            has_scripts: true,
            needs_default: false,
        };
        let uids = |plan: &AccountPlan, server: u32| match plan.accounts(&user(server)) {
            Ok(found) => Ok(found.all.iter().map(|user| user.uid).collect::<Vec<_>>()),
            Err(error) => Err(error.to_string()),
        };
        let (daemon, nobody) = (uid("daemon"), uid("nobody"));
        let first = uids(&plan(None, &[]), 4242).unwrap();
        assert_eq!(first.len(), 1);
        // If the server has the default account for scripts, scripts run as another account.
        assert!(
            uids(&plan(None, &[]), first[0])
                .unwrap()
                .iter()
                .all(|other| *other != first[0])
        );
        assert_eq!(
            uids(&plan(Some("daemon"), &["nobody", "daemon"]), 4242),
            Ok(vec![daemon, nobody])
        );
        // `server`: user ID of the server. `why`: part of the error message.
        for (default, named, server, why) in [
            (Some("daemon"), &[][..], daemon, "RockNet itself runs as daemon"),
            (None, &["daemon"], daemon, "RockNet itself runs as daemon"),
            (None, &["root"], 4242, "not run as root"),
            (Some("no-such-user"), &[], 4242, "no user `no-such-user`"),
        ] {
            let refused = uids(&plan(default, named), server).expect_err(why);
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn scripts_never_run_in_the_group_of_root() {
        let in_group_of_root = User { gid: 0, ..user(11) };
        let refused = check(&in_group_of_root, &user(4242)).expect_err("the group of root");
        assert_eq!(
            refused.to_string(),
            "the primary group of `server` is root's group, and scripts are not run in it: name another user"
        );
        assert!(check(&user(11), &user(4242)).is_ok());
    }

    #[test]
    fn an_account_that_a_site_names_is_never_the_default() {
        let Ok(daemon) = User::find("daemon") else { return };
        let plan = AccountPlan {
            default: None,
            named: vec!["daemon".to_owned()],
            has_scripts: true,
            needs_default: true,
        };
        // No usual account is available.
        let none = plan.accounts_with(&user(4242), &[]).unwrap();
        assert_eq!(none.all, vec![daemon.clone()]);
        let refused = none.default_account().expect_err("another site's account").to_string();
        assert!(refused.contains("script_user"), "{refused}");
        let some = plan.accounts_with(&user(4242), &["nobody"]).unwrap();
        assert_eq!(some.default_account().unwrap().0, 0);
        assert_ne!(some.default_account().unwrap().1, &daemon);
    }

    #[test]
    fn the_server_switches_to_the_configured_account_or_to_that_of_the_package() {
        for (written, is_root, has_package, expected) in [
            (Some("www-data"), true, true, Some("www-data")),
            (Some("www-data"), false, false, Some("www-data")),
            (None, true, true, Some("rocknet")),
            (None, true, false, None),
            (None, false, true, None),
        ] {
            assert_eq!(chosen(written, is_root, || has_package).as_deref(), expected);
        }
    }
}
