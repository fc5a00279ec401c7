//! Makes a site of each folder below a root with `{host}`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::site::{CheckedSite, SiteContext};
use super::tls;
use crate::context::Check;
use crate::file::Table;
use crate::finding::Code;
use crate::host_folders::{self, FoundHosts};
use crate::model::{HostFolders, HostPattern, Listen, Settings};
use crate::value::host::host_pattern;
use crate::value::typed;

/// Adds a site for each host that has a folder. For `[site."*.example.com"]` with `root = "/srv/{host}"`, the folder
/// `/srv/a.example.com` becomes the site `a.example.com`. The site `*.example.com` remains for the hosts without a
/// folder, and has no files for them.
///
/// A host gets no site if another site of the configuration has its name, or a longer wildcard that covers it. This
/// also applies if the other site is disabled, or has other listeners. The exception is two enabled sites with `{host}`
/// that have no listener in common. With the listeners `:8080` and `:8081`, both serve the host, each from its own
/// folder.
///
/// Returns each root with `{host}`, with the hosts found below it.
pub(super) fn expand(
    check: &mut Check<'_>,
    root: &Table,
    sites: &mut Vec<CheckedSite>,
    context: &SiteContext<'_>,
) -> Vec<HostFolders> {
    let disabled = disabled_names(root);
    let (mut all, mut added) = (Vec::new(), Vec::new());
    // Names and roots as in the configuration, because the loop changes both.
    let competitors: Vec<Competitor> = sites.iter_mut().map(Competitor::new).collect();
    // Listeners of the sites that were added for a host.
    let mut taken: BTreeMap<String, Vec<Listen>> = BTreeMap::new();
    // Indices of the sites all of whose names have folders.
    let mut replaced = BTreeSet::new();
    for at in 0..sites.len() {
        let Some(pattern) = pattern(&mut sites[at]) else {
            continue;
        };
        let found = match host_folders::find(&pattern, check.env) {
            Ok(found) => found,
            Err(error) => {
                let message = format!("`root`: the folders of the hosts cannot be listed: {error}");
                let help = "correct the path or its permissions";
                check.site_error(Code::Missing, sites[at].header, message, help);
                FoundHosts::default()
            }
        };
        if found.omitted > 0 {
            let message = format!(
                "`root`: {} folders of hosts are not served, because there are too many",
                found.omitted
            );
            let help = "move folders to another site";
            check.warning(Code::Useless, sites[at].header, message, help);
        }
        // The listeners of a site without `{host}` do not matter.
        let competes = |other: &Competitor| !other.has_folders || other.shares_listener(&competitors[at]);
        let others = competitors.iter().enumerate();
        let others = others.filter(|(other, site)| *other != at && competes(site));
        let others: Vec<&HostPattern> = others.flat_map(|(_, site)| &site.names).chain(&disabled).collect();
        let template = &sites[at];
        let mut hosts = Vec::new();
        for host in found.hosts.iter().filter(|host| is_served(template, host, &others)) {
            let own = template.listen.iter().map(|listener| &listener.listen);
            let other_listeners = taken.get(host);
            // If several sites have a folder for a host on the same listener, the first site gets the host.
            if other_listeners.is_some_and(|listeners| own.clone().any(|listen| listeners.contains(listen))) {
                continue;
            }
            // Names of sites are unique, because they are labels of metrics and keys of caches.
            let is_named = |(other, site): (usize, &CheckedSite)| other != at && site.site.name == *host;
            let name = match other_listeners.is_some() || sites.iter().enumerate().any(is_named) {
                true => format!("{host} ({})", template.site.name),
                false => host.clone(),
            };
            added.push(derived(template, name, host, context));
            taken.entry(host.clone()).or_default().extend(own.cloned());
            hosts.push(host.clone());
        }
        let template = &mut sites[at];
        // A name of the site itself belongs to its folder now. If all names have folders, the site is removed below.
        let has_folder = |name: &HostPattern| matches!(name, HostPattern::Exact(name) if hosts.contains(name));
        if template.names.iter().all(|(name, _)| has_folder(name)) {
            replaced.extend((!template.names.is_empty()).then_some(at));
        } else {
            template.names.retain(|(name, _)| !has_folder(name));
            template.site.names.retain(|name| !has_folder(name));
        }
        let runs_programs = all_settings(template).any(|settings| settings.runs_programs());
        // The hosts that remain have no folder, so the roots with `{host}` are removed.
        for settings in all_settings(template) {
            each_root(settings, |root| {
                root.take().filter(|root| !host_folders::is_pattern(root))
            });
        }
        all.push(HostFolders {
            pattern,
            hosts: found.hosts,
            runs_programs,
        });
    }
    let mut at = 0..;
    sites.retain(|_| at.next().is_none_or(|at| !replaced.contains(&at)));
    sites.extend(added);
    all
}

