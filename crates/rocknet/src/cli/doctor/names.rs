//! Checks that the host names of sites lead to this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use rocknet_config::is_local_name;
use rocknet_config::model::{CertificateSource, Config, HostPattern, Listen, Mode, Site};
use rocknet_control::doctor::DoctorVerdict;
use rocknet_io::machine;

use super::facts::DoctorFacts;
use super::hosts_file;
use super::lookup::{self, Resolved};
use super::verdict::Check;

const SUBJECT: &str = "host names";

/// Maximum time for all lookups together, because the operator waits for the result.
const LOOKUP_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of names that are looked up, which bounds the load of the resolver.
const MAX_NAMES: usize = 256;

/// Maximum number of names in one finding, so that its command fits into a line.
const MAX_GROUPED: usize = 6;

/// Maximum number of addresses that a message lists.
const MAX_ADDRESSES: usize = 3;

/// The domain whose names browsers do not look up (RFC 6761 §6.3).
const LOCALHOST: &str = ".localhost";

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let wanted = wanted(facts.config);
    let names: Vec<String> = wanted.keys().take(MAX_NAMES).cloned().collect();
    if names.is_empty() {
        return Vec::new();
    }
    let resolved = lookup::resolve(&names, lookup::of_system, LOOKUP_LIMIT);
    let own: BTreeSet<IpAddr> = machine::addresses().into_iter().collect();
    let mut checks = report(&wanted, &resolved, &own);
    if wanted.len() > names.len() {
        let found = format!("{} further names were not looked up", wanted.len() - names.len());
        checks.push(Check::skipped(SUBJECT, "names-too-many", found));
    }
    checks
}

/// Use of a name by sites.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Use {
    /// Addresses at which sites with the name listen, without those that stand for all addresses, such as `0.0.0.0`.
    listen: BTreeSet<IpAddr>,
    /// True if a site with the name listens at all IPv4 addresses.
    all_v4: bool,
    /// True if a site with the name listens at all IPv6 addresses.
    all_v6: bool,
    /// True for a name that other machines look up in the DNS.
    is_public: bool,
    /// True if a certificate of the name comes from a public CA, which has to reach this machine by the name.
    needs_public_dns: bool,
    /// True if the hosts file is the right place for the name.
    is_for_hosts_file: bool,
}

/// Returns the names of all sites with their use. Wildcards and addresses are left out, because they cannot be looked
/// up.
fn wanted(config: &Config) -> BTreeMap<String, Use> {
    let mut wanted: BTreeMap<String, Use> = BTreeMap::new();
    for site in &config.sites {
        let addresses: Vec<Option<IpAddr>> = site
            .listen
            .iter()
            .filter_map(|listen| match listen {
                Listen::Tcp { address, .. } => Some(*address),
                Listen::Unix(_) => None,
            })
            .collect();
        if addresses.is_empty() {
            continue;
        }
        for name in exact_names(site) {
            let used = wanted.entry(name.to_owned()).or_default();
            for address in &addresses {
                match address {
                    None => (used.all_v4, used.all_v6) = (true, true),
                    Some(IpAddr::V4(address)) if address.is_unspecified() => used.all_v4 = true,
                    Some(IpAddr::V6(address)) if address.is_unspecified() => used.all_v6 = true,
                    Some(address) => drop(used.listen.insert(address.to_canonical())),
                }
            }
            let source = site.tls.as_ref().map(|tls| &tls.source);
            let is_local = is_local_name(name);
            let is_dev = config.server.mode == Mode::Dev;
            let is_auto = matches!(source, Some(CertificateSource::Auto)) && !site.secure.is_empty();
            used.needs_public_dns |= is_auto && !is_local && !is_dev;
            // Other local names, such as `wiki.lan`, may lead to a load balancer on purpose.
            let is_reserved = [".test", ".localhost"].iter().any(|end| name.ends_with(end)) || name == "localhost";
            used.is_for_hosts_file |= is_reserved || is_dev;
            used.is_public |= !is_local && !is_dev;
        }
    }
    wanted
}

fn exact_names(site: &Site) -> impl Iterator<Item = &str> {
    site.names.iter().filter_map(|name| match name {
        HostPattern::Exact(name) if name.parse::<IpAddr>().is_err() => Some(name.as_str()),
        _ => None,
    })
}

