//! Caddy, built from source.

use super::{CONNECTIONS, Deployment, Launch, ServerProgram, write};
use crate::Failure;
use crate::bench::variant::{Variant, Version};
use crate::tools::CADDY;

pub const PROGRAM: ServerProgram = ServerProgram {
    name: "caddy",
    settings: "only the HTTP versions of the row, no admin endpoint, no access log (its default), as many threads as its core has",
    connections: CONNECTIONS,
    find: || CADDY.built(),
    version: Some("version"),
    configure,
};

fn configure(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let (scheme, protocols, tls) = match deployment.certificate()? {
        None => ("http", "h1 h2c", String::new()),
        Some(certificate) => {
            let (chain, key) = (certificate.chain.display(), certificate.key.display());
            let protocols = if deployment.version == Version::Http3 {
                "h1 h2 h3"
            } else {
                "h1 h2"
            };
            ("https", protocols, format!("  tls {chain} {key}\n"))
        }
    };
    let (bind, encode) = if deployment.variant == Variant::Public {
        ("", "  encode\n")
    } else {
        ("  bind 127.0.0.1\n", "")
    };
    // Automatic certificates are off, because no row uses them. HTTP/3 is on only in rows that use it.
    let configuration = format!(
        "{{
  admin off
  persist_config off
  auto_https off
  storage file_system {scratch}/storage
  servers {{
    protocols {protocols}
  }}
}}
{scheme}://:{port} {{
{bind}{tls}{encode}  redir /length /hello.html 308
  root * {root}
  file_server
}}
",
        port = deployment.port,
        root = deployment.site.root().display(),
        scratch = deployment.scratch.display(),
    );
    let program = CADDY.built().ok_or("not built")?;
    let file = write(deployment, "Caddyfile", &configuration)?;
    let mut arguments = vec!["run".into(), "--adapter".into(), "caddyfile".into()];
    arguments.extend(["--config".into(), file.into()]);
    Ok(Launch {
        program,
        arguments,
        configuration,
    })
}
