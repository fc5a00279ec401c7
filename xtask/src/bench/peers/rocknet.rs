//! RockNet itself, built for release from this checkout.

use super::{Launch, NO_LIMIT, Peer, Setting, write};
use crate::bench::lane::{Variant, site_name};
use crate::{Failure, repository};
use std::fmt::Write as _;
use std::path::PathBuf;

pub const PEER: Peer = Peer {
    name: "rocknet",
    settings: "one worker; everything else as it comes",
    connections: NO_LIMIT,
    find,
    version: Some("--version"),
    configure,
};

fn find() -> Option<PathBuf> {
    Some(repository::target().join("release/rocknet")).filter(|path| path.exists())
}

fn configure(setting: &Setting<'_>) -> Result<Launch, Failure> {
    let program = find().ok_or("not built: cargo build --release -p rocknet")?;
    let configuration = configuration(setting)?;
    let file = write(setting, "rocknet.toml", &configuration)?;
    Ok(Launch {
        program,
        arguments: vec!["run".into(), "-c".into(), file.into()],
        configuration,
    })
}

fn configuration(setting: &Setting<'_>) -> Result<String, Failure> {
    let (port, root) = (setting.port, setting.site.root());
    let root = root.display();
    let mut text = String::from("[server]\nworkers = 1\n");
    if setting.variant == Variant::AccessLog {
        let _ = write!(
            text,
            "[log]\naccess = \"{}\"\n",
            setting.scratch.join("access.log").display()
        );
    }
    if let Variant::Sites(count) = setting.variant {
        for index in 0..count {
            let name = site_name(index);
            let _ = write!(
                text,
                "[site.\"{name}\"]\nroot = \"{root}\"\nlisten = [{port}]\ntls = \"off\"\n"
            );
        }
    } else {
        let _ = write!(text, "[site.\":{port}\"]\nroot = \"{root}\"\n");
        if let Some(certificate) = setting.certificate()? {
            let (chain, key) = (certificate.chain.display(), certificate.key.display());
            let _ = writeln!(text, "tls = {{ cert = \"{chain}\", key = \"{key}\" }}");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::content::Site;
    use crate::bench::lane::Scheme;
    use crate::bench::row::Page;
    use rocknet_config::System;

    #[test]
    fn the_servers_parser_accepts_every_variant() {
        let site = Site::create().expect("a site");
        let scratch = site.scratch("test").expect("a folder");
        for (variant, sites) in [
            (Variant::Plain, 1),
            (Variant::AccessLog, 1),
            (Variant::Sites(1), 1),
            (Variant::Sites(20), 20),
        ] {
            let setting = Setting {
                port: 8080,
                site: &site,
                scratch: &scratch,
                page: Page::Hello,
                variant,
                scheme: Scheme::Http,
            };
            let text = configuration(&setting).expect("a configuration");
            let loaded = rocknet_config::parse(&text, &scratch.join("rocknet.toml"), &System);
            let loaded = loaded.unwrap_or_else(|report| panic!("{variant:?}: {report:?}\n{text}"));
            assert_eq!(loaded.config.sites.len(), sites, "{variant:?}");
        }
    }
}
