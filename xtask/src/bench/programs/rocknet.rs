//! RockNet: the build of this checkout, another build, and an example with its own handler.

use super::{Deployment, KEEP_ALIVE_CONNECTIONS, Launch, NO_LIMIT, ServerProgram, profile, write};
use crate::bench::content;
use crate::bench::lists::create_lists;
use crate::bench::page::Page;
use crate::bench::variant::{Scheme, Variant, site_name};
use crate::command::run;
use crate::{Failure, repository};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

pub const PROGRAM: ServerProgram = ServerProgram {
    name: "rocknet",
    settings: "one worker; everything else by default",
    connections: NO_LIMIT,
    find,
    version: Some("--version"),
    configure,
};

/// Another build of RockNet, with which this checkout is compared.
pub const BEFORE: ServerProgram = ServerProgram {
    name: "rocknet-before",
    settings: "the build in ROCKNET_BEFORE; otherwise as rocknet",
    connections: NO_LIMIT,
    find: find_before,
    version: Some("--version"),
    configure: configure_before,
};

/// RockNet embedded in a program with an additional handler, for requests that a file server cannot serve.
pub const WITH_HANDLER: ServerProgram = ServerProgram {
    name: "rocknet-handler",
    settings: "the example `echo`: the same server with a handler that returns the length of the request body",
    connections: NO_LIMIT,
    find: find_with_handler,
    version: None,
    configure: configure_with_handler,
};

/// Maximum concurrent requests to the slow upstream. There are few, so that a queue forms.
const CONCURRENCY: u32 = 8;

fn find() -> Option<PathBuf> {
    built("rocknet")
}

fn find_before() -> Option<PathBuf> {
    std::env::var_os("ROCKNET_BEFORE")
        .map(PathBuf::from)
        .filter(|path| path.exists())
}

fn find_with_handler() -> Option<PathBuf> {
    built("examples/echo")
}

/// Returns the path of the program that measures the cost of metrics; `None` if it is not built.
pub fn metrics_program() -> Option<PathBuf> {
    built("examples/metrics_cost")
}

fn built(name: &str) -> Option<PathBuf> {
    Some(repository::target().join(profile()).join(name)).filter(|path| path.exists())
}

fn configure_with_handler(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let launch = configure(deployment)?;
    Ok(Launch {
        program: find_with_handler().ok_or("not built: cargo build --release -p rocknet --example echo")?,
        arguments: launch.arguments.last().cloned().into_iter().collect(),
        ..launch
    })
}

fn configure_before(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    Ok(Launch {
        program: find_before().ok_or("ROCKNET_BEFORE does not name a program")?,
        ..configure(deployment)?
    })
}

fn configure(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let program = find().ok_or("not built: cargo build --release -p rocknet")?;
    let configuration = configuration(deployment)?;
    let file = write(deployment, "rocknet.toml", &configuration)?;
    Ok(Launch {
        program,
        arguments: vec!["run".into(), "-c".into(), file.into()],
        configuration,
    })
}

fn configuration(deployment: &Deployment<'_>) -> Result<String, Failure> {
    let (port, root) = (deployment.port, deployment.site.root());
    let root = root.display();
    let mut text = String::from("[server]\nworkers = 1\n");
    if deployment.is_http2() && deployment.scheme == Scheme::Http {
        text.push_str("h2c = true\n");
    }
    if deployment.variant == Variant::AccessLog {
        let _ = write!(
            text,
            "[log]\naccess = \"{}\"\n",
            deployment.scratch.join("access.log").display()
        );
    }
    if let (Variant::Certificates(count), Some(certificate)) = (deployment.variant, deployment.certificate()?) {
        for index in 0..count {
            let name = site_name(index);
            // Each site has its own files, as if it had its own certificate, although their bytes are the same.
            let file = |end: &str| deployment.scratch.join(format!("{index}.{end}"));
            fs::copy(&certificate.chain, file("pem"))?;
            fs::copy(&certificate.key, file("key"))?;
            let _ = write!(
                text,
                "[site.\"{name}\"]\nroot = \"{root}\"\nlisten = \"https://127.0.0.1:{port}\"\n\
                 tls = {{ cert = \"{index}.pem\", key = \"{index}.key\" }}\n"
            );
        }
    } else if let Variant::Sites(count) = deployment.variant {
        for index in 0..count {
            let name = site_name(index);
            let _ = write!(
                text,
                "[site.\"{name}\"]\nroot = \"{root}\"\nlisten = [{port}]\ntls = \"off\"\n"
            );
        }
    } else {
        let _ = write!(text, "[site.\":{port}\"]\nroot = \"{root}\"\n");
        if let (Variant::FastCgi, [port]) = (deployment.variant, deployment.upstreams) {
            let _ = writeln!(
                text,
                "fastcgi = {{ to = \"127.0.0.1:{port}\", keep = {KEEP_ALIVE_CONNECTIONS} }}"
            );
        } else if let (Variant::Php, [port]) = (deployment.variant, deployment.upstreams) {
            let _ = writeln!(text, "php = \"127.0.0.1:{port}\"");
        } else if let (Variant::CachedPhp, [upstream]) = (deployment.variant, deployment.upstreams) {
            let _ = write!(
                text,
                "php = \"127.0.0.1:{upstream}\"\ncache = {{ ttl = \"1h\" }}\n\
                 [site.\":{port}\".route.\"/wp-login.php\"]\nlimit = {{ rate = \"10/m\", burst = 21 }}\n"
            );
        } else if !deployment.upstreams.is_empty() {
            let urls = deployment
                .upstreams
                .iter()
                .map(|port| format!("\"http://127.0.0.1:{port}\""));
            let _ = writeln!(text, "proxy = [{}]", urls.collect::<Vec<_>>().join(", "));
            if deployment.variant == Variant::Cached {
                text.push_str("cache = { ttl = \"1h\" }\n");
            }
        }
        if let Variant::Limited { limit } = deployment.variant {
            let _ = writeln!(text, "limit = {limit}");
        }
        if let Variant::Listings { ranked } = deployment.variant {
            let lists = deployment.scratch.join("lists");
            create_lists(&lists)?;
            for name in ["high", "low"] {
                let _ = write!(
                    text,
                    "[site.\":{port}\".route.\"/{name}/*\"]\nroot = \"{}\"\nbrowse = true\n",
                    lists.display()
                );
                if ranked {
                    let _ = writeln!(text, "priority = \"{name}\"");
                }
            }
        }
        if let (Variant::Queued { ranked }, [upstream]) = (deployment.variant, deployment.upstreams) {
            for name in ["high", "low"] {
                let _ = write!(
                    text,
                    "[site.\":{port}\".route.\"/{name}/*\"]\n\
                     proxy = {{ to = \"http://127.0.0.1:{upstream}\", connections = {CONCURRENCY}, queue = \"10s\" }}\n"
                );
                if ranked {
                    let _ = writeln!(text, "priority = \"{name}\"");
                }
            }
        }
        if let Variant::Controller { runs } = deployment.variant {
            let library = controller(deployment)?;
            let (library, page) = (library.display(), content::name(Page::Hello));
            let _ = write!(
                text,
                "[site.\":{port}\".route.\"/{page}\"]\ncontroller = \"{library}:hello\"\n{runs}\n"
            );
        }
        if let Some(certificate) = deployment.certificate()? {
            let (chain, key) = (certificate.chain.display(), certificate.key.display());
            let _ = writeln!(text, "tls = {{ cert = \"{chain}\", key = \"{key}\" }}");
        }
    }
    Ok(text)
}

