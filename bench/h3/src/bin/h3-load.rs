//! `h3-load [OPTION]... URL`: load generator for HTTP/3.

use bench_h3::{arguments, load};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match arguments::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("h3-load: {error}\n\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    let ready = || {
        let mut output = io::stdout().lock();
        writeln!(output, "ready")?;
        output.flush()
    };
    match load::run(&options, ready) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("h3-load: {error}");
            ExitCode::FAILURE
        }
    }
}
