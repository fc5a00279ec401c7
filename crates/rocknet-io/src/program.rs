//! Waits for external programs to exit and reads their output, with a timeout and a limit on the output.

use std::io::{self, Read};
use std::process::{Child, Output};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Blocks until a program exits, and returns the output of its piped streams. Each stream is cut at 4 MiB. If another
/// process keeps a stream open for 2 s after the exit, the output of that stream is lost and returned as empty.
///
/// # Errors
///
/// Fails with `TimedOut` if the program runs longer than `timeout`. The program is then killed, but the processes
/// that it started are not. Also fails if the state of the program cannot be queried.
pub fn wait_with_output(mut child: Child, timeout: Duration) -> io::Result<Output> {
    let deadline = Instant::now() + timeout;
    // Read concurrently, because a program whose pipe is full never exits.
    let out = child.stdout.take().map(reader);
    let err = child.stderr.take().map(reader);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the program timed out and was killed",
            ));
        }
        thread::sleep(POLL_INTERVAL);
    };
    // A grandchild may keep the pipe open forever, so the wait for the end of the pipe is limited.
    let received = |reader: Option<Receiver<Vec<u8>>>| reader.and_then(|reader| reader.recv_timeout(PIPE_TIMEOUT).ok());
    Ok(Output {
        status,
        stdout: received(out).unwrap_or_default(),
        stderr: received(err).unwrap_or_default(),
    })
}

/// Starts a thread that reads a stream to its end and then sends the bytes.
fn reader(stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || drop(sender.send(read(stream))));
    receiver
}

/// Reads the first [`MAX_OUTPUT`] bytes and discards the rest, so that the program can continue.
fn read(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.by_ref().take(MAX_OUTPUT).read_to_end(&mut bytes);
    let _ = io::copy(&mut stream, &mut io::sink());
    bytes
}

/// Interval between checks for the end of the program. Most programs run for tens of milliseconds.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum time to read the remaining output after the program has exited. At most 64 KiB remain in each pipe.
const PIPE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum output of each stream in bytes. Listings and messages have some kilobytes.
const MAX_OUTPUT: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Starts a shell that runs `script`, with pipes for standard output and standard error.
    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    #[test]
    fn output_is_read_whole_or_to_the_bound() {
        let output = wait_with_output(shell("echo out; echo err >&2; exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(output.status.code(), Some(3));
        let output = wait_with_output(shell("head -c 5000000 /dev/zero"), Duration::from_secs(60)).unwrap();
        assert_eq!(output.stdout.len() as u64, MAX_OUTPUT);
        assert!(output.status.success());
    }

    #[test]
    fn a_program_that_does_not_exit_is_killed() {
        let error = wait_with_output(shell("exec sleep 1000"), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