/// Compiles the controller of the bench.
fn controller(deployment: &Deployment<'_>) -> Result<PathBuf, Failure> {
    let root = repository::root();
    let library = deployment.scratch.join("controller.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-O2", "-fPIC", "-shared", "-I"]);
    compiler.arg(root.join("crates/rocknet-controller/include"));
    compiler
        .arg(root.join("xtask/src/bench/controller.c"))
        .arg("-o")
        .arg(&library);
    run(&mut compiler)?;
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::content::Site;
    use crate::bench::variant::{KeyKind, Version};
    use rocknet_config::ProcessEnvironment;

    #[test]
    fn the_servers_parser_accepts_every_variant() {
        let site = Site::create().expect("a site");
        let scratch = site.scratch("test").expect("a folder");
        let (ecdsa, rsa) = (Scheme::Https(KeyKind::Ecdsa), Scheme::Https(KeyKind::Rsa));
        for (variant, scheme, version, page, sites) in [
            (Variant::Plain, Scheme::Http, Version::Http1, Page::Hello, 1),
            (Variant::Plain, Scheme::Http, Version::Http2, Page::Post(1), 1),
            (Variant::Plain, ecdsa, Version::Http1, Page::Hello, 1),
            (Variant::AccessLog, Scheme::Http, Version::Http1, Page::Hello, 1),
            (
                Variant::Limited { limit: "\"1000000/s\"" },
                Scheme::Http,
                Version::Http1,
                Page::Hello,
                1,
            ),
            (Variant::Proxied(2), Scheme::Http, Version::Http1, Page::Hello, 1),
            (Variant::Cached, ecdsa, Version::Http2, Page::Hello, 1),
            (Variant::FastCgi, Scheme::Http, Version::Http1, Page::Hello, 1),
            (Variant::Php, Scheme::Http, Version::Http1, Page::Script, 1),
            (Variant::CachedPhp, Scheme::Http, Version::Http1, Page::Script, 1),
            (
                Variant::Controller { runs: "isolate = true" },
                Scheme::Http,
                Version::Http1,
                Page::Hello,
                1,
            ),
            (Variant::Sites(1), Scheme::Http, Version::Http1, Page::Hello, 1),
            (
                Variant::Listings { ranked: true },
                Scheme::Http,
                Version::Http1,
                Page::Hello,
                1,
            ),
            (Variant::Sites(20), Scheme::Http, Version::Http1, Page::Hello, 20),
            (Variant::Certificates(20), rsa, Version::Http1, Page::Hello, 20),
        ] {
            let deployment = Deployment {
                port: 8080,
                site: &site,
                scratch: &scratch,
                page,
                version,
                variant,
                scheme,
                upstreams: &[9001, 9002][..variant.upstreams() as usize],
            };
            let text = configuration(&deployment).expect("a configuration");
            let loaded = rocknet_config::parse(&text, &scratch.join("rocknet.toml"), &ProcessEnvironment);
            let loaded = loaded.unwrap_or_else(|report| panic!("{variant:?}: {report:?}\n{text}"));
            assert_eq!(loaded.config.sites.len(), sites, "{variant:?}");
        }
    }
}
