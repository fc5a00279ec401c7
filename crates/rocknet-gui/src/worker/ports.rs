//! Port of the configuration that another program holds: the port in its place, and the edit that uses it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::Path;

use rocknet_config::edit::Editor;
use rocknet_config::environment::ProcessEnvironment;
use rocknet_config::model::{Listen, Mode};

/// Maximum number of ports that are tried.
const MAX_PORTS: u16 = 50;

/// Default ports of websites without and with TLS, in production and in development.
const DEFAULT_PORTS: [u16; 2] = [80, 443];
const DEVELOPMENT_PORTS: [u16; 2] = [8080, 8443];

/// Lowest port that an account other than root may use.
const FIRST_FREE: u16 = 1024;

/// Returns the port in a message such as `port 8080 is in use by nginx (pid 7)`.
pub fn taken(reason: &str) -> Option<u16> {
    let (_, rest) = reason.split_once("port ")?;
    let (port, rest) = rest.split_once(' ')?;
    rest.starts_with("is in use").then(|| port.parse().ok())?
}

/// Returns the next port that no program holds, at any address of this computer. `own`: ports of the configuration,
/// which no program holds while the server is stopped.
pub fn next_free(port: u16, own: &[u16]) -> Option<u16> {
    let is_free = |port: &u16| {
        if own.contains(port) {
            return false;
        }
        let four = TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
        // A computer without IPv6 reports another error.
        let six = TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port));
        four && !six.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    let first = match port < FIRST_FREE {
        // Port 80 is replaced by 8080, and 443 by 8443, which are usual in development.
        true => port.saturating_add(8000),
        false => port.saturating_add(1),
    };
    (first..first.saturating_add(MAX_PORTS)).find(is_free)
}

/// Returns the ports that the websites of a configuration use; none if it cannot be read.
pub fn of_config(config: &Path) -> Vec<u16> {
    let loaded = rocknet_config::load_despite_errors(config, &ProcessEnvironment);
    let sites = loaded.map(|loaded| loaded.sites).unwrap_or_default();
    let listeners = sites.iter().flat_map(|site| &site.listen);
    let ports = listeners.filter_map(|listen| match listen {
        Listen::Tcp { port, .. } => Some(*port),
        Listen::Unix(_) => None,
    });
    ports.collect()
}

/// Returns the text of a configuration with another port: in names such as `:8080`, in `listen`, and as `listen` of
/// websites that use the port by default. `None` if nothing would change, or if the text would have an error.
pub fn moved(config: &Path, from: u16, to: u16) -> Option<String> {
    let text = fs::read_to_string(config).ok()?;
    let loaded = rocknet_config::load_despite_errors(config, &ProcessEnvironment).ok()?;
    let defaults = match loaded.server.mode {
        Mode::Dev => DEVELOPMENT_PORTS,
        Mode::Prod => DEFAULT_PORTS,
    };
    let mut editor = Editor::new(&text).ok()?;
    for site in &loaded.sites {
        let name = &*site.name;
        if name == format!(":{from}") {
            editor.rename_site(name, &format!(":{to}")).ok()?;
            continue;
        }
        // Websites of an included file have no table here.
        if editor.depth(&["site", name]) < 2 {
            continue;
        }
        let listen = editor.value(&["site", name, "listen"]);
        let new = match &listen {
            Some(listen) => with_port(listen, from, to),
            None if has_port(name) => continue,
            // Without a scheme, a port other than 80 has TLS if the website does.
            None => match (
                defaults.map(|port| if port == from { to } else { port }),
                site.tls.is_some(),
            ) {
                (ports, _) if ports == defaults => continue,
                ([plain, secure], true) => format!("[\"http://{plain}\", {secure}]"),
                ([plain, _], false) if plain == to => format!("\"http://{plain}\""),
                // A website without TLS has no listener at the other port.
                (_, false) => continue,
            },
        };
        if listen.is_none_or(|listen| listen != new) {
            editor.set(&["site", name, "listen"], &new).ok()?;
        }
    }
    let new = editor.to_string();
    let is_valid = new != text && rocknet_config::check_text(&new, config, &ProcessEnvironment).is_ok();
    is_valid.then_some(new)
}

