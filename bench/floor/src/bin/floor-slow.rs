//! `floor-slow PORT MILLISECONDS`: sends 13 bytes for each request after a delay, like a server that waits for a
//! database. It uses a thread per connection, because the bench opens only a few connections.

use floor::Requests;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const BODY: &[u8] = b"Hello, world!";

fn serve(mut socket: TcpStream, reply: &[u8], pause: Duration) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (mut unread, mut input) = (Vec::new(), [0; 4096]);
    loop {
        let length = socket.read(&mut input)?;
        if length == 0 {
            return Ok(());
        }
        unread.extend_from_slice(&input[..length]);
        let found = Requests::heads(&unread)?;
        unread.drain(..found.bytes);
        for _ in 0..found.count {
            thread::sleep(pause);
            socket.write_all(reply)?;
        }
        if found.last {
            return Ok(());
        }
    }
}

fn run(port: u16, pause: Duration) -> io::Result<()> {
    let mut reply = floor::head("text/html; charset=utf-8", BODY.len() as u64);
    reply.extend_from_slice(BODY);
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    for socket in listener.incoming() {
        let (socket, reply) = (socket?, reply.clone());
        thread::spawn(move || serve(socket, &reply, pause));
    }
    Ok(())
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u16>().ok());
    let (Some(Some(port)), Some(Some(pause))) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: floor-slow PORT MILLISECONDS");
        std::process::exit(2);
    };
    if let Err(error) = run(port, Duration::from_millis(pause.into())) {
        eprintln!("floor-slow: {error}");
        std::process::exit(1);
    }
}
