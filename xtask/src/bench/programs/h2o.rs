//! H2O from Debian.

use super::{CONNECTIONS, Deployment, Launch, ServerProgram, user, write};
use crate::Failure;
use crate::bench::content::POST_REDIRECT;
use crate::command::find;

pub const PROGRAM: ServerProgram = ServerProgram {
    name: "h2o",
    settings: "one thread, no access log (its default)",
    connections: CONNECTIONS,
    find: || find("h2o"),
    version: Some("--version"),
    configure,
};

fn configure(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let tls = deployment.certificate()?.map_or(String::new(), |certificate| {
        let (chain, key) = (certificate.chain.display(), certificate.key.display());
        format!("  ssl:\n    certificate-file: {chain}\n    key-file: {key}\n")
    });
    let configuration = format!(
        "{user}num-threads: 1
max-connections: {CONNECTIONS}
http1-request-timeout: 65
listen:
  host: 127.0.0.1
  port: {port}
{tls}hosts:
  default:
    paths:
      /length:
        redirect:
          status: 308
          url: {POST_REDIRECT}
      /:
        file.dir: {root}
",
        user = user("user: www-data\n"),
        port = deployment.port,
        root = deployment.site.root().display(),
    );
    let program = find("h2o").ok_or("not installed")?;
    let file = write(deployment, "h2o.conf", &configuration)?;
    Ok(Launch {
        program,
        arguments: vec!["-c".into(), file.into()],
        configuration,
    })
}
