//! `floor PORT...`: sends the same 13 bytes for every request; all responses to one read share one write.

use floor::Responder;
use std::io;
use std::os::fd::OwnedFd;

const BODY: &[u8] = b"Hello, world!";

struct FixedResponse {
    reply: Vec<u8>,
    output: Vec<u8>,
}

impl Responder for FixedResponse {
    type State = ();
    const WAITS_FOR_ROOM: bool = false;

    fn respond(&mut self, socket: &OwnedFd, (): &mut (), requests: usize) -> io::Result<bool> {
        self.output.clear();
        for _ in 0..requests {
            self.output.extend_from_slice(&self.reply);
        }
        let sent = rustix::io::write(socket, &self.output)?;
        // A client that does not read its responses is an error, because a lower bound does not buffer.
        if sent == self.output.len() {
            Ok(true)
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    fn resume(&mut self, _: &OwnedFd, (): &mut ()) -> io::Result<bool> {
        Ok(true)
    }
}

fn main() {
    let ports: Result<Vec<u16>, _> = std::env::args().skip(1).map(|port| port.parse()).collect();
    let Some(ports) = ports.ok().filter(|ports| !ports.is_empty()) else {
        eprintln!("usage: floor PORT...");
        std::process::exit(2);
    };
    let mut reply = floor::head("text/html; charset=utf-8", BODY.len() as u64);
    reply.extend_from_slice(BODY);
    if let Err(error) = floor::serve(
        &ports,
        FixedResponse {
            reply,
            output: Vec::new(),
        },
    ) {
        eprintln!("floor: {error}");
        std::process::exit(1);
    }
}
