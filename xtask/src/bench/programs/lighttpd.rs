//! lighttpd from Debian.

use super::{CONNECTIONS, Deployment, Launch, ServerProgram, user, write};
use crate::Failure;
use crate::command::find;

pub const PROGRAM: ServerProgram = ServerProgram {
    name: "lighttpd",
    settings: "one process, no access log (its default), requests per connection unlimited",
    connections: CONNECTIONS,
    find: || find("lighttpd"),
    version: Some("-v"),
    configure,
};

fn configure(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let configuration = format!(
        "{user}server.bind = \"127.0.0.1\"
server.port = {port}
server.document-root = \"{root}\"
server.errorlog = \"{scratch}/error.log\"
server.max-fds = {descriptors}
server.max-connections = {CONNECTIONS}
server.max-keep-alive-requests = 1000000000
server.max-keep-alive-idle = 65
server.listen-backlog = 4096
mimetype.assign = ( \".html\" => \"text/html\", \"\" => \"application/octet-stream\" )
",
        user = user("server.username = \"www-data\"\nserver.groupname = \"www-data\"\n"),
        port = deployment.port,
        root = deployment.site.root().display(),
        scratch = deployment.scratch.display(),
        descriptors = 2 * CONNECTIONS,
    );
    let program = find("lighttpd").ok_or("not installed")?;
    let file = write(deployment, "lighttpd.conf", &configuration)?;
    Ok(Launch {
        program,
        arguments: vec!["-D".into(), "-f".into(), file.into()],
        configuration,
    })
}
