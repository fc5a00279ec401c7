//! Files that hold one line in the table of a section, for tests that go through the table of keys.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::Path;

use rocknet_config::environment::Memory;
use rocknet_config::keys::Section;
use rocknet_config::{Config, Report};

/// A whole file with one line in the table of a section, and how its site is named there.
pub fn placed(section: Section, line: &str) -> String {
    let site = "[site.\"example.com\"]\nroot = \"/w\"\n";
    match section {
        Section::Top => format!("{line}\n{site}"),
        Section::Server => format!("[server]\n{line}\n{site}"),
        Section::Events => format!("[server]\nevents = {{ {line} }}\n{site}"),
        Section::Spool => format!("[server]\nspool = {{ {line} }}\n{site}"),
        Section::Limits => format!("[limits]\n{line}\n{site}"),
        Section::Log => format!("[log]\n{line}\n{site}"),
        Section::Rotate => format!("[log]\nrotate = {{ {line} }}\n{site}"),
        Section::Cache => format!("[cache]\n{line}\n{site}"),
        Section::Site if line.starts_with("root") => format!("[site.\"example.com\"]\n{line}\n"),
        Section::Site => format!("{site}{line}\n"),
        Section::SiteLimits => format!("{site}limits = {{ {line} }}\n"),
        Section::SiteLog => format!("{site}log = {{ {line} }}\n"),
        Section::Route => format!("{site}[site.\"example.com\".route.\"/x/*\"]\n{line}\n"),
        Section::Tls => format!("[tls]\n{line}\n{site}"),
        Section::SiteTls => format!("{site}tls = {{ {} }}\n", line.replace('\n', ", ")),
        Section::Ca => format!("[tls]\nca = {{ url = \"https://a.example/d\", {line} }}\n{site}"),
        Section::TlsDns => format!("[tls]\ndns = {{ server = \"10.0.0.53\", {line} }}\n{site}"),
        Section::Rule => {
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
        Section::Upstream if line.starts_with("url") => format!("{site}proxy = {{ to = {{ {line} }} }}\n"),
        Section::Upstream => format!("{site}proxy = {{ to = {{ url = \"http://a\", {line} }} }}\n"),
        Section::Health => {
            let path = if line.starts_with("path") {
                ""
            } else {
                "path = \"/h\", "
            };
            format!("{site}proxy = {{ to = \"http://a\", health = {{ {path}{line} }} }}\n")
        }
        Section::Mirror if line.starts_with("to") => {
            format!("{site}proxy = {{ to = \"http://a\", mirror = {{ {line} }} }}\n")
        }
        Section::Mirror => format!("{site}proxy = {{ to = \"http://a\", mirror = {{ to = \"http://b\", {line} }} }}\n"),
        Section::Proxy if line.starts_with("to") => format!("{site}proxy = {{ {} }}\n", line.replace('\n', ", ")),
        Section::Proxy => {
            let to = proxied(line);
            format!("{site}proxy = {{ to = \"{to}\", {} }}\n", line.replace('\n', ", "))
        }
        Section::Application if line.starts_with("to") => format!("{site}fastcgi = {{ {line} }}\n"),
        Section::Application => format!("{site}fastcgi = {{ to = \"a:1\", {line} }}\n"),
        Section::Cgi if line.starts_with("folder") => format!("{site}cgi = {{ {line} }}\n"),
        Section::Cgi => format!("{site}cgi = {{ folder = \"/cgi-bin\", {line} }}\n"),
        Section::Auth if line.starts_with("users") => format!("{site}auth = {{ {line} }}\n"),
        Section::Auth => format!("{site}auth = {{ users = {{ bob = \"{BOB}\" }}, {line} }}\n"),
        Section::Redirect => format!("{site}redirects = {{ \"/a\" = {{ to = \"/b\", {line} }} }}\n"),
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
