//! Varnish from Debian, a cache in front of an upstream. It supports no TLS.

use super::{Deployment, Launch, NO_LIMIT, ServerProgram, write};
use crate::Failure;
use crate::command::find;

pub const PROGRAM: ServerProgram = ServerProgram {
    name: "varnish",
    settings: "one pool of threads, responses in memory, no log",
    connections: NO_LIMIT,
    find: || find("varnishd"),
    version: Some("-V"),
    configure,
};

fn configure(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let [upstream] = deployment.upstreams else {
        return Err("a cache has one upstream".into());
    };
    let configuration = format!(
        "vcl 4.1;\nbackend default {{\n  .host = \"127.0.0.1\";\n  .port = \"{upstream}\";\n}}\n\
         sub vcl_backend_response {{\n  set beresp.ttl = 1h;\n}}\n"
    );
    let file = write(deployment, "default.vcl", &configuration)?;
    let work = deployment.scratch.join("work");
    let address = format!("127.0.0.1:{}", deployment.port);
    let arguments = [
        "-F",
        "-j",
        "none",
        "-a",
        &address,
        "-s",
        "malloc,256m",
        "-p",
        "thread_pools=1",
        "-p",
        "timeout_idle=60",
    ];
    let mut arguments: Vec<_> = arguments.iter().map(Into::into).collect();
    arguments.extend(["-n".into(), work.into(), "-f".into(), file.into()]);
    Ok(Launch {
        program: find("varnishd").ok_or("not installed")?,
        arguments,
        configuration,
    })
}
