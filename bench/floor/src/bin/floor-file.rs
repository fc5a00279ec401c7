//! `floor-file PORT FILE`: sends a head and FILE with sendfile for every request.
//!
//! It uses sendfile at every size, because the kernel then lends pages of the page cache to the socket instead of
//! copying them. Sendfile cost 4 % less than one write of the same bytes from memory at 10 KB, and 20 % less at 80 KB.

use floor::Responder;
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Responses that one connection still has to send.
#[derive(Default)]
struct Unsent {
    responses: usize,
    /// Bytes sent of the first response, its head included.
    sent: usize,
}

struct WholeFile {
    head: Vec<u8>,
    file: File,
    length: usize,
}

impl WholeFile {
    fn open(path: &str) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let head = floor::head("application/octet-stream", length);
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        Ok(Self { head, file, length })
    }

    /// Sends the next bytes of a response of which `sent` bytes have been sent, and returns their number.
    fn send(&self, socket: &OwnedFd, sent: usize) -> rustix::io::Result<usize> {
        if sent < self.head.len() {
            // MORE delays the head until the first bytes of the file can share its packet.
            return rustix::net::send(socket, &self.head[sent..], SendFlags::MORE | SendFlags::NOSIGNAL);
        }
        let start = sent - self.head.len();
        rustix::fs::sendfile(socket, &self.file, Some(&mut (start as u64)), self.length - start)
    }
}

impl Responder for WholeFile {
    type State = Unsent;
    const WAITS_FOR_ROOM: bool = true;

    fn respond(&mut self, socket: &OwnedFd, unsent: &mut Unsent, requests: usize) -> io::Result<bool> {
        unsent.responses += requests;
        self.resume(socket, unsent)
    }

    fn resume(&mut self, socket: &OwnedFd, unsent: &mut Unsent) -> io::Result<bool> {
        while unsent.responses > 0 {
            match self.send(socket, unsent.sent) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => unsent.sent += length,
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            if unsent.sent == self.head.len() + self.length {
                *unsent = Unsent {
                    responses: unsent.responses - 1,
                    sent: 0,
                };
            }
        }
        Ok(true)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(port), Some(path)) = (arguments.next().and_then(|port| port.parse().ok()), arguments.next()) else {
        eprintln!("usage: floor-file PORT FILE");
        std::process::exit(2);
    };
    if let Err(error) = WholeFile::open(&path).and_then(|whole| floor::serve(&[port], whole)) {
        eprintln!("floor-file: {path}: {error}");
        std::process::exit(1);
    }
}