/// Returns true if the name of a website contains its port.
fn has_port(name: &str) -> bool {
    name.rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Replaces a port in the value of `listen`: a number by itself, after a scheme, or after the colon of an address.
fn with_port(value: &str, from: u16, to: u16) -> String {
    let from = from.to_string();
    let mut new = String::new();
    let mut rest = value;
    while let Some(at) = rest.find(&from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let begins = before.chars().last().or_else(|| new.chars().last());
        let is_after_scheme = format!("{new}{before}").ends_with("://");
        let begins =
            is_after_scheme || begins.is_none_or(|before| matches!(before, '[' | ',' | ' ' | '\n' | ':' | '"' | '\''));
        let ends = after
            .chars()
            .next()
            .is_none_or(|after| matches!(after, ']' | ',' | ' ' | '\n' | '"' | '\''));
        new.push_str(before);
        match begins && ends {
            true => new.push_str(&to.to_string()),
            false => new.push_str(&from),
        }
        rest = after;
    }
    new + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_message() {
        assert_eq!(taken("cannot start: port 8080 is in use by nginx (pid 7)"), Some(8080));
        assert_eq!(taken("cannot start: port 80 is not permitted"), None);
        assert_eq!(taken("the port is in use"), None);
    }

    #[test]
    fn ports_of_all_websites_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rocknet.toml");
        fs::write(
            &file,
            "[server]\nmode = \"dev\"\n[site.\":9001\"]\n[site.\"a.test\"]\nlisten = [\"http://9002\", 9003]\n[site.\"b.test\"]\n",
        )
        .unwrap();
        let found = of_config(&file);
        for port in [9001, 9002, 9003, 8080, 8443] {
            assert!(found.contains(&port), "{port}: {found:?}");
        }
        assert!(of_config(&folder.path().join("missing.toml")).is_empty());
    }

    #[test]
    fn a_port_that_is_held_at_any_address_is_not_free() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = held.local_addr().unwrap().port();
        let found = next_free(port - 1, &[]).unwrap();
        assert!(found > port, "{found}");
        assert!(next_free(80, &[]).unwrap() >= 8080);
        assert!(
            next_free(port - 1, &[found]).unwrap() > found,
            "a port of the configuration"
        );
    }

    #[test]
    fn only_the_port_of_a_listener_is_replaced() {
        for (value, expected) in [
            ("8080", "8081"),
            ("[8080, 18080, 80]", "[8081, 18080, 80]"),
            ("[\n  8080,\n]", "[\n  8081,\n]"),
            ("\"http://127.0.0.1:8080\"", "\"http://127.0.0.1:8081\""),
            ("[\"http://8080\", 8443]", "[\"http://8081\", 8443]"),
            ("\"8080\"", "\"8081\""),
            ("\"unix:/run/8080\"", "\"unix:/run/8080\""),
            ("\"unix:/run/8080.sock\"", "\"unix:/run/8080.sock\""),
            ("\"8080.0.0.1:80\"", "\"8080.0.0.1:80\""),
        ] {
            assert_eq!(with_port(value, 8080, 8081), expected);
        }
    }

    #[test]
    fn the_configuration_uses_the_other_port_and_keeps_its_comments() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("rocknet.toml");
        fs::create_dir(folder.path().join("www")).unwrap();
        let moved = |text: &str, from, to| {
            fs::write(&config, text).unwrap();
            moved(&config, from, to)
        };
        let head = "# mine\n[server]\nmode = \"dev\"\n\n";
        let text = format!("{head}[site.\":8080\"] # first\nroot = \"www\"\n");
        assert_eq!(moved(&text, 8080, 8099), Some(text.replace(":8080", ":8099")));
        assert_eq!(moved(&text, 8443, 8444), None);
        let text = format!("{head}[site.\"a.localhost\"] # a\nroot = \"www\"\nlisten = [9000, 9001] # b\n");
        assert_eq!(moved(&text, 9001, 9002), Some(text.replace("9001", "9002")));
        // The default port is in no line, so it is written.
        let text = format!("{head}[site.\"a.localhost\"] # a\nroot = \"www\"\n");
        let new = moved(&text, 8080, 8081).unwrap();
        assert_eq!(new, format!("{text}listen = [\"http://8081\", 8443]\n"));
        let new = moved(&text, 8443, 8444).unwrap();
        assert_eq!(new, format!("{text}listen = [\"http://8080\", 8444]\n"));
        let text = format!("{text}tls = \"off\"\n");
        let new = moved(&text, 8080, 8081).unwrap();
        assert_eq!(new, format!("{text}listen = \"http://8081\"\n"));
        assert_eq!(moved(&text, 8443, 8444), None);
        assert_eq!(moved("rot", 8080, 8081), None);
    }
}
