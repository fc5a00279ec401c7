//! RockNet itself, built for release from this checkout.

use super::{Launch, NO_LIMIT, Peer, Setting, Variant, site_name, write};
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
    let configuration = configuration(setting);
    let file = write(setting, "rocknet.toml", &configuration)?;
    Ok(Launch {
        program,
        arguments: vec!["run".into(), "-c".into(), file.into()],
        configuration,
    })
}

fn configuration(setting: &Setting<'_>) -> String {
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
    }
    text
}