/// Site that may have a name of a host that has a folder.
struct Competitor {
    names: Vec<HostPattern>,
    listen: Vec<Listen>,
    /// True if a root has `{host}`.
    has_folders: bool,
}

impl Competitor {
    fn new(site: &mut CheckedSite) -> Competitor {
        Competitor {
            names: site.names.iter().map(|(name, _)| name.clone()).collect(),
            listen: site.listen.iter().map(|listener| listener.listen.clone()).collect(),
            has_folders: pattern(site).is_some(),
        }
    }

    fn shares_listener(&self, other: &Competitor) -> bool {
        self.listen.iter().any(|listen| other.listen.contains(listen))
    }
}

/// Returns the root with `{host}`. Routes usually inherit the root of the site. If several roots have `{host}`, the
/// first one names the hosts.
fn pattern(site: &mut CheckedSite) -> Option<PathBuf> {
    let mut roots = all_settings(site).filter_map(|settings| settings.root.clone());
    roots.find(|root| host_folders::is_pattern(root))
}

/// Returns names and aliases of the disabled sites.
fn disabled_names(root: &Table) -> Vec<HostPattern> {
    let sites = root.table("site").into_iter().flat_map(|sites| &sites.entries);
    let tables = sites.filter_map(|(name, entry)| Some((name, entry.node.as_table()?)));
    let disabled = tables.filter(|(_, table)| typed::boolean(Some(table), "enabled") == Some(false));
    let names = disabled.flat_map(|(name, table)| {
        let aliases = table.node("aliases").into_iter().flat_map(typed::texts);
        std::iter::once(name.clone()).chain(aliases.map(|(alias, _)| alias.value.clone()))
    });
    names.filter_map(|name| host_pattern(&name).ok()).collect()
}

/// Returns true if the most specific name that covers the host is one of the site with `{host}`, not one of `others`.
/// If the site has no names, it covers every host, but any name is more specific.
fn is_served(template: &CheckedSite, host: &str, others: &[&HostPattern]) -> bool {
    let own = template.names.iter().map(|(name, _)| name);
    let own = match template.names.is_empty() {
        true => Some(0),
        false => own.filter_map(|name| precedence(name, host)).max(),
    };
    let others = others.iter().filter_map(|name| precedence(name, host)).max();
    own.is_some_and(|own| others.is_none_or(|others| own > others))
}

/// Returns how specific a name that covers a host is: a greater number is more specific. `None`: the name does not
/// cover the host.
fn precedence(name: &HostPattern, host: &str) -> Option<usize> {
    match name {
        HostPattern::Exact(name) => (name == host).then_some(usize::MAX),
        HostPattern::Wildcard(parent) => {
            let rest = host.strip_suffix(parent.as_str())?;
            rest.ends_with('.').then_some(parent.len())
        }
    }
}

/// Returns the site of a host: a copy of the site with `{host}` in its root. `name`: name of the site.
fn derived(template: &CheckedSite, name: String, host: &str, context: &SiteContext<'_>) -> CheckedSite {
    let host_name = HostPattern::Exact(host.to_owned());
    let mut derived = CheckedSite {
        site: template.site.clone(),
        names: vec![(host_name.clone(), template.header)],
        listen: template.listen.clone(),
        tls_is_known: template.tls_is_known,
        inherits_hsts: template.inherits_hsts,
        header: template.header,
    };
    derived.site.name = name;
    derived.site.names = vec![host_name];
    // Inherited HSTS depends on the host name, and that of the site itself may be missing or local.
    if let Some(tls) = derived.site.tls.as_mut().filter(|_| template.inherits_hsts) {
        tls.hsts = tls::inherited_hsts(&tls.source, tls.redirect, Some(host), context.mode, context.tls);
    }
    for settings in all_settings(&mut derived) {
        each_root(settings, |root| {
            root.as_deref().map(|root| host_folders::folder(root, host))
        });
    }
    derived
}

