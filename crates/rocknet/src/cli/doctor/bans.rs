//! Checks the files of ban lists, and that bans do not concern a proxy in front of the server.

use std::path::Path;

use rocknet::bans::inspect_list;
use rocknet_config::model::{Ban, ClientRange, Server};

use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "bans";

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let Some(ban) = &facts.config.ban else {
        return Vec::new();
    };
    let lists = ban
        .files
        .iter()
        .filter_map(|file| match (of_list(file), &facts.other_account) {
            // This account may have other rights than that of the server.
            (Some(_), Some(other)) => Some(other.skipped(SUBJECT, "ban lists of the server")),
            (found, _) => found,
        });
    let mut checks: Vec<_> = lists.chain(of_proxies(ban, &facts.config.server)).collect();
    if checks.is_empty() {
        let effect = if ban.dry_run {
            "offences are counted"
        } else {
            "clients are banned for offences"
        };
        let found = format!("{effect}, files of ban lists: {}", ban.files.len());
        checks.push(Check::good(SUBJECT, found));
    }
    checks
}

/// Returns the finding about a file of `ban.files`, if there is one.
fn of_list(file: &Path) -> Option<Check> {
    let check = match inspect_list(file) {
        Err(error) => Check::fair(
            SUBJECT,
            "ban-list-unusable",
            format!("the list cannot be used: {error}"),
        ),
        Ok((0, _)) => Check::fair(
            SUBJECT,
            "ban-list-empty",
            "the list has no address, so it bans no client",
        ),
        Ok((_, 0)) => return None,
        Ok((_, skipped)) => Check::fair(
            SUBJECT,
            "ban-list-lines",
            format!("lines without an address or network are skipped: {skipped}"),
        ),
    };
    Some(check.place(&file.display()))
}

/// Returns the finding about a proxy that would be banned in place of its clients.
fn of_proxies(ban: &Ban, server: &Server) -> Option<Check> {
    let names_proxies = !server.trusted_proxies.is_empty() || !server.proxy_protocol.is_empty();
    let is_exempt = |range: &ClientRange| matches!(range, ClientRange::Private | ClientRange::All);
    (!names_proxies && !ban.dry_run && !ban.exempt.iter().any(is_exempt)).then(|| {
        let found = "clients of private networks can be banned, and no proxy is named: a proxy or container in front of this \
                     server would be banned for its clients; name it in `server.trusted_proxies`, or add \"private\" to \
                     `ban.exempt`";
        Check::fair(SUBJECT, "ban-proxy-unnamed", found)
    })
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::Network;

    use super::*;

    #[test]
    fn lists_and_proxies_are_examined() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list");
        let code = || of_list(&file).map_or("", |check| check.code);
        assert_eq!(code(), "ban-list-unusable");
        for (text, expected) in [
            ("192.0.2.1\n# x\n", ""),
            ("# none\n", "ban-list-empty"),
            ("<html>\n", "ban-list-unusable"),
            ("192.0.2.1\nnonsense\n", "ban-list-lines"),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(code(), expected, "{text:?}");
        }
        let (mut ban, mut server) = (Ban::default(), Server::default());
        assert!(of_proxies(&ban, &server).is_none());
        ban.exempt.clear();
        assert!(of_proxies(&ban, &server).is_some());
        server.proxy_protocol = vec![Network::Unix];
        assert!(of_proxies(&ban, &server).is_none());
    }
}
