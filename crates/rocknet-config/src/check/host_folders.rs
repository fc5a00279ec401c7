//! Makes a site of each folder below a root with `{host}`.

use std::collections::BTreeSet;

use super::site::CheckedSite;
use crate::context::Check;
use crate::finding::Code;
use crate::host_folders;
use crate::model::{HostFolders, HostPattern, Settings};

/// Adds a site for each host that has a folder. The site with `{host}` in its root keeps the other hosts, for which it
/// has no files. A site of the configuration with the name of the host takes precedence.
pub(super) fn expand(check: &mut Check<'_>, sites: &mut Vec<CheckedSite>) -> Vec<HostFolders> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (name, _) in sites.iter().flat_map(|site| &site.names) {
        if let HostPattern::Exact(name) = name {
            taken.insert(name.clone());
        }
    }
    let (mut all, mut added) = (Vec::new(), Vec::new());
    for template in sites.iter_mut() {
        let mut roots = all_settings(template).filter_map(|settings| settings.root.clone());
        // Routes usually inherit the root of the site. If several roots have `{host}`, the first one names the hosts.
        let Some(pattern) = roots.find(|root| host_folders::is_pattern(root)) else {
            continue;
        };
        drop(roots);
        let hosts = match host_folders::find(&pattern, check.env) {
            Ok(hosts) => hosts,
            Err(error) => {
                let message = format!("`root`: the folders of the hosts cannot be listed: {error}");
                let help = "correct the path or its permissions";
                check.site_error(Code::Missing, template.header, message, help);
                Vec::new()
            }
        };
        for host in &hosts {
            if serves(template, host) && taken.insert(host.clone()) {
                added.push(derived(template, host));
            }
        }
        for settings in all_settings(template) {
            settings.root = settings.root.take().filter(|root| !host_folders::is_pattern(root));
        }
        all.push(HostFolders { pattern, hosts });
    }
    sites.extend(added);
    all
}

/// Returns true if a site without a folder for the host would serve the host.
fn serves(template: &CheckedSite, host: &str) -> bool {
    template.names.is_empty()
        || template.names.iter().any(|(name, _)| match name {
            HostPattern::Exact(name) => name == host,
            HostPattern::Wildcard(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
        })
}

/// Returns the site of a host: a copy of the site with `{host}` in its root.
fn derived(template: &CheckedSite, host: &str) -> CheckedSite {
    let name = HostPattern::Exact(host.to_owned());
    let mut derived = CheckedSite {
        site: template.site.clone(),
        names: vec![(name.clone(), template.header)],
        listen: template.listen.clone(),
        tls_is_known: template.tls_is_known,
        header: template.header,
    };
    derived.site.name = host.to_owned();
    derived.site.names = vec![name];
    for settings in all_settings(&mut derived) {
        settings.root = settings.root.as_deref().map(|root| host_folders::folder(root, host));
    }
    derived
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
            ("/srv/{user}", "other than {host}"),
            ("/srv/x-{host}", "other than {host}"),
            ("/srv/{host}/{host}", "other than {host}"),
            ("/none/{host}", "the folder /none does not exist"),
        ] {
            let text = format!("[site.\":8080\"]\nroot = \"{root}\"\n");
            let report = parsed(&text, &["/srv/a.test"]).expect_err(root);
            assert!(report.contains(message), "{root}: {report}");
        }
    }
}