/// Replaces each folder of the settings that can have `{host}`.
fn each_root(settings: &mut Settings, replace: impl Fn(&mut Option<PathBuf>) -> Option<PathBuf>) {
    settings.root = replace(&mut settings.root);
    if let Some(alias) = &mut settings.alias {
        alias.document_root = replace(&mut alias.document_root);
    }
}

fn all_settings(site: &mut CheckedSite) -> impl Iterator<Item = &mut Settings> {
    let routes = site.site.routes.iter_mut().map(|route| &mut route.settings);
    std::iter::once(&mut site.site.settings).chain(routes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::environment::MemoryEnvironment;
    use crate::model::Config;

    fn environment(folders: &[&str]) -> MemoryEnvironment {
        let mut environment = MemoryEnvironment::default();
        environment.directories.extend(folders.iter().map(Into::into));
        environment.directories.insert("/srv".into());
        environment
    }

    fn parsed(text: &str, folders: &[&str]) -> Result<Config, String> {
        let loaded = crate::check_text(text, Path::new("/r.toml"), &environment(folders));
        loaded.map(|loaded| loaded.config).map_err(|report| report.to_string())
    }

    /// Returns the names of the sites with their roots.
    fn sites(text: &str, folders: &[&str]) -> Vec<(String, String)> {
        let config = parsed(text, folders).unwrap_or_else(|report| panic!("{report}"));
        let root = |site: &crate::model::Site| site.settings.root.as_deref().map(|root| root.display().to_string());
        config
            .sites
            .iter()
            .map(|site| (site.name.clone(), root(site).unwrap_or_default()))
            .collect()
    }

    #[test]
    fn each_folder_is_a_site() {
        let folders = [
            "/srv/a.test",
            "/srv/b.example",
            "/srv/UPPER.test",
            "/srv/.git",
            "/srv/a b",
            "/srv/c.test",
        ];
        let own = "[site.\"c.test\"]\nroot = \"/srv/a.test\"\nlisten = 8080\ntls = \"off\"\n";
        let text = format!("{own}[site.\":8080\"]\nroot = \"/srv/{{host}}\"\nroute.\"/x/*\".browse = true\n");
        let found = sites(&text, &folders);
        let expected = [
            (":8080", ""),
            ("a.test", "/srv/a.test"),
            ("b.example", "/srv/b.example"),
            ("c.test", "/srv/a.test"),
        ];
        let expected = expected.map(|(name, root)| (name.to_owned(), root.to_owned()));
        assert_eq!(found, expected);
        let config = parsed(&text, &folders).expect("a good file");
        let route = &config.sites[2].routes[0].settings;
        assert_eq!(
            (route.root.as_deref(), route.browse.is_some()),
            (Some(Path::new("/srv/b.example")), true)
        );
        assert_eq!(config.host_folders[0].hosts, ["a.test", "b.example", "c.test"]);
    }

    #[test]
    fn public_hosts_inherit_hsts_and_local_ones_do_not() {
        let folders = ["/srv/a.test", "/srv/b.example.com"];
        for (tls, expected) in [
            ("tls = \"auto\"", [0, 300, 0]),
            ("tls = { issuer = \"auto\", hsts = \"9s\" }", [9, 9, 9]),
            ("tls = { issuer = \"auto\", redirect = false }", [0, 0, 0]),
            ("tls = \"local\"", [0, 0, 0]),
        ] {
            let text = format!("[tls]\nhsts = \"5m\"\n[site.default]\nroot = \"/srv/{{host}}\"\n{tls}\n");
            let config = parsed(&text, &folders).unwrap_or_else(|report| panic!("{report}"));
            let found: Vec<_> = config
                .sites
                .iter()
                .map(|site| site.tls.as_ref().map(|tls| tls.hsts.as_secs()))
                .collect();
            assert_eq!(found, expected.map(Some), "{tls}");
        }
    }

    #[test]
    fn other_sites_keep_their_hosts() {
        let folders = [
            "/srv/a.test",
            "/srv/b.test",
            "/srv/x.corp.test",
            "/srv/y.deep.corp.test",
            "/srv/z.other",
        ];
        let text = "[site.default]\nlisten = 80\nroot = \"/srv/{host}\"\n\
                    [site.\"a.test\"]\nenabled = false\naliases = [\"b.test\"]\n\
                    [site.\"*.corp.test\"]\nlisten = \"http://*:80\"\nroot = \"/srv\"\n\
                    [site.\"*.deep.corp.test\"]\nlisten = \"http://*:80\"\nroot = \"/srv/{host}\"\n";
        let found: Vec<_> = sites(text, &folders).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            found,
            [
                "*.corp.test",
                "*.deep.corp.test",
                "default",
                "y.deep.corp.test",
                "z.other"
            ]
        );
    }

    #[test]
    fn sites_on_different_listeners_have_folders_for_the_same_host() {
        let folders = ["/srv/a.test", "/srv/b.test", "/new", "/new/a.test", "/new/c.test"];
        let found = |listen: &str| {
            let text = format!(
                "[site.\":8080\"]\nroot = \"/srv/{{host}}\"\n\
                 [site.\"*.test\"]\naliases = [\"c.test\"]\ntls = \"off\"\nroot = \"/new/{{host}}\"\nlisten = {listen}\n"
            );
            let mut found = sites(&text, &folders);
            found.retain(|(_, root)| !root.is_empty());
            found
        };
        let owned = |(name, root): (&str, &str)| (name.to_owned(), root.to_owned());
        let apart = [
            ("a.test", "/srv/a.test"),
            ("a.test (*.test)", "/new/a.test"),
            ("b.test", "/srv/b.test"),
            ("c.test", "/new/c.test"),
        ];
        assert_eq!(found("8081"), apart.map(owned));
        // On the same listener, the site with the more specific name gets the host.
        let together = [("a.test", "/new/a.test"), ("c.test", "/new/c.test")];
        assert_eq!(found("[8080, 8081]"), together.map(owned));
        // The second site has no folder for its name, so the folder of the first site gets another name.
        let text = "[site.\":8080\"]\nroot = \"/srv/{host}\"\n\
                    [site.\"b.test\"]\nlisten = 8081\ntls = \"off\"\nroot = \"/new/{host}\"\n";
        let names: Vec<_> = sites(text, &folders).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [":8080", "a.test", "b.test", "b.test (:8080)"]);
    }

    #[test]
    fn a_name_of_the_site_gets_its_folder() {
        let folders = ["/srv/a.test", "/srv/b.test", "/srv/c.test"];
        let text = "[site.\"a.test\"]\naliases = [\"b.test\"]\ntls = \"off\"\nroot = \"/srv/{host}\"\n";
        let expected = [("a.test", "/srv/a.test"), ("b.test", "/srv/b.test")];
        assert_eq!(
            sites(text, &folders),
            expected.map(|(name, root)| (name.to_owned(), root.to_owned()))
        );
        let one = sites(text, &["/srv/b.test"]);
        let expected = [("a.test", ""), ("b.test", "/srv/b.test")];
        assert_eq!(one, expected.map(|(name, root)| (name.to_owned(), root.to_owned())));
    }

    #[test]
    fn only_names_of_the_site_and_complete_folders_are_served() {
        let folders = [
            "/srv/a.x.test/public",
            "/srv/b.x.test",
            "/srv/c.other/public",
            "/srv/x.test/public",
        ];
        let text = "[site.\"*.x.test\"]\ntls = \"off\"\nroot = \"/srv/{host}/public\"\n";
        let expected = [("*.x.test", ""), ("a.x.test", "/srv/a.x.test/public")];
        assert_eq!(
            sites(text, &folders),
            expected.map(|(name, root)| (name.to_owned(), root.to_owned()))
        );
    }

    #[test]
    fn other_placeholders_and_missing_folders_are_errors() {
        for (root, message) in [
            ("/srv/{user}", "as the whole name of one folder"),
            ("/srv/x-{host}", "as the whole name of one folder"),
            ("/srv/{host}/{host}", "as the whole name of one folder"),
            ("/none/{host}", "the folder /none does not exist"),
        ] {
            let text = format!("[site.\":8080\"]\nroot = \"{root}\"\n");
            let report = parsed(&text, &["/srv/a.test"]).expect_err(root);
            assert!(report.contains(message), "{root}: {report}");
        }
    }
}
