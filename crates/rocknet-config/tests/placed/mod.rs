//! Files that hold one line in the table of a scope, for tests that go through the table of keys.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::Path;

use rocknet_config::environment::Memory;
use rocknet_config::keys::Scope;
use rocknet_config::{Config, Report};

/// A whole file with one line in the table of a scope, and how its site is named there.
pub fn placed(scope: Scope, line: &str) -> String {
    let site = "[site.\"example.com\"]\nroot = \"/w\"\n";
    match scope {
        Scope::Top => format!("{line}\n{site}"),
        Scope::Server => format!("[server]\n{line}\n{site}"),
        Scope::Events => format!("[server]\nevents = {{ {line} }}\n{site}"),
        Scope::Spool => format!("[server]\nspool = {{ {line} }}\n{site}"),
        Scope::Limits => format!("[limits]\n{line}\n{site}"),
        Scope::Log => format!("[log]\n{line}\n{site}"),
        Scope::Rotate => format!("[log]\nrotate = {{ {line} }}\n{site}"),
        Scope::Cache => format!("[cache]\n{line}\n{site}"),
        Scope::Site if line.starts_with("root") => format!("[site.\"example.com\"]\n{line}\n"),
        Scope::Site => format!("{site}{line}\n"),
        Scope::SiteLimits => format!("{site}limits = {{ {line} }}\n"),
        Scope::SiteLog => format!("{site}log = {{ {line} }}\n"),
        Scope::Route => format!("{site}[site.\"example.com\".route.\"/x/*\"]\n{line}\n"),
        Scope::Tls => format!("[tls]\n{line}\n{site}"),
        Scope::SiteTls => format!("{site}tls = {{ {} }}\n", line.replace('\n', ", ")),
        Scope::Ca => format!("[tls]\nca = {{ url = \"https://a.example/d\", {line} }}\n{site}"),
        Scope::TlsDns => format!("[tls]\ndns = {{ server = \"10.0.0.53\", {line} }}\n{site}"),
        Scope::Rule => {
            let rest = match line.split_whitespace().next() {
                Some("status") => "redirect = \"/b\"",
                Some("body") => "respond = 503",
                Some("rewrite" | "redirect" | "respond") => "",
                _ => "rewrite = \"/b\"",
            };
            let path = if line.starts_with("path") {
                ""
            } else {
                "path = \"/a/*\""
            };
            format!("{site}[[site.\"example.com\".rule]]\n{line}\n{rest}\n{path}\n")
        }
        Scope::Upstream if line.starts_with("url") => format!("{site}proxy = {{ to = {{ {line} }} }}\n"),
        Scope::Upstream => format!("{site}proxy = {{ to = {{ url = \"http://a\", {line} }} }}\n"),
        Scope::Health => {
            let path = if line.starts_with("path") {
                ""
            } else {
                "path = \"/h\", "
            };
            format!("{site}proxy = {{ to = \"http://a\", health = {{ {path}{line} }} }}\n")
        }
        Scope::Mirror if line.starts_with("to") => {
            format!("{site}proxy = {{ to = \"http://a\", mirror = {{ {line} }} }}\n")
        }
        Scope::Mirror => format!("{site}proxy = {{ to = \"http://a\", mirror = {{ to = \"http://b\", {line} }} }}\n"),
        Scope::Proxy if line.starts_with("to") => format!("{site}proxy = {{ {} }}\n", line.replace('\n', ", ")),
        Scope::Proxy => {
            let to = proxied(line);
            format!("{site}proxy = {{ to = \"{to}\", {} }}\n", line.replace('\n', ", "))
        }
        Scope::Application if line.starts_with("to") => format!("{site}fastcgi = {{ {line} }}\n"),
        Scope::Application => format!("{site}fastcgi = {{ to = \"a:1\", {line} }}\n"),
        Scope::Cgi if line.starts_with("folder") => format!("{site}cgi = {{ {line} }}\n"),
        Scope::Cgi => format!("{site}cgi = {{ folder = \"/cgi-bin\", {line} }}\n"),
        Scope::Auth if line.starts_with("users") => format!("{site}auth = {{ {line} }}\n"),
        Scope::Auth => format!("{site}auth = {{ users = {{ bob = \"{BOB}\" }}, {line} }}\n"),
        Scope::Redirect => format!("{site}redirects = {{ \"/a\" = {{ to = \"/b\", {line} }} }}\n"),
    }
}

/// The hash of a password that is not known.
pub const BOB: &str = "$apr1$salt$0123456789012345678901";

/// A server that a key of a proxy has a meaning for.
pub fn proxied(line: &str) -> &'static str {
    let of_tls = ["ca", "server_name", "verify", "cert", "key", "http2"];
    let key = line.split(' ').next().unwrap_or_default();
    if of_tls.contains(&key) { "https://a" } else { "http://a" }
}

pub fn read(text: &str) -> Result<Config, Report> {
    let world = Memory {
        any_directory: true,
        ..Memory::default()
    };
    let loaded = rocknet_config::parse(text, Path::new("/etc/rocknet/rocknet.toml"), &world)?;
    Ok(loaded.config)
}