impl Use {
    /// Returns the address that the hosts file needs: loopback if the site listens there, or else its first address.
    fn hosts_address(&self) -> IpAddr {
        let loopback = match self.all_v6 && !self.all_v4 {
            true => IpAddr::V6(Ipv6Addr::LOCALHOST),
            false => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let is_loopback = |address: &&IpAddr| address.is_loopback();
        match self.listen.first() {
            Some(first) if !self.all_v4 => *self.listen.iter().find(is_loopback).unwrap_or(first),
            _ => loopback,
        }
    }

    /// Returns true if a site with the name accepts connections at an address of this machine.
    fn listens_at(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.listen.contains(&address)
            || match address {
                IpAddr::V4(_) => self.all_v4,
                IpAddr::V6(_) => self.all_v6,
            }
    }
}

/// A problem of a name. Names with equal problems are reported together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Problem {
    /// No reply in time.
    TimedOut,
    /// The name has no address, with the message of the resolver.
    Unresolved(String),
    /// The name leads to these addresses of other machines.
    Elsewhere(Vec<IpAddr>),
    /// The name leads to this machine, and also to these addresses of other machines.
    PartlyElsewhere(Vec<IpAddr>),
    /// The name, which is public, leads to these loopback addresses.
    Loopback(Vec<IpAddr>),
    /// The name leads to these addresses of this machine, where its site does not listen.
    NotListening(Vec<IpAddr>),
}

/// Returns true for an address of this machine. Link-local addresses count, because resolvers of the system return
/// those of its own interfaces.
fn is_own(address: IpAddr, own: &BTreeSet<IpAddr>) -> bool {
    let address = address.to_canonical();
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    address.is_loopback() || address.is_unspecified() || is_link_local || own.contains(&address)
}

/// Returns the problem of a name, if there is one.
fn problem(name: &str, used: &Use, resolved: &Resolved, own: &BTreeSet<IpAddr>) -> Option<Problem> {
    let addresses = match resolved {
        // Browsers and curl know these names themselves, whatever the resolver of the system does.
        Resolved::Failed(_) | Resolved::TimedOut if name.ends_with(LOCALHOST) => return None,
        // The line in the hosts file is right for these names, whatever the state of the resolver.
        Resolved::TimedOut if used.is_for_hosts_file => {
            return Some(Problem::Unresolved("the resolver does not reply".to_owned()));
        }
        Resolved::TimedOut => return Some(Problem::TimedOut),
        Resolved::Failed(error) => {
            let text = error.to_string();
            // Every error of the resolver begins with the same words, which say nothing.
            let why = text.strip_prefix("failed to lookup address information: ");
            return Some(Problem::Unresolved(why.unwrap_or(&text).to_owned()));
        }
        Resolved::Addresses(addresses) if addresses.is_empty() => {
            return Some(Problem::Unresolved("it has no address".to_owned()));
        }
        Resolved::Addresses(addresses) => addresses,
    };
    // An address at which a site listens counts as one of this machine, even if the kernel's tables do not show it.
    let is_here = |address: &IpAddr| is_own(*address, own) || used.listen.contains(&address.to_canonical());
    let (here, elsewhere): (Vec<IpAddr>, Vec<IpAddr>) = addresses.iter().copied().partition(is_here);
    if here.is_empty() {
        return Some(Problem::Elsewhere(elsewhere));
    }
    if !elsewhere.is_empty() {
        return Some(Problem::PartlyElsewhere(elsewhere));
    }
    let is_served = |address: &IpAddr| used.listens_at(*address);
    if !used.is_public {
        // Clients of this machine try one address after the other, such as both of `localhost`.
        return (!here.iter().any(is_served)).then_some(Problem::NotListening(here));
    }
    // A site that listens at the address itself is meant for this machine alone.
    let is_loopback =
        |address: &&IpAddr| address.to_canonical().is_loopback() && !used.listen.contains(&address.to_canonical());
    let loopback: Vec<IpAddr> = here.iter().filter(is_loopback).copied().collect();
    if !loopback.is_empty() {
        return Some(Problem::Loopback(loopback));
    }
    // A client may use any of the addresses.
    let unserved: Vec<IpAddr> = here.into_iter().filter(|address| !is_served(address)).collect();
    (!unserved.is_empty()).then_some(Problem::NotListening(unserved))
}

