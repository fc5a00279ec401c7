//! Controllers in Rust: a greeting, an echo of the request body, and a counter for request bodies of any length.

use rocknet_controller::{Controller, Outcome, Request, export};

fn hello(_: &(), request: &mut Request<'_>) -> Outcome {
    request.set_status(200)?;
    request.add_field("Content-Type", "text/plain; charset=utf-8")?;
    let agent = request.field("User-Agent").unwrap_or(b"unknown client");
    let greeting = format!("Hello from Rust, {}\n", String::from_utf8_lossy(agent));
    Ok(request.write(greeting.as_bytes())?)
}

/// Counts the bytes of a request body and discards them.
struct Count(u64);

impl Controller<()> for Count {
    const TAKES: bool = true;
    const GIVES: bool = false;

    fn begin(_: &(), request: &mut Request<'_>) -> Outcome<Count> {
        request.set_status(200)?;
        Ok(Count(0))
    }

    fn take(&mut self, _: &(), request: &mut Request<'_>, piece: Option<&[u8]>) -> Outcome {
        match piece {
            Some(piece) => self.0 += piece.len() as u64,
            None => request.write(format!("{} bytes\n", self.0).as_bytes())?,
        }
        Ok(())
    }
}

fn echo(_: &(), request: &mut Request<'_>) -> Outcome {
    request.set_status(200)?;
    request.add_field("Content-Type", "text/plain; charset=utf-8")?;
    Ok(request.write(request.content())?)
}

export! {
    ();
    "hello" => hello,
    "echo" => echo,
    "count" => type Count,
}
