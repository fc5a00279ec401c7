//! A program that embeds RockNet: it serves the sites of a configuration, and adds two handlers to each. `/echo`
//! returns the request body, and `/length` its length.
//!
//! `cargo run --example echo -- rocknet.toml`, then `curl -d hello http://localhost:8080/echo`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet::server::Server;
use rocknet::snapshot::Mount;
use rocknet_config::ProcessEnvironment;
use rocknet_config::model::Pattern;
use rocknet_proto::status::Status;

/// The allocator of the `rocknet` program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Paths of the handlers.
const ECHO: &str = "/echo";
const LENGTH: &str = "/length";
/// Response to a request without a body.
const GREETING: &str = "Send me something.\n";

struct Echo;

impl Handler for Echo {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        respond_with(async move {
            let mut content = Vec::new();
            loop {
                match exchange.body.chunk().await {
                    Ok(Some(chunk)) => content.extend_from_slice(&chunk),
                    Ok(None) if content.is_empty() => return Response::new(Status::OK).body(GREETING),
                    Ok(None) => return Response::new(Status::OK).body(content),
                    Err(error) => return Response::new(error.status()),
                }
            }
        })
    }
}

struct Length;

impl Handler for Length {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        respond_with(async move {
            let mut length = 0;
            loop {
                match exchange.body.chunk().await {
                    Ok(Some(chunk)) => length += chunk.len(),
                    Ok(None) => return Response::new(Status::OK).body(format!("{length}\n").into_bytes()),
                    Err(_) => return Response::new(Status::BAD_REQUEST),
                }
            }
        })
    }
}

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1) else {
        eprintln!("usage: echo rocknet.toml");
        return ExitCode::from(2);
    };
    let loaded = match rocknet_config::load(Path::new(&file), &ProcessEnvironment) {
        Ok(loaded) => loaded,
        Err(report) => {
            eprintln!("{report:?}");
            return ExitCode::FAILURE;
        }
    };
    let handlers: [(&str, Arc<dyn Handler>); 2] = [(ECHO, Arc::new(Echo)), (LENGTH, Arc::new(Length))];
    let mut mounts = Vec::new();
    for site in &loaded.config.sites {
        for (path, handler) in &handlers {
            mounts.push(Mount {
                site: site.name.clone(),
                pattern: Pattern::Exact((*path).to_owned()),
                handler: Arc::clone(handler),
            });
        }
    }
    let server = match Server::start(loaded.config, mounts, &mut ()) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for url in server.sites().iter().flat_map(|site| &site.urls) {
        println!("{}{ECHO}", url.trim_end_matches('/'));
    }
    // The server runs until the process ends.
    loop {
        std::thread::park();
    }
}