/// Returns the checks of all names that were looked up.
fn report(wanted: &BTreeMap<String, Use>, resolved: &BTreeMap<String, Resolved>, own: &BTreeSet<IpAddr>) -> Vec<Check> {
    let mut good = Vec::new();
    let mut groups: BTreeMap<(Problem, IpAddr, bool, bool), Vec<String>> = BTreeMap::new();
    for (name, resolved) in resolved {
        let Some(used) = wanted.get(name) else { continue };
        match problem(name, used, resolved, own) {
            None => good.push(name.clone()),
            Some(problem) => {
                let key = (
                    problem,
                    used.hosts_address(),
                    used.is_for_hosts_file,
                    used.needs_public_dns,
                );
                groups.entry(key).or_default().push(name.clone());
            }
        }
    }
    let mut checks = Vec::new();
    if !good.is_empty() {
        let first = good[..good.len().min(MAX_GROUPED)].join(", ");
        let more = match good.len().saturating_sub(MAX_GROUPED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        checks.push(Check::good(SUBJECT, format!("{first}{more}: of this machine")));
    }
    for ((problem, address, is_for_hosts_file, needs_public_dns), names) in groups {
        for names in names.chunks(MAX_GROUPED) {
            checks.push(finding(&problem, names, address, is_for_hosts_file, needs_public_dns));
        }
    }
    checks
}

/// Returns the finding for names with the same problem. `address`: the address for the hosts file.
fn finding(
    problem: &Problem,
    names: &[String],
    address: IpAddr,
    is_for_hosts_file: bool,
    needs_public_dns: bool,
) -> Check {
    let shown = names.join(", ");
    let entry = hosts_file::entry(address, names);
    let into_hosts_file = format!("add the line `{entry}` to {}", hosts_file::PATH);
    let remedy = match (is_for_hosts_file, needs_public_dns) {
        (true, _) => into_hosts_file.clone(),
        (false, true) => {
            "create an A or AAAA record with the public address of this machine, without which no certificate \
                          can be issued"
                .to_owned()
        }
        (false, false) => format!("create an A or AAAA record, or for this machine alone {into_hosts_file}"),
    };
    let (code, found) = match problem {
        Problem::TimedOut => {
            let found = format!(
                "{shown}: the resolver did not reply within {} s: check /etc/resolv.conf and the network",
                LOOKUP_LIMIT.as_secs()
            );
            return Check::fair(SUBJECT, "name-lookup-timeout", found).place(&shown);
        }
        Problem::Unresolved(why) => (
            "name-unresolved",
            format!("{shown}: does not resolve ({why}): {remedy}"),
        ),
        Problem::Elsewhere(addresses) => {
            let listed = listed(addresses);
            let remedy = if is_for_hosts_file {
                into_hosts_file.as_str()
            } else {
                "right if a router, a load balancer or a CDN there passes requests on; otherwise correct the A and AAAA \
                 records"
            };
            let found = format!("{shown}: leads to {listed}, which is no address of this machine: {remedy}");
            ("name-elsewhere", found)
        }
        Problem::PartlyElsewhere(addresses) => {
            let listed = listed(addresses);
            let remedy = if is_for_hosts_file {
                into_hosts_file.as_str()
            } else {
                "right if several machines serve the name; otherwise remove the outdated A or AAAA record, because some \
                 clients use it"
            };
            let found = format!("{shown}: leads to this machine, but also to {listed} elsewhere: {remedy}");
            ("name-elsewhere", found)
        }
        Problem::Loopback(addresses) => {
            let found = format!(
                "{shown}: leads to {} on this machine, so its records in the DNS were not seen: look for the name in {}, \
                 or query the DNS from another machine",
                listed(addresses),
                hosts_file::PATH
            );
            let check = Check::fair(SUBJECT, "name-loopback", found).place(&shown);
            return check.command(format!("getent ahosts {}", names.join(" ")));
        }
        Problem::NotListening(addresses) => {
            let listed = listed(addresses);
            let found = format!(
                "{shown}: leads to {listed}, where the site does not listen: correct `listen`, or {into_hosts_file}"
            );
            return Check::fair(SUBJECT, "name-not-listening", found).place(&shown);
        }
    };
    let check = Check::fair(SUBJECT, code, found).place(&shown);
    if is_for_hosts_file {
        let names = names.to_vec();
        let command = format!("echo '{entry}' | sudo tee -a {}", hosts_file::PATH);
        return check.command(command).fix(into_hosts_file, move || {
            hosts_file::add(Path::new(hosts_file::PATH), address, &names)
        });
    }
    let is_missing = matches!(problem, Problem::Unresolved(_));
    Check {
        verdict: if needs_public_dns && is_missing {
            DoctorVerdict::Bad
        } else {
            DoctorVerdict::Fair
        },
        ..check
    }
}

/// Lists the first addresses.
fn listed(addresses: &[IpAddr]) -> String {
    let first: Vec<String> = addresses.iter().take(MAX_ADDRESSES).map(ToString::to_string).collect();
    first.join(", ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use rocknet_config::environment::MemoryEnvironment;

    use super::*;

    fn config(text: &str) -> Config {
        let world = MemoryEnvironment {
            any_directory: true,
            ..MemoryEnvironment::default()
        };
        rocknet_config::parse(text, Path::new("/r.toml"), &world)
            .expect("valid")
            .config
    }

    /// Returns the codes and verdicts of the findings for one site whose name has these addresses.
    fn codes(text: &str, addresses: Option<&[&str]>) -> Vec<(&'static str, DoctorVerdict)> {
        let wanted = wanted(&config(text));
        let own = BTreeSet::from(["192.0.2.5", "2001:db8::5"].map(|own| own.parse().expect("an address")));
        let resolved = |_: &String| match addresses {
            Some(all) => Resolved::Addresses(all.iter().map(|one| one.parse().expect("an address")).collect()),
            None => Resolved::Failed(io::Error::other("no such name")),
        };
        let resolved = wanted.keys().map(|name| (name.clone(), resolved(name))).collect();
        let checks = report(&wanted, &resolved, &own);
        checks.iter().map(|check| (check.code, check.verdict)).collect()
    }

    #[test]
    fn the_address_for_the_hosts_file_is_one_where_the_site_listens() {
        for (listen, expected) in [
            ("80", "127.0.0.1"),
            ("\"[::]:80\"", "::1"),
            ("\"0.0.0.0:80\"", "127.0.0.1"),
            ("\"192.0.2.5:80\"", "192.0.2.5"),
            ("[\"192.0.2.5:80\", \"[::]:80\"]", "192.0.2.5"),
            ("[\"192.0.2.5:80\", \"127.0.0.1:80\"]", "127.0.0.1"),
        ] {
            let text = format!("[site.\"a.test\"]\nlisten = {listen}\nroot = \"/w\"\n");
            let address = wanted(&config(&text))["a.test"].hosts_address();
            assert_eq!(address.to_string(), expected, "{listen}");
        }
    }

    #[test]
    fn names_are_compared_with_the_addresses_of_this_machine() {
        use DoctorVerdict::{Bad, Fair, Good};
        let everywhere = "[site.\"a.example.com\"]\nroot = \"/w\"\n";
        let v4 = "[site.\"a.example.com\"]\nlisten = \"0.0.0.0:80\"\nroot = \"/w\"\n";
        let at_loopback = "[site.\"a.example.com\"]\nlisten = \"127.0.0.1:80\"\nroot = \"/w\"\n";
        let local = "[site.\"a.test\"]\nroot = \"/w\"\n";
        let local_v4 = "[site.\"a.test\"]\nlisten = \"0.0.0.0:80\"\nroot = \"/w\"\n";
        let browsers = "[site.\"a.localhost\"]\nroot = \"/w\"\n";
        let at = "[site.\"a.test\"]\nlisten = \"192.0.2.5:80\"\nroot = \"/w\"\n";
        let files = "[site.\"a.example.com\"]\nlisten = 80\nroot = \"/w\"\n";
        for (text, addresses, expected) in [
            (everywhere, Some(&["192.0.2.5"][..]), ("", Good)),
            (
                everywhere,
                Some(&["203.0.113.7", "192.0.2.5"]),
                ("name-elsewhere", Fair),
            ),
            (
                everywhere,
                Some(&["192.0.2.5", "2001:db8::7"]),
                ("name-elsewhere", Fair),
            ),
            (everywhere, Some(&["127.0.1.1"]), ("name-loopback", Fair)),
            (everywhere, Some(&["192.0.2.5", "::1"]), ("name-loopback", Fair)),
            (everywhere, Some(&["192.0.2.5", "2001:db8::5"]), ("", Good)),
            (v4, Some(&["192.0.2.5"]), ("", Good)),
            (v4, Some(&["192.0.2.5", "2001:db8::5"]), ("name-not-listening", Fair)),
            (at_loopback, Some(&["127.0.0.1"]), ("", Good)),
            (everywhere, Some(&["::ffff:192.0.2.5"]), ("", Good)),
            (everywhere, Some(&["203.0.113.7"]), ("name-elsewhere", Fair)),
            (everywhere, Some(&[]), ("name-unresolved", Bad)),
            (everywhere, None, ("name-unresolved", Bad)),
            (files, None, ("name-unresolved", Fair)),
            (local, Some(&["127.0.0.1"]), ("", Good)),
            (local, Some(&["::1"]), ("", Good)),
            (local, Some(&["127.0.0.1", "203.0.113.7"]), ("name-elsewhere", Fair)),
            (local_v4, Some(&["127.0.0.1", "::1"]), ("", Good)),
            (local_v4, Some(&["::1"]), ("name-not-listening", Fair)),
            (local, Some(&["203.0.113.7"]), ("name-elsewhere", Fair)),
            (local, None, ("name-unresolved", Fair)),
            (browsers, None, ("", Good)),
            (browsers, Some(&["203.0.113.7"]), ("name-elsewhere", Fair)),
            (at, Some(&["192.0.2.5"]), ("", Good)),
            (at, Some(&["127.0.0.1"]), ("name-not-listening", Fair)),
        ] {
            assert_eq!(codes(text, addresses), [expected], "{text} {addresses:?}");
        }
        for text in [
            "[site.\":8080\"]\nroot = \"/w\"\n",
            "[site.\"*.a.test\"]\nroot = \"/w\"\n",
            "[site.\"10.0.0.1\"]\nroot = \"/w\"\n",
            "[site.\"a.test\"]\nlisten = \"unix:/run/x\"\nroot = \"/w\"\n",
        ] {
            assert_eq!(codes(text, None), [], "{text}");
        }
    }

    #[test]
    fn names_with_the_same_problem_share_a_line_of_the_hosts_file() {
        let text = "[site.\"a.test\"]\naliases = [\"b.test\"]\nroot = \"/w\"\n\
                    [site.\"c.test\"]\nlisten = \"192.0.2.5:80\"\nroot = \"/w\"\n";
        let wanted = wanted(&config(text));
        let failed = |name: &String| (name.clone(), Resolved::Failed(io::Error::other("no such name")));
        let resolved = wanted.keys().map(failed).collect();
        let checks = report(&wanted, &resolved, &BTreeSet::new());
        let commands: Vec<_> = checks.iter().filter_map(|check| check.command.as_deref()).collect();
        assert_eq!(
            commands,
            [
                "echo '127.0.0.1 a.test b.test' | sudo tee -a /etc/hosts",
                "echo '192.0.2.5 c.test' | sudo tee -a /etc/hosts",
            ]
        );
        assert!(checks.iter().all(|check| check.fix.is_some()));
    }

    #[test]
    fn public_names_of_a_production_server_are_not_written_to_the_hosts_file() {
        let site = "[site.\"a.example.com\"]\nroot = \"/w\"\n";
        for (text, expected) in [
            (site.to_owned(), false),
            (format!("[server]\nmode = \"dev\"\n{site}"), true),
        ] {
            let wanted = wanted(&config(&text));
            let resolved = [("a.example.com".to_owned(), Resolved::Failed(io::Error::other("x")))].into();
            let checks = report(&wanted, &resolved, &BTreeSet::new());
            assert_eq!(checks[0].fix.is_some(), expected, "{text}");
        }
    }
}
